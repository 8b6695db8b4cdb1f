"""Files → problems or frozen documents. The one way in for every command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from lakeload.config.cross import (
    missing_destination,
    pipeline_findings,
    remote_findings,
    wrong_destination,
)
from lakeload.config.destination import Destination, destination_notes
from lakeload.config.document import Branch, Tree, TreeReader, plain_data
from lakeload.config.explain import Explainer
from lakeload.config.locate import Location
from lakeload.config.page import Page, Unreadable, read_page
from lakeload.config.pipeline import Pipeline
from lakeload.config.problems import InvalidDocuments, Problem, has_errors, in_order
from lakeload.config.secret_check import ignored_block_problems, reference_problems
from lakeload.config.targets import glue_prefix
from lakeload.config.yaml_nodes import read_nodes
from lakeload.config.yaml_syntax import Span, YamlRefused

Kind = Literal["destination", "pipeline"]

_MODELS: dict[Kind, type[Destination] | type[Pipeline]] = {
    "destination": Destination,
    "pipeline": Pipeline,
}


@dataclass(frozen=True)
class DestinationDocument:
    """A valid destination. `path` is the file it stands in: paths in it are relative to that."""

    path: Path
    model: Destination
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class PipelineDocument:
    """A valid pipeline and its destination, from a file of its own or from within."""

    path: Path
    model: Pipeline
    destination: DestinationDocument
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Inspection:
    """What `validate` says about one file; `kind` is None when it is neither kind."""

    path: Path
    kind: Kind | None
    problems: tuple[Problem, ...]


@dataclass
class _Read:
    """What became of one file: problems, and where it could be read, tree and model."""

    path: Path
    problems: list[Problem]
    kind: Kind | None = None
    page: Page | None = None
    tree: Tree | None = None
    model: Destination | Pipeline | None = None
    destination: DestinationDocument | None = None


def load_pipeline(path: Path, environment: Mapping[str, str]) -> PipelineDocument:
    """Read a pipeline and the destination it names. Raises `InvalidDocuments`."""
    read = _read(path, environment, "pipeline")
    if has_errors(read.problems):
        raise InvalidDocuments(in_order(read.problems))
    assert isinstance(read.model, Pipeline), "a pipeline without errors has a model"  # noqa: S101
    assert read.destination is not None, "and a destination"  # noqa: S101
    return PipelineDocument(path, read.model, read.destination, tuple(in_order(read.problems)))


def load_destination(path: Path, environment: Mapping[str, str]) -> DestinationDocument:
    """Read a destination; of a pipeline, its destination. Raises `InvalidDocuments`."""
    document = load_either(path, environment)
    return document.destination if isinstance(document, PipelineDocument) else document


def load_either(
    path: Path, environment: Mapping[str, str]
) -> PipelineDocument | DestinationDocument:
    """Read a document of either kind. Raises `InvalidDocuments`."""
    read = _read(path, environment)
    if has_errors(read.problems):
        raise InvalidDocuments(in_order(read.problems))
    warnings = tuple(in_order(read.problems))
    if isinstance(read.model, Destination):
        return DestinationDocument(path, read.model, warnings)
    assert isinstance(read.model, Pipeline), "a document without errors has a model"  # noqa: S101
    assert read.destination is not None, "a pipeline without errors has one"  # noqa: S101
    return PipelineDocument(path, read.model, read.destination, warnings)


def inspect_all(paths: Sequence[Path], environment: Mapping[str, str]) -> list[Inspection]:
    """Find everything there is to say about some files, each with what it refers to."""
    found = [_read(path, environment) for path in paths]
    return [Inspection(read.path, read.kind, tuple(in_order(read.problems))) for read in found]


def check(paths: Sequence[Path], environment: Mapping[str, str]) -> list[Problem]:
    """Return every problem of every file and of the destinations pipelines name, sorted."""
    inspections = inspect_all(paths, environment)
    return in_order([problem for item in inspections for problem in item.problems])


def _read(path: Path, environment: Mapping[str, str], expected: Kind | None = None) -> _Read:
    read = _parse(path, environment)
    if read.page is None or read.tree is None:
        return read
    read.kind = _kind(read.tree)
    if read.kind is None or (expected is not None and read.kind != expected):
        read.problems.append(_wrong_kind(read.page, read.tree, read.kind, expected))
        return read
    _validate(read, read.page, read.tree, _MODELS[read.kind])
    if read.kind == "pipeline":
        _read_destination(read, read.page, read.tree, environment)
        _cross_check(read, read.page, read.tree)
    read.problems += reference_problems(read.page, read.tree, environment)
    return read


def _parse(path: Path, environment: Mapping[str, str]) -> _Read:
    """File → tree. Its problems are those of YAML, not of the models."""
    read = _Read(path, [])
    try:
        page = read_page(path)
    except Unreadable as unreadable:
        read.problems.append(unreadable.problem)
        return read
    reader = TreeReader(page, environment, read.problems)
    try:
        node = read_nodes(page.text)
        tree = None if node is None else reader.read(node)
    except YamlRefused as refused:
        page.hide_suspicious()
        read.problems.append(
            page.problem("error", refused.code, refused.message, refused.span, hint=refused.hint)
        )
        return read
    if isinstance(tree, Branch) and tree.entries:
        read.page, read.tree = page, tree
        return read
    empty = tree is None or (isinstance(tree, Branch)) or plain_data(tree) is None
    message = "the document is empty" if empty else "the document is not a mapping of keys"
    span = None if tree is None or empty else tree.span
    read.problems.append(page.problem("error", "not-a-mapping", message, span, hint=_STARTS))
    return read


_STARTS = "a document begins with `version: 1`; `lakeload schema` describes the rest"


def _kind(tree: Tree) -> Kind | None:
    """Tell a document's kind by the keys only one kind has."""
    if not isinstance(tree, Branch):
        return None
    destination, pipeline = set(Destination.model_fields), set(Pipeline.model_fields)
    given = set(tree.entries)
    only_destination = len(given & (destination - pipeline))
    only_pipeline = len(given & (pipeline - destination))
    if only_destination == only_pipeline:
        return None
    return "destination" if only_destination > only_pipeline else "pipeline"


def _wrong_kind(page: Page, tree: Tree, kind: Kind | None, expected: Kind | None) -> Problem:
    if kind is None:
        message = "this is neither a destination nor a pipeline"
        hint = "a destination has `bucket` and `region`, a pipeline has `source` and `tables`"
    else:
        message = f"this is a {kind}, and a {expected} is needed here"
        hint = f"`lakeload schema {expected}` describes what is needed"
    assert isinstance(tree, Branch)  # noqa: S101
    span: Span = next(iter(tree.entries.values())).key
    return page.problem("error", "wrong-kind", message, span, hint=hint)


def _validate(
    read: _Read, page: Page, tree: Tree, model: type[Destination] | type[Pipeline]
) -> None:
    """Tree → model. Cross-checks look at whatever parts are valid, so nothing is held back."""
    explainer = Explainer(page, tree, model)
    data = plain_data(tree)
    try:
        read.model = model.model_validate(data)
    except ValidationError as error:
        read.problems += explainer.problems(error)
    if isinstance(read.model, Destination):
        read.problems += _notes(explainer, read.model)
    read.problems += ignored_block_problems(page, tree)


def _notes(explainer: Explainer, model: Destination, at: Location = ()) -> list[Problem]:
    return [explainer.finding(note, at, "note") for note in destination_notes(model)]


def _cross_check(read: _Read, page: Page, tree: Tree) -> None:
    """What holds between the tables, and between pipeline and destination where there is one."""
    data, explainer = plain_data(tree), Explainer(page, tree, Pipeline)
    destination = None if read.destination is None else read.destination.model
    found = pipeline_findings(data, glue_prefix(destination))
    if destination is not None:
        # What else is wrong with the master, its own type has said.
        remote = remote_findings(data, destination)
        found += [item for item in remote if item.code.startswith("remote-")]
    read.problems += [explainer.finding(item) for item in found]


def _read_destination(read: _Read, page: Page, tree: Tree, environment: Mapping[str, str]) -> None:
    """Find the pipeline's destination; check its file too, and what both must agree on."""
    given = plain_data(tree).get("destination")
    if isinstance(given, dict):
        _read_inner_destination(read, page, tree, given)
    elif isinstance(given, str) and given.strip():
        path = read.path.parent / given
        explainer = Explainer(page, tree, Pipeline)
        if not path.is_file():
            read.problems.append(explainer.finding(missing_destination(given, path)))
            return
        below = _read(path, environment, "destination")
        if any(problem.code == "wrong-kind" for problem in below.problems):
            read.problems.append(explainer.finding(wrong_destination(given)))
            return
        read.problems += below.problems
        if isinstance(below.model, Destination):
            read.destination = DestinationDocument(path, below.model)


def _read_inner_destination(read: _Read, page: Page, tree: Tree, given: dict[str, Any]) -> None:
    """Take the destination within a pipeline, also where the rest of the pipeline is wrong."""
    try:
        model = Destination.model_validate(given)
    except ValidationError:
        return
    read.destination = DestinationDocument(read.path, model)
    read.problems += _notes(Explainer(page, tree, Pipeline), model, ("destination",))

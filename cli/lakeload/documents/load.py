"""Files → problems or frozen documents. The one way in for every command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lakeload.config.document import Tree, plain_data
from lakeload.config.locate import Location
from lakeload.config.page import Page
from lakeload.config.problems import InvalidDocuments, Problem, has_errors, in_order
from lakeload.config.secret_check import reference_problems
from lakeload.documents.cross import missing_destination, pipeline_findings, wrong_destination
from lakeload.documents.destination import Destination
from lakeload.documents.explain import Explainer
from lakeload.documents.format_rules import FORMAT_RULES, destination_findings, destination_notes
from lakeload.documents.parse import Kind, kind_of, parse, wrong_kind
from lakeload.documents.pipeline import Pipeline, pipeline_model
from lakeload.documents.remote import remote_findings
from lakeload.sources.registry import source_type_of
from lakeload_jobs.contract.spec import Nested, SchemaChanges
from lakeload_jobs.contract.traits import FORMATS, FormatTraits


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

    @property
    def nested(self) -> Nested:
        """How structs, arrays and maps are written: JSON text in Iceberg tables by default."""
        return self.model.nested or self._format.nested

    @property
    def schema_changes(self) -> SchemaChanges:
        """What becomes of changed columns: Iceberg tables follow them by default."""
        return self.model.schema_changes or self._format.schema_changes

    @property
    def _format(self) -> FormatTraits:
        return FORMATS[self.destination.model.table_format]


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
    read = _Read(path, [])
    parsed = parse(path, environment, read.problems)
    if parsed is None:
        return read
    page, tree = parsed
    read.kind = kind_of(tree)
    if read.kind is None or (expected is not None and read.kind != expected):
        read.problems.append(wrong_kind(page, tree, read.kind, expected))
        return read
    _validate(read, page, tree, read.kind)
    if read.kind == "pipeline":
        _read_destination(read, page, tree, environment)
        _cross_check(read, page, tree)
    read.problems += reference_problems(page, tree, environment)
    return read


def _validate(read: _Read, page: Page, tree: Tree, kind: Kind) -> None:
    """Tree → model. Cross-checks look at whatever parts are valid, so nothing is held back."""
    data = plain_data(tree)
    model = Destination if kind == "destination" else pipeline_model(source_type_of(data))
    explainer = Explainer(page, tree, model)
    try:
        read.model = model.model_validate(data)
    except ValidationError as error:
        read.problems += explainer.problems(error)
    if model is Destination:
        read.problems += [explainer.finding(item) for item in destination_findings(data)]
    if isinstance(read.model, Destination):
        read.problems += _notes(explainer, read.model)


def _notes(explainer: Explainer, model: Destination, at: Location = ()) -> list[Problem]:
    return [explainer.finding(note, at, "note") for note in destination_notes(model)]


def _cross_check(read: _Read, page: Page, tree: Tree) -> None:
    """What holds between the tables, and between pipeline and destination where there is one."""
    data, explainer = plain_data(tree), Explainer(page, tree, Pipeline)
    destination = None if read.destination is None else read.destination.model
    found = pipeline_findings(data, destination)
    if destination is not None:
        # What else is wrong with the master, its own type has said.
        remote = remote_findings(data, destination)
        found += [item for item in remote if item.code.startswith("remote-")]
        read.problems += [
            explainer.finding(item, (), "note")
            for item in FORMAT_RULES[destination.table_format].pipeline_notes(data)
        ]
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
    explainer, at = Explainer(page, tree, Pipeline), ("destination",)
    read.problems += [explainer.finding(item, at) for item in destination_findings(given)]
    try:
        model = Destination.model_validate(given)
    except ValidationError:
        return
    read.destination = DestinationDocument(read.path, model)
    read.problems += _notes(explainer, model, at)

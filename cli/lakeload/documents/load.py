"""Loading a pipeline and its destination: every problem of all files at once."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from lakeload.config.document import (
    Branch,
    DocumentEntry,
    Items,
    Leaf,
    Location,
    Tree,
    TreeReader,
    plain_data,
)
from lakeload.config.page import Page, Unreadable, read_page
from lakeload.config.problems import InvalidDocuments, Problem, has_errors, in_order
from lakeload.config.secret_names import SECRET_SETTINGS, SHORTHAND, absolute_path, printable
from lakeload.config.yaml_tree import Span, YamlRefused, read_nodes
from lakeload.documents.cross import (
    missing_destination,
    pipeline_findings,
    pipeline_notes,
    remote_findings,
    wrong_destination,
)
from lakeload.documents.destination import Destination
from lakeload.documents.explain import Explainer
from lakeload.documents.format_rules import FORMAT_RULES, destination_findings, destination_notes
from lakeload.documents.named_files import OPTION, NamedFiles
from lakeload.documents.other_products import pasted
from lakeload.documents.pipeline import Pipeline, Table, pipeline_model
from lakeload.sources.registry import source_type_of
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import Nested, SchemaChanges
from lakeload_jobs.contract.traits import FORMATS, FormatTraits
from lakeload_jobs.sources.files.formats.registry import named_format


def reference_problems(page: Page, tree: Tree, environment: Mapping[str, str]) -> list[Problem]:
    """Warn where a secret that can be read here begins or ends with white space.

    It was most likely copied along, and AWS then refuses the secret without saying why.
    A secret that is not there is no problem of the document.
    """
    found = []
    for path, name, entry in _secrets(tree):
        where, value = _value(entry.value, environment, Path(page.path).parent)
        if value != value.strip():
            found.append(
                page.problem(
                    "warning",
                    "white-space",
                    f"the value of `{name}` in {where} begins or ends with whitespace",
                    entry.value.span if isinstance(entry.value, Leaf) else entry.key,
                    hint="remove it there unless it belongs to the secret",
                    key=path,
                )
            )
    return found


def _secrets(tree: Tree, path: str = "") -> Iterator[tuple[str, str, DocumentEntry]]:
    if isinstance(tree, Items):
        for i, item in enumerate(tree.items):
            yield from _secrets(item, f"{path}[{i}]")
    if isinstance(tree, Branch):
        for name, entry in tree.entries.items():
            below = f"{path}.{name}" if path else name
            if name == "headers" and isinstance(entry.value, Branch):
                headers = entry.value.entries.items()
                yield from ((f"{below}.{header}", header, value) for header, value in headers)
            elif name in SECRET_SETTINGS:
                yield below, name, entry
            else:
                yield from _secrets(entry.value, below)


def _value(tree: Tree, environment: Mapping[str, str], folder: Path) -> tuple[str, str]:
    """Return where a reference leads and the value there; '' when it cannot be read here."""
    if isinstance(tree, Leaf) and (match := SHORTHAND.fullmatch(tree.text)):
        return f"`{match[1]}`", environment.get(match[1], "")
    if isinstance(tree, Branch) and len(tree.entries) == 1:
        [(kind, entry)] = tree.entries.items()
        name = entry.value.value if isinstance(entry.value, Leaf) else None
        if kind == "env" and isinstance(name, str):
            return f"`{name}`", environment.get(name, "")
        if kind == "file" and isinstance(name, str):
            return f"the file `{name}`", _file_text(Path(absolute_path(folder, name)))
    return "", ""


def _file_text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read(64 << 10).removesuffix("\n")
    except (OSError, UnicodeDecodeError, ValueError):
        return ""


Kind = Literal["destination", "pipeline"]


def parse(
    path: Path,
    environment: Mapping[str, str],
    problems: list[Problem],
    destination: Path | None = None,
) -> tuple[Page, Branch] | None:
    """Return the file's text and tree, None where it has none.

    The problems it adds are those of YAML, not of the models. `destination` takes the place of a
    pipeline's destination, whatever is written there.
    """
    try:
        page = read_page(path)
    except Unreadable as unreadable:
        problem = unreadable.problem
        problems.append(replace(problem, hint=_data_hint(path) or problem.hint))
        return None
    reader = TreeReader(page, environment, problems)
    try:
        node = read_nodes(page.text)
        tree = None if node is None else reader.read(node)
    except YamlRefused as refused:
        page.hide_suspicious()
        problems.append(
            page.problem("error", refused.code, refused.message, refused.span, hint=refused.hint)
        )
        return None
    if isinstance(tree, Branch) and tree.entries:
        if destination is not None and kind_of(tree) == "pipeline":
            tree = _with_destination(tree, destination, problems)
        return page, tree
    empty = tree is None or (isinstance(tree, Branch)) or plain_data(tree) is None
    message = "the file is empty" if empty else "the file is not a mapping of keys"
    span = None if tree is None or empty else tree.span
    hint = _data_hint(path) or _STARTS
    problems.append(page.problem("error", "not-a-mapping", message, span, hint=hint))
    return None


def _with_destination(tree: Branch, destination: Path, problems: list[Problem]) -> Branch:
    """Return a pipeline's tree with another destination, and remove problems of its own one, such
    as a variable that is not set."""
    before = tree.entries.get("destination")
    key = next(iter(tree.entries.values())).key if before is None else before.key
    if before is not None:
        problems[:] = [one for one in problems if not _is_within(one, before.value.span)]
    text = str(destination)
    entry = DocumentEntry(key, Leaf(text, text, plain=False, span=key))
    return Branch({**tree.entries, "destination": entry}, tree.span)


def _is_within(problem: Problem, span: Span) -> bool:
    at = (problem.line - 1, problem.column - 1)
    return (span.line, span.column) <= at < (span.end_line, span.end_column)


def _data_hint(path: Path) -> str | None:
    """Return how files of data are loaded, where the path is one or a folder; else None. Of a
    folder with configuration files the first one is named."""
    if path.is_dir() and (there := configuration_files(path)):
        return f"did you mean `{printable(str(there[0]))}`?"
    if named_format(path.name) is None and not path.is_dir():
        return None
    command = shlex.join(["lakeload", "init", "--path", str(path)])
    return f"to load data, first write a pipeline for it: `{command}`"


_STARTS = "begin the file with `version: 1`; `lakeload schema` describes the rest"


def configuration_files(folder: Path) -> list[Path]:
    """Return the files of a folder that may be configuration files, pipelines first."""
    files = [file for file in sorted(folder.iterdir()) if file.suffix in (".yml", ".yaml")]
    return sorted(files, key=lambda file: file.stem != "pipeline")


def kind_of(tree: Branch) -> Kind | None:
    """Tell a document's kind by the keys only one kind has. That of another product has none,
    although some of its keys, such as `name` or `bucket`, are those of lakeload."""
    destination, pipeline = set(Destination.model_fields), set(Pipeline.model_fields)
    given = set(tree.entries)
    # A document of ours is one of the two.
    known = max(len(given & destination), len(given & pipeline))
    if "version" not in given and 2 * known <= len(given) and pasted(tree):
        return None
    only_destination = len(given & (destination - pipeline))
    only_pipeline = len(given & (pipeline - destination))
    if only_destination == only_pipeline:
        return None
    return "destination" if only_destination > only_pipeline else "pipeline"


def wrong_kind(page: Page, tree: Branch, kind: Kind | None, expected: Kind | None) -> Problem:
    """Say that a document is not what is expected here, or neither kind."""
    if kind is None and (hint := pasted(tree)):
        message = "these are settings of another product"
    elif kind is None:
        message = "this is neither a destination nor a pipeline"
        hint = "a destination has `bucket` and `region`, a pipeline has `source` and `tables`"
    else:
        message = f"this is a {kind}, and a {expected} is needed here"
        hint = f"`lakeload schema {expected}` describes what is needed"
        beside = Path(page.path).with_name(f"{expected}.yml")
        if beside.is_file():
            hint = f"did you mean `{printable(str(beside))}`? {hint}"
    span = next(iter(tree.entries.values())).key
    return page.problem("error", "wrong-kind", message, span, hint=hint)


@dataclass(frozen=True)
class DestinationDocument:
    """A valid destination. `path` is the file it stands in: paths in it are relative to that."""

    path: Path
    model: Destination
    warnings: tuple[Problem, ...] = ()

    @property
    def destination(self) -> DestinationDocument:
        """Itself: what a pipeline has too."""
        return self


@dataclass(frozen=True)
class PipelineDocument:
    """A valid pipeline and its destination, from a file of its own or from within.

    `named` is the destination file that the command line has named instead.
    """

    path: Path
    model: Pipeline
    destination: DestinationDocument
    warnings: tuple[Problem, ...] = ()
    named: Path | None = None
    listed: tuple[Table, ...] | None = None
    """The tables as the file lists them, where those of the model were found in the source."""

    @property
    def files(self) -> NamedFiles:
        """The files that it was read from, for commands about the same."""
        return NamedFiles(self.path, self.named)

    @property
    def has_globs(self) -> bool:
        """Whether tables stand for all those that the source has."""
        return any(table.is_glob for table in self.listed or self.model.tables)

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


def load_pipeline(
    path: Path, environment: Mapping[str, str], destination: Path | None = None
) -> PipelineDocument:
    """Read a pipeline and the destination it names, or the one given. Raises `InvalidDocuments`."""
    document = load_either(path, environment, destination, expected="pipeline")
    assert isinstance(document, PipelineDocument), "the only kind that was allowed"  # noqa: S101
    return document


def load_destination(path: Path, environment: Mapping[str, str]) -> DestinationDocument:
    """Read a destination; of a pipeline, its destination. Raises `InvalidDocuments`."""
    return load_either(path, environment).destination


def load_either(
    path: Path,
    environment: Mapping[str, str],
    destination: Path | None = None,
    *,
    expected: Kind | None = None,
) -> PipelineDocument | DestinationDocument:
    """Read a document of either kind, or of the one expected.

    `destination` is a file that takes the place of a pipeline's destination. Raises
    `InvalidDocuments`, and `InvalidInput` where it is given beside a destination.
    """
    read = _read(path, environment, expected, destination)
    problems = tuple(in_order(read.problems))
    if has_errors(problems):
        raise InvalidDocuments(problems)
    if isinstance(read.model, Destination):
        refuse_beside_destinations(destination, [path])
        return DestinationDocument(path, read.model, problems)
    assert isinstance(read.model, Pipeline), "a document without errors has a model"  # noqa: S101
    assert read.destination is not None, "a pipeline without errors has one"  # noqa: S101
    return PipelineDocument(path, read.model, read.destination, problems, destination)


def refuse_beside_destinations(destination: Path | None, paths: Sequence[Path]) -> None:
    """Raise `InvalidInput` for `--destination` where no file is a pipeline."""
    if destination is not None:
        which = f"`{paths[0]}` is a destination" if len(paths) == 1 else "no file here is one"
        raise InvalidInput(
            f"`{OPTION}` replaces the destination of a pipeline, and {which}",
            hint=f"name the pipeline, or leave `{OPTION}` out",
        )


def inspect_all(
    paths: Sequence[Path], environment: Mapping[str, str], destination: Path | None = None
) -> list[Inspection]:
    """Find everything there is to say about some files, each with what it refers to.

    `destination` takes the place of the pipelines' destinations.
    """
    found = [_read(path, environment, None, destination) for path in paths]
    return [Inspection(read.path, read.kind, tuple(in_order(read.problems))) for read in found]


def check(paths: Sequence[Path], environment: Mapping[str, str]) -> list[Problem]:
    """Return every problem of every file and of the destinations pipelines name, sorted."""
    inspections = inspect_all(paths, environment)
    return in_order([problem for item in inspections for problem in item.problems])


def _read(
    path: Path,
    environment: Mapping[str, str],
    expected: Kind | None = None,
    destination: Path | None = None,
) -> _Read:
    read = _Read(path, [])
    parsed = parse(path, environment, read.problems, destination)
    if parsed is None:
        return read
    page, tree = parsed
    read.kind = kind_of(tree)
    if read.kind is None or (expected is not None and read.kind != expected):
        read.problems.append(wrong_kind(page, tree, read.kind, expected))
        return read
    _validate(read, page, tree, read.kind)
    if read.kind == "pipeline":
        if destination is None:
            _read_destination(read, page, tree, environment)
        else:
            _read_named_destination(read, destination, environment)
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
    read.problems += [
        explainer.finding(item, (), "note") for item in pipeline_notes(data, destination)
    ]
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
        path = read.path.parent / os.path.expanduser(given)  # noqa: PTH111 - as absolute_path
        explainer = Explainer(page, tree, Pipeline)
        if not os.path.isfile(path):  # noqa: PTH113 - Path's raises for names that are too long
            read.problems.append(explainer.finding(missing_destination(given, path)))
            return
        below = _read(path, environment, "destination")
        if any(problem.code == "wrong-kind" for problem in below.problems):
            read.problems.append(explainer.finding(wrong_destination(given)))
            return
        read.problems += below.problems
        if isinstance(below.model, Destination):
            read.destination = DestinationDocument(path, below.model)


def _read_named_destination(read: _Read, destination: Path, environment: Mapping[str, str]) -> None:
    """Take the destination file that the command line names. Its path is relative to the current
    folder, as that of the pipeline is."""
    below = _read(destination, environment, "destination")
    # Whoever knows the pipeline may expect the path to be relative to it, as the one there is.
    beside = read.path.parent / destination
    if not os.path.exists(destination) and os.path.isfile(beside):  # noqa: PTH110, PTH113
        near = printable(str(beside))
        hint = f"`{OPTION}` is relative to the current folder: did you mean `{near}`?"
        below.problems = [replace(one, hint=hint) for one in below.problems]
    read.problems += below.problems
    if isinstance(below.model, Destination):
        read.destination = DestinationDocument(destination, below.model)


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

"""`lakeload init`: the first destination.yml and pipeline.yml, from flags and answers."""

from __future__ import annotations

import glob
import inspect
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, cast

import typer

from lakeload.commands.options import Output
from lakeload.config.document import quoted
from lakeload.config.model import Finding
from lakeload.config.problems import Problem
from lakeload.config.secret_names import shown
from lakeload.documents.load import Kind, inspect_all
from lakeload.init.documents import (
    DESTINATION,
    DOTENV,
    PIPELINE,
    Given,
    documents,
    in_glue,
    key_columns,
    variables,
)
from lakeload.init.files import (
    is_tracked,
    next_steps,
    open_to_others,
    plan_files,
    require_room,
    write_files,
)
from lakeload.init.interview import PANELS, Ask, Defaults, Question, interview
from lakeload.init.table_settings import OptionValue, TableFiles
from lakeload.sources.paths import local_paths
from lakeload.ui import console
from lakeload.ui.console import OutputFormat
from lakeload.ui.guesses import TableGuess
from lakeload.ui.init import Initialized, ask, show_json, show_text
from lakeload_jobs.contract.errors import InvalidInput, LoadFailed, Refused
from lakeload_jobs.contract.spec import TableFormat
from lakeload_jobs.contract.traits import FORMATS
from lakeload_jobs.core.names import did_you_mean, visible_name
from lakeload_jobs.sources.files.formats.registry import named_format

if TYPE_CHECKING:
    from lakeload.init.database import Database
    from lakeload.init.documents import Answers
    from lakeload.lake.server import Lake
    from lakeload.sources.files.inspected_tables import InspectedTable

Folder = Annotated[Path, typer.Argument(help="The folder to write to; created if missing.")]
NoInput = Annotated[
    bool, typer.Option("--no-input", help="Do not ask questions, even in a terminal.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be written, and write nothing.")
]


def init(
    folder: Folder = Path(),
    no_input: NoInput = False,
    force: Force = False,
    dry_run: DryRun = False,
    output: Output = OutputFormat.TEXT,
    **flags: str | bool | None,
) -> None:
    """Write destination.yml and pipeline.yml, and .env for their secrets.

    In a terminal it prompts for missing options. Elsewhere a missing option is an error.
    Existing files are kept, unless you use --force.
    Exit code 0; 2 when a choice is wrong or missing.
    """
    given = {
        name: ("YES" if flag else "NO") if isinstance(flag, bool) else flag
        for name, flag in flags.items()
    }
    if not force:
        require_room(folder)
    found = _Found(folder)
    defaults: Defaults = {
        "name": pipeline_name(folder),
        "source": found.format,
        "table": found.table,
    }
    prompt = _asker(no_input, output)
    if prompt is None:
        found.check_format_is_known(given)
    answers = interview(given, defaults, prompt, settled=found.settles, doubt=found.doubt)
    lake: Lake | None = None
    if answers.local == "YES":
        # It imports an HTTP client, which most of what init does takes no look at.
        from lakeload.lake.server import Lake, lake_directory

        lake = Lake(lake_directory(os.environ))
        answers = replace(answers, **_local_answers(lake, answers.table_format))
    database = _database(answers, folder)
    inspected = (
        found.tables(answers.path)
        if database is None and _as_found(given, found, answers.path)
        else ()
    )
    tables, warnings = table_files(inspected, given.get("table"), folder)
    if lake is not None and FORMATS[cast(TableFormat, answers.table_format)].has_catalog:
        # Its catalog refuses names with capitals.
        answers = replace(answers, name=answers.name.lower(), table=answers.table.lower())
        tables = tuple(replace(table, name=table.name.lower()) for table in tables)
        if database is not None:
            database = replace(database, lower_in=answers.name)
    names = [visible_name(table.name) for table in tables]
    if in_glue(asdict(answers)):
        names = [name.lower() for name in names]
    warnings = (*warnings, *_without_key(answers, tables))
    if database is not None:
        names = database.names
    else:
        if others := _beside(answers.path) if inspected else ():
            left = quoted(others, 3)
            warnings = (*warnings, f"`{answers.path}` leaves out {left} of the same folder")
        if answers.path and (near := _neighbours(answers.path)) and not found.tables(answers.path):
            warnings = (*warnings, f"`{answers.path}` names no file yet: {near}")
        answers = replace(answers, path=path_from(folder, answers.path))
    texts = documents(answers, tables, database, key_files=str(lake.keys) if lake else "")
    for kind, problem in errors_in(texts):
        raise InvalidInput(
            f"these choices do not make a valid {kind}: {problem.message}", hint=problem.hint
        )
    needed = (*variables(answers), *(database.variables if database else ()))
    files = plan_files(folder, texts, needed, force=force)
    if not dry_run:
        write_files(files)
    dotenv = folder / DOTENV
    done = Initialized(
        files,
        needed,
        next_steps(
            folder,
            secrets=bool(needed),
            database="the database" if database else "",
            lake=None if lake is None else lake.pid() is not None,
        ),
        str(dotenv),
        dry_run=dry_run,
        tracked=bool(needed) and is_tracked(dotenv),
        readable=bool(needed) and open_to_others(dotenv),
        tables=names,
        warnings=warnings,
        guesses=[
            TableGuess(given.get("table") or table.name, guess)
            for table in inspected
            if table.error is None
            for guess in table.guesses
        ],
    )
    (show_json if output is OutputFormat.JSON else show_text)(done)


def _database(answers: Answers, folder: Path) -> Database | None:
    """Return what the database of `--from-url` has, None without one. Raises as finding it does."""
    if not answers.from_url:
        return None
    # It imports the models of all sources, which `--help` does not need.
    from lakeload.init.database import find_database
    from lakeload.ui.display import Phases

    with Phases(console.err, "finding the tables of the database", quiet=console.silent()):
        return find_database(answers, folder, os.environ)


def _local_answers(lake: Lake, table_format: str) -> dict[str, str]:
    """Return what `--local` says of the destination. Raises `MachineNotReady` without a lake."""
    destination = lake.destination(cast(TableFormat, table_format))
    catalog = destination.iceberg.catalog
    answers = {
        "bucket": destination.bucket,
        "region": destination.region,
        "endpoint_url": lake.s3_endpoint,
    }
    if catalog.uri is None:
        return answers
    named = {"catalog_uri": catalog.uri, "warehouse": catalog.warehouse or ""}
    return {**answers, "catalog": catalog.type, **named}


def _signature() -> inspect.Signature:
    """Return the parameters that the parser reads: one flag for each question of the interview."""
    folder, *others, _ = inspect.signature(init, eval_str=True).parameters.values()
    flags = [_parameter(question, panel) for panel in PANELS for question in PANELS[panel]]
    return inspect.Signature([folder, *flags, *others], return_annotation=None)


def _parameter(question: Question, panel: str) -> inspect.Parameter:
    option = typer.Option(
        question.flag if question.metavar else f"{question.flag}/--no-{question.name}",
        help=question.help,
        metavar=question.metavar or None,
        rich_help_panel=panel,
        show_default=False,
    )
    kind = str if question.metavar else bool
    return inspect.Parameter(
        question.name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=None,
        annotation=Annotated[kind | None, option],
    )


init.__signature__ = _signature()  # type: ignore[attr-defined]


def _asker(no_input: bool, output: OutputFormat) -> Ask | None:
    """Return how to ask, None where nobody is there to answer."""
    terminal = sys.stdin is not None and sys.stdin.isatty() and console.err.is_terminal
    return ask if terminal and not no_input and output is OutputFormat.TEXT else None


def pipeline_name(folder: Path) -> str:
    """Return the folder's name as far as a pipeline can be called so."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.absolute().resolve().name)
    return name.lstrip("._-")[:128] or "pipeline"


class _Found:
    """The tables found in the files of a path; each path is inspected once, if it has files.

    A path that names nothing yet is no error: the files may come later.
    """

    def __init__(self, folder: Path) -> None:
        self._beside = [str(folder.absolute() / name) for name in (DESTINATION, PIPELINE)]
        self._doubted: set[str] = set()
        self._tables: dict[str, tuple[InspectedTable, ...]] = {}

    def tables(self, path: str) -> tuple[InspectedTable, ...]:
        """Return the tables that the files make; none of objects in S3: `init` asks no network."""
        if path not in self._tables:
            self._tables[path] = _inspected(path, self._beside)
        return self._tables[path]

    def format(self, given: Given) -> str | None:
        """Return the format of the first table."""
        return next((str(one.format) for one in self._good(given)), None)

    def check_format_is_known(self, given: Mapping[str, str | None]) -> None:
        """Raise `InvalidInput` for a path from which no format follows, and for files of this
        machine that are to be tried and are not there, where no prompt is possible."""
        path = given.get("path") or ""
        if not path or given.get("source") or self.tables(path):
            return
        if not named_format(path):
            if _is_remote(path):
                raise InvalidInput(
                    f"`init` does not inspect objects, so the format of `--path {path}` is not "
                    "known",
                    hint=f"give it with `--source`; `lakeload inspect {shlex.quote(path)}` shows "
                    "it",
                )
            raise InvalidInput(
                f"`--path {path}` names no file, so the format is not known",
                hint=_neighbours(path) or "correct the path, or give the format with `--source`",
            )
        near = _neighbours(path) or ""
        # Whoever tries lakeload has the files. A name that nearly fits is a slip.
        if given.get("local") == "YES" and near.startswith("did you mean"):
            raise InvalidInput(f"`--path {path}` names no file", hint=near)

    def table(self, given: Given) -> str | None:
        """Return the name of the first table."""
        return next((one.name for one in self._good(given)), None)

    def settles(self, question: Question, given: Given) -> bool:
        """Return whether a question has its answer in the files."""
        return question.name in ("source", "table") and bool(self._good(given))

    def doubt(self, question: Question, path: str, given: Given) -> Finding | None:
        """Return that a path names no file, once: the same answer again says that it will."""
        if question.name != "path" or path in self._doubted or _is_remote(path):
            return None
        self._doubted.add(path)
        if self.tables(path):
            return None
        near = _neighbours(path) or ""
        # Files may come later, but whoever tries lakeload has them, and a near name is a slip.
        if given.get("local") != "YES" and not near.startswith("did you mean"):
            return None
        return Finding(f"`{shown(path, 200)}` names no file", f"{near}; or repeat it")

    def _good(self, given: Given) -> list[InspectedTable]:
        return [one for one in self.tables(given.get("path", "")) if one.error is None]


def _inspected(path: str, beside: Sequence[str]) -> tuple[InspectedTable, ...]:
    """Return the tables of local files; `beside` are those that `init` writes.

    Raises `Refused` where none of them can be loaded.
    """
    if _is_remote(path):
        return ()
    # Cheap, and most of what init does takes no look into files.
    if not path or not any(glob.glob(one) for one in local_paths(Path.cwd(), path)):  # noqa: PTH207
        return ()
    from lakeload.commands.inspect import LISTING, inspect_tables
    from lakeload.ui.display import Phases

    with Phases(console.err, LISTING, quiet=console.silent()) as phases:
        tables = inspect_tables([path], Path.cwd(), phases, beside=beside)
    if tables and all(table.error is not None for table in tables):
        error = tables[0].error
        assert error is not None  # noqa: S101
        raise Refused(error.message, hint=error.hint)
    return tables


def _is_remote(path: str) -> bool:
    """Return whether a path is a URL of another place than this machine."""
    return "://" in path and not path.startswith("file:")


def _neighbours(path: str) -> str | None:
    """Return what there is in place of a local path that names nothing."""
    from lakeload_jobs.sources.paths.local_listing import expand

    try:
        if not _is_remote(path):
            expand(local_paths(Path.cwd(), path))
    except LoadFailed as error:
        return error.hint
    return None


def _beside(path: str) -> tuple[str, ...]:
    """Return the names of files that a glob leaves out, and that end as those it names do."""
    from lakeload.sources.files.inspected_tables import beside

    return beside(path, Path.cwd())


def _as_found(given: Mapping[str, str | None], found: _Found, path: str) -> bool:
    """Return whether the files are of the format that the flags say."""
    wanted = (given.get("source") or "").upper()
    formats = {str(table.format) for table in found.tables(path) if table.error is None}
    return not wanted or formats == {wanted}


def table_files(
    inspected: Sequence[InspectedTable], name: str | None, folder: Path
) -> tuple[tuple[TableFiles, ...], tuple[str, ...]]:
    """Return the tables as a pipeline in `folder` has them, and what to say of the files.

    Raises `InvalidInput` for one `name` of several tables.
    """
    good = [table for table in inspected if table.error is None]
    if name and len(good) > 1:
        raise InvalidInput(
            f"`--table` names one table, but the files make up {len(good)}",
            hint="leave it out, and change the names in pipeline.yml",
        )
    tables = tuple(
        TableFiles(
            name or table.name,
            tuple(path_from(folder, path) for path in table.paths),
            str(table.format),
            _options(table),
            {
                guess.option: f"{_CONFIDENCE[guess.confidence]}: {guess.reason}"
                for guess in table.guesses
                if guess.confidence in _CONFIDENCE
            },
            table.rename,
            table.dates,
            tuple(table.columns),
        )
        for table in good
    )
    left = [
        f"`{table.paths[0]}` is left out: {table.error.message}"
        for table in inspected
        if table.error is not None
    ]
    return tables, (*left, *(f"{one.name}: {text}" for one in good for text in one.warnings))


def _without_key(answers: Answers, tables: Sequence[TableFiles]) -> tuple[str, ...]:
    """Return what to say of tables that lack columns of the key.

    Raises `InvalidInput` where no table has them all.
    """
    lacking = {table.name: table.lacking(key_columns(answers)) for table in tables}
    if tables and all(lacking.values()):
        least = min(lacking.values(), key=len)
        what = f"the column{'s' if len(least) > 1 else ''} {quoted(least)}"
        near = did_you_mean(least[0], [name for table in tables for name in table.columns])
        raise InvalidInput(
            f"`--primary-key {answers.primary_key}`: no table has {what}",
            hint=near or "name columns that `lakeload inspect` shows",
        )
    return tuple(
        f"{name}: no column {quoted(missing)}, so it is not loaded with UPSERT"
        for name, missing in lacking.items()
        if missing
    )


_CONFIDENCE = {"MEDIUM": "probably", "LOW": "perhaps"}


def _options(table: InspectedTable) -> dict[str, OptionValue]:
    """Return the options, and also a header or records that are probably none: whoever reads them
    can judge."""
    unsure = {
        guess.option: guess.value
        for guess in table.guesses
        if guess.option in ("header", "records") and guess.confidence != "HIGH"
    }
    return {**table.options, **unsure}


def path_from(folder: Path, path: str) -> str:
    """Return a path that was given here as it is found from the document's folder."""
    # A shell does it for flags, nobody for an answer. Path's own fails where there is no such user.
    path = os.path.expanduser(path)  # noqa: PTH111
    if "://" in path or path.startswith("file:") or Path(path).is_absolute():
        return path
    end = "/" if path.endswith("/") else ""
    # After a link `..` means what the file system says, so the way starts at the real folder.
    return os.path.relpath(path, folder.resolve()) + end


def errors_in(
    texts: Mapping[str, str], folder: Path | None = None
) -> Iterator[tuple[Kind | None, Problem]]:
    """Yield what `sync` would refuse in documents that are not written yet, which stand beside the
    destination of `folder` where they are without one."""
    with TemporaryDirectory(prefix="lakeload-") as scratch:
        for name, text in texts.items():
            (Path(scratch) / name).write_text(text, encoding="utf-8")
        if folder and DESTINATION not in texts and (folder / DESTINATION).is_file():
            (Path(scratch) / DESTINATION).symlink_to((folder / DESTINATION).resolve())
        for inspection in inspect_all([Path(scratch) / name for name in texts], os.environ):
            for problem in inspection.problems:
                if problem.severity == "error":
                    yield inspection.kind, problem

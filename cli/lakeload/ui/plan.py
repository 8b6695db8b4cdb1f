"""A plan on the screen, or as one JSON document."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text
from typing_extensions import TypedDict

from lakeload.config.secret_names import printable
from lakeload.documents.durations import format_duration
from lakeload.documents.named_files import NamedFiles
from lakeload.formats.plan import (
    DeletesPlan,
    IcebergPlan,
    SchemaFound,
    TablePlan,
    exit_code_of,
)
from lakeload.launch.spec import Attempt
from lakeload.sources.report import CursorPlan, IncrementalPlan
from lakeload.ui.console import MANY_TABLES
from lakeload.ui.errors import say, show_trouble
from lakeload.ui.names import Name
from lakeload_jobs.contract.codec import format_instant, to_json
from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.contract.plan import CatalogPlan
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.contract.spec import CommitAt, RoundLimit
from lakeload_jobs.core.sizes import counted, format_size

STYLES = {"LOAD": "green", "NO_OP": "green", "BLOCKED": "red", "FAIL": "red"}

COLUMNS_SHOWN = 40
"""Columns of a new table that are listed; JSON has all."""

_VERBS = {
    "publish": "publish",
    "clean": "clean up",
    "void": "discard",
    "catalog": "sync to the catalog",
}
"""What would be done with a job that was left unfinished, by `Pending.action`."""


class PlanDocument(TypedDict):
    """`plan --output json` and `sync --dry-run --output json`."""

    job_id: str
    pipeline: str
    synced: str
    exit_code: int
    tables: list[TablePlan]
    warnings: list[str]


def to_document(
    pipeline: str, attempt: Attempt, plans: Sequence[TablePlan], warnings: Sequence[str] = ()
) -> PlanDocument:
    """Return the JSON document of `plan --output json`; keys are only ever added."""
    return {
        "job_id": attempt.job_id,
        "pipeline": pipeline,
        "synced": format_instant(attempt.synced),
        "exit_code": int(exit_code_of(plans)),
        "tables": [to_json(plan) for plan in plans],
        "warnings": list(warnings),
    }


def show_text(
    plans: Sequence[TablePlan],
    out: Console,
    err: Console,
    *,
    quiet: bool = False,
    readers: Sequence[str] = (),
    query: str | None = None,
    files: NamedFiles | None = None,
    warnings: Sequence[str] = (),
    details: Collection[str] | None = None,
) -> None:
    """Write the tables and where they would go to stdout, the errors to stderr.

    `readers` are the engines that queries of these tables can be written for, from `files`, and
    `query` is the command that reads one of them without an engine;
    `warnings` are about the whole destination. Tables in `details` have more than a line; None:
    all, up to `MANY_TABLES`. Those that would fail come first.
    """
    plans = sorted(plans, key=lambda plan: exit_code_of([plan]) == ExitCode.OK)
    of_databases = all(plan.key_from is not None for plan in plans)
    if of_databases and len(plans) > MANY_TABLES:
        out.print(_database_grid(plans, out.width))
    else:
        out.print(_grid(plans))
    if len(plans) > MANY_TABLES:
        out.print(Text(_totals(plans), "bold"), soft_wrap=True)
    for plan in plans:
        if len(plans) > MANY_TABLES if details is None else plan.table not in details:
            continue
        lines = _details(plan)
        if lines or plan.sample:
            out.print(Text(printable(plan.target), "bold"), soft_wrap=True)
        for line in lines:
            out.print(Text(f"  {printable(line)}"), soft_wrap=True)
        if plan.sample:
            out.print(_sample(plan.sample, out.width))
    for targets, error, only_warning in _troubles(plans):
        show_trouble(err, ", ".join(targets), error, warning=only_warning)
    for warning in warnings:
        say(err, "warning", warning)
    files = files or NamedFiles(Path("pipeline.yml"))
    if not quiet:
        say(err, "note", "nothing was written")
        if details is None and len(plans) > MANY_TABLES:
            more = f"`{files.command('plan', '--details', 'TABLE')}`"
            say(err, "note", f"{more} shows what would change")
        for line in _reading(readers, files, query) if exit_code_of(plans) == ExitCode.OK else ():
            say(err, "note", line)


def _troubles(plans: Sequence[TablePlan]) -> Iterator[tuple[list[str], ErrorInfo, bool]]:
    """Yield errors and warnings with the tables they are about: one that several tables have, such
    as a denial, is one line. The last is True for a warning."""
    found: dict[tuple[str, str, bool], tuple[list[str], ErrorInfo, bool]] = {}

    def add(plan: TablePlan, error: ErrorInfo, *, warning: bool) -> None:
        texts = [error.message, error.hint or ""]
        # `schema.table` and, in an ARN, `schema/table`: a name alone may be a word of the text.
        for name in (plan.target, plan.target.replace(".", "/", 1)) if "." in plan.target else ():
            texts = [text.replace(name, "") for text in texts]
        key = (texts[0], texts[1], warning)
        found.setdefault(key, ([], error, warning))[0].append(plan.target)

    for plan in plans:
        for error in (plan.error, plan.schema.error if plan.schema else None):
            if error is not None:
                add(plan, error, warning=False)
        for text in (*plan.warnings, *(plan.schema.warnings if plan.schema else ())):
            add(plan, ErrorInfo("Warning", text, 0), warning=True)
        if plan.catalog is not None and plan.catalog.unasked is not None:
            add(plan, plan.catalog.unasked, warning=True)
    yield from found.values()


def _reading(readers: Sequence[str], files: NamedFiles, query: str | None) -> Iterator[str]:
    """Yield what writes the queries; it depends on the destination, and so does what can read."""
    if query is not None:
        yield f"to read these tables: `{query}`"
        return
    if readers:
        yield f"to read these tables: `{files.command('policy', '--for', readers[0])}`"
    if readers[1:]:
        yield f"`--for` also takes {', '.join(readers[1:])}"


def _grid(plans: Sequence[TablePlan]) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column("table", overflow="fold")
    grid.add_column("target", overflow="fold")
    grid.add_column("mode", no_wrap=True)
    for name in ("files", "size"):
        grid.add_column(name, justify="right", no_wrap=True)
    grid.add_column("action", no_wrap=True)
    for plan in plans:
        new = plan.incremental  # of an incremental table what a load would read, not all there is
        grid.add_row(
            Name(plan.table),
            Name(plan.target),
            plan.mode,
            f"{new.new_files if new else plan.files:,}",
            format_size(new.new_bytes if new else plan.bytes),
            Text(plan.action, STYLES[plan.action]),
        )
    return grid


_KEY_WIDTH = 14


def _database_grid(plans: Sequence[TablePlan], width: int) -> Table:
    """Return tables of a database in a line each, however long their names are."""
    rows = [
        [
            plan.mode,
            _shortened(", ".join(map(printable, plan.key)), _KEY_WIDTH),
            "" if plan.estimated_rows is None else _about(plan.estimated_rows),
            format_size(plan.bytes) if plan.bytes else "",
            _columns_in_short(plan),
        ]
        for plan in plans
    ]
    names = ["mode", "key", "~rows", "size", "columns"]
    taken = sum(max(len(row[i]) for row in [names, *rows]) + 1 for i in range(len(names)))
    longest = max(12, width - taken - max(len("action"), *(len(plan.action) for plan in plans)))
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    grid.add_column("table", no_wrap=True)
    for name in names:
        justify: Literal["right", "left"] = "right" if name in ("~rows", "size") else "left"
        grid.add_column(name, justify=justify, no_wrap=True)
    grid.add_column("action", no_wrap=True)
    for plan, row in zip(plans, rows, strict=True):
        name = _shortened(printable(plan.table), longest - 1)
        grid.add_row(Text(name), *map(Text, row), Text(plan.action, STYLES[plan.action]))
    return grid


def _about(count: int) -> str:
    """Return a number that is an estimate anyway, as `1.2 M` where it is large."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= 10 * size or (count >= size and unit != "k"):
            return f"{count / size:,.1f} {unit}"
    return f"{count:,}"


def _shortened(text: str, width: int) -> str:
    """Return text whose middle is left out where it is too long: tables often begin alike."""
    if len(text) <= width:
        return text
    half = (width - 1) // 2
    return f"{text[: width - 1 - half]}…{text[len(text) - half :]}"


def _columns_in_short(plan: TablePlan) -> str:
    """Say in a word what a load does to the columns; '' where that is not known."""
    found = plan.schema
    if found is None or found.error is not None:
        return "new" if plan.first_run and plan.action == "LOAD" else ""
    if found.creates:
        return "new"
    if found.replaces:
        return "replaced"
    changes = len(found.adds) + len(found.widens)
    return f"+{changes}" if changes else f"-{len(found.removed)}" if found.removed else "same"


def _totals(plans: Sequence[TablePlan]) -> str:
    """Say how many tables there are, by what would become of them."""
    actions = [plan.action for plan in plans]
    parts = (f"{actions.count(action)} {action}" for action in STYLES if action in actions)
    return f"{len(plans)} tables: {', '.join(parts)}"


def _details(plan: TablePlan) -> list[str]:
    """Return what the table is, what would become of it, and what would come before the load."""
    lines = _iceberg(plan.iceberg, plan.mode) if plan.iceberg else []
    if plan.action == "LOAD":
        if plan.example:
            lines.append(plan.example + (" (first run)" if plan.first_run else ""))
        if plan.catalog is not None:
            lines.append(_glue(plan.catalog))
    if plan.incremental is not None:
        lines.append(_new_files(plan.incremental))
    if plan.cursor is not None:
        lines.append(_new_rows(plan.cursor, idle=plan.action == "NO_OP"))
    if plan.round_limit is not None and plan.action == "LOAD":
        lines.append(_round_limit(plan.round_limit, plan.incremental))
    if plan.commit_at is not None and plan.rounds is not None:
        lines.append(_commit_at(plan.commit_at))
    if plan.rounds is not None:
        lines += plan.rounds.notes
    if plan.schema is not None:
        lines += _schema(plan.schema)
    if plan.action == "LOAD":
        if plan.reader is not None:
            lines.append("read by Spark" if plan.reader == "jvm" else "read without Spark's reader")
        if plan.writer is not None:
            by_spark = plan.writer == "spark"
            how = "by Spark" if by_spark else "without Spark's writer"
            lines.append(f"data files written {how}")
        if plan.iceberg is not None and plan.iceberg.needs_java is not None:
            lines.append(f"needs Iceberg's Java code: {plan.iceberg.needs_java}")
        if plan.estimated_rows is not None:
            lines.append(f"about {counted(plan.estimated_rows, 'row')}, as the database estimates")
        if plan.key_from is not None:
            lines.append(_key(plan))
        if plan.detect_deletes is not None:
            lines.append(_deletes(plan.detect_deletes))
        lines.append(f"_supa_index: {plan.index}, {plan.numbering}")
        if plan.side_table:
            lines.append(f"rejected records go to {plan.side_table}, up to {plan.max_rejected}")
    for job in plan.recovery:
        lines.append(f"would first {_VERBS[job.action]} what job {job.job_id} left:")
        amount = f"{counted(job.files, 'file')}, {counted(job.rows, 'row')}"
        lines.append(f"  {amount} of pipeline {job.pipeline}")
    return lines


def _key(plan: TablePlan) -> str:
    """Say which columns identify a row, and what says so."""
    says = "in the database" if plan.key_from == "database" else "in `primary_key`"
    if not plan.key:
        return f"_supa_id: of all columns, because there is no key {says}"
    return f"_supa_id: of the key {says}: {', '.join(plan.key)}"


def _deletes(found: DeletesPlan) -> str:
    """Say which keys would be compared."""
    rows = "all rows" if found.source_rows is None else f"about {counted(found.source_rows, 'row')}"
    table = "of the table"
    if found.jobs is not None:
        table = f"in the files of {counted(found.jobs, 'job')}"
    elif found.table_rows is not None:
        table = f"of {counted(found.table_rows, 'row')} of the table"
    return (
        f"reads the keys of {rows} of the source and the keys {table}, to delete up to "
        f"{found.max_deleted}"
    )


def _new_files(found: IncrementalPlan) -> str:
    """Say which files a load would read, and which it would not."""
    files = f"{found.new_files:,} ({format_size(found.new_bytes)})"
    if found.reload:
        return f"all files would be appended: {files}; known: {found.known_files:,}"
    changed = f", {found.changed:,} of them new versions" if found.changed else ""
    skipped = f", {found.skipped:,} of them changed and skipped" if found.skipped else ""
    return f"new files: {files}{changed}; known: {found.known_files:,}{skipped}"


def _round_limit(limit: RoundLimit, found: IncrementalPlan | None) -> str:
    """Say how much each job loads, and what is left for later ones."""
    amounts = [counted(limit.files, "file")] if limit.files is not None else []
    amounts += [format_size(limit.bytes)] if limit.bytes is not None else []
    amounts += [counted(limit.rows, "row")] if limit.rows is not None else []
    line = f"each job loads up to {' and '.join(amounts)} (round_limit)"
    if found is None or not found.later_files:
        return line
    later = f"{counted(found.later_files, 'file')} ({format_size(found.later_bytes)})"
    return f"{line}: later jobs load {later} more"


def _commit_at(given: CommitAt) -> str:
    """Say how long new data waits."""
    parts = [format_size(given.bytes)] if given.bytes is not None else []
    if given.age is not None:
        parts.append(f"data that is {format_duration(timedelta(seconds=given.age))} old")
    return f"new data waits for {' or '.join(parts)} (commit_at)"


def _new_rows(found: CursorPlan, *, idle: bool) -> str:
    """Say from which value of the cursor on a load would read."""
    name = printable(found.column)
    if idle:
        return "no new rows" + (f"; {name} is at {printable(found.last)}" if found.last else "")
    if found.last is None:
        return f"reads all rows; later loads those with new values of {name}"
    return f"reads rows with {name} from {printable(found.last)} to {printable(found.to or '')}"


def _glue(change: CatalogPlan) -> str:
    """Say what a load would change in Glue."""
    table = f"Glue: {change.database}.{change.table}"
    if change.unasked is not None:
        return f"{table}, which could not be read"
    if change.creates_table:
        return f"{table}, would be created" + (", and its database" * change.creates_database)
    if change.adds_columns:
        return f"{table}, would get the columns {', '.join(change.adds_columns)}"
    return f"{table}, exists"


def _iceberg(found: IcebergPlan, mode: str) -> list[str]:
    """Return what a table is now and what would become of it, each a line."""
    lines = [_iceberg_state(found), found.location or "its location is chosen by the catalog"]
    shape = []
    if found.partition_by:
        shape.append(f"partitioned by {', '.join(found.partition_by)}")
    if found.identifiers:
        shape.append(f"key {', '.join(found.identifiers)}")
    if shape:
        lines.append("; ".join(shape))
    for left in found.branches:
        if left.drops:
            lines.append(f"would drop branch {left.name}")
        else:
            lines += [f"leaves branch {left.name}", "  its attempt may be running"]
    if mode == "OVERWRITE" and found.exists and found.already is None:
        lines.append("all of its rows would be replaced, in one snapshot")
    return lines


def _iceberg_state(found: IcebergPlan) -> str:
    if not found.exists:
        return f"Iceberg, would be created (format version {found.format_version})"
    if found.already is not None:
        return f"Iceberg, this job is committed: snapshot {found.already}"
    if found.snapshot_id is None:
        return f"Iceberg, exists; branch {found.branch} is empty"
    at = f"branch {found.branch} at snapshot {found.snapshot_id}"
    return f"Iceberg, exists; {at}, {counted(found.rows, 'row')}"


def _schema(found: SchemaFound) -> list[str]:
    """Return what a load would do to the columns of a table, each a line."""
    if found.error is not None:
        return ["the columns do not fit"] if found.columns else []
    if not found.columns:
        return ["the source has no columns yet"]
    if found.creates:
        return _listed(found)
    if not found.changes:
        return ["columns stay as they are"]
    return ["the load", *(f"  {change}" for change in found.changes)]


def _listed(found: SchemaFound) -> list[str]:
    listed = list(found.columns.items())
    some = "" if found.rows_read is None else f", from the first {counted(found.rows_read, 'row')}"
    lines = [f"{counted(len(listed), 'column')}{some}"]
    width = max(len(name) for name, _ in listed[:COLUMNS_SHOWN])
    lines += [f"  {name:<{min(width, 30)}}  {kind}" for name, kind in listed[:COLUMNS_SHOWN]]
    more = len(listed) - COLUMNS_SHOWN
    return [*lines, f"  and {more:,} more"] if more > 0 else lines


def _sample(rows: Sequence[dict[str, str | None]], width: int) -> Table:
    """Return the first rows, a column of the source on each line."""
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    grid.add_column("  column", no_wrap=True, overflow="ellipsis", max_width=28)
    names = min(28, max(map(len, rows[0])) + 2) + 2
    most = max(6, (width - names) // len(rows) - 2)
    for number in range(1, len(rows) + 1):
        grid.add_column(f"row {number}", no_wrap=True, overflow="ellipsis", max_width=most)
    for name in list(rows[0])[:COLUMNS_SHOWN]:
        values = (row[name] for row in rows)
        cells = [Text("null", "dim") if v is None else Text(printable(v[:60])) for v in values]
        grid.add_row(Text(f"  {printable(name)}"), *cells)
    return grid

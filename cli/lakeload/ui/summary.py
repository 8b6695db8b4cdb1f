"""Summary of a sync: a table with its errors, or one JSON document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lakeload.launch.outcome import NOTHING_COMMITTED, Outcome
from lakeload.launch.timings import NO_TIME, PHASES, TableTime, WallTime
from lakeload.ui.console import MANY_TABLES
from lakeload.ui.errors import say, show_trouble
from lakeload.ui.json_documents import MissingArchive, SyncDocument
from lakeload.ui.names import Name
from lakeload.ui.progress import STYLES
from lakeload_jobs.contract.codec import format_instant, to_json
from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.contract.result import RowChanges, TableResult
from lakeload_jobs.contract.usage import Usage
from lakeload_jobs.core.names import REJECTED_SUFFIX
from lakeload_jobs.core.sizes import counted, format_size


@dataclass(frozen=True)
class Summary:
    """Everything that is shown of one sync."""

    job_id: str
    attempt_id: str
    pipeline: str
    bucket: str
    started_at: datetime
    seconds: float
    outcome: Outcome
    log: Path | None = None
    """spark.log, when Spark was started."""
    wall_time: WallTime = NO_TIME
    """The time of each phase."""
    usage: Usage = field(default_factory=Usage)
    """What the command has used, besides what the outcome has of Spark."""
    timings: bool = False
    """Whether text shows the time of each phase."""
    class_data: MissingArchive | None = None
    """The AppCDS archive that Spark could have started with; None where a hint is not due."""


def to_document(summary: Summary) -> SyncDocument:
    """Return the JSON document of `sync --output json`; keys are only ever added."""
    outcome = summary.outcome
    return {
        "job_id": summary.job_id,
        "attempt_id": summary.attempt_id,
        "pipeline": summary.pipeline,
        "status": outcome.status,
        "exit_code": int(outcome.exit_code),
        "started_at": format_instant(summary.started_at),
        "seconds": round(summary.seconds, 3),
        "tables": [
            to_json(replace(table, seconds=round(table.seconds, 3))) for table in outcome.tables
        ],
        "error": to_json(outcome.error),
        "log": str(summary.log) if summary.log else None,
        "class_data": summary.class_data,
        "usage": to_json(summary.usage.with_more(outcome.usage)),
        "timings": to_json(summary.wall_time),
    }


def show_text(summary: Summary, out: Console, err: Console, *, quiet: bool = False) -> None:
    """Write the table to stdout, what went wrong and what to do about it to stderr."""
    many = len(summary.outcome.tables) > MANY_TABLES
    if summary.outcome.tables:
        out.print(_grid(summary))
        if many:
            out.print(Text(_totals(summary), "bold"), soft_wrap=True, highlight=False)
        snapshots, folders = ((), ()) if many else (_snapshots(summary), _folders(summary))
        for line in [*snapshots, *_counts(summary), *folders]:
            out.print(Text(line, "dim"), soft_wrap=True, highlight=False)
    if summary.timings:
        _show_times(summary.wall_time, out)
    if summary.class_data is not None and not quiet:
        out.print(Text(_without_archive(summary.class_data), "dim"), soft_wrap=True)
    if not quiet:
        show_remarks(summary, err)
    for table in summary.outcome.tables:
        if table.error is not None and _tells_more(table, summary.outcome):
            show_trouble(err, table.target, table.error)
    if summary.outcome.error is not None:
        show_trouble(err, "", summary.outcome.error)
    show_what_next(summary, err)


def show_remarks(summary: Summary, err: Console) -> None:
    """Write the notes and warnings of tables to stderr: one that several tables have is a line."""
    found: dict[tuple[Literal["note", "warning"], str], list[str]] = {}
    for table in summary.outcome.tables:
        for note in table.notes:
            found.setdefault(("note", note), []).append(table.target)
        for warning in table.warnings:
            found.setdefault(("warning", warning), []).append(table.target)
    for (kind, text), targets in found.items():
        say(err, kind, f"{', '.join(targets)}: {text}")


def _tells_more(table: TableResult, outcome: Outcome) -> bool:
    """Whether a table's error says what the error of the whole sync does not."""
    if table.status == "INTERRUPTED":
        return False
    message = table.error.message if table.error else NOTHING_COMMITTED
    return outcome.error is None or message != NOTHING_COMMITTED


def show_what_next(summary: Summary, err: Console) -> None:
    """Say on stderr where the log is and how to load the rest, when something is not in."""
    outcome = summary.outcome
    if summary.log is None or outcome.exit_code == ExitCode.OK:
        return
    if outcome.kind != "INTERRUPTED":
        say(err, "log", str(summary.log))
    if outcome.exit_code in (ExitCode.INVALID, ExitCode.FOLLOW_UP_FAILED):
        return
    job = f"`--job-id {summary.job_id}`"
    errors = [table.error for table in outcome.tables if table.error is not None]
    if outcome.kind == "INTERRUPTED" or any(error.retryable for error in errors):
        say(err, "next", f"rerun with {job}: it keeps what is loaded and loads the rest")
    elif any(table.status not in ("FAILED", "SKIPPED") for table in outcome.tables):
        say(err, "next", f"then rerun with {job}: it keeps what is loaded and loads the rest")


def _grid(summary: Summary) -> Table:
    grid = _table_of("table", ("rows", "files", "size", "seconds"))
    grid.add_column("status", no_wrap=True)
    # What needs attention is not below 200 lines of what does not.
    for table in sorted(summary.outcome.tables, key=lambda table: table.error is None):
        grid.add_row(
            Name(table.target),
            f"{table.rows:,}",
            f"{max(table.file_count, len(table.files)):,}",
            format_size(table.bytes),
            f"{table.seconds:.1f}",
            Text(table.status, STYLES.get(table.status, "")),
        )
    return grid


def _show_times(times: WallTime, out: Console) -> None:
    """Print the phases, and below them the stages of the tables that took longest."""
    phases = _table_of("phase", ("seconds",))
    phases.add_column("")
    for phase in times.phases:
        phases.add_row(phase.name, f"{phase.seconds:.2f}", Text(PHASES[phase.name], "dim"))
    phases.add_row("together", f"{times.seconds:.2f}", "")
    out.print(phases)
    slowest = sorted(times.tables, key=lambda table: -table.seconds)[:MANY_TABLES]
    if not slowest:
        return
    names = tuple(dict.fromkeys(stage.name for table in slowest for stage in table.stages))
    tables = _table_of("table", ("seconds", *names))
    for table in slowest:
        tables.add_row(Text(table.table), *_seconds(table, names))
    out.print(tables)
    if left := len(times.tables) - len(slowest):
        more = f"and {counted(left, 'table')} that took less"
        out.print(Text(more, "dim"), soft_wrap=True, highlight=False)


def _table_of(first: str, numbers: tuple[str, ...]) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="bold", expand=False)
    grid.add_column(first, overflow="fold")
    for name in numbers:
        grid.add_column(name, justify="right", no_wrap=True)
    return grid


def _seconds(table: TableTime, names: tuple[str, ...]) -> Iterator[str]:
    yield f"{table.seconds:.2f}"
    found = {stage.name: stage.seconds for stage in table.stages}
    for name in names:
        yield f"{found[name]:.2f}" if name in found else ""


def _without_archive(archive: MissingArchive) -> str:
    """Say how later loads start sooner."""
    return (
        f"Spark started without an AppCDS archive: `{archive['command']}` builds one, once, and "
        f"later loads start about {archive['saves_seconds']} s sooner"
    )


def _totals(summary: Summary) -> str:
    """Say how many tables there are, by status, and what they loaded."""
    tables = summary.outcome.tables
    statuses = [table.status for table in tables]
    parts = [f"{statuses.count(status)} {status}" for status in dict.fromkeys(sorted(statuses))]
    rows, size = sum(table.rows for table in tables), sum(table.bytes for table in tables)
    return (
        f"{len(tables)} tables: {', '.join(parts)}; {counted(rows, 'row')}, {format_size(size)} "
        f"in {summary.seconds:,.1f} s"
    )


def _snapshots(summary: Summary) -> Iterator[str]:
    """The snapshot of each Iceberg table, and below it what an UPSERT did to its rows."""
    for table in summary.outcome.tables:
        if table.snapshot_id is not None:
            yield f"{table.target}: snapshot {table.snapshot_id}"
            if (changes := table.changes) is not None:
                yield f"  {', '.join(_changes(changes))}"


def _counts(summary: Summary) -> Iterator[str]:
    """Say how many records were set aside, and where, how many rows were replaced by later ones of
    the load, and how many the source no longer has."""
    for table in summary.outcome.tables:
        if table.rejected:
            side = f"{table.target}{REJECTED_SUFFIX}"
            yield f"{table.target}: {counted(table.rejected, 'record')} set aside in {side}"
    for table in summary.outcome.tables:
        if (same := table.same_key) is not None:
            rows = counted(same.rows, "row")
            yield f"{table.target}: {rows} replaced by later ones with the same key"
    for table in summary.outcome.tables:
        if table.deleted:
            yield f"{table.target}: {counted(table.deleted, 'row')} deleted in the source"


def _changes(changes: RowChanges) -> Iterator[str]:
    yield f"{changes.inserted:,} inserted"
    yield f"{changes.updated:,} updated"
    yield f"{changes.deleted:,} deleted"
    if changes.unchanged:
        yield f"{changes.unchanged:,} unchanged"
    if changes.ignored:
        yield f"{changes.ignored:,} ignored (older than the row of the table)"


def _folders(summary: Summary) -> list[str]:
    """The folders that hold the files, each on a line of its own: a column would break them."""
    tables = (table for table in summary.outcome.tables if table.snapshot_id is None)
    keys = (file.key for table in tables for file in table.files)
    folders = dict.fromkeys(key.rpartition("/")[0] for key in keys)
    return [f"s3://{summary.bucket}/{folder}/" for folder in folders]

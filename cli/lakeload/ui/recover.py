"""Report of a recovery or a manual resolution, or of its dry run: on the screen, or as
one JSON document."""

from __future__ import annotations

from typing import Any, NotRequired

from rich.console import Console
from rich.table import Table
from rich.text import Text
from typing_extensions import TypedDict

from lakeload.config.secret_names import printable
from lakeload.documents.named_files import NamedFiles
from lakeload.formats.reports import (
    DamagedJob,
    RecoveredTable,
    RecoveryReport,
    Resolution,
    ResolutionReport,
)
from lakeload.ui.errors import error_json, say, show_trouble
from lakeload.ui.json_documents import ErrorDocument
from lakeload.ui.names import Name
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.core.sizes import counted
from lakeload_jobs.formats.data_files.uploads import StagedFile
from lakeload_jobs.formats.iceberg.rules.branches import StagingBranch
from lakeload_jobs.formats.iceberg.rules.rejects import SettledRejects
from lakeload_jobs.formats.parquet.log.recovery import Damaged
from lakeload_jobs.formats.parquet.log.roll_forward import Pending
from lakeload_jobs.storage.objects import OpenUpload

STYLES = {
    "UP_TO_DATE": "green",
    "RECOVERED": "green",
    "UNFINISHED": "yellow",
    "CATALOG_OUT_OF_DATE": "yellow",
    "DAMAGED": "bold red",
    "FAILED": "red",
}
LOST_SHOWN, FILES_SHOWN = 5, 20


class LeftFileDocument(TypedDict):
    """A data file of an abandoned attempt that no snapshot names."""

    key: str
    bytes: int
    modified: str


class RecoveredDocument(TypedDict):
    """A table in `recover`. Keys that are not required are those of one table format."""

    target: str
    status: str
    finished: NotRequired[list[Pending]]
    damaged: NotRequired[list[Damaged]]
    uploads: NotRequired[list[OpenUpload]]
    files: NotRequired[list[LeftFileDocument]]
    exists: NotRequired[bool]
    branches: NotRequired[list[StagingBranch]]
    younger_branches: NotRequired[list[StagingBranch]]
    rejected: NotRequired[list[SettledRejects]]
    errors: list[ErrorDocument]
    warnings: list[ErrorDocument]


class RecoverDocument(TypedDict):
    """`recover --output json`."""

    exit_code: int
    dry_run: bool
    tables: list[RecoveredDocument]


class ResolvedDocument(TypedDict):
    """A job in a table for which an operator decides."""

    target: str
    number: int
    pipeline: str
    job_id: str
    lost_rows: int
    lost: list[str]
    left_rows: int
    left: list[str]
    outcome: str | None
    error: ErrorDocument | None


class ResolutionDocument(TypedDict):
    """`recover --void` and `recover --accept` with `--output json`."""

    exit_code: int
    decision: str
    done: bool
    tables: list[ResolvedDocument]


def to_document(report: RecoveryReport) -> Any:
    """Return the JSON document of `recover --output json`; keys are only ever added."""
    return {
        "exit_code": int(report.exit_code),
        "dry_run": report.dry_run,
        "tables": [_table_document(table) for table in report.tables],
    }


def _table_document(table: RecoveredTable) -> dict[str, Any]:
    return {
        "target": table.target,
        "status": table.status,
        **to_json(table.document),
        "errors": [error_json(error) for error in table.errors],
        "warnings": [error_json(error) for error in table.warnings],
    }


def show_text(report: RecoveryReport, files: NamedFiles, out: Console, err: Console) -> None:
    """Write each table with what was done to stdout; what went wrong, and the way on, to stderr."""
    if report.tables:
        out.print(_grid(report))
    else:
        err.print("no table has been loaded there yet", soft_wrap=True)
    for table in report.tables:
        for line in table.remarks:
            out.print(Text(printable(line), "dim"), soft_wrap=True)
        for job in table.damaged:
            _show_damaged(err, table.target, job, files)
        for error in table.errors:
            show_trouble(err, table.target, error)
        for warning in table.warnings:
            show_trouble(err, table.target, warning, warning=True)
    if report.note:
        say(err, "note", report.note)
    if report.dry_run:
        say(err, "note", "nothing was written")


def resolution_document(report: ResolutionReport, code: ExitCode) -> ResolutionDocument:
    """Return the JSON document of `recover --void` and `--accept`; keys are only ever added."""
    return {
        "exit_code": int(code),
        "decision": report.decision,
        "done": report.done,
        "tables": [_resolution(job) for job in report.tables],
    }


def show_resolution(report: ResolutionReport, command: str, out: Console, err: Console) -> None:
    """Write each table with what is lost and what becomes of the rest to stdout.

    `command` is what to type to have it done.
    """
    verb = "kept" if report.decision == "accept" else "removed"
    for job in report.tables:
        target = job.table.target
        head = f"job {job.job_id} of pipeline {job.pipeline}, record {job.number}"
        out.print(
            Text.assemble((printable(target), "bold"), f"  {printable(head)}"), soft_wrap=True
        )
        fate = verb if report.done and job.error is None else f"to be {verb}"
        _show_files(out, "lost", job.lost, job.lost_rows, "red")
        _show_files(out, fate, job.left, job.left_rows, "yellow")
        if job.error is not None:
            show_trouble(err, target, job.error)
    if not report.done:
        say(err, "note", f"nothing was written; to apply: `{command}`")


def _grid(report: RecoveryReport) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column("table", overflow="fold")
    grid.add_column("status", no_wrap=True)
    grid.add_column("what would be done" if report.dry_run else "what was done", overflow="fold")
    for table in report.tables:
        first, *more = table.actions
        status = Text(table.status, STYLES[table.status])
        grid.add_row(Name(table.target), status, Text(printable(first)))
        for line in more:
            grid.add_row("", "", Text(printable(line)))
    return grid


def _show_damaged(err: Console, target: str, job: DamagedJob, files: NamedFiles) -> None:
    say(err, "error", f"{target}: {job.message}", strong=True)
    for key in job.lost_keys[:LOST_SHOWN]:
        err.print(Text(f"       {printable(key)}", "dim"), soft_wrap=True)
    if (more := len(job.lost_keys) - LOST_SHOWN) > 0:
        err.print(Text(f"       and {more:,} more", "dim"), soft_wrap=True)
    hint = (
        f"`{files.command('recover', '--void', job.job_id)}` removes the rest, to load it "
        f"again under another job id; `--accept {job.job_id}` keeps the rest"
    )
    say(err, " hint", hint)


def _show_files(
    out: Console, fate: str, files: tuple[StagedFile, ...], rows: int, style: str
) -> None:
    amount = f"{counted(len(files), 'file')}, {counted(rows, 'row')}"
    out.print(Text.assemble("  ", (f"{fate}:", style), f" {amount}"), soft_wrap=True)
    for file in files[:FILES_SHOWN]:
        out.print(Text(f"    {printable(file.key)}", "dim"), soft_wrap=True)
    if len(files) > FILES_SHOWN:
        out.print(Text(f"    and {len(files) - FILES_SHOWN:,} more", "dim"), soft_wrap=True)


def _resolution(job: Resolution) -> ResolvedDocument:
    return {
        "target": job.table.target,
        "number": job.number,
        "pipeline": job.pipeline,
        "job_id": job.job_id,
        "lost_rows": job.lost_rows,
        "lost": [file.key for file in job.lost],
        "left_rows": job.left_rows,
        "left": [file.key for file in job.left],
        "outcome": job.outcome,
        "error": error_json(job.error) if job.error else None,
    }

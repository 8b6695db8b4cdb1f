"""The history of tables, and the runs of this machine: on the screen, or as one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NotRequired

from rich.console import Console
from rich.table import Table
from rich.text import Text
from typing_extensions import TypedDict

from lakeload.config.secret_names import printable
from lakeload.documents.named_files import NamedFiles
from lakeload.formats.reports import JobRuns, RunsReport, TableRun, by_job
from lakeload.history.day import HistoryJob
from lakeload.launch.run_folder import LocalRun
from lakeload.ui.errors import show_trouble, trouble_document
from lakeload.ui.history import show_job
from lakeload.ui.json_documents import TableErrorDocument
from lakeload.ui.names import Name
from lakeload_jobs.contract.codec import format_instant, to_json
from lakeload_jobs.contract.result import FileResult
from lakeload_jobs.core.sizes import counted, format_size, minute
from lakeload_jobs.formats.iceberg.rules.branches import StagingBranch

STATE_STYLES = {"done": "green", "reset": "dim", "damaged": "bold red"}
"""Others are yellow."""
OUTCOMES = {
    "SUCCEEDED": ("succeeded", "green"),
    "FAILED": ("failed", "red"),
    "RUNNING": ("is running", "yellow"),
    "NO_RESULT": ("no result: it is starting or was killed", "yellow"),
}


class RejectedDocument(TypedDict):
    """The side table of a job in a table of Parquet files."""

    table: str
    rows: int
    files: list[FileResult]


class RunDocument(TypedDict):
    """A job in a table. Keys that are not required are those of one table format."""

    target: str
    pipeline: str
    job_id: str
    attempt_id: str | None
    committed_at: str
    synced: str | None
    rows: int
    deleted: int
    bytes: int
    state: str
    rejected: RejectedDocument | int | None
    retried: str | None
    read: str | None
    author: str | None
    pid: int | None
    table: NotRequired[str]
    number: NotRequired[int]
    tool: NotRequired[str]
    started_at: NotRequired[str]
    files: NotRequired[list[FileResult]]
    clean: NotRequired[bool]
    catalog: NotRequired[str | None]
    lost: NotRequired[list[str]]
    snapshot_id: NotRequired[int]
    mode: NotRequired[str | None]
    added_files: NotRequired[int]


class FenceDocument(TypedDict):
    """A record that keeps attempts or uploads from being committed."""

    target: str
    number: int
    committed_at: str
    attempts: list[str]
    uploads: list[str]
    reset: str | None
    reason: str


class SnapshotsDocument(TypedDict):
    """An Iceberg table beside its runs."""

    target: str
    exists: bool
    expired_jobs: int
    branches: list[StagingBranch]


class LocalRunDocument(TypedDict):
    """A run of this machine."""

    job_id: str
    attempt_id: str
    pipeline: str
    destination: str
    tables: list[str]
    started_at: str
    seconds: float | None
    outcome: str
    folder: str
    log: str


class RunsDocument(TypedDict):
    """`runs --output json`. `fences` are those of Parquet tables, `tables` of Iceberg tables;
    `jobs` those of the job history, with `--failed` or `--since`."""

    exit_code: int
    runs: list[RunDocument]
    jobs: list[HistoryJob]
    fences: NotRequired[list[FenceDocument]]
    tables: NotRequired[list[SnapshotsDocument]]
    errors: list[TableErrorDocument]
    running: list[LocalRunDocument]


class LocalRunsDocument(TypedDict):
    """`runs --output json` without a file: the runs of this machine."""

    exit_code: int
    runs: list[LocalRunDocument]


def to_document(
    report: RunsReport, running: Sequence[LocalRun] = (), jobs: Sequence[HistoryJob] = ()
) -> Any:
    """Return the JSON document of `runs --output json`; keys are only ever added."""
    return {
        "exit_code": int(report.exit_code),
        "runs": [to_json(run.document) for run in report.runs],
        "jobs": [to_json(job) for job in jobs],
        **to_json(report.document),
        "errors": [trouble_document(failed.target, failed.error) for failed in report.errors],
        "running": [_local_document(run) for run in running],
    }


def local_document(runs: Sequence[LocalRun]) -> LocalRunsDocument:
    """Return the JSON document of `runs --local --output json`."""
    return {"exit_code": 0, "runs": [_local_document(run) for run in runs]}


def show_text(
    report: RunsReport,
    files: NamedFiles,
    out: Console,
    err: Console,
    *,
    verbose: bool,
    running: Sequence[LocalRun] = (),
    jobs: Sequence[HistoryJob] = (),
) -> None:
    """Write the jobs, newest first, to stdout; what could not be read, and hints, to stderr.

    `running` are loads of this machine that have not committed yet, `jobs` those of the history
    that failed.
    """
    for load in running:
        _show_one(load, out)
    for past in jobs:
        show_job(past, out)
    for job in by_job(report.runs):
        out.print(
            Text.assemble(
                (minute(job.committed_at), "bold"),
                f"  job {printable(job.job_id)}  pipeline {printable(job.pipeline)}",
            ),
            soft_wrap=True,
        )
        out.print(_grid(job))
        for run in job.tables if verbose else ():
            for line in run.details:
                out.print(Text(f"    {printable(line)}", "dim"), soft_wrap=True)
    for at, line in report.fences if verbose else ():
        out.print(Text.assemble((minute(at), "bold"), f"  {printable(line)}"), soft_wrap=True)
    for line in report.remarks:
        out.print(Text(printable(line), "dim"), soft_wrap=True)
    for failed in report.errors:
        show_trouble(err, failed.target, failed.error)
    if not report.runs and not report.errors and not running and not jobs:
        err.print("nothing has been loaded yet", soft_wrap=True)
    _show_hint(report, files.command("recover"), err)


def show_local(runs: Sequence[LocalRun], out: Console, err: Console) -> None:
    """Write this machine's runs, newest first, each with its log, to stdout."""
    for run in runs:
        _show_one(run, out)
    if not runs:
        err.print("this machine has no run folders", soft_wrap=True)


def _show_one(run: LocalRun, out: Console) -> None:
    words, style = OUTCOMES[run.outcome]
    took = "" if run.seconds is None else f" in {run.seconds:.1f} s"
    of = f"pipeline {printable(run.pipeline)}  {printable(run.place)}"
    line = Text.assemble(
        (minute(run.started_at), "bold"),
        f"  job {printable(run.job_id)}  {of}  ",
        (f"{words}{took}", style),
    )
    out.print(line, soft_wrap=True)
    out.print(Text(f"  {printable(str(run.log))}", "dim"), soft_wrap=True)


def _grid(job: JobRuns) -> Table:
    with_mode = any(run.mode is not None for run in job.tables)
    grid = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    grid.add_column(width=0)
    grid.add_column(overflow="fold")
    if with_mode:
        grid.add_column(no_wrap=True)
    for _ in range(3):
        grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True)
    for run in job.tables:
        grid.add_row(
            "",
            Name(run.target),
            *((Text(printable(run.mode or "")),) if with_mode else ()),
            counted(run.rows, "row"),
            counted(run.files, "file"),
            format_size(run.bytes),
            _state(run),
        )
    return grid


def _state(run: TableRun) -> Text:
    text = Text(run.state, STATE_STYLES.get(run.state, "yellow"))
    if run.rejected:
        text.append(f", {run.rejected:,} rejected", "yellow")
    if run.deleted:
        text.append(f", {run.deleted:,} deleted")
    for remark in run.remarks:
        text.append(f", {remark}", "yellow")
    return text


def _show_hint(report: RunsReport, command: str, err: Console) -> None:
    """Say what helps where something is unfinished."""
    states = {run.state for run in report.runs}
    hint = None
    if "damaged" in states:
        hint = f"`{command}` shows what is lost and how to resolve it"
    elif "unfinished" in states or any(run.remarks for run in report.runs):
        hint = f"`{command}` or the next `lakeload sync` finishes incomplete jobs"
    if hint:
        err.print(Text.assemble(("hint:", "green"), f" {hint}"), soft_wrap=True)


def _local_document(run: LocalRun) -> LocalRunDocument:
    return {
        "job_id": run.job_id,
        "attempt_id": run.attempt_id,
        "pipeline": run.pipeline,
        "destination": run.place,
        "tables": list(run.tables),
        "started_at": format_instant(run.started_at),
        "seconds": None if run.seconds is None else round(run.seconds, 3),
        "outcome": run.outcome,
        "folder": str(run.folder),
        "log": str(run.log),
    }

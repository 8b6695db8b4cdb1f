"""The history of tables, and the runs of this machine: on the screen, or as one JSON document."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lakeload.config.secret_names import printable
from lakeload.formats.parquet.runs import History, Job, TableFence, TableRun, jobs
from lakeload.launch.past_runs import LocalRun
from lakeload.ui.amounts import counted, minute
from lakeload.ui.troubles import show_trouble, trouble_document
from lakeload_jobs.contract.codec import format_instant
from lakeload_jobs.core.sizes import format_size
from lakeload_jobs.formats.parquet.log.run_history import Run

STATE_STYLES = {
    "done": "green",
    "partial": "yellow",
    "void": "yellow",
    "reset": "dim",
    "unfinished": "yellow",
    "damaged": "bold red",
}
OUTCOMES = {
    "SUCCEEDED": ("succeeded", "green"),
    "FAILED": ("failed", "red"),
    "NO_RESULT": ("no result: it still runs, or was killed", "yellow"),
}


def to_document(history: History) -> dict[str, Any]:
    """Return the JSON document of `runs --output json`; keys are only ever added."""
    return {
        "exit_code": int(history.exit_code),
        "runs": [_run_document(item) for item in history.runs],
        "fences": [_fence_document(item) for item in history.fences],
        "errors": [trouble_document(item.target, item.error) for item in history.troubles],
    }


def local_document(runs: Sequence[LocalRun]) -> dict[str, Any]:
    """Return the JSON document of `runs --local --output json`."""
    return {"exit_code": 0, "runs": [_local_document(run) for run in runs]}


def show_text(history: History, file: str, out: Console, err: Console, *, verbose: bool) -> None:
    """Write the jobs, newest first, to stdout; what could not be read, and hints, to stderr."""
    for job in jobs(history.runs):
        out.print(_headline(job), soft_wrap=True)
        out.print(_grid(job))
        if verbose:
            for item in job.tables:
                out.print(Text(printable(_details(item)), "dim"), soft_wrap=True)
    for between in history.fences if verbose else ():
        out.print(_fence_line(between), soft_wrap=True)
    for trouble in history.troubles:
        show_trouble(err, trouble.target, trouble.error)
    if not history.runs and not history.troubles:
        err.print("nothing has been loaded yet", soft_wrap=True)
    _show_hints(history, f"lakeload recover {shlex.quote(file)}", err)


def show_local(runs: Sequence[LocalRun], out: Console, err: Console) -> None:
    """Write this machine's runs, newest first, each with its log, to stdout."""
    for run in runs:
        words, style = OUTCOMES[run.outcome]
        took = "" if run.seconds is None else f" in {run.seconds:.1f} s"
        line = Text.assemble(
            (minute(run.started_at), "bold"),
            f"  job {run.job_id}  pipeline {printable(run.pipeline)}  ",
            (f"{words}{took}", style),
        )
        out.print(line, soft_wrap=True)
        out.print(Text(f"  {printable(str(run.log))}", "dim"), soft_wrap=True)
    if not runs:
        err.print("this machine has no run folders", soft_wrap=True)


def _headline(job: Job) -> Text:
    return Text.assemble(
        (minute(job.committed_at), "bold"),
        f"  job {job.job_id}  pipeline {printable(job.pipeline)}",
    )


def _grid(job: Job) -> Table:
    grid = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    grid.add_column(width=0)
    grid.add_column(overflow="fold")
    for _ in range(3):
        grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True)
    for item in job.tables:
        record = item.run.record
        grid.add_row(
            "",
            Text(printable(item.target)),
            counted(record.rows, "row"),
            counted(len(record.files), "file"),
            format_size(record.bytes),
            _state(item.run),
        )
    return grid


def _state(run: Run) -> Text:
    text = Text(run.state, STATE_STYLES[run.state])
    if not run.clean:
        text.append(", to be cleaned", "yellow")
    if run.catalog == "stale":
        text.append(", catalog stale", "yellow")
    return text


def _details(item: TableRun) -> str:
    record = item.run.record
    by = f" by {record.author}" if record.author else ""
    return (
        f"    record {item.run.number}: {record.source} → {item.target}{by}, {record.tool}, "
        f"attempt {record.attempt_id}"
    )


def _fence_line(item: TableFence) -> Text:
    record = item.fence.record
    locked = [(len(record.attempts), "attempt"), (len(record.uploads), "upload")]
    what = " and ".join(counted(many, noun) for many, noun in locked if many) + " locked out"
    if record.resets:
        what = f"pipeline {record.resets} was reset"
    when = minute(item.fence.committed_at)
    text = f"  {item.target} (record {item.fence.number}): {what}, {record.reason}"
    return Text.assemble((when, "bold"), printable(text))


def _show_hints(history: History, command: str, err: Console) -> None:
    """Say what helps where something is unfinished."""
    states = {item.run.state for item in history.runs}
    behind = any(item.run.catalog == "stale" or not item.run.clean for item in history.runs)
    hint = None
    if "damaged" in states:
        hint = f"`{command}` shows what is lost, and how to decide"
    elif "unfinished" in states or behind:
        hint = f"`{command}` or the next `lakeload sync` finishes what is unfinished"
    if hint:
        err.print(Text.assemble(("hint:", "green"), f" {hint}"), soft_wrap=True)


def _run_document(item: TableRun) -> dict[str, Any]:
    run, record = item.run, item.run.record
    return {
        "table": record.source,
        "target": item.target,
        "number": run.number,
        "pipeline": record.pipeline,
        "job_id": record.job_id,
        "attempt_id": record.attempt_id,
        "author": record.author or None,
        "tool": record.tool,
        "started_at": format_instant(record.started_at),
        "committed_at": format_instant(run.committed_at),
        "synced": format_instant(record.synced),
        "rows": record.rows,
        "bytes": record.bytes,
        "files": [
            {"key": file.key, "rows": file.rows, "bytes": file.bytes} for file in record.files
        ],
        "state": run.state,
        "clean": run.clean,
        "catalog": run.catalog,
        "lost": [file.key for file in run.lost],
    }


def _fence_document(item: TableFence) -> dict[str, Any]:
    record = item.fence.record
    return {
        "target": item.target,
        "number": item.fence.number,
        "committed_at": format_instant(item.fence.committed_at),
        "attempts": list(record.attempts),
        "uploads": list(record.uploads),
        "reset": record.resets or None,
        "reason": record.reason,
    }


def _local_document(run: LocalRun) -> dict[str, Any]:
    return {
        "job_id": run.job_id,
        "attempt_id": run.attempt_id,
        "pipeline": run.pipeline,
        "tables": list(run.tables),
        "started_at": format_instant(run.started_at),
        "seconds": None if run.seconds is None else round(run.seconds, 3),
        "outcome": run.outcome,
        "folder": str(run.folder),
        "log": str(run.log),
    }

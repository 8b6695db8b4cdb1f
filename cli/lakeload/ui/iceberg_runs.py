"""The history of Iceberg tables: on the screen, or as one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lakeload.config.secret_names import printable
from lakeload.formats.iceberg.runs import SnapshotHistory, SnapshotRun, SnapshotTable
from lakeload.ui.amounts import counted, minute
from lakeload.ui.troubles import show_trouble, trouble_document
from lakeload_jobs.contract.codec import format_instant
from lakeload_jobs.core.sizes import format_size

STATE_STYLES = {"done": "green", "rolled back": "yellow"}


def to_document(history: SnapshotHistory) -> dict[str, Any]:
    """Return the JSON document of `runs --output json`; keys are only ever added."""
    return {
        "exit_code": int(history.exit_code),
        "runs": [_run_document(run) for run in history.runs],
        "tables": [_table_document(table) for table in history.tables],
        "errors": [
            trouble_document(table.target, table.error) for table in history.tables if table.error
        ],
    }


def show_text(history: SnapshotHistory, out: Console, err: Console, *, verbose: bool) -> None:
    """Write the jobs, newest first, to stdout; what could not be read to stderr."""
    for runs in _jobs(history.runs):
        line = Text.assemble(
            (minute(runs[0].committed_at), "bold"),
            f"  job {printable(runs[0].job_id)}  pipeline {printable(runs[0].pipeline)}",
        )
        out.print(line, soft_wrap=True)
        out.print(_grid(runs))
        for run in runs if verbose else ():
            for text in (
                f"{run.target}: snapshot {run.snapshot_id}",
                f"  attempt {run.attempt_id}",
            ):
                out.print(Text(f"    {printable(text)}", "dim"), soft_wrap=True)
    for table in history.tables:
        for known in _beyond(table):
            out.print(Text(printable(known), "dim"), soft_wrap=True)
        if table.error is not None:
            show_trouble(err, table.target, table.error)
    if not history.runs and not any(table.error for table in history.tables):
        err.print("nothing has been loaded yet", soft_wrap=True)


def _jobs(runs: Sequence[SnapshotRun]) -> list[list[SnapshotRun]]:
    """Return the runs of each job together, in the order of the newest of each."""
    grouped: dict[tuple[str, str], list[SnapshotRun]] = {}
    for run in runs:
        grouped.setdefault((run.pipeline, run.job_id), []).append(run)
    return [sorted(found, key=lambda run: run.target) for found in grouped.values()]


def _grid(runs: Sequence[SnapshotRun]) -> Table:
    grid = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    grid.add_column(width=0)
    grid.add_column(overflow="fold")
    grid.add_column(no_wrap=True)
    for _ in range(3):
        grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True)
    for run in runs:
        grid.add_row(
            "",
            Text(printable(run.target)),
            Text(printable(run.mode)),
            counted(run.rows, "row"),
            counted(run.files, "file"),
            format_size(run.bytes),
            Text(run.state, STATE_STYLES[run.state]),
        )
    return grid


def _beyond(table: SnapshotTable) -> list[str]:
    """Return what is known of a table beside its runs, as lines."""
    lines = []
    if table.expired:
        jobs = counted(table.expired, "earlier job")
        lines.append(f"{table.target}: {jobs} whose snapshots have expired")
    for left in table.left:
        lines.append(f"{table.target}: a load at work, or dead, since {minute(left.created_at)}")
        lines.append(f"  branch {left.name}")
    return lines


def _run_document(run: SnapshotRun) -> dict[str, Any]:
    return {
        "target": run.target,
        "pipeline": run.pipeline,
        "job_id": run.job_id,
        "attempt_id": run.attempt_id or None,
        "snapshot_id": run.snapshot_id,
        "mode": run.mode or None,
        "committed_at": format_instant(run.committed_at),
        "synced": run.synced or None,
        "rows": run.rows,
        "bytes": run.bytes,
        "added_files": run.files,
        "state": run.state,
    }


def _table_document(table: SnapshotTable) -> dict[str, Any]:
    return {
        "target": table.target,
        "exists": table.exists,
        "expired_jobs": table.expired,
        "branches": [
            {
                "name": left.name,
                "attempt_id": left.attempt,
                "created_at": format_instant(left.created_at),
                "snapshot_id": left.snapshot_id,
            }
            for left in table.left
        ],
    }

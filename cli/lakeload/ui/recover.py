"""What a recovery did or would do: on the screen, or as one JSON document."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lakeload.config.secret_names import printable
from lakeload.formats.parquet.recover import Recovery
from lakeload.ui.amounts import counted
from lakeload.ui.errors import error_json
from lakeload.ui.troubles import say, show_trouble
from lakeload_jobs.contract.codec import format_instant
from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.formats.parquet.log.recovery import Damaged
from lakeload_jobs.formats.parquet.log.roll_forward import Pending

STYLES = {
    "IN_STEP": "green",
    "RECOVERED": "green",
    "UNFINISHED": "yellow",
    "CATALOG_STALE": "yellow",
    "DAMAGED": "bold red",
    "FAILED": "red",
}
KEYS_SHOWN = 5

_DONE = {
    "publish": "published {files} of job {job}: {rows}",
    "clean": "removed what void job {job} had left",
    "void": "declared job {job} void: all its uploads were gone",
    "catalog": "brought the catalog into step with job {job}",
}
_WOULD = {
    "publish": "would publish {files} of job {job}: {rows}",
    "clean": "would remove what void job {job} has left",
    "void": "would declare job {job} void: all its uploads are gone",
    "catalog": "would bring the catalog into step with job {job}",
}


def to_document(found: Sequence[Recovery], code: ExitCode, *, dry_run: bool) -> dict[str, Any]:
    """Return the JSON document of `recover --output json`; keys are only ever added."""
    return {
        "exit_code": int(code),
        "dry_run": dry_run,
        "tables": [_document(table) for table in found],
    }


def show_text(
    found: Sequence[Recovery], file: str, out: Console, err: Console, *, dry_run: bool
) -> None:
    """Write each table with what was done to stdout; what went wrong, and the way on, to stderr."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column("table", overflow="fold")
    grid.add_column("status", no_wrap=True)
    grid.add_column("what would be done" if dry_run else "what was done", overflow="fold")
    for table in found:
        lines = _actions(table, dry_run=dry_run) or ["nothing to do"]
        grid.add_row(
            Text(printable(table.target)),
            Text(table.status, STYLES[table.status]),
            Text(printable(lines[0])),
        )
        for line in lines[1:]:
            grid.add_row("", "", Text(printable(line)))
    if found:
        out.print(grid)
    else:
        err.print("no table has been loaded there yet", soft_wrap=True)
    for table in found:
        for job in table.found.damaged:
            _show_damaged(err, table.target, job, file)
        for error in table.errors:
            show_trouble(err, table.target, error)
        for warning in table.warnings:
            show_trouble(err, table.target, warning, warning=True)
    if dry_run:
        say(err, "note", "nothing was written")


def _actions(table: Recovery, *, dry_run: bool) -> list[str]:
    words = _WOULD if dry_run else _DONE
    lines = [_action(words, job) for job in table.found.finished]
    lines += [f"job {job.job_id} is damaged" for job in table.found.damaged]
    if uploads := len(table.found.stale_uploads):
        verb = "would remove" if dry_run else "removed"
        lines.append(f"{verb} {counted(uploads, 'upload')} of dead runs")
    if table.found.error is not None and not lines:
        lines.append("could not be recovered")
    return lines


def _action(words: dict[str, str], job: Pending) -> str:
    files, rows = counted(job.files, "file"), counted(job.rows, "row")
    return words[job.action].format(files=files, rows=rows, job=job.job_id)


def _show_damaged(err: Console, target: str, job: Damaged, file: str) -> None:
    message = (
        f"{target}: job {job.job_id} of pipeline {job.pipeline} (record {job.number}) has lost "
        f"{job.lost_rows:,} of {counted(job.rows, 'row')}: uploads were aborted from outside"
    )
    say(err, "error", message, strong=True)
    for key in job.lost_keys[:KEYS_SHOWN]:
        err.print(Text(f"       {printable(key)}", "dim"), soft_wrap=True)
    if (more := len(job.lost_keys) - KEYS_SHOWN) > 0:
        err.print(Text(f"       and {more:,} more", "dim"), soft_wrap=True)
    hint = (
        f"`lakeload recover {shlex.quote(file)} --void {job.job_id}` removes the rest, to load it "
        f"again under another job id; `--accept {job.job_id}` keeps the rest"
    )
    say(err, " hint", hint)


def _document(table: Recovery) -> dict[str, Any]:
    found = table.found
    return {
        "target": table.target,
        "status": table.status,
        "finished": [
            {
                "number": job.number,
                "pipeline": job.pipeline,
                "job_id": job.job_id,
                "rows": job.rows,
                "files": job.files,
                "action": job.action,
            }
            for job in found.finished
        ],
        "damaged": [
            {
                "number": job.number,
                "pipeline": job.pipeline,
                "job_id": job.job_id,
                "rows": job.rows,
                "lost_rows": job.lost_rows,
                "lost": list(job.lost_keys),
            }
            for job in found.damaged
        ],
        "uploads": [
            {
                "key": upload.key,
                "upload_id": upload.upload_id,
                "initiated": format_instant(upload.initiated),
            }
            for upload in found.stale_uploads
        ],
        "errors": [error_json(error) for error in table.errors],
        "warnings": [error_json(error) for error in table.warnings],
    }

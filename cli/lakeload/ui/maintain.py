"""Report of a maintenance or its dry run, as text or as one JSON document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lakeload.config.secret_names import printable
from lakeload.launch.run import Maintained
from lakeload.ui.errors import say, show_trouble
from lakeload.ui.json_documents import MaintainDocument
from lakeload.ui.names import Name
from lakeload_jobs.contract.codec import format_instant, to_json
from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.contract.events import Step
from lakeload_jobs.contract.maintain import StepResult, TableMaintenance
from lakeload_jobs.core.sizes import counted, format_size

STYLES = {
    "DONE": "green",
    "WOULD_DO": "yellow",
    "NOTHING_TO_DO": "dim",
    "UNSUPPORTED": "yellow",
    "CONFLICT": "yellow",
    "FAILED": "red",
}
ITEMS_SHOWN = 5
_LISTS: tuple[Step, ...] = ("branches", "orphans", "uploads", "optimizers")
_REWRITES: tuple[Step, ...] = ("compact", "deletes", "manifests")
_NOUNS: dict[Step, str] = {
    "branches": "branch",
    "compact": "file",
    "deletes": "delete file",
    "manifests": "manifest",
    "orphans": "file",
    "uploads": "upload",
}


@dataclass(frozen=True)
class Report:
    """Everything that is shown of one maintenance."""

    job_id: str
    pipeline: str
    applied: bool
    started_at: datetime
    seconds: float
    outcome: Maintained
    log: Path | None = None
    """spark.log, when Spark was started."""


def to_document(report: Report) -> MaintainDocument:
    """Return the JSON document of `maintain --output json`; keys are only ever added."""
    outcome = report.outcome
    return {
        "job_id": report.job_id,
        "pipeline": report.pipeline,
        "status": outcome.status,
        "exit_code": int(outcome.exit_code),
        "applied": report.applied,
        "started_at": format_instant(report.started_at),
        "seconds": round(report.seconds, 3),
        "tables": to_json(outcome.tables),
        "error": to_json(outcome.error),
        "log": str(report.log) if report.log else None,
    }


def show_text(report: Report, out: Console, err: Console, *, quiet: bool = False) -> None:
    """Write the steps of each table to stdout; what went wrong, and the way on, to stderr."""
    outcome = report.outcome
    if outcome.tables:
        out.print(_grid(outcome.tables))
        if total := _total(outcome.tables, applied=report.applied):
            out.print(Text(total, "bold"), soft_wrap=True)
    for table in outcome.tables:
        _show_table(table, err, quiet=quiet)
    if outcome.error is not None:
        show_trouble(err, "", outcome.error)
    if not report.applied and outcome.error is None and not quiet:
        what = "nothing was written"
        if any(step.status == "WOULD_DO" for table in outcome.tables for step in table.steps):
            what += "; the same command with `--apply` does it"
        say(err, "note", what)
    if report.log and outcome.exit_code not in (ExitCode.OK, ExitCode.INTERRUPTED):
        say(err, "log", str(report.log))


def in_words(step: StepResult) -> str:
    """Return what a step did, or would do, in a few words."""
    if step.status == "NOTHING_TO_DO":
        return "nothing to do"
    if step.status in ("UNSUPPORTED", "CONFLICT", "FAILED"):
        return {"UNSUPPORTED": "not supported", "CONFLICT": "other commits came first"}.get(
            step.status, "failed"
        )
    size = "" if not step.bytes else f", {format_size(step.bytes)}"
    if step.step == "optimizers":
        return ", ".join(step.items)
    if step.step == "branches":
        number = len(step.items)
        return f"{number:,} {'branch' if number == 1 else 'branches'} of abandoned attempts"
    if step.step == "expire":
        return f"{counted(step.snapshots, 'snapshot')}, {counted(step.files, 'file')}{size}"
    words = f"{counted(step.files, _NOUNS[step.step])}{size}"
    if step.step in _REWRITES:
        words += f" → {step.files_after:,}"
    if step.delete_files:
        words += f"; {counted(step.delete_files, 'delete')} gone"
    return f"{words} of abandoned attempts" if step.step == "uploads" else words


def _grid(tables: tuple[TableMaintenance, ...]) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column("table", overflow="fold")
    grid.add_column("step", no_wrap=True)
    grid.add_column("status", no_wrap=True)
    grid.add_column("what", overflow="fold")
    for table in tables:
        name = Name(table.target)
        for number, (step, status, words) in enumerate(_rows(table)):
            styled = Text(status, STYLES.get(status, ""))
            grid.add_row("" if number else name, step, styled, Text(printable(words)))
    return grid


def _rows(table: TableMaintenance) -> Iterator[tuple[str, str, str]]:
    if table.error is not None:
        yield "", "FAILED", "could not be read"
        return
    if not table.steps:
        yield "", "NOTHING_TO_DO", "there is no such table yet"
        return
    found = [step for step in table.steps if step.status != "NOTHING_TO_DO"]
    if not found:
        yield "", "NOTHING_TO_DO", "nothing to do"
    for step in found:
        yield step.step, step.status, in_words(step)


def _total(tables: tuple[TableMaintenance, ...], *, applied: bool) -> str:
    """Say how much is rewritten and freed in all."""
    acted = ("DONE", "WOULD_DO")
    steps = [step for table in tables for step in table.steps if step.status in acted]
    rewritten = sum(step.bytes or 0 for step in steps if step.step in _REWRITES)
    freed = sum(step.bytes or 0 for step in steps if step.step in ("expire", "orphans"))
    words = [
        f"{'freed' if applied else 'would free'} {format_size(freed)}" if freed else "",
        f"{'rewrote' if applied else 'would rewrite'} {format_size(rewritten)}"
        if rewritten
        else "",
    ]
    return ", ".join(filter(None, words))


def _show_table(table: TableMaintenance, err: Console, *, quiet: bool) -> None:
    if table.error is not None:
        show_trouble(err, table.target, table.error)
    for step in table.steps:
        about = f"{table.target}: {step.step}"
        if step.step in _LISTS and step.step != "optimizers" and step.items and not quiet:
            items = [printable(item) for item in step.items[:ITEMS_SHOWN]]
            if (more := (step.files or len(step.items)) - len(items)) > 0:
                items.append(f"and {more:,} more")
            for line in (f"{printable(about)}:", *(f"  {item}" for item in items)):
                err.print(Text(line, "dim"), soft_wrap=True)
        for note in step.notes if not quiet else ():
            say(err, "note", f"{about}: {note}")
        if step.error is not None:
            show_trouble(err, about, step.error, warning=step.status == "CONFLICT")

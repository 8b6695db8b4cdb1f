"""A plan on the screen, or as one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lakeload.config.secret_names import printable
from lakeload.launch.plan_model import CatalogPlan, IncrementalPlan, TablePlan, exit_code_of
from lakeload.launch.spec import Attempt
from lakeload.ui.plan_columns import schema_lines
from lakeload.ui.plan_iceberg import iceberg_lines
from lakeload_jobs.contract.codec import format_instant, to_json
from lakeload_jobs.rules.sizes import format_size

STYLES = {"LOAD": "green", "NO_OP": "green", "REFUSED": "red", "FAIL": "red"}

_VERBS = {
    "publish": "publish",
    "clean": "clean away",
    "void": "declare void",
    "catalog": "bring into the catalog",
}
"""What would be done with a job that was left unfinished, by `Pending.action`."""


def to_document(pipeline: str, attempt: Attempt, plans: Sequence[TablePlan]) -> dict[str, Any]:
    """Return the JSON document of `plan --output json`; keys are only ever added."""
    return {
        "job_id": attempt.job_id,
        "pipeline": pipeline,
        "synced": format_instant(attempt.synced),
        "exit_code": int(exit_code_of(plans)),
        "tables": [to_json(plan) for plan in plans],
    }


def show_text(plans: Sequence[TablePlan], out: Console, err: Console) -> None:
    """Write the tables and where they would go to stdout, what stands in the way to stderr."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column("table", overflow="fold")
    grid.add_column("target", overflow="fold")
    grid.add_column("mode", no_wrap=True)
    for name in ("files", "size"):
        grid.add_column(name, justify="right", no_wrap=True)
    grid.add_column("index", overflow="fold")
    grid.add_column("action", no_wrap=True)
    for plan in plans:
        grid.add_row(
            Text(printable(plan.table)),
            Text(printable(plan.target)),
            plan.mode,
            f"{plan.files:,}",
            format_size(plan.bytes),
            f"{plan.index}, {plan.numbering}",
            Text(plan.action, STYLES[plan.action]),
        )
    out.print(grid)
    for plan in plans:
        _details(plan, out)
        if plan.error is not None:
            _line(err, "error:", "bold red", f"{plan.target}: {plan.error.message}")
            if plan.error.hint:
                _line(err, " hint:", "green", plan.error.hint)
        if plan.schema is not None and plan.schema.error is not None:
            _line(err, "error:", "bold red", f"{plan.target}: {plan.schema.error.message}")
            if plan.schema.error.hint:
                _line(err, " hint:", "green", plan.schema.error.hint)
        for warning in (*plan.warnings, *(plan.schema.warnings if plan.schema else ())):
            _line(err, "warning:", "bold yellow", f"{plan.target}: {warning}")
        if plan.catalog is not None and (unasked := plan.catalog.unasked) is not None:
            _line(err, "warning:", "bold yellow", f"{plan.target}: {unasked.message}")
            if unasked.hint:
                _line(err, " hint:", "green", unasked.hint)
    _line(err, "note:", "dim", "nothing was written")


def _details(plan: TablePlan, out: Console) -> None:
    """The first key, and what would come before the load."""
    if plan.iceberg is not None:
        for line in iceberg_lines(plan.target, plan.iceberg, plan.mode):
            out.print(Text(printable(line), "dim"), soft_wrap=True)
    if plan.action == "LOAD" and plan.example:
        first = " (first run)" if plan.first_run else ""
        out.print(Text(f"{plan.example}{first}", "dim"), soft_wrap=True)
    if plan.action == "LOAD" and plan.catalog is not None:
        out.print(Text(printable(_glue(plan.catalog)), "dim"), soft_wrap=True)
    if plan.incremental is not None:
        text = f"{plan.target}: {_new_files(plan.incremental)}"
        out.print(Text(printable(text), "dim"), soft_wrap=True)
    if plan.schema is not None:
        for line in schema_lines(plan.target, plan.schema):
            out.print(Text(printable(line)), soft_wrap=True)
    for job in plan.recovery:
        text = f"{plan.target}: would first {_VERBS[job.action]} what job {job.job_id} of pipeline "
        text += f"{job.pipeline} left: {job.files:,} files, {job.rows:,} rows"
        out.print(Text(printable(text)), soft_wrap=True)


def _new_files(found: IncrementalPlan) -> str:
    """Say which files a load would read, and which it would not."""
    files = f"{found.new_files:,} ({format_size(found.new_bytes)})"
    if found.reload:
        return f"all files would be appended: {files}; known: {found.known_files:,}"
    changed = f", {found.changed:,} of them new versions" if found.changed else ""
    return f"new files: {files}{changed}; known: {found.known_files:,}"


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


def _line(console: Console, label: str, style: str, text: str) -> None:
    console.print(Text.assemble((label, style), " ", printable(text)), soft_wrap=True)

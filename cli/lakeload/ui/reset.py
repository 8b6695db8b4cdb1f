"""What a reset removes or would remove: on the screen, or as one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from lakeload.config.secret_names import printable
from lakeload.formats.parquet.reset import TableReset
from lakeload.ui.amounts import counted
from lakeload.ui.errors import error_json
from lakeload.ui.troubles import say, show_trouble
from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.core.sizes import format_size
from lakeload_jobs.formats.parquet.log.reset import ResetPlan

KEYS_SHOWN = 10


def to_document(found: Sequence[TableReset], code: ExitCode, *, done: bool) -> dict[str, Any]:
    """Return the JSON document of `reset --output json`; keys are only ever added."""
    return {
        "exit_code": int(code),
        "done": done,
        "tables": [_document(table) for table in found],
    }


def show_text(
    found: Sequence[TableReset], command: str, out: Console, err: Console, *, done: bool
) -> None:
    """Write what goes and what stays to stdout; errors, and how to go on, to stderr."""
    for table in found:
        if table.error is not None:
            continue
        out.print(Text(printable(table.target), "bold"), soft_wrap=True)
        for line in _removed(table) if done else _planned(table):
            out.print(Text(f"  {printable(line)}"), soft_wrap=True)
        for line in _kept(table):
            out.print(Text(f"  {printable(line)}", "dim"), soft_wrap=True)
    for table in found:
        if table.error is not None:
            show_trouble(err, table.target, table.error)
    if not done and any(not table.nothing_to_do and not table.error for table in found):
        say(err, "note", f"nothing was removed; to do it: `{command}`")


def _planned(table: TableReset) -> list[str]:
    lines = []
    if (plan := table.plan) and not plan.nothing_to_do:
        if plan.begun is not None:
            lines.append(f"would go on with the reset that record {plan.begun} has begun")
        for own in plan.unfinished:
            amount = f"{counted(len(own.record.files), 'file')}, {counted(own.record.rows, 'row')}"
            job = own.record.job_id
            lines.append(f"would first bring job {job} to an end: {amount}, removed as well")
        lines.append(
            f"would remove {counted(len(plan.objects), 'object')} of "
            f"{counted(len(plan.loaded), 'job')}: {counted(plan.rows, 'row')}, "
            f"{format_size(plan.bytes)}"
        )
        lines += [f"would drop Glue's table {glue.database}.{glue.table}" for glue in plan.glue]
    if table.half_removed:
        lines.append("would remove the rest of the log")
    elif table.log_objects:
        lines.append(f"would remove the log: {counted(table.log_objects, 'object')}")
    return lines or ["nothing of this pipeline"]


def _removed(table: TableReset) -> list[str]:
    lines = []
    if (removed := table.removed) and removed.number is not None:
        amount = f"{counted(removed.rows, 'row')}, {format_size(removed.bytes)}"
        lines.append(f"removed {counted(removed.objects, 'object')}: {amount}")
        lines += [f"dropped Glue's table {glue.database}.{glue.table}" for glue in removed.glue]
        lines += [f"left {key}: somebody has changed it" for key in removed.left]
    if table.log_objects:
        lines.append(f"removed the log: {counted(table.log_objects, 'object')}")
    return lines or ["nothing of this pipeline"]


def _kept(table: TableReset) -> list[str]:
    """Say what stays: other pipelines' rows, objects that nobody's record names."""
    plan = table.plan
    if plan is None:
        return []
    lines = [f"the rows of pipeline {name} stay" for name in plan.others]
    if plan.log_objects and not table.log_objects:
        lines.append("the log stays (`--with-log` removes it as well)")
    if plan.strangers:
        lines.append(f"left alone, as no record names it: {counted(len(plan.strangers), 'object')}")
        lines += [f"  {key}" for key in plan.strangers[:KEYS_SHOWN]]
        if (more := len(plan.strangers) - KEYS_SHOWN) > 0:
            lines.append(f"  and {more:,} more")
    return lines


def _document(table: TableReset) -> dict[str, Any]:
    removed = table.removed
    return {
        "target": table.target,
        "plan": _plan_document(table.plan) if table.plan else None,
        "log_objects": table.log_objects,
        "removed": None
        if removed is None
        else {
            "record": removed.number,
            "objects": removed.objects,
            "rows": removed.rows,
            "bytes": removed.bytes,
            "glue": [f"{glue.database}.{glue.table}" for glue in removed.glue],
            "left": list(removed.left),
        },
        "error": error_json(table.error) if table.error else None,
    }


def _plan_document(plan: ResetPlan) -> dict[str, Any]:
    return {
        "jobs": [own.record.job_id for own in plan.records],
        "unfinished": [own.record.job_id for own in plan.unfinished],
        "begun": plan.begun,
        "objects": [item.key for item in plan.objects],
        "rows": plan.rows,
        "bytes": plan.bytes,
        "glue": [f"{glue.database}.{glue.table}" for glue in plan.glue],
        "other_pipelines": list(plan.others),
        "left": list(plan.strangers),
    }

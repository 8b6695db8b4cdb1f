"""Registering Glue's optimizers for the tables of a pipeline."""

from __future__ import annotations

import time
from collections.abc import Sequence

from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.maintain import StepResult, TableMaintenance
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.contract.spec import TableSpec
from lakeload_jobs.formats.iceberg.glue_optimizers import (
    OPTIMIZERS,
    GlueOptimizers,
    OptimizerSettings,
)

_WORDS = {"create": ("created", "would create"), "update": ("updated", "would update")}


def register_optimizers(
    glue: GlueOptimizers, tables: Sequence[TableSpec], settings: OptimizerSettings, *, apply: bool
) -> tuple[TableMaintenance, ...]:
    """Register the three optimizers of each table, or say which would be; one table's failure
    leaves the others alone."""
    found = []
    for table in tables:
        started = time.monotonic()
        step = _register(glue, table, settings, apply=apply)
        seconds = time.monotonic() - started
        found.append(TableMaintenance(table.source, table.target, (step,), seconds))
    return tuple(found)


def _register(
    glue: GlueOptimizers, table: TableSpec, settings: OptimizerSettings, *, apply: bool
) -> StepResult:
    items: list[str] = []
    try:
        for optimizer in OPTIMIZERS:
            change = glue.register(table.schema, table.table, optimizer, settings, apply=apply)
            if change != "none":
                items.append(f"{optimizer}: {_WORDS[change][0 if apply else 1]}")
    except LakeloadError as error:
        return StepResult(
            "optimizers", "FAILED", items=tuple(items), error=ErrorInfo.of(error, "optimizers")
        )
    if not items:
        return StepResult("optimizers", "NOTHING_TO_DO")
    return StepResult("optimizers", "DONE" if apply else "WOULD_DO", items=tuple(items))

"""Registering Glue's optimizers for the tables of a pipeline: AWS does the work from then on."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from functools import partial

from lakeload.checks import in_background
from lakeload.formats.tables import open_session
from lakeload.launch.run import Maintained, maintained
from lakeload_jobs.contract.errors import InvalidInput, LakeloadError
from lakeload_jobs.contract.maintain import (
    SECONDS_A_DAY,
    MaintainSpec,
    StepResult,
    TableMaintenance,
)
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec
from lakeload_jobs.formats.iceberg.glue_optimizers import (
    OPTIMIZERS,
    ORPHAN_DAYS,
    SNAPSHOT_DAYS,
    GlueOptimizers,
    OptimizerSettings,
)

_ROLE = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/.+", re.ASCII)
_WORDS = {"create": ("created", "would create"), "update": ("updated", "would update")}


def register(
    destination: DestinationSpec,
    tables: Sequence[TableSpec],
    role: str | None,
    wanted: MaintainSpec,
) -> Maintained:
    """Register the optimizers, or without `apply` say which. Raises `InvalidInput`, `AwsError`."""
    if role is None or not _ROLE.fullmatch(role):
        given = (
            f"`--optimizer-role {role}` is not the ARN of a role" if role else "there is no role"
        )
        raise InvalidInput(
            f"`--register-glue-optimizers`: {given}, and Glue acts in one of your own",
            hint="give `--optimizer-role arn:aws:iam::ACCOUNT:role/NAME`: one that "
            "glue.amazonaws.com may assume and that may read and write the tables",
        )
    age = wanted.older_than
    settings = OptimizerSettings(
        role,
        snapshot_days=SNAPSHOT_DAYS if age is None else max(1, math.ceil(age / SECONDS_A_DAY)),
        retain_last=wanted.retain_last or 1,
        orphan_days=max(ORPHAN_DAYS, math.ceil(wanted.orphans_older_than / SECONDS_A_DAY)),
    )
    glue = GlueOptimizers(open_session(destination, "maintain"), destination)
    work = partial(register_optimizers, glue, tables, settings, apply=wanted.apply)
    return maintained(in_background(work, "optimizers").result())


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

"""The columns that a load would bring, found by a Spark job, and what they change in the tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lakeload.formats.base import Judge
from lakeload.formats.plan_model import SchemaFound, TablePlan
from lakeload.formats.registry import commands_of
from lakeload.launch.outcome import ResultProblem, read_result_of
from lakeload.launch.run import Ended, Launcher, run_job
from lakeload.launch.run_folder import RunFolder
from lakeload_jobs.contract.errors import (
    ExitCode,
    Interrupted,
    LakeloadError,
    LoadFailed,
    MachineLacks,
    Refused,
)
from lakeload_jobs.contract.plan import PlanResult, TableColumns
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.contract.spec import JobSpec, TableSpec

WITHOUT = "`--no-schema` shows the rest of the plan without Spark"


def find_columns(spec: JobSpec, folder: RunFolder, launcher: Launcher) -> tuple[TableColumns, ...]:
    """Open the source of every table of `spec` in a Spark job, and return their columns.

    Raises as `run_job` does, and what kept the job from telling any: `Interrupted`, `Refused`,
    `MachineLacks`, `LoadFailed`.
    """
    ended = run_job(spec, folder, launcher)
    return read_columns(ended, read_result_of(PlanResult, folder.result, spec.attempt_id))


def read_columns(ended: Ended, result: PlanResult | ResultProblem) -> tuple[TableColumns, ...]:
    """Return the columns of a job that ended well; else raise why there are none."""
    ending = ended.ending
    if ending.stopped_by is not None:
        raise Interrupted(f"stopped by {ending.stopped_by.name}: nothing was written")
    if isinstance(result, ResultProblem):
        if result.missing or ending.exit_status != 0:
            cause = ended.cause
            raise _error_of(cause.exit_code)(
                f"finding the columns: the Spark job died: {cause.message}",
                hint=cause.hint or WITHOUT,
            )
        raise LoadFailed(f"finding the columns: {result.message}", hint=result.hint or WITHOUT)
    if result.error is not None:
        kind = _error_of(result.error.exit_code)
        raise kind(result.error.message, hint=result.error.hint or WITHOUT)
    return result.tables


def with_schema(
    plans: Sequence[TablePlan],
    found: Sequence[TableColumns],
    spec: JobSpec,
    tables: Sequence[TableSpec],
) -> tuple[TablePlan, ...]:
    """Return the plans with the change of columns of each table that the job read."""
    known = {one.table: one for one in found}
    specs = {table.source: table for table in tables}
    judge = commands_of(spec.destination.table_format).judge
    return tuple(
        _with(
            replace(plan, reader=known[plan.table].reader, why_jvm=known[plan.table].why_jvm),
            _judged(judge, known[plan.table], spec, specs[plan.table]),
        )
        if plan.table in known
        else plan
        for plan in plans
    )


def _with(plan: TablePlan, schema: SchemaFound) -> TablePlan:
    """A change that is refused refuses the load; a source that cannot be read fails it."""
    if schema.error is None:
        return replace(plan, schema=schema)
    return replace(plan, schema=schema, action="REFUSED" if schema.columns else "FAIL")


def _judged(judge: Judge, found: TableColumns, spec: JobSpec, table: TableSpec) -> SchemaFound:
    base = SchemaFound(found.columns, warnings=found.warnings, error=found.error)
    if found.error is not None or not found.columns:
        return base
    if found.existing is None:
        return replace(base, creates=True)
    try:
        judged = judge(found, found.existing, spec, table)
    except LakeloadError as error:
        return replace(base, error=ErrorInfo.of(error, "schema"))
    return replace(judged, columns=found.columns, warnings=found.warnings)


def _error_of(code: int) -> type[LakeloadError]:
    kinds: dict[int, type[LakeloadError]] = {
        ExitCode.REFUSED: Refused,
        ExitCode.MACHINE: MachineLacks,
        ExitCode.INTERRUPTED: Interrupted,
    }
    return kinds.get(code, LoadFailed)

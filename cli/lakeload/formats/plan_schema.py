"""The columns that a load would bring, found by a Spark job, and what they change in the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lakeload.formats.plan_model import ColumnChange, SchemaFound, TablePlan
from lakeload.launch.result_file import ResultProblem, read_result_of
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
from lakeload_jobs.contract.plan import ExistingColumns, PlanResult, TableColumns
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.formats.iceberg.rules.schema import compare, shown, with_partitions
from lakeload_jobs.formats.parquet.schema_change import check_schema_change

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
    """Return the plans with the change of columns of each table that the job looked at."""
    known = {one.table: one for one in found}
    specs = {table.source: table for table in tables}
    iceberg = spec.destination.table_format == "ICEBERG"
    judge = _iceberg if iceberg else _parquet
    return tuple(
        _with(plan, _judged(judge, known[plan.table], spec, specs[plan.table]))
        if plan.table in known
        else plan
        for plan in plans
    )


def _with(plan: TablePlan, schema: SchemaFound) -> TablePlan:
    """A change that is refused refuses the load; a source that cannot be read fails it."""
    if schema.error is None:
        return replace(plan, schema=schema)
    return replace(plan, schema=schema, action="REFUSED" if schema.columns else "FAIL")


_Judge = Callable[[TableColumns, ExistingColumns, JobSpec, TableSpec], SchemaFound]


def _judged(judge: _Judge, found: TableColumns, spec: JobSpec, table: TableSpec) -> SchemaFound:
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


def _iceberg(
    found: TableColumns, existing: ExistingColumns, spec: JobSpec, table: TableSpec
) -> SchemaFound:
    plan = compare(
        existing.columns,
        found.columns,
        spec.schema_changes,
        table.mode,
        target=found.target,
        required=existing.required,
        identifiers=existing.identifiers,
        keys=found.keys,
        incoming_required=found.required,
        full_refresh=spec.options.full_refresh,
        empty=existing.empty,
    )
    plan = with_partitions(
        plan,
        existing.partitions,
        found.partition_by,
        spec.schema_changes,
        target=found.target,
        columns=found.columns,
    )
    return SchemaFound(
        columns={},
        changes=plan.lines(),
        adds={shown(added.path): added.type for added in plan.add},
        widens=tuple(
            ColumnChange(shown(change.path), change.now, change.before) for change in plan.widen
        ),
        optional=tuple(map(shown, plan.make_optional)),
        identifiers=plan.set_identifiers,
        removed=tuple(map(shown, plan.removed)),
        replaces=plan.replace,
        partition_by=plan.repartition.now if plan.repartition else None,
    )


def _parquet(
    found: TableColumns, existing: ExistingColumns, spec: JobSpec, _table: TableSpec
) -> SchemaFound:
    """Parquet files cannot be changed: columns are added, or are missing in new files."""
    change = check_schema_change(existing.columns, found.columns, spec.schema_changes)
    return SchemaFound(
        columns={},
        changes=(
            *(f"adds `{name}` as `{found.columns[name]}`" for name in change.added),
            *(f"keeps `{name}`, null in new rows" for name in change.removed),
        ),
        adds={name: found.columns[name] for name in change.added},
        removed=change.removed,
    )


def _error_of(code: int) -> type[LakeloadError]:
    kinds: dict[int, type[LakeloadError]] = {
        ExitCode.REFUSED: Refused,
        ExitCode.MACHINE: MachineLacks,
        ExitCode.INTERRUPTED: Interrupted,
    }
    return kinds.get(code, LoadFailed)

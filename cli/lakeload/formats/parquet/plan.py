"""What a sync would do with Parquet tables. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from lakeload.formats.inspection import AT_ONCE, InspectionRequest
from lakeload.formats.parquet.inspect import ParquetState, inspect
from lakeload.formats.plan import CatalogPlan, Recovery, SchemaFound, TablePlan, plan_table
from lakeload.sources.registry import source_of
from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.plan import ExistingColumns, TableColumns
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.contract.spec import DestinationSpec, JobSpec, TableSpec
from lakeload_jobs.core.file_names import render_file_name
from lakeload_jobs.core.layout import TableLocation, data_key, partition_path
from lakeload_jobs.formats.parquet.glue import GlueCatalog, glue_target
from lakeload_jobs.formats.parquet.schema_change import check_schema_change

_EXAMPLE_UUID = "00000000-0000-4000-8000-000000000000"


def plan(
    session: AwsSession, tables: Sequence[TableSpec], request: InspectionRequest, *, local: bool
) -> tuple[TablePlan, ...]:
    """Return the plan of each table, with what Glue says of it.

    What Glue holds in a table's place refuses that table. Glue that cannot be asked refuses none:
    the load would put the data in, and the catalog would follow.
    """
    states = inspect(session, tables, request)
    plans = plan_states(states, request, local=local)
    if not request.destination.parquet.update_glue_catalog:
        return plans
    catalog = GlueCatalog(session, request.destination)

    def with_glue(plan: TablePlan, state: ParquetState) -> TablePlan:
        return _with_glue(plan, state, catalog, request.destination)

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="plan-glue") as pool:
        return tuple(pool.map(with_glue, plans, states))


def plan_states(
    states: Sequence[ParquetState], request: InspectionRequest, *, local: bool
) -> tuple[TablePlan, ...]:
    """Return the plan of each table without Glue; with a `local` master its input is counted."""
    return tuple(
        replace(
            plan_table(state, request.options, local=local),
            reader="jvm" if source_of(state.table.input).only_jvm(state.table.input) else None,
            example=_example(state, request),
            recovery=tuple(
                Recovery(job.job_id, job.pipeline, job.rows, job.files, job.action)
                for job in (state.opened.settled if state.opened else ())
            ),
        )
        for state in states
    )


def judge(
    found: TableColumns, existing: ExistingColumns, spec: JobSpec, table: TableSpec
) -> SchemaFound:
    """Return what becomes of the columns: files cannot be changed, so columns are added, or are
    missing in new files. Raises `LakeloadError` for a change that is refused."""
    policy = spec.schema_changes_of(table)
    change = check_schema_change(existing.columns, found.columns, policy, key=found.keys)
    return SchemaFound(
        columns={},
        changes=(
            *(f"adds `{name}` as `{found.columns[name]}`" for name in change.added),
            *(f"keeps `{name}`, null in new rows" for name in change.removed),
        ),
        adds={name: found.columns[name] for name in change.added},
        removed=change.removed,
    )


def _example(state: ParquetState, request: InspectionRequest) -> str:
    """Return the URL the first file would get at this instant."""
    table, destination, attempt = state.table, request.destination, request.attempt
    parquet = destination.parquet
    name = render_file_name(
        parquet.file_name_pattern,
        seq=0,
        uuid=_EXAMPLE_UUID,
        synced=attempt.synced,
        job_id=attempt.job_id,
    )
    partition = partition_path(parquet.partition_strategy, attempt.synced, attempt.job_id)
    location = TableLocation(destination.prefix, table.schema, table.table)
    return f"s3://{destination.bucket}/{data_key(location, partition, name)}"


def _with_glue(
    plan: TablePlan, state: ParquetState, catalog: GlueCatalog, destination: DestinationSpec
) -> TablePlan:
    location = TableLocation(destination.prefix, state.table.schema, state.table.table)
    target = glue_target(destination, location)
    if target is None or state.opened is None:
        return plan
    named = CatalogPlan(target.database, target.table)
    try:
        change = catalog.foresee(target, state.opened.columns)
    except AwsError as error:
        return replace(plan, catalog=replace(named, unasked=ErrorInfo.of(error, "open")))
    except LakeloadError as error:
        refused = ErrorInfo.of(error, "open")
        return replace(plan, catalog=named, action="REFUSED", error=refused)
    known = replace(
        named,
        creates_database=change.creates_database,
        creates_table=change.creates_table,
        adds_columns=change.adds_columns,
    )
    return replace(plan, catalog=known)

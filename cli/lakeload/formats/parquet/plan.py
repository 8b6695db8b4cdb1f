"""Plan of a sync into Parquet tables. Reads only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from lakeload.formats.inspection import AT_ONCE, InspectionRequest, OnTable, counted_results
from lakeload.formats.parquet.inspect import ParquetState, inspect
from lakeload.formats.plan import (
    Recovery,
    SchemaFound,
    TablePlan,
    plan_table,
    with_columns,
    with_shared_files,
)
from lakeload.sources.base import ColumnsRequest
from lakeload.sources.registry import source_of
from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.plan import CatalogPlan, ExistingColumns, TableColumns
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.contract.spec import TRACKING_TYPES, DestinationSpec, JobSpec, TableSpec
from lakeload_jobs.core.file_names import render_file_name
from lakeload_jobs.core.layout import TableLocation, data_key, partition_path
from lakeload_jobs.core.names import hidden_name
from lakeload_jobs.core.type_conflicts import split_variants
from lakeload_jobs.formats.parquet.glue import GlueCatalog, glue_target
from lakeload_jobs.formats.parquet.log.table_log import OpenedLog
from lakeload_jobs.formats.parquet.schema_change import check_schema_change, schema_difference
from lakeload_jobs.rows.columns import earlier_types, map_columns
from lakeload_jobs.sources.base import EarlierColumns
from lakeload_jobs.sources.readers import SourceReaders

_READ_AT_ONCE = 2
"""Tables whose files are read at once."""
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
    plans = with_shared_files(plans, states, request, local=local)
    if request.finds_columns and request.spec is not None:
        plans = _with_columns(plans, states, request.spec, session, request.on_table)
    if not request.destination.parquet.update_glue_catalog:
        return plans
    catalog = GlueCatalog(session, request.destination)

    def with_glue(plan: TablePlan, state: ParquetState) -> TablePlan:
        return _with_glue(plan, state, catalog, request.destination)

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="plan-glue") as pool:
        return counted_results(pool.map(with_glue, plans, states), len(plans), request.on_table)


def plan_states(
    states: Sequence[ParquetState], request: InspectionRequest, *, local: bool
) -> tuple[TablePlan, ...]:
    """Return the plan of each table without Glue; with a `local` master its input is counted."""
    return tuple(
        replace(
            found := plan_table(state, request, local=local),
            detect_deletes=found.detect_deletes
            and replace(
                found.detect_deletes,
                jobs=state.opened.next_number - 1 if state.opened else None,
            ),
            warnings=(*found.warnings, *_hidden(state.table)),
            example=_example(state, request),
            recovery=tuple(
                Recovery(job.job_id, job.pipeline, job.rows, job.files, job.action)
                for job in (state.opened.settled if state.opened else ())
            ),
        )
        for state in states
    )


def _hidden(table: TableSpec) -> Iterator[str]:
    """Yield that readers of folders may not see the table."""
    if problem := hidden_name(table.table):
        yield "; ".join(problem)


def _with_columns(
    plans: Sequence[TablePlan],
    states: Sequence[ParquetState],
    spec: JobSpec,
    session: AwsSession,
    on_table: OnTable,
) -> tuple[TablePlan, ...]:
    """Return the plans with the columns of those that are loaded, as far as Spark is not needed."""
    readers = SourceReaders(spec.destination, session)

    def work(plan: TablePlan, state: ParquetState) -> TablePlan:
        if plan.action != "LOAD" or state.opened is None:
            return plan
        try:
            schema = _columns(state.table, state, state.opened, spec, readers)
        except LakeloadError as error:
            return with_columns(plan, SchemaFound({}, error=ErrorInfo.of(error, "schema")))
        return plan if schema is None else with_columns(plan, schema)

    with ThreadPoolExecutor(_READ_AT_ONCE, thread_name_prefix="plan-columns") as pool:
        return counted_results(pool.map(work, plans, states), len(plans), on_table)


def _columns(
    table: TableSpec,
    state: ParquetState,
    opened: OpenedLog,
    spec: JobSpec,
    readers: SourceReaders,
) -> SchemaFound | None:
    """Return the columns that a load would write, None where only Spark can tell."""
    before = {column.name: column.type for column in opened.columns}
    earlier = earlier_types(before, opened.column_map, table.columns.rename or {})
    known = EarlierColumns(earlier, split_variants(opened.column_map)[0])
    request = ColumnsRequest(spec, table, known, state.report.files)
    found = source_of(table.input).read_columns(table.input, request, readers)
    if found is None:
        return None
    if not found.names:
        return SchemaFound({})
    mapping = map_columns(
        found.names,
        table.columns,
        primary_key=table.primary_key,
        recorded=opened.column_map,
        lower=spec.destination.parquet.update_glue_catalog,
    )
    typed = [column for column in mapping.columns if found.types[column.source] != "void"]
    if not typed:
        return None
    columns = {column.target: _written_type(found.types[column.source], spec) for column in typed}
    columns |= {name: TRACKING_TYPES[name] for name in spec.tracking_columns}
    schema = SchemaFound(
        columns,
        creates=not before,
        rows_read=None if found.complete else found.rows,
        warnings=(*found.warnings, *mapping.warnings, *mapping.notes),
    )
    if not before or not found.rows:
        return schema
    if spec.on_type_conflict_of(table) != "FAIL" and schema_difference(before, columns).changed:
        return None  # what becomes of the values, Spark finds out
    columns_found = TableColumns(table.source, table.target, columns, mapping.key)
    try:
        judged = judge(columns_found, ExistingColumns(before), spec, table)
    except LakeloadError as error:
        return replace(schema, error=ErrorInfo.of(error, "schema"))
    families = mapping.families
    removed = tuple(name for name in judged.removed if name.lower() not in families)
    return replace(
        judged,
        columns=columns,
        removed=removed,
        rows_read=schema.rows_read,
        warnings=schema.warnings,
    )


def _written_type(kind: str, spec: JobSpec) -> str:
    """Return the type that a column has in the table."""
    nested = kind.startswith(("struct<", "array<", "map<"))
    return "string" if nested and spec.nested == "JSON" else kind


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
            *(f"adds the field `{path}`" for path in change.added_fields),
            *(f"keeps `{name}`, which is null in new rows" for name in change.removed),
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
        return replace(plan, catalog=catalog.foresee(target, state.opened.columns))
    except AwsError as error:
        return replace(plan, catalog=replace(named, unasked=ErrorInfo.of(error, "open")))
    except LakeloadError as error:
        refused = ErrorInfo.of(error, "open")
        return replace(plan, catalog=named, action="BLOCKED", error=refused)

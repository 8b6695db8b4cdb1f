"""Plan of a sync into Iceberg tables. Reads only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from lakeload.formats.iceberg.inspect import IcebergState, inspect
from lakeload.formats.inspection import InspectionRequest
from lakeload.formats.plan import (
    BranchLeft,
    ColumnChange,
    IcebergPlan,
    SchemaFound,
    TablePlan,
    plan_table,
    with_shared_files,
)
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.codec import format_instant
from lakeload_jobs.contract.maintain import DEAD_AFTER
from lakeload_jobs.contract.plan import ExistingColumns, TableColumns
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.formats.iceberg.rules.branches import staging_branches
from lakeload_jobs.formats.iceberg.rules.catalogs import own_location
from lakeload_jobs.formats.iceberg.rules.facts import (
    SUMMARY_JOB,
    SUMMARY_PIPELINE,
    TableFacts,
    head_of,
)
from lakeload_jobs.formats.iceberg.rules.partitions import format_partition_field
from lakeload_jobs.formats.iceberg.rules.schema import plan_definition, shown
from lakeload_jobs.formats.iceberg.rules.summaries import number_in


def plan(
    session: AwsSession, tables: Sequence[TableSpec], request: InspectionRequest, *, local: bool
) -> tuple[TablePlan, ...]:
    """Return the plan of each table. Raises what opening the catalog raises."""
    states = inspect(session, tables, request)
    plans = plan_states(states, request, local=local)
    return with_shared_files(plans, states, request, local=local)


def plan_states(
    states: Sequence[IcebergState], request: InspectionRequest, *, local: bool
) -> tuple[TablePlan, ...]:
    """Return the plan of each table; with a `local` master its input files are counted."""
    return tuple(
        replace(
            found := plan_table(state, request, local=local),
            reader=found.reader or "jvm",
            iceberg=(iceberg := _as_it_is(state, request) if not state.error else None),
            detect_deletes=found.detect_deletes
            and replace(found.detect_deletes, table_rows=iceberg.rows if iceberg else None),
            warnings=(*found.warnings, *_late_rows(state.table)),
        )
        for state in states
    )


def _late_rows(table: TableSpec) -> Iterator[str]:
    """Yield what `deletes: DELETE` cannot keep out: the cursor goes with the row."""
    if table.mode == "UPSERT" and table.deleted_when and table.deletes == "DELETE":
        yield (
            "`deletes: DELETE`: an older version of a removed row that arrives late is loaded as a "
            "new row; `deletes: MARK` with a `cursor` keeps it out"
        )


def judge(
    found: TableColumns, existing: ExistingColumns, spec: JobSpec, table: TableSpec
) -> SchemaFound:
    """Return what becomes of the columns and partitions of the table. Raises `LakeloadError` for a
    change that is refused."""
    plan = plan_definition(
        existing,
        found.columns,
        found.partition_by,
        spec.schema_changes_of(table),
        table.mode,
        target=found.target,
        required=found.required,
        keys=found.keys,
        full_refresh=spec.options.full_refresh,
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


def _as_it_is(state: IcebergState, request: InspectionRequest) -> IcebergPlan:
    table, facts, iceberg = state.table, state.facts, request.destination.iceberg
    java = (state.needs_java(request.spec) or None) if request.spec and state.waits else None
    if facts is None:
        place = own_location(request.destination)
        return IcebergPlan(
            catalog=iceberg.catalog.type,
            branch=iceberg.branch,
            exists=False,
            location=f"{place}/{table.schema}/{table.table}" if place else None,
            format_version=iceberg.format_version,
            partition_by=tuple(map(format_partition_field, table.partition_by or ())),
            identifiers=table.primary_key,
            needs_java=java,
        )
    head = facts.snapshots.get(head_of(facts, iceberg.branch) or -1)
    return IcebergPlan(
        catalog=iceberg.catalog.type,
        branch=iceberg.branch,
        exists=True,
        location=facts.location,
        format_version=facts.format_version,
        partition_by=facts.partitions,
        identifiers=facts.identifiers,
        snapshot_id=head.id if head else None,
        rows=number_in(head.summary, "total-records") if head else 0,
        branches=_branches(facts, request),
        already=state.already.id if state.already else None,
        needs_java=java,
    )


def _branches(facts: TableFacts, request: InspectionRequest) -> tuple[BranchLeft, ...]:
    """Return the staging branches; a load drops old ones, and those of its own job."""
    before = datetime.now(UTC) - DEAD_AFTER
    own = (request.pipeline, request.attempt.job_id)
    found = []
    for left in staging_branches(facts.refs):
        known = facts.snapshots.get(left.snapshot_id)
        summary = known.summary if known else {}
        ours = (summary.get(SUMMARY_PIPELINE), summary.get(SUMMARY_JOB)) == own
        drops = ours or left.created_at <= before
        found.append(BranchLeft(left.name, format_instant(left.created_at), drops))
    return tuple(found)

"""What a sync would do with Iceberg tables. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from lakeload.formats.iceberg.inspect import ForeseenIceberg, number_of
from lakeload.formats.inspection import Look
from lakeload.formats.parquet.plan import incremental_plan, nothing_there, numbering
from lakeload.formats.plan_model import Action, BranchLeft, IcebergPlan, TablePlan
from lakeload.launch.inputs import InputFound, look_at_input
from lakeload_jobs.contract.codec import format_instant
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec
from lakeload_jobs.formats.iceberg.orphan_branches import left_branches
from lakeload_jobs.formats.iceberg.rules.catalogs import own_location
from lakeload_jobs.formats.iceberg.rules.facts import SUMMARY_JOB, SUMMARY_PIPELINE, TableFacts
from lakeload_jobs.formats.iceberg.rules.partitions import format_partition_field

STALE_AFTER = timedelta(hours=24)
"""A load drops staging branches that are older: their attempts are taken for dead."""


def plan_iceberg(
    foreseen: Sequence[ForeseenIceberg], look: Look, *, local: bool
) -> tuple[TablePlan, ...]:
    """Return the plan of each table; with a `local` master its input files are looked at."""
    return tuple(_plan(table, look, local=local) for table in foreseen)


def _plan(foreseen: ForeseenIceberg, look: Look, *, local: bool) -> TablePlan:
    table = foreseen.table
    found = _input(foreseen) if local else InputFound(0, 0, ())
    error = ErrorInfo.of(foreseen.error, "open") if foreseen.error else None
    action: Action = "REFUSED" if error else "NO_OP" if foreseen.idle else "LOAD"
    if action == "LOAD" and found.missing and foreseen.selection is None:
        action, error = "FAIL", nothing_there(found.missing)
    start = foreseen.start
    return TablePlan(
        table=table.source,
        target=table.target,
        action=action,
        mode=table.mode,
        reader="jvm",
        index="dense",
        numbering=numbering(table.input, found.files, found.bytes),
        example="",
        first_run=start.first_run if start else False,
        files=found.files,
        bytes=found.bytes,
        missing=found.missing,
        error=error,
        warnings=start.warnings if start else (),
        incremental=incremental_plan(foreseen.selection, reload=look.options.reload),
        iceberg=_as_it_is(foreseen, look) if not foreseen.error else None,
    )


def _as_it_is(foreseen: ForeseenIceberg, look: Look) -> IcebergPlan:
    table, facts, iceberg = foreseen.table, foreseen.facts, look.destination.iceberg
    if facts is None:
        return IcebergPlan(
            catalog=iceberg.catalog.type,
            branch=iceberg.branch,
            exists=False if foreseen.asked else None,
            location=_new_location(table, look.destination),
            format_version=iceberg.format_version,
            partition_by=tuple(map(format_partition_field, table.partition_by or ())),
            identifiers=table.primary_key,
        )
    head = facts.snapshots.get(facts.refs.get(iceberg.branch, -1))
    return IcebergPlan(
        catalog=iceberg.catalog.type,
        branch=iceberg.branch,
        exists=True,
        location=facts.location,
        format_version=facts.format_version,
        partition_by=tuple(map(format_partition_field, foreseen.partition_by)),
        identifiers=facts.identifiers,
        snapshot_id=head.id if head else None,
        rows=number_of(head, "total-records") if head else 0,
        branches=_branches(facts, look),
        already=foreseen.already.id if foreseen.already else None,
    )


def _branches(facts: TableFacts, look: Look) -> tuple[BranchLeft, ...]:
    """Return the staging branches; a load drops old ones, and those of its own job."""
    before = datetime.now(UTC) - STALE_AFTER
    own = (look.pipeline, look.attempt.job_id)
    found = []
    for left in left_branches(facts):
        known = facts.snapshots.get(left.snapshot_id)
        summary = known.summary if known else {}
        ours = (summary.get(SUMMARY_PIPELINE), summary.get(SUMMARY_JOB)) == own
        drops = ours or left.created_at <= before
        found.append(BranchLeft(left.name, format_instant(left.created_at), drops))
    return tuple(found)


def _input(foreseen: ForeseenIceberg) -> InputFound:
    if foreseen.listed is None:
        return look_at_input(foreseen.table.input)
    return InputFound(len(foreseen.listed), sum(file.size for file in foreseen.listed), ())


def _new_location(table: TableSpec, destination: DestinationSpec) -> str | None:
    """Return where a table will lie; None where the catalog chooses.

    Glue's and Nessie's tables lie where the destination says (DESIGN section 6, step 2).
    """
    place = own_location(destination)
    return f"{place}/{table.schema}/{table.table}" if place else None

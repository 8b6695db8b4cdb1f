"""Opening of an Iceberg table for a load: check the job, create or evolve the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from pyspark.sql.types import StructType

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.maintain import DEAD_AFTER
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.formats.base import RetryLoad
from lakeload_jobs.formats.iceberg.catalogs.reading import facts_of
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from lakeload_jobs.formats.iceberg.commits.metadata import Metadata
from lakeload_jobs.formats.iceberg.load.asked_rows import AskedTable
from lakeload_jobs.formats.iceberg.load.branches import drop_branch
from lakeload_jobs.formats.iceberg.load.catalog_tables import (
    CatalogTables,
)
from lakeload_jobs.formats.iceberg.load.definition import (
    Definition,
    check_location,
    create,
    definition,
    ensure_namespace,
    new_location,
)
from lakeload_jobs.formats.iceberg.load.evolution import TableChanges, plan_changes
from lakeload_jobs.formats.iceberg.load.prepare import FittedRows
from lakeload_jobs.formats.iceberg.rules.admission import (
    JobAnswer,
    JobFound,
    Start,
    check_state_rows,
    find_job,
    open_table,
)
from lakeload_jobs.formats.iceberg.rules.branches import left_branches, staging_branches
from lakeload_jobs.formats.iceberg.rules.facts import (
    SUMMARY_JOB,
    SUMMARY_PIPELINE,
    TableAttempt,
    TableFacts,
)
from lakeload_jobs.formats.iceberg.rules.schema import shown
from lakeload_jobs.rows.columns import added_column, missing_column


@dataclass(frozen=True)
class OpenedTable:
    """A table as a load found it. `already` set: report it and stop."""

    job: TableAttempt
    facts: TableFacts | None
    start: Start
    already: JobAnswer | None = None
    table: ReadTable | None = None
    """The table as it was read last; None where there is none."""
    metadata: Metadata | None = None
    """Its metadata, with the changes that this load will make."""

    @property
    def recorded(self) -> dict[str, str]:
        """Source name → target name, of this pipeline's earlier loads."""
        return dict(self.start.state.columns) if self.start.state else {}


@dataclass(frozen=True)
class Ready:
    """Rows to be staged, and a table that takes them."""

    opened: OpenedTable
    rows: FittedRows
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    changes: TableChanges | None = None
    """What the table needs for the rows. Not done yet: rows that cannot be loaded change none."""


def open_load(asked: AskedTable, spec: JobSpec, table: TableSpec, job: TableAttempt) -> OpenedTable:
    """Look at the table: is the job in, may it be loaded, and what state does it go on from.

    Branches of dead attempts are dropped. Raises `InvalidInput` and `LoadFailed`.
    """
    branch = spec.destination.iceberg.branch
    known = asked.tables.read(table.schema, table.table)
    if known is None:
        return OpenedTable(job, None, open_table(None, branch, job))
    facts = facts_of(known)
    check_location(facts, spec.destination, table.target)
    answer = find_job(facts, branch, job.pipeline, job.job_id)
    if answer.found is JobFound.ASK_THE_DATA:
        answer = replace(answer, found=_asked(asked, branch, facts, answer, job.job_id))
    if answer.found is JobFound.IN:
        start = Start(None, 0, None, first_run=False)
        return OpenedTable(job, facts, start, answer, known, known.metadata)
    start = open_table(facts, branch, job)
    if start.ask_rows_of is not None:
        there = asked.has_rows(branch, facts, start.ask_rows_of)
        check_state_rows(start, facts, branch, job, found=there is not False)
    _drop_left(asked.tables, table, facts, job, spec.dead_attempts)
    return OpenedTable(job, facts, start, table=known, metadata=known.metadata)


def ready(
    asked: AskedTable, spec: JobSpec, table: TableSpec, opened: OpenedTable, rows: FittedRows
) -> Ready | None:
    """Create the table, or plan how its columns come into step with the rows.

    None when there is neither a table nor a column to make one of. Raises `RetryLoad` when another
    load made the table meanwhile, and `InvalidInput` and `LoadFailed`.
    """
    if not rows.columns.fields:
        return None if opened.facts is None else Ready(opened, rows)
    partitions = rows.partition_by or ()
    made = definition(
        spec,
        table,
        rows.columns,
        rows.key,
        partitions,
        rows.comment,
        rows.bloom_filters,
    )
    if opened.facts is None:
        tables = asked.tables
        place = ensure_namespace(tables.store, spec.destination, table.schema)
        location = new_location(spec.destination, table.schema, table.table, place)
        if create(tables.store, table, made, location) is None:
            raise RetryLoad(
                f"another load has created `{table.target}` since this load began, or the catalog "
                "did not confirm that this one did"
            )
        return Ready(open_load(asked, spec, table, opened.job), rows, notes=made.notes)
    return _evolved(asked, spec, table, opened, rows, made)


def _evolved(
    asked: AskedTable,
    spec: JobSpec,
    table: TableSpec,
    opened: OpenedTable,
    rows: FittedRows,
    made: Definition,
) -> Ready:
    known = asked.tables.read(table.schema, table.table)
    if known is None:
        raise RetryLoad(f"`{table.target}` was dropped since this load began")
    facts = facts_of(known)
    branch = spec.destination.iceberg.branch
    try:
        plan = plan_changes(spec, table, facts, rows, made, partial(asked.count_nulls, branch))
    except LoadFailed:
        if not rows.prepared.is_empty:
            raise
        # A CSV file with a header alone is all text: without rows nothing is worth a complaint.
        return Ready(opened, replace(rows, columns=StructType()))
    changes = TableChanges(table, branch, opened.job, facts, rows, made, plan)
    changed = changes.preview(known.metadata)
    families = rows.mapping.families
    gone = (shown(path) for path in plan.removed)
    warnings = tuple(missing_column(name) for name in gone if name.lower() not in families)
    warnings += plan.replacement_warnings()
    added = (added_column(shown(change.path)) for change in plan.add)
    told = (plan.repartition.sentence(),) if plan.repartition else ()
    notes = tuple(dict.fromkeys((*made.notes, *added, *plan.notes, *told)))
    opened = replace(opened, table=known, metadata=changed or known.metadata)
    return Ready(opened, rows, warnings, notes, None if changed is None else changes)


def attempt_of(spec: JobSpec, table: TableSpec, *, goes_on: bool) -> TableAttempt:
    """Return this attempt as the rules know it. `goes_on`: it reads on from the state that earlier
    loads have left."""
    return TableAttempt(
        pipeline=spec.pipeline,
        job_id=spec.job_id,
        attempt_id=spec.attempt_id,
        fingerprint=table.fingerprint,
        source=table.source,
        target=table.target,
        table_handling=spec.options.table_handling,
        mode=table.mode,
        retries=table.retries,
        append_again=table.append_again,
        goes_on=goes_on,
    )


def _drop_left(
    tables: CatalogTables,
    table: TableSpec,
    facts: TableFacts,
    job: TableAttempt,
    dead: Sequence[str],
) -> None:
    """Drop the branches of dead attempts: those known to be dead, old ones, and those of this job's
    earlier attempts. A live one loses work by it, never rows (I7)."""
    left = set(left_branches(facts.refs, datetime.now(UTC), DEAD_AFTER))
    for branch in staging_branches(facts.refs):
        known = facts.snapshots.get(branch.snapshot_id)
        if branch.attempt_id in dead:
            left.add(branch.name)
        if known is None or branch.attempt_id == job.attempt_id:
            continue
        summary = known.summary
        if (summary.get(SUMMARY_PIPELINE), summary.get(SUMMARY_JOB)) == (job.pipeline, job.job_id):
            left.add(branch.name)
    for name in sorted(left):
        drop_branch(tables, table.schema, table.table, name)


def _asked(
    asked: AskedTable, branch: str, facts: TableFacts, answer: JobAnswer, job_id: str
) -> JobFound:
    there = asked.has_rows(branch, facts, job_id)
    if there is None:
        return answer.without_the_data()
    return JobFound.IN if there else JobFound.NOT_IN

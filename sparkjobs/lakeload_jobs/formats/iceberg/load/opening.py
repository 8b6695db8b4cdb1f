"""Opening of an Iceberg table for a load: check the job, create or evolve the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.maintain import DEAD_AFTER
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.formats.base import RetryLoad
from lakeload_jobs.formats.iceberg.load.branches import drop_branch
from lakeload_jobs.formats.iceberg.load.prepare import FittedRows
from lakeload_jobs.formats.iceberg.load.table_changes import (
    Definition,
    TableChanges,
    check_location,
    create,
    definition,
    ensure_namespace,
    plan_changes,
)
from lakeload_jobs.formats.iceberg.load.tables import Java, load, read_facts, spark_name
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
    java_table: Java | None = None
    """The table as it was read last, with the changes that this load will make; None where there is
    none."""

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


def open_load(
    spark: SparkSession, spec: JobSpec, table: TableSpec, job: TableAttempt
) -> OpenedTable:
    """Look at the table: is the job in, may it be loaded, and what state does it go on from.

    Branches of dead attempts are dropped. Raises `InvalidInput` and `LoadFailed`.
    """
    branch = spec.destination.iceberg.branch
    java_table = load(spark, table.schema, table.table)
    if java_table is None:
        return OpenedTable(job, None, open_table(None, branch, job))
    facts = read_facts(spark, java_table)
    check_location(facts, spec.destination, table.target)
    answer = find_job(facts, branch, job.pipeline, job.job_id)
    if answer.found is JobFound.ASK_THE_DATA:
        answer = replace(answer, found=_asked(spark, table, branch, facts, answer, job.job_id))
    if answer.found is JobFound.IN:
        start = Start(None, 0, None, first_run=False)
        return OpenedTable(job, facts, start, answer, java_table)
    start = open_table(facts, branch, job)
    if start.ask_rows_of is not None:
        there = _has_rows(spark, table, branch, facts, start.ask_rows_of)
        check_state_rows(start, facts, branch, job, found=there is not False)
    _drop_left(spark, table, facts, job, spec.dead_attempts)
    return OpenedTable(job, facts, start, java_table=java_table)


def ready(
    spark: SparkSession, spec: JobSpec, table: TableSpec, opened: OpenedTable, rows: FittedRows
) -> Ready | None:
    """Create the table, or plan how its columns come into step with the rows.

    None when there is neither a table nor a column to make one of. Raises `RetryLoad` when another
    load made the table meanwhile, and `InvalidInput` and `LoadFailed`.
    """
    if not rows.columns.fields:
        return None if opened.facts is None else Ready(opened, rows)
    partitions = rows.partition_by or ()
    made = definition(
        spark,
        spec,
        table,
        rows.columns,
        rows.key,
        partitions,
        rows.comment,
        rows.bloom_filters,
    )
    if opened.facts is None:
        ensure_namespace(spark, spec.destination, table.schema)
        if not create(spark, table, made):
            raise RetryLoad(f"another load has created `{table.target}` since this load began")
        return Ready(open_load(spark, spec, table, opened.job), rows, notes=made.notes)
    return _evolved(spark, spec, table, opened, rows, made)


def _evolved(
    spark: SparkSession,
    spec: JobSpec,
    table: TableSpec,
    opened: OpenedTable,
    rows: FittedRows,
    made: Definition,
) -> Ready:
    java_table = load(spark, table.schema, table.table)
    if java_table is None:
        raise RetryLoad(f"`{table.target}` was dropped since this load began")
    facts = read_facts(spark, java_table)
    try:
        plan = plan_changes(spark, spec, table, facts, rows, made)
    except LoadFailed:
        if not rows.prepared.is_empty:
            raise
        # A CSV file with a header alone is all text: without rows nothing is worth a complaint.
        return Ready(opened, replace(rows, columns=StructType()))
    branch = spec.destination.iceberg.branch
    changes = TableChanges(spark, table, branch, opened.job, facts, rows, made, plan)
    changed = changes.preview(java_table)
    families = rows.mapping.families
    gone = (shown(path) for path in plan.removed)
    warnings = tuple(missing_column(name) for name in gone if name.lower() not in families)
    warnings += plan.replacement_warnings()
    added = (added_column(shown(change.path)) for change in plan.add)
    told = (plan.repartition.sentence(),) if plan.repartition else ()
    notes = tuple(dict.fromkeys((*made.notes, *added, *plan.notes, *told)))
    if changed is None:
        return Ready(replace(opened, java_table=java_table), rows, warnings, notes)
    return Ready(replace(opened, java_table=changed), rows, warnings, notes, changes)


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
    spark: SparkSession, table: TableSpec, facts: TableFacts, job: TableAttempt, dead: Sequence[str]
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
        drop_branch(spark, table.schema, table.table, name)


def _asked(
    spark: SparkSession,
    table: TableSpec,
    branch: str,
    facts: TableFacts,
    answer: JobAnswer,
    job_id: str,
) -> JobFound:
    there = _has_rows(spark, table, branch, facts, job_id)
    if there is None:
        return answer.without_the_data()
    return JobFound.IN if there else JobFound.NOT_IN


def _has_rows(
    spark: SparkSession, table: TableSpec, branch: str, facts: TableFacts, job_id: str
) -> bool | None:
    """Whether the branch has rows of a job; None where the table cannot be asked."""
    if "_supa_job_id" not in facts.columns:
        return None
    if branch not in facts.refs:
        return False
    rows = spark.read.option("branch", branch).table(spark_name(table.schema, table.table))
    return not rows.where(F.col("_supa_job_id") == job_id).limit(1).isEmpty()

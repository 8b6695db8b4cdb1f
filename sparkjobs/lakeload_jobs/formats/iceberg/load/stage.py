"""Staging: a load's rows on a branch that readers do not see (DESIGN section 6, step 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.formats.iceberg.load.align_schema import conform, table_columns
from lakeload_jobs.formats.iceberg.load.branches import create_branch
from lakeload_jobs.formats.iceberg.load.cas_check import check_compares
from lakeload_jobs.formats.iceberg.load.java import Java, jvm, spark_name
from lakeload_jobs.formats.iceberg.load.merge import Merge, latest, run_merge
from lakeload_jobs.formats.iceberg.load.prepare import FittedRows
from lakeload_jobs.formats.iceberg.load.publish import Staged
from lakeload_jobs.formats.iceberg.load.tables import load, read_facts
from lakeload_jobs.formats.iceberg.rules.facts import (
    SUMMARY_ATTEMPT,
    SUMMARY_FINGERPRINT,
    SUMMARY_JOB,
    SUMMARY_MODE,
    SUMMARY_PIPELINE,
    SUMMARY_ROWS,
    SUMMARY_SYNCED,
    Snapshot,
)
from lakeload_jobs.rows.counting import Counted
from lakeload_jobs.rows.tracking import HELPER_PREFIX
from lakeload_jobs.rows.tracking_sql import deleted, with_tracking

_INDEX = HELPER_PREFIX + "index"


@dataclass(frozen=True)
class Stage:
    """What is staged, where. `branch` is the staging branch, `loaded` the one that is loaded."""

    spark: SparkSession
    spec: JobSpec
    table: TableSpec
    rows: FittedRows
    counted: Counted | None
    """None: the rows were not counted, and nobody knows how many there will be."""
    branch: str
    loaded: str
    replaces: bool
    """Every row of the table is replaced."""

    @property
    def merges(self) -> bool:
        """Whether rows are merged by their key."""
        return self.table.mode == "UPSERT" and not self.replaces


def stage(given: Stage) -> Staged:
    """Make the branch, write to it, and return what waits there.

    Raises `LoadFailed` when the rows written are not those that were counted.
    """
    spark, table = given.spark, given.table
    base = create_branch(spark, table.schema, table.table, given.branch, given.loaded)
    begun = _head(given).id
    summary = summary_of(given.spec, table, given.counted)
    java_table = load(spark, table.schema, table.table)
    if base is None and java_table is not None:
        # A table without a snapshot is new: nobody could ask about it before Spark.
        catalog = given.spec.destination.iceberg.catalog
        check_compares(spark, java_table, catalog, table.target, given.branch)
    if given.rows.columns.fields:
        _write(given, java_table, summary)
    head = _head(given)
    if head.id == begun:
        # Nothing to write is no commit of Spark's, and still one of ours (I8).
        _empty(given, java_table, summary)
        head = _head(given)
    _check_rows(given, head)
    replaces = given.replaces or given.merges
    mode: Literal["append", "replace"] = "replace" if replaces else "append"
    return Staged(given.branch, base, head.id, mode, summary, _has_rows(given, head))


def summary_of(spec: JobSpec, table: TableSpec, counted: Counted | None) -> dict[str, str]:
    """Return what a published snapshot says of the job that made it."""
    rows = {} if counted is None else {SUMMARY_ROWS: str(counted.rows)}
    return {
        SUMMARY_JOB: spec.job_id,
        SUMMARY_PIPELINE: spec.pipeline,
        SUMMARY_ATTEMPT: spec.attempt_id,
        **rows,
        SUMMARY_MODE: table.mode,
        SUMMARY_SYNCED: _instant(spec.synced),
        SUMMARY_FINGERPRINT: table.fingerprint,
    }


def tracked(given: Stage) -> DataFrame:
    """Return the rows with their tracking columns, and with helpers at the end."""
    spec = given.spec
    return with_tracking(
        given.rows.frame,
        counts=None if given.counted is None else given.counted.partitions,
        synced=spec.synced,
        job_id=spec.job_id,
        key_columns=given.rows.key,
        columns=spec.tracking_columns,
    )


def _write(given: Stage, java_table: Java, summary: Mapping[str, str]) -> None:
    target = spark_name(given.table.schema, given.table.table, given.branch)
    columns = table_columns(given.spark, java_table)
    rows = conform(tracked(given), columns)
    if given.table.mode == "UPSERT":
        # Also when all rows are replaced: a key is in the table once.
        rows = _latest(given, rows)
    if given.merges:
        _merge(given, rows, target, columns.names, summary)
        return
    data = [name for name in rows.columns if not name.startswith(HELPER_PREFIX)]
    if given.table.mode == "UPSERT" and given.table.deletes == "DELETE":
        rows = rows.where(~F.col(f"{HELPER_PREFIX}delete"))
    writer = rows.select(*(F.col(f"`{name}`") for name in data)).writeTo(target)
    for name, value in summary.items():
        writer = writer.option(f"snapshot-property.{name}", value)
    if given.replaces:
        writer.overwrite(F.lit(True))
    else:
        writer.append()


def _latest(given: Stage, rows: DataFrame) -> DataFrame:
    order = (
        F.col("_supa_index") if "_supa_index" in rows.columns else F.monotonically_increasing_id()
    )
    return latest(rows, given.rows.key, given.rows.cursor, order, deleted(rows))


def _merge(
    given: Stage, rows: DataFrame, target: str, columns: list[str], summary: Mapping[str, str]
) -> None:
    """Merge in this session: its settings stamp the snapshot, so it is the table's own."""
    properties = {f"spark.sql.iceberg.snapshot-property.{n}": v for n, v in summary.items()}
    for name, value in properties.items():
        given.spark.conf.set(name, value)
    try:
        run_merge(
            given.spark,
            rows,
            Merge(
                target,
                f"lakeload_{given.branch}",
                tuple(columns),
                given.rows.key,
                given.rows.cursor,
                given.table.deletes,
                given.counted.bounds if given.counted else {},
            ),
        )
    finally:
        for name in properties:
            given.spark.conf.unset(name)


def _empty(given: Stage, java_table: Java, summary: Mapping[str, str]) -> None:
    """Commit no rows; where every row is replaced, that removes them."""
    if given.replaces:
        always = jvm(given.spark).org.apache.iceberg.expressions.Expressions.alwaysTrue()
        commit = java_table.newDelete().deleteFromRowFilter(always)
    else:
        commit = java_table.newFastAppend()
    commit = commit.toBranch(given.branch)
    for name, value in summary.items():
        commit.set(name, value)
    commit.commit()


def _head(given: Stage) -> Snapshot:
    table = given.table
    java_table = load(given.spark, table.schema, table.table)
    if java_table is None:
        raise LoadFailed(
            f"the table `{table.target}` was dropped while it was loaded",
            hint="run again to create it anew",
            retryable=True,
        )
    facts = read_facts(java_table)
    if given.branch not in facts.refs:
        raise LoadFailed(
            f"the catalog says that `{table.target}` has no branch `{given.branch}`, where the "
            "rows of this load were to wait: somebody has dropped it, or the catalog keeps none",
            hint="run again, nothing was committed; should it say so again, it keeps no branches",
            retryable=True,
        )
    return facts.snapshots[facts.refs[given.branch]]


def _has_rows(given: Stage, head: Snapshot) -> bool:
    """Whether the load leaves rows of its own: as counted, else as its snapshot says."""
    if given.counted is not None:
        return given.counted.rows > 0
    return int(head.summary.get("added-records", "0")) > 0


def _check_rows(given: Stage, head: Snapshot) -> None:
    """Compare what was written with what was counted. A MERGE does not tell how many rows it was
    given: there the files of the source are compared alone."""
    if given.table.mode == "UPSERT" or given.counted is None:
        return
    written = int(head.summary.get("added-records", "0"))
    if written != given.counted.rows:
        raise LoadFailed(
            f"the source changed while it was read: it had {given.counted.rows} rows when counted "
            f"and {written} when loaded",
            hint="load files that are complete and that nobody writes to",
            retryable=True,
        )


def _instant(synced: datetime) -> str:
    return synced.isoformat().replace("+00:00", "Z")

"""The rows of a load on a branch of their own: written by tasks, merged or written by Spark."""

from __future__ import annotations

import functools
import json
import logging
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TypeGuard

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.result import RowChanges, SameKey
from lakeload_jobs.contract.spec import (
    JobSpec,
    TableSpec,
)
from lakeload_jobs.contract.traits import catalog_traits
from lakeload_jobs.formats.base import RetryLoad
from lakeload_jobs.formats.data_files.parts import LoadedRows, of_frame
from lakeload_jobs.formats.data_files.stage import Driver
from lakeload_jobs.formats.data_files.tracked import Tracking
from lakeload_jobs.formats.deletes import DeletedKeys, find_deleted, newest_keys, source_keys
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from lakeload_jobs.formats.iceberg.commits.metadata import (
    Json,
    Metadata,
    ref,
    schema_of,
    snapshot_of,
)
from lakeload_jobs.formats.iceberg.commits.snapshots import new_snapshot_id
from lakeload_jobs.formats.iceberg.load.arrow_schema import required_schema
from lakeload_jobs.formats.iceberg.load.branches import (
    StagingBranch,
    branch_is_gone,
    check_compares,
    create_branch,
    is_marked,
)
from lakeload_jobs.formats.iceberg.load.catalog_settings import SparkCatalog
from lakeload_jobs.formats.iceberg.load.catalog_tables import CatalogTables
from lakeload_jobs.formats.iceberg.load.direct_write import (
    DirectWrite,
    Target,
    Written,
    write_files,
)
from lakeload_jobs.formats.iceberg.load.evolution import TableChanges
from lakeload_jobs.formats.iceberg.load.kept_rows import (
    KeepRows,
    KeptRows,
    keep_rows,
    tracked_frame,
)
from lakeload_jobs.formats.iceberg.load.latest import KeyCounts, LatestRows
from lakeload_jobs.formats.iceberg.load.merge import (
    GONE,
    Merge,
    Pairs,
    count_pairs,
    run_merge,
)
from lakeload_jobs.formats.iceberg.load.prepare import FittedRows
from lakeload_jobs.formats.iceberg.load.publish import Changes, Committed, NewFiles, Staged
from lakeload_jobs.formats.iceberg.load.tables import jvm, spark_name
from lakeload_jobs.formats.iceberg.load.uncommitted import in_catalog
from lakeload_jobs.formats.iceberg.rules.facts import (
    SUMMARY_ATTEMPT,
    SUMMARY_AUTHOR,
    SUMMARY_BRANCH,
    SUMMARY_DELETED,
    SUMMARY_FINGERPRINT,
    SUMMARY_JOB,
    SUMMARY_MODE,
    SUMMARY_PIPELINE,
    SUMMARY_READ,
    SUMMARY_REJECTED,
    SUMMARY_RETRIED,
    SUMMARY_ROWS,
    SUMMARY_SYNCED,
)
from lakeload_jobs.formats.iceberg.rules.summaries import beyond, merged_rows
from lakeload_jobs.formats.iceberg.rules.writers import MERGE_MODE
from lakeload_jobs.rows.balance import Balance
from lakeload_jobs.rows.casts import filled, quoted
from lakeload_jobs.rows.counting import (
    NO_ROWS,
    Bounds,
    Counted,
    RowsReport,
    bounds_of,
    united,
)
from lakeload_jobs.rows.key_filter import MOST_KEYS, KeyFilter, filter_of
from lakeload_jobs.rows.progress import new_progress_file
from lakeload_jobs.rows.rejects import REJECTED_HELPER, check_rejected
from lakeload_jobs.rows.tracking import DELETED_HELPER, HELPER_PREFIX


def table_columns(spark: SparkSession, metadata: Metadata) -> T.StructType:
    """Return the table's columns as Spark's types."""
    iceberg = jvm(spark).org.apache.iceberg
    schema = iceberg.SchemaParser.fromJson(json.dumps(schema_of(metadata)))
    return T.StructType.fromJson(json.loads(iceberg.spark.SparkSchemaUtil.convert(schema).json()))


def conform(frame: DataFrame, table: T.StructType) -> DataFrame:
    """Return the frame with structs that have every field of the table's, in its order.

    Columns the load does not have are left out: they are null in new rows. Helpers stay.
    """
    known = {field.name: field for field in table.fields}
    values = []
    for field in frame.schema.fields:
        value = F.col(quoted(field.name))
        if not field.name.startswith(HELPER_PREFIX) and field.name in known:
            own = known[field.name]
            value = filled(value, field.dataType, own.dataType).alias(own.name)
        values.append(value)
    return frame.select(*values)


logger = logging.getLogger(__name__)


_FANOUT = "write.spark.fanout.enabled"


@dataclass(frozen=True)
class Stage:
    """What is staged, where. `branch` is the staging branch, `loaded` the one that is loaded."""

    spark: SparkSession
    tables: CatalogTables
    catalog: SparkCatalog
    spec: JobSpec
    table: TableSpec
    rows: FittedRows
    counted: Counted | None
    """None: the rows were not counted, and nobody knows how many there will be."""
    branch: str
    loaded: str
    replaces: bool
    """Every row of the table is replaced."""
    driver: Driver
    known: ReadTable | None = None
    """The table as it was read last."""
    begun: int | None = None
    """The snapshot of the branch that is loaded, when the load began: before the source was read.
    """
    direct: DirectWrite | None = None
    """What tasks write by themselves; None: Spark writes."""
    changes: TableChanges | None = None
    """What the table needs for the rows, made by the publish."""
    report: RowsReport = NO_ROWS
    """What tasks have found in the rows, once they have read them."""

    @property
    def tracking(self) -> Tracking:
        """What tracking columns say of the rows."""
        counts = None if self.counted is None else self.counted.partitions
        return Tracking.of(self.spec, self.rows.key, counts)

    @property
    def read(self) -> int:
        """How many rows there are, as the source counts them, else as tasks have."""
        total = self.rows.prepared.parts.total
        return self.report.rows + self.report.dropped if total is None else total

    @property
    def loaded_rows(self) -> int:
        """How many rows are loaded."""
        return self.read - self.report.rejected.rows - self.report.dropped

    @property
    def merges(self) -> bool:
        """Whether rows are merged by their key."""
        return self.table.mode == "UPSERT" and not self.replaces


def stage(given: Stage) -> Staged:
    """Make the branch, write the rows, and return what waits there.

    Raises `LoadFailed` when the rows written are not those that were counted or too many would be
    deleted, and `RetryLoad` where keys would be compared with those of later rows.
    """
    table = given.table
    branch = create_branch(
        given.tables, table.schema, table.table, given.branch, given.loaded, given.known
    )
    if branch.base is None:
        # A table without a snapshot is new: nobody could ask about it before Spark.
        catalog = given.spec.destination.iceberg.catalog
        check_compares(given.tables, branch, given.branch, catalog)
    metadata, changes = branch.table.metadata, None
    if given.changes is not None:
        definition = given.changes.preview(metadata, given.branch)
        if definition is not None:
            metadata, changes = definition, Changes(given.changes, definition)
    if given.direct is not None:
        written = _write_directly(given, given.direct, branch, metadata)
        given = _counted(given, written.report)
        by_spark, files = NOTHING, written.files
        rows: NewFiles | Committed = NewFiles(
            written.snapshot_id, written.manifests, given.replaces
        )
    else:
        given, by_spark = _write_by_spark(given, branch, metadata, private=changes is not None)
        files = None
        # Nothing to write is no commit of Spark's, and still one of ours (I8).
        rows = by_spark.rows or NewFiles(new_snapshot_id(), (), given.replaces)
    # Keys were compared with those of `base`, and no other.
    replaces = given.replaces or given.merges or by_spark.deleted is not None
    keyed, summary = by_spark.keyed, _summary(given, by_spark.deleted)
    if isinstance(rows, NewFiles):
        # Spark says so of its own snapshots.
        summary["spark.app.id"] = given.spark.sparkContext.applicationId
    return Staged(
        branch=given.branch,
        base=branch.base,
        at=rows.snapshot["snapshot-id"] if _is_on_branch(rows) else branch.at,
        rows=rows,
        mode="replace" if replaces else "append",
        schema=schema_of(metadata),
        summary=summary,
        has_rows=_has_rows(given, rows, by_spark),
        balance=keyed.balance if keyed and keyed.balance else _balance(given, rows, by_spark),
        merged=keyed.changes if keyed else None,
        same_key=keyed.same_key if keyed else None,
        report=given.report,
        files=files,
        changes=changes,
    )


def _write_by_spark(
    given: Stage, branch: StagingBranch, metadata: Metadata, *, private: bool
) -> tuple[Stage, BySpark]:
    """Have Spark write the rows to the branch; `private`: to that of a table with the changes of
    this load, which nobody else sees. Return the load with what was found in its rows."""
    if not given.rows.columns.fields:
        return given, NOTHING
    base, table = branch.before, given.table
    if base not in (None, given.begun) and _compares_keys(given):
        # The source was read before those rows came in, and may have them now.
        raise RetryLoad(f"another load was committed to `{table.target}` since this load began")
    given.catalog.open_in(given.spark, table.target, "Spark writes its rows")
    with ExitStack() as stack:
        kept = stack.enter_context(closing(_keep(given, metadata)))
        if given.spec.on_bad_value_of(table) == "QUARANTINE":
            # What fails for them need not be written.
            check_rejected(kept.report.rejected, given.spec.max_rejected_of(table))
        given = _counted(given, kept.report)
        gone = _find_deleted(given, base)
        if gone is not None:
            stack.callback(gone.close)
        deleted = None if gone is None else gone.rows
        target = stack.enter_context(_target(given, branch, metadata, private=private))
        keyed = _write(given, kept, metadata, target, _summary(given, deleted), base, gone)
        head = target.head()
    rows = None if head["snapshot-id"] == branch.at else Committed(head, private)
    return given, BySpark(rows, keyed, deleted)


def _is_on_branch(rows: NewFiles | Committed) -> TypeGuard[Committed]:
    """Whether the staging branch has moved to the rows."""
    return isinstance(rows, Committed) and not rows.private


def _summary(given: Stage, deleted: int | None) -> dict[str, str]:
    """Return what the snapshot says of a load whose rejected records are counted, and keys of the
    table that the source no longer has."""
    summary = summary_of(given.spec, given.table, given.counted)
    if deleted is not None:
        summary[SUMMARY_DELETED] = str(deleted)
    if read := given.rows.prepared.read:
        summary[SUMMARY_READ] = read
    if REJECTED_HELPER in given.rows.prepared.schema.names:
        summary[SUMMARY_BRANCH] = given.branch
    return summary


def _keep(given: Stage, metadata: Metadata) -> KeptRows:
    """Read the rows for Spark."""
    schema = required_schema(schema_of(metadata))
    progress = new_progress_file(given.spec, given.table)
    work = KeepRows(given.tracking, given.table.source, schema, progress)
    runtime = given.spec.runtime
    retried = runtime.tasks_retried or not runtime.tasks_share_driver
    return keep_rows(given.spark, given.rows.prepared.parts, work, retried=retried)


def _counted(given: Stage, report: RowsReport) -> Stage:
    """Return a load whose rows tasks have read."""
    counted = given.counted
    if counted is not None:
        counted = replace(counted, rejected=report.rejected.rows)
    return replace(given, counted=counted, report=report)


def _write_directly(
    given: Stage, direct: DirectWrite, branch: StagingBranch, metadata: Metadata
) -> Written:
    """Have tasks write the files."""
    target = Target(
        spark=given.spark,
        spec=given.spec,
        table=given.table,
        metadata=metadata,
        metadata_files=given.tables.files(branch.table),
        branch=given.branch,
        key=given.rows.key,
        tracking=given.tracking,
        driver=given.driver,
    )
    return write_files(target, direct)


def _find_deleted(given: Stage, base: int | None) -> DeletedKeys | None:
    """Return the keys of the table that the source no longer has."""
    table, key = given.table, given.rows.key
    if base is None or table.max_deleted is None or not _compares_keys(given):
        return None
    before = _table_at(given, base)
    if not set(key) <= set(before.columns):
        return None
    if table.mode == "APPEND":
        live = newest_keys(before, key)
    elif table.deletes == "MARK" and "_supa_deleted" in before.columns:
        live = before.where(~F.coalesce(F.col("_supa_deleted"), F.lit(False)))
    else:
        live = before
    lower = catalog_traits(given.spec.destination.iceberg.catalog).lower_case_names
    rows = given.rows
    keys = source_keys(given.spec, table, rows.prepared, rows.mapping, lower=lower)
    return find_deleted(live, keys, key, table.max_deleted, table.target)


def _compares_keys(given: Stage) -> bool:
    """Whether the keys of the table are compared with those of the source."""
    compared = given.table.max_deleted is not None
    return compared and not given.replaces and not given.rows.prepared.more


def _table_at(given: Stage, snapshot: int) -> DataFrame:
    name = spark_name(given.table.schema, given.table.table)
    return given.spark.read.option("versionAsOf", snapshot).table(name)


def _deleted_rows(given: Stage, gone: DeletedKeys, rows: DataFrame) -> DataFrame:
    """Return the keys as rows that are deleted, with their tracking columns, in the types of
    `rows` and numbered behind them."""
    kinds = {field.name: field.dataType for field in rows.schema.fields}
    keys = gone.frame.select(
        *(F.col(quoted(name)).cast(kinds[name]).alias(name) for name in given.rows.key),
        F.lit(True).alias(DELETED_HELPER),
    )
    parts, counts = len(given.rows.prepared.parts.parts), None
    if given.counted is not None:
        counts = (*given.counted.partitions, gone.rows)
    return tracked_frame(given.spark, of_frame(keys), replace(given.tracking, counts=counts), parts)


def summary_of(spec: JobSpec, table: TableSpec, counted: Counted | None) -> dict[str, str]:
    """Return what a published snapshot says of the job that made it."""
    rows = {} if counted is None else {SUMMARY_ROWS: str(counted.loaded)}
    if counted is not None and counted.rejected:
        rows[SUMMARY_REJECTED] = str(counted.rejected)
    retried = {} if table.retries is None else {SUMMARY_RETRIED: table.retries}
    author = {SUMMARY_AUTHOR: spec.author} if spec.author else {}
    return {
        SUMMARY_JOB: spec.job_id,
        SUMMARY_PIPELINE: spec.pipeline,
        SUMMARY_ATTEMPT: spec.attempt_id,
        **author,
        **rows,
        **retried,
        SUMMARY_MODE: table.mode,
        SUMMARY_SYNCED: _instant(spec.synced),
        SUMMARY_FINGERPRINT: table.fingerprint,
    }


@dataclass(frozen=True)
class KeyedRows:
    """What became of the rows of an UPSERT: the latest of each key, and those that they replaced.
    `balance` and `changes` are None where nothing was merged."""

    counts: KeyCounts
    same_key: SameKey | None
    balance: Balance | None = None
    changes: RowChanges | None = None


@dataclass(frozen=True)
class BySpark:
    """What Spark has written: `rows` None where there was nothing to write, `keyed` what became of
    the rows of an UPSERT, `deleted` how many keys the source no longer has, where they are
    compared."""

    rows: Committed | None = None
    keyed: KeyedRows | None = None
    deleted: int | None = None


NOTHING = BySpark()


@dataclass(frozen=True)
class SparkTarget:
    """How SQL calls the staging branch, and the snapshot that it is at now."""

    name: str
    head: Callable[[], Json]


@contextmanager
def _target(
    given: Stage, branch: StagingBranch, metadata: Metadata, *, private: bool
) -> Iterator[SparkTarget]:
    """Yield the staging branch, of the table or of one that nobody else sees."""
    schema, name = given.table.schema, given.table.table
    if not private:
        yield SparkTarget(spark_name(schema, name, given.branch), partial(_head, given, branch))
        return
    with in_catalog(given.spark, schema, name, metadata) as uncommitted:
        called = spark_name(schema, name, given.branch, catalog=uncommitted.catalog)
        yield SparkTarget(called, lambda: _at(uncommitted.metadata(), given.branch))


def _head(given: Stage, branch: StagingBranch) -> Json:
    """Return the snapshot of the staging branch. Raises `LoadFailed` where it is not the branch
    that was made: dropped meanwhile, and made anew by Spark's commit, its files may be gone (I10).
    """
    metadata = given.tables.existing(given.table).metadata
    marked = is_marked(branch.table.metadata, given.branch)
    if ref(metadata, given.branch) is None or (marked and not is_marked(metadata, given.branch)):
        raise branch_is_gone(given.table.target, given.branch)
    return _at(metadata, given.branch)


def _at(metadata: Metadata, branch: str) -> Json:
    snapshot = snapshot_of(metadata, ref(metadata, branch) or 0)
    if snapshot is None:
        raise ValueError(f"the table has no snapshot of the branch {branch}")
    return snapshot


def _write(
    given: Stage,
    kept: KeptRows,
    metadata: Metadata,
    target: SparkTarget,
    summary: Mapping[str, str],
    base: int | None,
    gone: DeletedKeys | None,
) -> KeyedRows | None:
    """Write the rows; return what became of those of an UPSERT."""
    columns = table_columns(given.spark, metadata)
    rows = conform(kept.frame, columns)
    latest = None
    if given.table.mode == "UPSERT":
        # Also when all rows are replaced: a key is in the table once.
        latest = _latest(given, rows)
        rows = latest.frame
    if latest is not None and given.merges:
        return _merge(given, kept, latest, metadata, target, summary, base, gone)
    data = [name for name in rows.columns if not name.startswith(HELPER_PREFIX)]
    if given.table.mode == "UPSERT" and given.table.deletes == "DELETE":
        rows = rows.where(~F.col(DELETED_HELPER))
    if gone is not None:
        rows = rows.unionByName(_deleted_rows(given, gone, rows), allowMissingColumns=True)
    writer = rows.select(*(F.col(quoted(name)) for name in data)).writeTo(target.name)
    for name, value in summary.items():
        writer = writer.option(f"snapshot-property.{name}", value)
    if metadata.get("properties", {}).get(_FANOUT) is None:
        # Spark sorts by partition, on disk where rows are many. Its default is an open file for
        # each partition of a task, which needs a heap of 4 GB for 500 of them.
        writer = writer.option("fanout-enabled", "false")
    if given.replaces:
        writer.overwrite(F.lit(True))
    else:
        writer.append()
    if latest is None:
        return None
    counts = latest.counts(given.loaded_rows)
    return KeyedRows(counts, latest.same_key(counts))


def _latest(given: Stage, rows: DataFrame) -> LatestRows:
    order = (
        F.col("_supa_index") if "_supa_index" in rows.columns else F.monotonically_increasing_id()
    )
    return LatestRows.of(rows, given.rows.key, given.rows.cursor, order)


def _merge(
    given: Stage,
    kept: KeptRows,
    latest: LatestRows,
    metadata: Metadata,
    target: SparkTarget,
    summary: Mapping[str, str],
    base: int | None,
    gone: DeletedKeys | None,
) -> KeyedRows:
    """Merge in this session: its settings stamp the snapshot, so it is the table's own."""
    columns = table_columns(given.spark, metadata)
    copies = metadata.get("properties", {}).get(MERGE_MODE) != "merge-on-read"
    bounds: Bounds = kept.report.bounds
    rows = latest.frame
    if given.table.max_deleted is not None:
        rows = rows.withColumn(GONE, F.lit(False))
    given_rows = rows
    if gone is not None:
        deleted_rows = _deleted_rows(given, gone, rows).withColumn(GONE, F.lit(True))
        given_rows = rows.unionByName(deleted_rows, allowMissingColumns=True)
        bounds = _with_bounds(given, bounds, gone)
    merge = Merge(
        target.name,
        f"lakeload_{given.branch}",
        columns,
        given.rows.key,
        given.rows.cursor,
        given.table.deletes,
        bounds,
        _key_filter(given, kept, metadata, base, columns),
        detects=given.table.max_deleted is not None,
        copies=copies,
    )
    if given.table.retries is not None and merge.cursor is None and base is not None:
        _check_new_keys(given, rows, base)
    properties = {f"spark.sql.iceberg.snapshot-property.{n}": v for n, v in summary.items()}
    for name, value in properties.items():
        given.spark.conf.set(name, value)
    try:
        run_merge(given.spark, given_rows, merge)
    finally:
        for name in properties:
            given.spark.conf.unset(name)
    counts = latest.counts(given.loaded_rows)
    head = target.head()
    written = head["summary"] if head["snapshot-id"] != base else {}
    removed = 0 if gone is None else gone.rows
    pairs = _pairs(given, given_rows, merge, written, counts, removed, base)
    balance = Balance(
        read=given.read,
        written=pairs.changes.rows - removed + beyond(pairs.changes, written, copies=copies),
        rejected=given.report.rejected.rows,
        dropped=given.report.dropped,
        same_key=counts.same_key,
        unchanged=pairs.changes.unchanged or 0,
        ignored=pairs.changes.ignored or 0,
        without_row=pairs.without_row,
        twins=pairs.rows - counts.latest - removed,
    )
    return KeyedRows(counts, latest.same_key(counts), balance, pairs.changes)


def _pairs(
    given: Stage,
    rows: DataFrame,
    merge: Merge,
    written: Mapping[str, str],
    counts: KeyCounts,
    removed: int,
    base: int | None,
) -> Pairs:
    """Return what a MERGE did, as its snapshot says; what that leaves out is counted. `removed` of
    the rows are keys that the source no longer has."""
    merged = merged_rows(written)
    left = counts.latest + removed - (merged.rows if merged else 0)
    if merged is not None and left == 0:
        return Pairs(replace(merged, unchanged=0, ignored=0))
    if merged is not None and left > 0 and merge.cursor is None and merge.deletes != "DELETE":
        return Pairs(replace(merged, unchanged=left, ignored=0))
    before = None if base is None else _table_at(given, base)
    if before is None or not set(merge.key) <= set(before.columns):
        nothing = counts.deletes if merge.deletes == "DELETE" else 0
        inserted = counts.latest - nothing
        return Pairs(RowChanges(inserted, 0, 0, unchanged=0, ignored=0), nothing)
    pairs = count_pairs(given.spark, rows, merge, before, equal=merged is None)
    if merged is None:
        return pairs
    unchanged = pairs.changes.rows - merged.rows
    ignored = pairs.changes.ignored
    return Pairs(replace(merged, unchanged=unchanged, ignored=ignored), pairs.without_row)


LARGE_TABLE = 100_000
"""Rows of a table from which on a load's keys are made into a filter: below, the MERGE sorts so
little that the filter costs more than it saves (an estimate, not measured)."""


def _key_filter(
    given: Stage, kept: KeptRows, metadata: Metadata, base: int | None, columns: T.StructType
) -> KeyFilter | None:
    """Return the filter of the load's keys; None where there is none, where too many rows of the
    table would pass it, or where the table's type of a key has other hashes."""
    key, kinds = given.rows.key, kept.frame.schema
    if given.table.max_deleted is not None or given.loaded_rows > MOST_KEYS:
        return None
    if not _is_large(metadata, base):
        return None
    if any(kinds[name].dataType != columns[name].dataType for name in key):
        return None
    return filter_of(kept.columns(key), key, given.loaded_rows)


def _is_large(metadata: Metadata, snapshot: int | None) -> bool:
    """Whether a filter of the load's keys saves a MERGE more than it costs."""
    known = None if snapshot is None else snapshot_of(metadata, snapshot)
    summary = (known.get("summary") or {}) if known is not None else {}
    rows = summary.get("total-records")
    return int(rows or 0) >= LARGE_TABLE


def _with_bounds(given: Stage, bounds: Bounds, gone: DeletedKeys) -> Bounds:
    """Return bounds of columns that hold for keys that are deleted, too."""
    columns = tuple(bounds if given.loaded_rows else gone.frame.columns)
    others = of_frame(gone.frame).results(given.spark, partial(_bounds, columns))
    return united((bounds, *others))


def _bounds(columns: tuple[str, ...], part: int, rows: LoadedRows) -> Bounds:
    return united(bounds_of(batch, columns) for batch in rows)


def _check_new_keys(given: Stage, rows: DataFrame, base: int) -> None:
    """Raise `LoadFailed` where the table has a key of rejected records, which are of an earlier
    load: the row that is there may be the newer one. The publish compares `base` with the head."""
    key = given.rows.key
    before = _table_at(given, base)
    if not set(key) <= set(before.columns):
        return
    there = before.select(*(F.col(quoted(column)).alias(f"t_{i}") for i, column in enumerate(key)))
    same = [F.col(quoted(column)).eqNullSafe(F.col(f"t_{i}")) for i, column in enumerate(key)]
    found = rows.join(there, functools.reduce(operator.and_, same), "left_semi")
    first = (
        found.select(*(F.col(quoted(column)).cast("string") for column in key)).limit(1).collect()
    )
    if not first:
        return
    shown = ", ".join(f"`{column}` = {value}" for column, value in zip(key, first[0], strict=True))
    raise LoadFailed(
        f"the table has rows with keys of the rejected records of job `{given.table.retries}`, "
        f"such as {shown}, and without `cursor` lakeload cannot know which are newer: "
        "nothing was loaded",
        hint=(
            "set `cursor` to a column that orders the versions, or write the rows to the "
            "source again and load them from there"
        ),
    )


def _has_rows(given: Stage, rows: NewFiles | Committed, written: BySpark) -> bool:
    """Whether the load leaves rows of its own: as counted, else as its snapshot says."""
    keyed = written.keyed
    if keyed is not None and keyed.changes is not None:
        # What removes a row adds the others of its file again.
        return keyed.changes.inserted + keyed.changes.updated > 0
    if given.counted is not None:
        return given.counted.loaded > 0 or written.deleted is not None
    return _added(rows) > 0


def _balance(given: Stage, rows: NewFiles | Committed, written: BySpark) -> Balance:
    """Return what became of the rows of a load that were not merged."""
    removes, keyed = given.table.deletes == "DELETE", written.keyed
    return Balance(
        read=given.read,
        written=_added(rows) - (written.deleted or 0),
        rejected=given.report.rejected.rows,
        dropped=given.report.dropped,
        same_key=keyed.counts.same_key if keyed else 0,
        without_row=keyed.counts.deletes if keyed and removes else 0,
    )


def _added(rows: NewFiles | Committed) -> int:
    """Return how many rows the new files have."""
    if isinstance(rows, NewFiles):
        return sum(manifest.rows for manifest in rows.manifests)
    return int(rows.snapshot["summary"].get("added-records", "0"))


def _instant(synced: datetime) -> str:
    return synced.isoformat().replace("+00:00", "Z")

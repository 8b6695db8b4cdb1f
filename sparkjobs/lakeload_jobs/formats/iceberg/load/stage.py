"""The rows of a load on a branch of their own: written by tasks, merged or written by Spark."""

from __future__ import annotations

import functools
import json
import logging
import operator
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Literal

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.result import RowChanges, SameKey
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    JobSpec,
    TableSpec,
)
from lakeload_jobs.contract.traits import Compares, catalog_traits
from lakeload_jobs.formats.base import RetryLoad
from lakeload_jobs.formats.data_files.parts import LoadedRows, of_frame
from lakeload_jobs.formats.data_files.stage import Driver
from lakeload_jobs.formats.data_files.tracked import Tracking
from lakeload_jobs.formats.deletes import DeletedKeys, find_deleted, newest_keys, source_keys
from lakeload_jobs.formats.iceberg.load.arrow_schema import required_schema
from lakeload_jobs.formats.iceberg.load.branches import (
    LOST,
    branch_is_gone,
    create_branch,
    is_marked,
)
from lakeload_jobs.formats.iceberg.load.direct_write import (
    DirectWrite,
    Target,
    Written,
    schema_json,
    write_files,
)
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
from lakeload_jobs.formats.iceberg.load.publish import Staged, Uncommitted
from lakeload_jobs.formats.iceberg.load.table_changes import TableChanges
from lakeload_jobs.formats.iceberg.load.tables import (
    Java,
    caused_by,
    jvm,
    load_existing,
    read_facts,
    spark_name,
)
from lakeload_jobs.formats.iceberg.load.uncommitted import in_catalog
from lakeload_jobs.formats.iceberg.rules.catalogs import took_false_commit
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
    Snapshot,
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
from lakeload_jobs.storage.objects import Objects


def table_columns(spark: SparkSession, java_table: Java) -> T.StructType:
    """Return the table's columns as Spark's types."""
    convert = jvm(spark).org.apache.iceberg.spark.SparkSchemaUtil.convert
    return T.StructType.fromJson(json.loads(convert(java_table.schema()).json()))


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


def check_compares(
    spark: SparkSession, java_table: Java, catalog: CatalogSpec, target: str, branch: str
) -> None:
    """Raise `LoadFailed` when a REST catalog takes a commit that it has to refuse.

    The commit sets `branch` to where it is, and asserts that there is no such branch: taken, it
    changes nothing. Any other answer says nothing; the commits of the load will be told more.
    """
    if catalog_traits(catalog).compares is not Compares.REFERENCES:
        return
    operations = java_table.operations()
    now = operations.current()
    reference = now.ref(branch)
    if reference is None:
        return
    build = jvm(spark).org.apache.iceberg.TableMetadata.buildFrom
    without = build(now).removeRef(branch).discardChanges().build()
    again = build(without).setRef(branch, reference).build()
    try:
        operations.commit(without, again)
    except Py4JJavaError as error:
        if not caused_by(error, *LOST):
            logger.warning(
                "it is not known whether the catalog validates commits to %s", target, exc_info=True
            )
        return
    message, hint = took_false_commit(target, branch)
    raise LoadFailed(f"nothing is loaded through this catalog: {message}", hint=hint)


_FANOUT = "write.spark.fanout.enabled"


@dataclass(frozen=True)
class Stage:
    """What is staged, where. `branch` is the staging branch, `loaded` the one that is loaded."""

    spark: SparkSession
    objects: Objects
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
    begun: int | None = None
    """The snapshot of the branch that is loaded, when the load began: before the source was read.
    """
    direct: DirectWrite | None = None
    """What tasks write by themselves; None: Spark writes."""
    changes: TableChanges | None = None
    """What the table needs for the rows, made by the publish."""
    changed: Java | None = None
    """The table with these changes, which only this load sees: the rows are staged in it."""
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

    def read_table(self) -> Java:
        """Return the table that the rows are staged in, as it is now."""
        if self.changed is not None:
            return self.changed
        return load_existing(self.spark, self.table)


def stage(given: Stage) -> Staged:
    """Make the branch, write to it, and return what waits there.

    Raises `LoadFailed` when the rows written are not those that were counted or too many would be
    deleted, and `RetryLoad` where keys would be compared with those of later rows.
    """
    spark, table = given.spark, given.table
    base = create_branch(spark, table.schema, table.table, given.branch, given.loaded)
    java_table = load_existing(spark, table)
    begun = _head(given, java_table).id
    marked = is_marked(java_table, given.branch)
    summary = _summary(given)
    if base is None:
        # A table without a snapshot is new: nobody could ask about it before Spark.
        catalog = given.spec.destination.iceberg.catalog
        check_compares(spark, java_table, catalog, table.target, given.branch)
    if given.changes is not None:
        given = replace(given, changed=given.changes.preview(java_table, given.branch))
        java_table = given.changed or java_table
    merged, gone, written = None, None, None
    if given.direct is not None:
        written = _write_directly(given, given.direct, java_table)
        given = _counted(given, written.report)
        summary = _summary(given)
    elif given.rows.columns.fields:
        if base not in (None, given.begun) and _compares_keys(given):
            # The source was read before those rows came in, and may have them now.
            raise RetryLoad(f"another load was committed to `{table.target}` since this load began")
        with ExitStack() as stack:
            kept = stack.enter_context(closing(_keep(given, java_table)))
            if given.spec.on_bad_value_of(table) == "QUARANTINE":
                # What fails for them need not be written.
                check_rejected(kept.report.rejected, given.spec.max_rejected_of(table))
            given = _counted(given, kept.report)
            summary = _summary(given)
            gone = _find_deleted(given, base)
            if gone is not None:
                stack.callback(gone.close)
                summary[SUMMARY_DELETED] = str(gone.rows)
            target = stack.enter_context(_target(given))
            merged = _write(given, kept, java_table, target, summary, base, gone)
    java_table = given.read_table()
    head = _head(given, java_table)
    if head.id == begun:
        # Nothing to write is no commit of Spark's, and still one of ours (I8).
        _empty(given, java_table, summary)
        java_table = given.read_table()
        head = _head(given, java_table)
    if marked and not is_marked(java_table, given.branch):
        # Dropped meanwhile, and made anew by Spark's commit: its files may be gone (I10).
        raise branch_is_gone(table.target, given.branch)
    # Keys were compared with those of `base`, and no other.
    replaces = given.replaces or given.merges or gone is not None
    mode: Literal["append", "replace"] = "replace" if replaces else "append"
    has_rows = _has_rows(given, head, merged)
    waiting = None
    if given.changes is not None and given.changed is not None:
        waiting = Uncommitted(given.changes, given.changed, head.id, given.replaces)
    return Staged(
        given.branch,
        base,
        head.id if waiting is None else begun,
        mode,
        summary,
        has_rows,
        merged.balance if merged and merged.balance else _balance(given, head, merged),
        merged.changes if merged else None,
        merged.same_key if merged else None,
        given.report,
        written.files if written else None,
        waiting,
    )


def _summary(given: Stage) -> dict[str, str]:
    """Return what the snapshot says of a load whose rejected records are counted."""
    summary = summary_of(given.spec, given.table, given.counted)
    if read := given.rows.prepared.read:
        summary[SUMMARY_READ] = read
    if REJECTED_HELPER in given.rows.prepared.schema.names:
        summary[SUMMARY_BRANCH] = given.branch
    return summary


def _keep(given: Stage, java_table: Java) -> KeptRows:
    """Read the rows for Spark."""
    schema = required_schema(schema_json(given.spark, java_table.schema()))
    progress = new_progress_file(given.spec, given.table)
    work = KeepRows(given.tracking, given.table.source, schema, progress)
    return keep_rows(given.spark, given.rows.prepared.parts, work)


def _counted(given: Stage, report: RowsReport) -> Stage:
    """Return a load whose rows tasks have read."""
    counted = given.counted
    if counted is not None:
        counted = replace(counted, rejected=report.rejected.rows)
    return replace(given, counted=counted, report=report)


def _write_directly(given: Stage, direct: DirectWrite, java_table: Java) -> Written:
    """Have tasks write the files."""
    target = Target(
        spark=given.spark,
        spec=given.spec,
        table=given.table,
        objects=given.objects,
        branch=given.branch,
        key=given.rows.key,
        replaces=given.replaces,
        tracking=given.tracking,
        driver=given.driver,
        private=given.changed is not None,
    )
    return write_files(target, direct, java_table, lambda report: _summary(_counted(given, report)))


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


@contextmanager
def _target(given: Stage) -> Iterator[str]:
    """Yield how SQL calls the staging branch."""
    schema, name, branch = given.table.schema, given.table.table, given.branch
    if given.changed is None:
        yield spark_name(schema, name, branch)
        return
    with in_catalog(given.spark, schema, name, given.changed) as catalog:
        yield spark_name(schema, name, branch, catalog=catalog)


def _write(
    given: Stage,
    kept: KeptRows,
    java_table: Java,
    target: str,
    summary: Mapping[str, str],
    base: int | None,
    gone: DeletedKeys | None,
) -> KeyedRows | None:
    """Write the rows; return what became of those of an UPSERT."""
    columns = table_columns(given.spark, java_table)
    rows = conform(kept.frame, columns)
    latest = None
    if given.table.mode == "UPSERT":
        # Also when all rows are replaced: a key is in the table once.
        latest = _latest(given, rows)
        rows = latest.frame
    if latest is not None and given.merges:
        return _merge(given, kept, latest, java_table, target, summary, base, gone)
    data = [name for name in rows.columns if not name.startswith(HELPER_PREFIX)]
    if given.table.mode == "UPSERT" and given.table.deletes == "DELETE":
        rows = rows.where(~F.col(DELETED_HELPER))
    if gone is not None:
        rows = rows.unionByName(_deleted_rows(given, gone, rows), allowMissingColumns=True)
    writer = rows.select(*(F.col(quoted(name)) for name in data)).writeTo(target)
    for name, value in summary.items():
        writer = writer.option(f"snapshot-property.{name}", value)
    if java_table.properties().get(_FANOUT) is None:
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
    java_table: Java,
    target: str,
    summary: Mapping[str, str],
    base: int | None,
    gone: DeletedKeys | None,
) -> KeyedRows:
    """Merge in this session: its settings stamp the snapshot, so it is the table's own."""
    columns = table_columns(given.spark, java_table)
    copies = java_table.properties().get(MERGE_MODE) != "merge-on-read"
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
        target,
        f"lakeload_{given.branch}",
        columns,
        given.rows.key,
        given.rows.cursor,
        given.table.deletes,
        bounds,
        _key_filter(given, kept, java_table, base, columns),
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
    head = _head(given)
    written = head.summary if head.id != base else {}
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
    given: Stage, kept: KeptRows, java_table: Java, base: int | None, columns: T.StructType
) -> KeyFilter | None:
    """Return the filter of the load's keys; None where there is none, where too many rows of the
    table would pass it, or where the table's type of a key has other hashes."""
    key, kinds = given.rows.key, kept.frame.schema
    if given.table.max_deleted is not None or given.loaded_rows > MOST_KEYS:
        return None
    if not _is_large(java_table, base):
        return None
    if any(kinds[name].dataType != columns[name].dataType for name in key):
        return None
    return filter_of(kept.columns(key), key, given.loaded_rows)


def _is_large(java_table: Java, snapshot: int | None) -> bool:
    """Whether a filter of the load's keys saves a MERGE more than it costs."""
    known = None if snapshot is None else java_table.snapshot(snapshot)
    return known is not None and int(known.summary().get("total-records") or 0) >= LARGE_TABLE


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


def _head(given: Stage, java_table: Java | None = None) -> Snapshot:
    """Return the head of the staging branch, in the table as it is now or was read before."""
    table = given.table
    if java_table is None:
        java_table = given.read_table()
    facts = read_facts(given.spark, java_table)
    if given.branch not in facts.refs:
        raise branch_is_gone(table.target, given.branch)
    return facts.snapshots[facts.refs[given.branch]]


def _has_rows(given: Stage, head: Snapshot, keyed: KeyedRows | None) -> bool:
    """Whether the load leaves rows of its own: as counted, else as its snapshot says."""
    if keyed is not None and keyed.changes is not None:
        # What removes a row adds the others of its file again.
        return keyed.changes.inserted + keyed.changes.updated > 0
    if given.counted is not None:
        return given.counted.loaded > 0 or SUMMARY_DELETED in head.summary
    return int(head.summary.get("added-records", "0")) > 0


def _balance(given: Stage, head: Snapshot, keyed: KeyedRows | None) -> Balance:
    """Return what became of the rows of a load that were not merged."""
    removes = given.table.deletes == "DELETE"
    return Balance(
        read=given.read,
        written=int(head.summary.get("added-records", "0"))
        - int(head.summary.get(SUMMARY_DELETED, "0")),
        rejected=given.report.rejected.rows,
        dropped=given.report.dropped,
        same_key=keyed.counts.same_key if keyed else 0,
        without_row=keyed.counts.deletes if keyed and removes else 0,
    )


def _instant(synced: datetime) -> str:
    return synced.isoformat().replace("+00:00", "Z")

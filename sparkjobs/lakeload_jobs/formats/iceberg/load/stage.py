"""Columns of a load in the shape the table has them: fields that are gone are null."""

from __future__ import annotations

import functools
import json
import logging
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import (
    TRACKING_COLUMNS,
    CatalogSpec,
    Deletes,
    JobSpec,
    TableSpec,
)
from lakeload_jobs.contract.traits import Compares, catalog_traits
from lakeload_jobs.formats.base import RetryLoad
from lakeload_jobs.formats.data_files.stage import Driver
from lakeload_jobs.formats.deletes import DeletedKeys, find_deleted, newest_keys, source_keys
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
    write_files,
)
from lakeload_jobs.formats.iceberg.load.outcome import changes, merged_rows
from lakeload_jobs.formats.iceberg.load.prepare import FittedRows
from lakeload_jobs.formats.iceberg.load.publish import SameKey, Staged, Untouched
from lakeload_jobs.formats.iceberg.load.table_changes import TableChanges
from lakeload_jobs.formats.iceberg.load.tables import (
    Java,
    caused_by,
    jvm,
    load_existing,
    read_facts,
    spark_name,
)
from lakeload_jobs.formats.iceberg.rules.catalogs import took_false_commit
from lakeload_jobs.formats.iceberg.rules.facts import (
    SUMMARY_ATTEMPT,
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
from lakeload_jobs.rows.casts import JSON_OPTIONS, filled, quoted
from lakeload_jobs.rows.counting import Counted, count_rows, partition_count
from lakeload_jobs.rows.key_filter import MOST_KEYS, KeyFilter
from lakeload_jobs.rows.rejects import REJECTED_HELPER, Rejected
from lakeload_jobs.rows.tracking import DELETED_HELPER, HELPER_PREFIX, POSITION_BITS
from lakeload_jobs.rows.tracking_sql import deleted, with_tracking
from lakeload_jobs.storage.objects import Objects


def table_columns(spark: SparkSession, java_table: Java) -> T.StructType:
    """Return the table's columns as Spark's types."""
    convert = jvm(spark).org.apache.iceberg.spark.SparkSchemaUtil.convert
    return T.StructType.fromJson(json.loads(convert(java_table.schema()).json()))


def conform(frame: DataFrame, table: T.StructType) -> DataFrame:
    """Return the frame with structs that have every field of the table's, in its order.

    Columns the load does not have are left out: they are null in new rows. Helpers stay.
    """
    known = {field.name: field.dataType for field in table.fields}
    values = []
    for field in frame.schema.fields:
        value = F.col(f"`{field.name}`")
        if not field.name.startswith(HELPER_PREFIX) and field.name in known:
            value = filled(value, field.dataType, known[field.name]).alias(field.name)
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


_DELETE = HELPER_PREFIX + "delete"
_ORDER = HELPER_PREFIX + "order"
_RANK = HELPER_PREFIX + "rank"
_GONE = HELPER_PREFIX + "gone"
_FANOUT = "write.spark.fanout.enabled"
_MERGE_MODE = "write.merge.mode"
"""Iceberg's default is `copy-on-write`."""


@dataclass(frozen=True)
class Merge:
    """What is merged into `target`, a branch as SQL names it.

    `columns` are the table's; `bounds` the least and greatest value of key columns, which spare
    reading the files that have no such keys; `keys` spares sorting rows that have other keys.
    """

    target: str
    view: str
    columns: T.StructType
    key: tuple[str, ...]
    cursor: str | None
    deletes: Deletes
    bounds: dict[str, tuple[Any, Any]]
    keys: KeyFilter | None = None
    detects: bool = False
    """The view says in `_GONE` which of its rows are keys that the source no longer has. Its other
    rows are never late against a deleted one."""
    copies: bool = False
    """The table is copy-on-write: Spark first looks for the files that have keys of the load."""


def latest(
    frame: DataFrame,
    key: Sequence[str],
    cursor: str | None,
    order: Any,
    deleted: Any,
    replaced: Observation,
) -> DataFrame:
    """Return the latest row of each key: by `cursor`, then by `order`, the place in the source.

    Unmatched rows of one key would all be inserted by a MERGE, so there may be only one. `replaced`
    counts the others (`rows`), and has a key of theirs (`example`).
    """
    ranked = frame.withColumn(_ORDER, order).withColumn(_DELETE, deleted)
    last = [F.col(_ORDER).desc()]
    if cursor is not None:
        last.insert(0, F.col(f"`{cursor}`").desc_nulls_last())
    window = Window.partitionBy(*(F.col(f"`{name}`") for name in key)).orderBy(*last)
    ranked = ranked.withColumn(_RANK, F.row_number().over(window))
    shown = [F.concat(F.lit(f"`{n}` = "), F.col(f"`{n}`").cast("string")) for n in key]
    ranked = ranked.observe(
        replaced,
        F.count_if(F.col(_RANK) > 1).alias("rows"),
        F.min(F.when(F.col(_RANK) > 1, F.concat_ws(", ", *shown))).alias("example"),
    )
    return ranked.where(F.col(_RANK) == 1).drop(_RANK, _ORDER)


def run_merge(spark: SparkSession, rows: DataFrame, merge: Merge) -> int | None:
    """Merge rows, one for each key, into the branch: one commit of Iceberg.

    Return how many rows were merged, None where Spark has not counted them.
    """
    if merge.copies:
        return _run_copying(spark, rows, merge)
    counted = Observation()
    rows.observe(counted, F.count(F.lit(1)).alias("rows")).createOrReplaceTempView(merge.view)
    try:
        spark.sql(merge_sql(merge, rows.columns), args=_arguments(merge))
    finally:
        spark.catalog.dropTempView(merge.view)
    return _observed(counted)


def _run_copying(spark: SparkSession, rows: DataFrame, merge: Merge) -> int:
    """Merge into a copy-on-write table. Spark has the rows twice in its plan, and refuses what may
    differ from one time to the next, such as the numbers of rows: they are computed before."""
    kept = rows.localCheckpoint()
    kept.createOrReplaceTempView(merge.view)
    try:
        spark.sql(merge_sql(merge, rows.columns), args=_arguments(merge))
        return kept.count()
    finally:
        spark.catalog.dropTempView(merge.view)
        kept._jdf.queryExecution().analyzed().rdd().unpersist(False)


def _observed(counted: Observation) -> int | None:
    """Return the count; None where Spark has left it out, as it does where nothing is written."""
    try:
        # Unlike `get`, this does not wait for a count that never comes.
        found = counted._jo.getOrEmpty()  # type: ignore[union-attr]
    except Py4JJavaError:
        return None
    return None if found.isEmpty() else int(found.apply("rows"))


def _same_key(replaced: Observation) -> SameKey:
    rows = _observed(replaced)
    return SameKey(rows, str(replaced.get["example"])) if rows else SameKey()


def merge_sql(merge: Merge, given: Sequence[str]) -> str:
    """Return the statement; columns that the load does not have become null.

    A row that is older than the table's, or equal to it, leaves the table as it is.
    """
    values = {c: f"s.{quoted(c)}" if c in given else "NULL" for c in merge.columns.names}
    update = ", ".join(f"t.{quoted(name)} = {value}" for name, value in values.items())
    names = ", ".join(quoted(name) for name in values)
    deletes = merge.deletes == "DELETE"
    new = f"WHEN NOT MATCHED AND NOT s.{quoted(_DELETE)}" if deletes else "WHEN NOT MATCHED"
    gone = f"s.{quoted(_GONE)}"
    matched = f"WHEN MATCHED AND NOT {_is_late(merge)}"
    if merge.detects:
        # The first clause that holds is taken.
        new = f"{new} AND NOT {gone}"
        matched = f"{matched} AND NOT {gone}"
    # Names are quoted, and values are arguments of the statement.
    clauses = [
        f"MERGE INTO {merge.target} AS t USING {quoted(merge.view)} AS s ON {_on(merge)}",
        *((f"WHEN MATCHED AND {gone} THEN {_gone(merge)}",) * merge.detects),
        *((f"{matched} AND s.{quoted(_DELETE)} THEN DELETE",) * deletes),
        f"{matched} AND NOT {_is_equal(merge, values)} THEN UPDATE SET {update}",
        f"{new} THEN INSERT ({names}) "  # noqa: S608
        f"VALUES ({', '.join(values.values())})",
    ]
    return "\n".join(clauses)


def _gone(merge: Merge) -> str:
    """Return what becomes of a row that the source no longer has."""
    if merge.deletes == "DELETE":
        return "DELETE"
    names = [quoted(name) for name in TRACKING_COLUMNS if name in merge.columns.names]
    return "UPDATE SET " + ", ".join(f"t.{name} = s.{name}" for name in names)


def _on(merge: Merge) -> str:
    # No key of a source is null: with `=` Spark joins rows as they are sorted by `latest`, with
    # `<=>` it sorts them again. Keys that the source no longer has are the table's.
    same = "<=>" if merge.detects else "="
    on = [f"t.{quoted(name)} {same} s.{quoted(name)}" for name in merge.key]
    for number, name in enumerate(merge.key):
        if merge.bounds.get(name, (None, None))[0] is not None:
            on.append(f"t.{quoted(name)} >= :low{number} AND t.{quoted(name)} <= :high{number}")
    if merge.keys is not None:
        on.append(merge.keys.condition([f"t.{quoted(name)}" for name in merge.key], ":keys"))
    return " AND ".join(on)


def _is_late(merge: Merge) -> str:
    """Return the condition that the table's row has a greater cursor; null is the lowest."""
    if merge.cursor is None:
        return "false"
    table, source = f"t.{quoted(merge.cursor)}", f"s.{quoted(merge.cursor)}"
    late = f"{table} IS NOT NULL AND coalesce({source} < {table}, true)"
    if merge.detects and "_supa_deleted" in merge.columns.names:
        late = f"{late} AND NOT coalesce(t.`_supa_deleted`, false)"
    return f"({late})"


def _is_equal(merge: Merge, values: Mapping[str, str]) -> str:
    """Return the condition that both rows are the same but for when and how they were loaded."""
    pairs = []
    for column in merge.columns.fields:
        own, new = f"t.{quoted(column.name)}", values[column.name]
        if column.name in _HOW_LOADED:
            continue
        if new != "NULL" and _has_map(column.dataType):
            own, new = (f"to_json({value}, map({_MAP_OPTIONS}))" for value in (own, new))
        pairs.append(f"{own} <=> {new}")
    return f"({' AND '.join(pairs)})"


_HOW_LOADED = frozenset(TRACKING_COLUMNS) - {"_supa_deleted"}
_MAP_OPTIONS = ", ".join(f'"{name}", "{value}"' for name, value in JSON_OPTIONS.items())
"""Maps cannot be compared, and their JSON can."""


def _has_map(kind: T.DataType) -> bool:
    if isinstance(kind, T.StructType):
        return any(_has_map(field.dataType) for field in kind.fields)
    return isinstance(kind, T.MapType) or (
        isinstance(kind, T.ArrayType) and _has_map(kind.elementType)
    )


def count_untouched(
    spark: SparkSession, rows: DataFrame, merge: Merge, before: DataFrame | None, written: int
) -> Untouched:
    """Count the rows that a MERGE left alone, of which it does not tell: why is asked again.

    `before` is the table as it was, `written` how many rows the MERGE has changed.
    """
    if before is None or not set(merge.key) <= set(before.columns):
        return Untouched()
    if merge.cursor not in before.columns:
        merge = replace(merge, cursor=None)
    if "_supa_deleted" not in before.columns:
        merge = replace(merge, detects=False)
    rows.createOrReplaceTempView(merge.view)
    table = f"{merge.view}_t"
    before.createOrReplaceTempView(table)
    there = f"t.{quoted(merge.key[0])} IS NOT NULL"
    gone = f"NOT ({there}) AND s.{quoted(_DELETE)}" if merge.deletes == "DELETE" else "false"
    query = (
        f"SELECT count(1), count_if({there} AND {_is_late(merge)}), count_if({gone}) "  # noqa: S608
        f"FROM {quoted(merge.view)} AS s LEFT JOIN {quoted(table)} AS t ON {_on(merge)}"
    )
    try:
        ((pairs, late, nothing),) = spark.sql(query, args=_arguments(merge)).collect()
    finally:
        for view in (merge.view, table):
            spark.catalog.dropTempView(view)
    return Untouched(unchanged=max(pairs - late - nothing - written, 0), ignored=late)


def _arguments(merge: Merge) -> dict[str, Any]:
    found = {}
    for number, name in enumerate(merge.key):
        low, high = merge.bounds.get(name, (None, None))
        if low is not None:
            found[f"low{number}"] = low
            found[f"high{number}"] = high
    if merge.keys is not None:
        found["keys"] = merge.keys.words
    return found


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
    """What the table needs before the rows are in it: made once all of them have been read."""

    @property
    def merges(self) -> bool:
        """Whether rows are merged by their key."""
        return self.table.mode == "UPSERT" and not self.replaces


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
    untouched, gone, written = None, None, None
    replaced = Observation()
    if given.direct is not None:
        written = _write_directly(given, given.direct, java_table)
        given = _with_rejected(given, written.rejected)
        summary = _summary(given)
    elif given.rows.columns.fields:
        if given.changes is not None:
            # Spark writes into columns that are there: what it cannot read is to fail before.
            given.rows.frame.write.format("noop").mode("overwrite").save()
            java_table = given.changes.commit(given.branch)
        gone = _find_deleted(given, base)
        try:
            if gone is not None:
                summary[SUMMARY_DELETED] = str(gone.rows)
            untouched = _write(given, java_table, summary, base, gone, replaced)
        finally:
            if gone is not None:
                gone.close()
    java_table = load_existing(spark, table)
    head = _head(given, java_table)
    if head.id == begun:
        # Nothing to write is no commit of Spark's, and still one of ours (I8).
        _empty(given, java_table, summary)
        java_table = load_existing(spark, table)
        head = _head(given, java_table)
    if marked and not is_marked(java_table, given.branch):
        # Dropped meanwhile, and made anew by Spark's commit: its files may be gone (I10).
        raise branch_is_gone(table.target, given.branch)
    _check_rows(given, head)
    # Keys were compared with those of `base`, and no other.
    replaces = given.replaces or given.merges or gone is not None
    mode: Literal["append", "replace"] = "replace" if replaces else "append"
    has_rows = _has_rows(given, head)
    return Staged(
        given.branch,
        base,
        head.id,
        mode,
        summary,
        has_rows,
        untouched,
        _same_key(replaced) if given.table.mode == "UPSERT" else SameKey(),
        written.bad_values if written else None,
        written.rejected if written else None,
        written.files if written else None,
    )


def _summary(given: Stage) -> dict[str, str]:
    """Return what the snapshot says of a load whose rejected records are counted."""
    summary = summary_of(given.spec, given.table, given.counted)
    if read := given.rows.prepared.read:
        summary[SUMMARY_READ] = read
    if REJECTED_HELPER in given.rows.schema.names:
        summary[SUMMARY_BRANCH] = given.branch
    return summary


def _with_rejected(given: Stage, rejected: Rejected) -> Stage:
    """Return a load whose rejected records the tasks that wrote its rows have counted."""
    if given.counted is None:
        return given
    counted = replace(given.counted, rejected=rejected.rows, rejected_from=rejected.files)
    return replace(given, counted=counted)


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
        counts=None if given.counted is None else given.counted.partitions,
        driver=given.driver,
        changes=given.changes,
    )
    return write_files(
        target, direct, java_table, lambda rejected: _summary(_with_rejected(given, rejected))
    )


def _find_deleted(given: Stage, base: int | None) -> DeletedKeys | None:
    """Return the keys of the table that the source no longer has."""
    table, key = given.table, given.rows.key
    if table.max_deleted is None or given.replaces or base is None:
        return None
    if base != given.begun:
        # The source was read before those rows came in, and may have them now.
        raise RetryLoad(f"another load was committed to `{table.target}` since this load began")
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
    counted = given.counted
    return with_tracking(
        keys,
        counts=(gone.rows,),
        before=partition_count(given.rows.frame) << POSITION_BITS
        if counted is None
        else counted.rows,
        synced=given.spec.synced,
        job_id=given.spec.job_id,
        key_columns=given.rows.key,
        columns=given.spec.tracking_columns,
    ).drop(DELETED_HELPER)


def summary_of(spec: JobSpec, table: TableSpec, counted: Counted | None) -> dict[str, str]:
    """Return what a published snapshot says of the job that made it."""
    rows = {} if counted is None else {SUMMARY_ROWS: str(counted.loaded)}
    if counted is not None and counted.rejected:
        rows[SUMMARY_REJECTED] = str(counted.rejected)
    retried = {} if table.retries is None else {SUMMARY_RETRIED: table.retries}
    return {
        SUMMARY_JOB: spec.job_id,
        SUMMARY_PIPELINE: spec.pipeline,
        SUMMARY_ATTEMPT: spec.attempt_id,
        **rows,
        **retried,
        SUMMARY_MODE: table.mode,
        SUMMARY_SYNCED: _instant(spec.synced),
        SUMMARY_FINGERPRINT: table.fingerprint,
    }


def tracked(given: Stage) -> DataFrame:
    """Return the rows with their tracking columns, and with helpers at the end. Rejected records
    are counted by the index, and left out."""
    spec = given.spec
    rows = with_tracking(
        given.rows.frame,
        counts=None if given.counted is None else given.counted.partitions,
        synced=spec.synced,
        job_id=spec.job_id,
        key_columns=given.rows.key,
        columns=spec.tracking_columns,
    )
    if REJECTED_HELPER in rows.columns:
        rows = rows.where(F.col(REJECTED_HELPER).isNull()).drop(REJECTED_HELPER)
    return rows


def _write(
    given: Stage,
    java_table: Java,
    summary: Mapping[str, str],
    base: int | None,
    gone: DeletedKeys | None,
    replaced: Observation,
) -> Untouched | None:
    """Write the rows; return those that a MERGE has left alone, None where nothing is merged.
    `replaced` is for rows whose key a later one has."""
    target = spark_name(given.table.schema, given.table.table, given.branch)
    columns = table_columns(given.spark, java_table)
    rows = conform(tracked(given), columns)
    if given.table.mode == "UPSERT":
        # Also when all rows are replaced: a key is in the table once.
        rows = _latest(given, rows, replaced)
    if given.merges:
        copies = java_table.properties().get(_MERGE_MODE) != "merge-on-read"
        return _merge(given, rows, target, columns, summary, base, gone, copies=copies)
    data = [name for name in rows.columns if not name.startswith(HELPER_PREFIX)]
    if given.table.mode == "UPSERT" and given.table.deletes == "DELETE":
        rows = rows.where(~F.col(f"{HELPER_PREFIX}delete"))
    if gone is not None:
        rows = rows.unionByName(_deleted_rows(given, gone, rows), allowMissingColumns=True)
    writer = rows.select(*(F.col(f"`{name}`") for name in data)).writeTo(target)
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
    return None


def _latest(given: Stage, rows: DataFrame, replaced: Observation) -> DataFrame:
    order = (
        F.col("_supa_index") if "_supa_index" in rows.columns else F.monotonically_increasing_id()
    )
    return latest(rows, given.rows.key, given.rows.cursor, order, deleted(rows), replaced)


def _merge(
    given: Stage,
    rows: DataFrame,
    target: str,
    columns: T.StructType,
    summary: Mapping[str, str],
    base: int | None,
    gone: DeletedKeys | None,
    *,
    copies: bool,
) -> Untouched:
    """Merge in this session: its settings stamp the snapshot, so it is the table's own."""
    bounds = given.counted.bounds if given.counted else {}
    given_rows, removed = rows, 0
    if given.table.max_deleted is not None:
        rows = rows.withColumn(_GONE, F.lit(False))
        given_rows = rows
    if gone is not None:
        removed = gone.rows
        deleted_rows = _deleted_rows(given, gone, rows).withColumn(_GONE, F.lit(True))
        given_rows = rows.unionByName(deleted_rows, allowMissingColumns=True)
        bounds = _joined_bounds(bounds, gone.frame)
    merge = Merge(
        target,
        f"lakeload_{given.branch}",
        columns,
        given.rows.key,
        given.rows.cursor,
        given.table.deletes,
        bounds,
        _key_filter(given, rows, columns),
        detects=given.table.max_deleted is not None,
        copies=copies,
    )
    if given.table.retries is not None and merge.cursor is None and base is not None:
        _check_new_keys(given, rows, base)
    properties = {f"spark.sql.iceberg.snapshot-property.{n}": v for n, v in summary.items()}
    for name, value in properties.items():
        given.spark.conf.set(name, value)
    try:
        merged = run_merge(given.spark, given_rows, merge)
    finally:
        for name in properties:
            given.spark.conf.unset(name)
    head = _head(given)
    written = merged_rows(head.summary) if head.id != base else 0
    if merged == written:
        return Untouched()
    if merged is not None and merge.cursor is None and merge.deletes != "DELETE":
        return Untouched(unchanged=max(merged - written, 0))
    before = None if base is None else _table_at(given, base)
    return count_untouched(given.spark, rows, merge, before, written - removed)


def _key_filter(given: Stage, rows: DataFrame, columns: T.StructType) -> KeyFilter | None:
    """Return the filter of the load's keys; None where there is none, where too many rows of the
    table would pass it, or where the table's type of a key has other hashes."""
    counted = given.counted
    if counted is None or counted.rows > MOST_KEYS:
        return None
    same = all(rows.schema[name].dataType == columns[name].dataType for name in given.rows.key)
    return counted.keys if same else None


def _joined_bounds(
    bounds: Mapping[str, tuple[Any, Any]], keys: DataFrame
) -> dict[str, tuple[Any, Any]]:
    """Return bounds of columns that hold for `keys` too."""
    others = count_rows(keys, all_columns=False, bounded=tuple(bounds)).bounds if bounds else {}
    joined = {}
    for name, own in bounds.items():
        found = [pair for pair in (own, others.get(name)) if pair and pair[0] is not None]
        if found:
            joined[name] = min(low for low, _ in found), max(high for _, high in found)
    return joined


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
        java_table = load_existing(given.spark, table)
    facts = read_facts(given.spark, java_table)
    if given.branch not in facts.refs:
        raise branch_is_gone(table.target, given.branch)
    return facts.snapshots[facts.refs[given.branch]]


def _has_rows(given: Stage, head: Snapshot) -> bool:
    """Whether the load leaves rows of its own: as counted, else as its snapshot says."""
    if given.merges and (merged := changes(head.summary)) is not None:
        # What removes a row adds the others of its file again.
        return merged.inserted + merged.updated > 0
    if given.counted is not None:
        return given.counted.loaded > 0 or SUMMARY_DELETED in head.summary
    return int(head.summary.get("added-records", "0")) > 0


def _check_rows(given: Stage, head: Snapshot) -> None:
    """Compare what was written with what was counted. A MERGE does not tell how many rows it was
    given: there the files of the source are compared alone."""
    if given.table.mode == "UPSERT" or given.counted is None:
        return
    written = int(head.summary.get("added-records", "0"))
    written -= int(head.summary.get(SUMMARY_DELETED, "0"))
    if written != given.counted.loaded:
        raise LoadFailed(
            f"the source changed while it was read: it had {given.counted.loaded} rows when "
            f"counted and {written} when loaded",
            hint="load only complete files that no process writes to",
            retryable=True,
        )


def _instant(synced: datetime) -> str:
    return synced.isoformat().replace("+00:00", "Z")

"""The MERGE of an UPSERT in Spark's SQL: its statement, and what it does to each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakeload_jobs.contract.result import RowChanges
from lakeload_jobs.contract.spec import TRACKING_COLUMNS, Deletes
from lakeload_jobs.rows.casts import JSON_OPTIONS, filled, quoted
from lakeload_jobs.rows.counting import Bounds
from lakeload_jobs.rows.key_filter import KeyFilter
from lakeload_jobs.rows.tracking import DELETED_HELPER, HELPER_PREFIX

GONE = HELPER_PREFIX + "gone"
"""The column that says which rows are keys that the source no longer has."""


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
    bounds: Bounds
    keys: KeyFilter | None = None
    detects: bool = False
    """The view says in `GONE` which of its rows are keys that the source no longer has. Its other
    rows are never late against a deleted one."""
    copies: bool = False
    """The table is copy-on-write: Spark first looks for the files that have keys of the load."""


def run_merge(spark: SparkSession, rows: DataFrame, merge: Merge) -> None:
    """Merge rows, one for each key, into the branch: one commit of Iceberg."""
    # Spark has the rows of a copy-on-write table twice in its plan, and refuses what may differ
    # from one time to the next, such as the numbers of rows: they are computed before.
    kept = rows.localCheckpoint() if merge.copies else rows
    kept.createOrReplaceTempView(merge.view)
    try:
        spark.sql(merge_sql(merge, rows.columns), args=_arguments(merge))
    finally:
        spark.catalog.dropTempView(merge.view)
        if merge.copies:
            kept._jdf.queryExecution().analyzed().rdd().unpersist(False)


def merge_sql(merge: Merge, given: Sequence[str]) -> str:
    """Return the statement; columns that the load does not have become null.

    A row that is older than the table's, or equal to it, leaves the table as it is.
    """
    values = _values(merge, given)
    update = ", ".join(f"t.{quoted(name)} = {value}" for name, value in values.items())
    names = ", ".join(quoted(name) for name in values)
    deletes = merge.deletes == "DELETE"
    new = f"WHEN NOT MATCHED AND NOT s.{quoted(DELETED_HELPER)}" if deletes else "WHEN NOT MATCHED"
    gone = f"s.{quoted(GONE)}"
    matched = f"WHEN MATCHED AND NOT {_is_late(merge)}"
    if merge.detects:
        # The first clause that holds is taken.
        new = f"{new} AND NOT {gone}"
        matched = f"{matched} AND NOT {gone}"
    # Names are quoted, and values are arguments of the statement.
    clauses = [
        f"MERGE INTO {merge.target} AS t USING {quoted(merge.view)} AS s ON {_on(merge)}",
        *((f"WHEN MATCHED AND {gone} THEN {_gone(merge)}",) * merge.detects),
        *((f"{matched} AND s.{quoted(DELETED_HELPER)} THEN DELETE",) * deletes),
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


@dataclass(frozen=True)
class Pairs:
    """What a MERGE finds for its rows, counted by a query: each row with each row of the table that
    has its key. Rows that are equal are `updated` unless they were told apart."""

    changes: RowChanges
    without_row: int = 0
    """Deletes of rows that the table does not have."""

    @property
    def rows(self) -> int:
        """All pairs."""
        left = (self.changes.unchanged or 0) + (self.changes.ignored or 0)
        return self.changes.rows + left + self.without_row


def count_pairs(
    spark: SparkSession, rows: DataFrame, merge: Merge, before: DataFrame, *, equal: bool
) -> Pairs:
    """Count what a MERGE does to each row: `before` is the table as it was. With `equal` rows are
    compared, which takes all columns."""
    gone = f"s.{quoted(GONE)}" if merge.detects else "false"
    if merge.cursor not in before.columns:
        merge = replace(merge, cursor=None)
    if "_supa_deleted" not in before.columns:
        merge = replace(merge, detects=False)
    rows.createOrReplaceTempView(merge.view)
    table = f"{merge.view}_t"
    (_as_table(before, merge.columns) if equal else before).createOrReplaceTempView(table)
    there = f"t.{quoted(merge.key[0])} IS NOT NULL"
    late = f"({_is_late(merge)} AND NOT {gone})"
    flagged = f"s.{quoted(DELETED_HELPER)}" if merge.deletes == "DELETE" else "false"
    removed = f"({gone} OR {flagged})" if merge.deletes == "DELETE" else "false"
    same = _is_equal(merge, _values(merge, rows.columns)) if equal else "false"
    counted = (
        f"NOT {there} AND NOT {flagged}",
        f"{there} AND NOT {late} AND {removed}",
        f"{there} AND NOT {late} AND NOT {removed} AND NOT {gone} AND {same}",
        f"{there} AND {late}",
        f"NOT {there} AND {flagged}",
    )
    query = (
        f"SELECT count(1), {', '.join(f'count_if({one})' for one in counted)} "  # noqa: S608
        f"FROM {quoted(merge.view)} AS s LEFT JOIN {quoted(table)} AS t ON {_on(merge)}"
    )
    try:
        (found,) = spark.sql(query, args=_arguments(merge)).collect()
    finally:
        for view in (merge.view, table):
            spark.catalog.dropTempView(view)
    pairs, inserted, deleted, unchanged, ignored, nothing = found
    updated = pairs - inserted - deleted - unchanged - ignored - nothing
    return Pairs(RowChanges(inserted, updated, deleted, unchanged, ignored), nothing)


def _values(merge: Merge, given: Sequence[str]) -> dict[str, str]:
    return {c: f"s.{quoted(c)}" if c in given else "NULL" for c in merge.columns.names}


def _as_table(rows: DataFrame, columns: T.StructType) -> DataFrame:
    """Return rows of an earlier snapshot in the columns that the table has now."""
    known = {field.name: field.dataType for field in rows.schema.fields}
    values = [
        filled(F.col(quoted(field.name)), known[field.name], field.dataType)
        if field.name in known
        else F.lit(None)
        for field in columns.fields
    ]
    pairs = zip(values, columns.fields, strict=True)
    return rows.select(*(value.cast(field.dataType).alias(field.name) for value, field in pairs))


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

"""UPSERT: the latest version of each row, merged into the staging branch (DESIGN section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from lakeload_jobs.contract.spec import Deletes
from lakeload_jobs.rows.tracking import HELPER_PREFIX

_DELETE = HELPER_PREFIX + "delete"
_ORDER = HELPER_PREFIX + "order"
_RANK = HELPER_PREFIX + "rank"


@dataclass(frozen=True)
class Merge:
    """What is merged into `target`, a branch as SQL names it.

    `columns` are the table's; `bounds` the least and greatest value of key columns, which spare
    reading the files that have no such keys.
    """

    target: str
    view: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    cursor: str | None
    deletes: Deletes
    bounds: dict[str, tuple[Any, Any]]


def latest(
    frame: DataFrame, key: Sequence[str], cursor: str | None, order: Any, deleted: Any
) -> DataFrame:
    """Return the latest row of each key: by `cursor`, then by `order`, the place in the source.

    Unmatched rows of one key would all be inserted by a MERGE, so there may be only one.
    """
    ranked = frame.withColumn(_ORDER, order).withColumn(_DELETE, deleted)
    last = [F.col(_ORDER).desc()]
    if cursor is not None:
        last.insert(0, F.col(f"`{cursor}`").desc_nulls_last())
    window = Window.partitionBy(*(F.col(f"`{name}`") for name in key)).orderBy(*last)
    ranked = ranked.withColumn(_RANK, F.row_number().over(window))
    return ranked.where(F.col(_RANK) == 1).drop(_RANK, _ORDER)


def run_merge(spark: SparkSession, rows: DataFrame, merge: Merge) -> None:
    """Merge rows, one for each key, into the branch: one commit of Iceberg."""
    rows.createOrReplaceTempView(merge.view)
    try:
        spark.sql(merge_sql(merge, rows.columns), args=_arguments(merge))
    finally:
        spark.catalog.dropTempView(merge.view)


def merge_sql(merge: Merge, given: Sequence[str]) -> str:
    """Return the statement; columns that the load does not have become null."""
    on = [f"t.{_q(name)} <=> s.{_q(name)}" for name in merge.key]
    for number, name in enumerate(merge.key):
        if merge.bounds.get(name, (None, None))[0] is not None:
            on.append(f"t.{_q(name)} >= :low{number} AND t.{_q(name)} <= :high{number}")
    values = {c: f"s.{_q(c)}" if c in given else "NULL" for c in merge.columns}
    update = ", ".join(f"t.{_q(name)} = {value}" for name, value in values.items())
    names = ", ".join(_q(name) for name in values)
    deletes = merge.deletes == "DELETE"
    new = f"WHEN NOT MATCHED AND NOT s.{_q(_DELETE)}" if deletes else "WHEN NOT MATCHED"
    # Names are quoted, and values are arguments of the statement.
    clauses = [
        f"MERGE INTO {merge.target} AS t USING {_q(merge.view)} AS s ON {' AND '.join(on)}",
        *((f"WHEN MATCHED AND s.{_q(_DELETE)} THEN DELETE",) * deletes),
        f"WHEN MATCHED THEN UPDATE SET {update}",
        f"{new} THEN INSERT ({names}) "  # noqa: S608
        f"VALUES ({', '.join(values.values())})",
    ]
    return "\n".join(clauses)


def _arguments(merge: Merge) -> dict[str, Any]:
    found = {}
    for number, name in enumerate(merge.key):
        low, high = merge.bounds.get(name, (None, None))
        if low is not None:
            found[f"low{number}"] = low
            found[f"high{number}"] = high
    return found


def _q(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"

"""One pass over the source before anything is staged: rows of each partition, values that became
null, and the bounds of the key (DESIGN section 5, step 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakeload_jobs.rows.counting import partition_count
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER

_BOUNDED = (
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.DecimalType,
    T.StringType,
    T.DateType,
)
"""Types whose values come back from Python as they went: instants would take its time zone."""


@dataclass(frozen=True)
class Counted:
    """`partitions` are rows in partition order; `bounds` the least and greatest value of key
    columns; `bad_values` became null under `on_bad_value: NULL`."""

    partitions: tuple[int, ...]
    bad_values: int = 0
    bounds: dict[str, tuple[Any, Any]] | None = None

    @property
    def rows(self) -> int:
        """All rows."""
        return sum(self.partitions)


def count(frame: DataFrame, *, all_columns: bool, bounded: Sequence[str]) -> Counted:
    """Count the rows of each partition of `frame`, and find the bounds of the columns `bounded`.

    The frame must read its source without a shuffle: then the partitions are those of any other
    pass over the same frame in this session. With `all_columns` every column is computed, so a
    row that cannot be read fails here as it would in the load.
    """
    partitions = partition_count(frame)
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    keys = [name for name in bounded if isinstance(kinds[name], _BOUNDED)]
    names = {name: f"c{position}" for position, name in enumerate(frame.columns)}
    numbered = frame.toDF(*names.values())
    wanted = [F.count(F.lit(1)).alias("rows")]
    if BAD_VALUES_HELPER in names:
        wanted.append(F.sum(names[BAD_VALUES_HELPER]).alias("bad"))
    if all_columns or BAD_VALUES_HELPER in names:
        # Maps cannot be hashed; whether they are null can be asked of every column.
        tests = [F.col(name).isNull().cast("int") for name in numbered.columns]
        wanted.append(F.sum(sum(tests[1:], tests[0])).alias("nulls"))
    for key in keys:
        wanted.append(F.min(names[key]).alias(f"low_{names[key]}"))
        wanted.append(F.max(names[key]).alias(f"high_{names[key]}"))
    found = numbered.groupBy(F.spark_partition_id().alias("partition")).agg(*wanted).collect()
    rows = {row["partition"]: row["rows"] for row in found}
    return Counted(
        tuple(rows.get(partition, 0) for partition in range(partitions)),
        sum(row["bad"] or 0 for row in found) if BAD_VALUES_HELPER in names else 0,
        {
            key: (
                min(row[f"low_{names[key]}"] for row in found),
                max(row[f"high_{names[key]}"] for row in found),
            )
            for key in keys
            if found
        },
    )

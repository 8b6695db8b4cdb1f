"""One pass over the source before anything is written: the rows of each partition, values that
became null, and the bounds of columns and a Bloom filter of keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakeload_jobs.rows.key_filter import KeyFilter, bitmaps
from lakeload_jobs.rows.rejects import REJECTED_HELPER
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
    """`partitions` are rows in partition order; `bounds` the least and greatest value of columns;
    `bad_values` became null under `on_bad_value: NULL`; `rejected` are set aside under QUARANTINE.
    Both are among the rows of `partitions`. `rejected_from` are the files of rejected records, but
    those that are rejected as a whole.
    """

    partitions: tuple[int, ...]
    bad_values: int = 0
    bounds: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    rejected: int = 0
    rejected_from: tuple[str, ...] = ()
    keys: KeyFilter | None = None

    @property
    def rows(self) -> int:
        """All rows."""
        return sum(self.partitions)

    @property
    def loaded(self) -> int:
        """The rows that are not rejected."""
        return self.rows - self.rejected


def count_rows(
    frame: DataFrame,
    *,
    all_columns: bool,
    bad_values: bool = False,
    bounded: Sequence[str] = (),
    filtered: bool = False,
) -> Counted:
    """Count the rows of each partition of `frame` in one pass, in partition order; with
    `bad_values` what the helper columns count too, and the bounds of the columns `bounded`, with
    `filtered` also their filter if all are of types that have bounds.

    The frame must read its source without a shuffle: then the partitions are those of any other
    pass over the same frame in this session. With `all_columns` every column is computed, so a
    row that cannot be read fails here as it would in the load.
    """
    partitions = partition_count(frame)
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    keys = [name for name in bounded if isinstance(kinds[name], _BOUNDED)]
    names = {name: f"c{position}" for position, name in enumerate(frame.columns)}
    numbered = frame.toDF(*names.values())
    rejects = bad_values and REJECTED_HELPER in names
    bad_values = bad_values and BAD_VALUES_HELPER in names
    wanted = [F.count(F.lit(1)).alias("rows")]
    if bad_values:
        wanted.append(F.sum(names[BAD_VALUES_HELPER]).alias("bad"))
    if rejects:
        helper = F.col(names[REJECTED_HELPER])
        of_records = helper["raw_record"].isNotNull() | helper["raw_bytes"].isNotNull()
        wanted.append(F.count(helper).alias("rejected"))
        wanted.append(F.collect_set(F.when(of_records, helper["source_file"])).alias("files"))
    if all_columns or bad_values or rejects:
        # Maps cannot be hashed; whether they are null can be asked of every column.
        tests = [F.col(name).isNull().cast("int") for name in numbered.columns]
        wanted.append(F.sum(sum(tests[1:], tests[0])).alias("nulls"))
    for key in keys:
        wanted.append(F.min(names[key]).alias(f"low_{names[key]}"))
        wanted.append(F.max(names[key]).alias(f"high_{names[key]}"))
    groups = [F.spark_partition_id().alias("partition")]
    filtered = filtered and bool(keys) and len(keys) == len(bounded)
    if filtered:
        group, bitmap = bitmaps([F.col(names[key]) for key in keys])
        groups.append(group.alias("group"))
        wanted.append(bitmap.alias("bitmap"))
    found = numbered.groupBy(*groups).agg(*wanted).collect()
    rows: Counter[int] = Counter()
    for row in found:
        rows[row["partition"]] += row["rows"]
    hashed = ((row["group"], row["bitmap"]) for row in found)
    return Counted(
        tuple(rows[partition] for partition in range(partitions)),
        sum(row["bad"] or 0 for row in found) if bad_values else 0,
        {
            key: (
                min(row[f"low_{names[key]}"] for row in found),
                max(row[f"high_{names[key]}"] for row in found),
            )
            for key in keys
            if found
        },
        sum(row["rejected"] for row in found) if rejects else 0,
        tuple(sorted({file for row in found for file in row["files"]})) if rejects else (),
        KeyFilter.of(hashed, rows.total()) if filtered else None,
    )


def count_rejected(frame: DataFrame) -> int:
    """Return how many rows are rejected, of rows that are not counted otherwise."""
    if REJECTED_HELPER not in frame.columns:
        return 0
    return frame.where(F.col(REJECTED_HELPER).isNotNull()).count()


def count_bad_values(frame: DataFrame) -> int:
    """Return how many values became null, of rows that are not counted otherwise."""
    if BAD_VALUES_HELPER not in frame.columns:
        return 0
    (found,) = frame.agg(F.sum(BAD_VALUES_HELPER)).collect()
    return int(found[0] or 0)


def partition_count(frame: DataFrame) -> int:
    """Return the number of partitions the frame is read in."""
    return frame.rdd.getNumPartitions()

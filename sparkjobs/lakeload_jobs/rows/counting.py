"""How many rows each partition has, before any of them is encoded (DESIGN section 5, step 1)."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def partition_rows(frame: DataFrame, *, all_columns: bool) -> tuple[int, ...]:
    """Count the rows of each partition of `frame` in one pass, in partition order.

    The frame must read its source without a shuffle: then the partitions are those of any other
    pass over the same frame in this session. With `all_columns` every column is computed, so a
    row that cannot be read fails here as it would in the load.
    """
    partitions = partition_count(frame)
    numbered = frame.toDF(*(f"c{position}" for position in range(len(frame.columns))))
    counts = [F.count(F.lit(1)).alias("rows")]
    if all_columns:
        # Maps cannot be hashed; whether they are null can be asked of every column.
        tests = [F.col(name).isNull().cast("int") for name in numbered.columns]
        counts.append(F.sum(sum(tests[1:], tests[0])).alias("nulls"))
    found = numbered.groupBy(F.spark_partition_id().alias("partition")).agg(*counts).collect()
    rows = {row["partition"]: row["rows"] for row in found}
    return tuple(rows.get(partition, 0) for partition in range(partitions))


def partition_count(frame: DataFrame) -> int:
    """Return the number of partitions the frame is read in."""
    return frame.rdd.getNumPartitions()

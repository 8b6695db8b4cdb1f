"""The filter of a load's keys: every key passes, few others do, whatever type a key has."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeload_jobs.rows.counting import count_rows
from lakeload_jobs.rows.key_filter import MOST_BITS, KeyFilter

KEYS = {
    "bigint": ("id",),
    "int": ("cast(id as int) as id",),
    "tinyint": ("cast(id % 100 as tinyint) as id",),
    "text": ("concat('käse ', id) as id",),
    "date": ("date_add(date '1970-01-01', cast(id - 900 as int)) as id",),
    "decimal": ("cast(id / 8 as decimal(20, 3)) as id",),
    "two columns": ("id", "concat('n', id % 7) as region"),
}


def keys(spark: SparkSession, first: int, end: int, columns: tuple[str, ...]) -> DataFrame:
    return spark.range(first, end, numPartitions=3).selectExpr(*columns)


def passing(spark: SparkSession, there: DataFrame, found: KeyFilter) -> int:
    there.createOrReplaceTempView("there")
    condition = found.condition([f"`{name}`" for name in there.columns], ":keys")
    query = f"SELECT count(1) FROM there WHERE {condition}"
    ((count,),) = spark.sql(query, args={"keys": found.words}).collect()
    return int(count)


@pytest.mark.parametrize("columns", KEYS.values(), ids=KEYS)
def test_every_key_passes_and_few_others_do(spark: SparkSession, columns: tuple[str, ...]) -> None:
    own = keys(spark, 0, 3_000, columns)

    counted = count_rows(own, all_columns=False, bounded=own.columns, filtered=True)

    assert counted.partitions == (1_000, 1_000, 1_000)
    assert counted.keys is not None
    assert len(counted.keys.bits) * 8 == 1 << 16
    assert passing(spark, own, counted.keys) == 3_000
    if "tinyint" not in columns[0]:
        others = keys(spark, 100_000, 103_000, columns)
        assert 20 < passing(spark, others, counted.keys) < 300


def test_bounds_and_counts_are_those_without_a_filter(spark: SparkSession) -> None:
    rows = spark.range(7, 5_007, numPartitions=4).withColumn("text", F.col("id").cast("string"))

    plain = count_rows(rows, all_columns=True, bounded=("id", "text"))
    filtered = count_rows(rows, all_columns=True, bounded=("id", "text"), filtered=True)

    assert plain.keys is None
    assert (filtered.partitions, filtered.bounds) == (plain.partitions, plain.bounds)


def test_many_keys_get_all_bits_and_a_type_without_bounds_gets_no_filter(
    spark: SparkSession,
) -> None:
    many = count_rows(spark.range(300_000), all_columns=False, bounded=("id",), filtered=True)
    instants = spark.range(9).selectExpr("timestamp_seconds(id) as at")

    assert many.keys is not None
    assert len(many.keys.bits) * 8 == MOST_BITS
    found = count_rows(instants, all_columns=False, bounded=("at",), filtered=True)
    assert (found.keys, sum(found.partitions)) == (None, 9)


def test_no_row_is_no_key(spark: SparkSession) -> None:
    none = count_rows(spark.range(0), all_columns=False, bounded=("id",), filtered=True)

    assert none.keys is not None
    assert passing(spark, spark.range(1_000).toDF("id"), none.keys) == 0

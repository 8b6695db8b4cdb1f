"""The filter of a load's keys: every key passes, few others do, whatever type a key has."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakeload_jobs.rows.key_filter import MOST_BITS, KeyFilter, filter_of

KEYS = {
    "bigint": ("id",),
    "int": ("cast(id as int) as id",),
    "tinyint": ("cast(id % 100 as tinyint) as id",),
    "text": ("concat('käse ', id) as id",),
    "date": ("date_add(date '1970-01-01', cast(id - 900 as int)) as id",),
    "decimal": ("cast(id / 8 as decimal(20, 3)) as id",),
    "instant": ("timestamp_micros(id * 1000001 - 900) as id",),
    "wall time": ("cast(timestamp_micros(id * 1000001 - 900) as timestamp_ntz) as id",),
    "binary": ("encode(concat('käse ', id), 'utf-8') as id",),
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

    found = filter_of(own, own.columns, 3_000)

    assert len(found.bits) * 8 == 1 << 16
    assert passing(spark, own, found) == 3_000
    if "tinyint" not in columns[0]:
        others = keys(spark, 100_000, 103_000, columns)
        assert 20 < passing(spark, others, found) < 300


def test_many_keys_get_all_bits(spark: SparkSession) -> None:
    many = filter_of(spark.range(300_000).toDF("id"), ("id",), 300_000)

    assert len(many.bits) * 8 == MOST_BITS


def test_no_row_is_no_key(spark: SparkSession) -> None:
    none = filter_of(spark.range(0).toDF("id"), ("id",), 0)

    assert passing(spark, spark.range(1_000).toDF("id"), none) == 0

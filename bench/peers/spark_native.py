"""Spark's own gzip Parquet writer with the same 18 columns; given to spark-submit.

Arguments: CSV or PARQUET, the input folder, the output folder, the job id. Spark at its best: the
schema is given, compression is at the writer's default level, and `_supa_index` is
`monotonically_increasing_id()`, which needs no second pass (unique and increasing, not dense).
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f


def read(spark: SparkSession, form: str, folder: str, schema: str) -> DataFrame:
    """The input with the given schema; CSV quotes are doubled inside quoted values."""
    if form == "PARQUET":
        return spark.read.schema(schema).parquet(folder)
    options = {"header": "true", "escape": '"'}
    return spark.read.schema(schema).options(**options).csv(folder)


def main(form: str, source: str, target: str, job_id: str, schema: str) -> None:
    """Copy `source` to `target` with the tracking columns added."""
    spark = SparkSession.builder.appName("spark-native-gzip").getOrCreate()
    synced = datetime.now(UTC)
    frame = read(spark, form, source, schema).select(
        "*",
        f.lit(synced).alias("_supa_synced"),
        f.lit(False).alias("_supa_deleted"),
        f.monotonically_increasing_id().alias("_supa_index"),
        f.sha2(f.col("order_id").cast("string"), 256).alias("_supa_id"),
        f.lit(job_id).alias("_supa_job_id"),
    )
    frame.write.option("compression", "gzip").parquet(target)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

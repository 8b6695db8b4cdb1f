"""A table of PostgreSQL as Spark's JDBC source reads it and Spark's own writer writes it.

Given to spark-submit. Arguments: the JDBC URL, the output folder, the job id, the partitions. Spark
at its best: partitions by ranges of the key, a large fetch size, and `_supa_index` is
`monotonically_increasing_id()`. The login is in the environment.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as f


def main(url: str, target: str, job_id: str, rows: str, partitions: str) -> None:
    """Copy the table `orders` to `target` with the tracking columns added."""
    spark = SparkSession.builder.appName("spark-jdbc").getOrCreate()
    synced = datetime.now(UTC)
    options = {
        "url": url,
        "driver": "org.postgresql.Driver",
        "user": os.environ["BENCH_USER"],
        "password": os.environ["BENCH_PASSWORD"],
        "dbtable": "orders",
        "fetchsize": "10000",
        "preferTimestampNTZ": "true",
        "partitionColumn": "order_id",
        "lowerBound": "1",
        "upperBound": rows,
        "numPartitions": partitions,
    }
    frame = spark.read.format("jdbc").options(**options).load()
    frame = frame.select(
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

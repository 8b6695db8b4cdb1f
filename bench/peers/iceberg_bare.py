"""Iceberg as Spark writes it by itself, with the same 18 columns; given to spark-submit.

Arguments: append, overwrite or merge, the input folder, the table, the job id, the input's schema;
the codec of a new table and the transform it is partitioned by, which may be empty.
No count, no branch, no job that is remembered: `_supa_index` is `monotonically_increasing_id()`.
The statement of a merge takes the latest row of each key, as any careful MERGE has to.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

KEY = "order_id"


def read(spark: SparkSession, source: str, job_id: str, schema: str) -> DataFrame:
    """The input with the tracking columns."""
    return (
        spark.read.schema(schema)
        .parquet(source)
        .select(
            "*",
            f.lit(datetime.now(UTC)).alias("_supa_synced"),
            f.lit(False).alias("_supa_deleted"),
            f.monotonically_increasing_id().alias("_supa_index"),
            f.sha2(f.col(KEY).cast("string"), 256).alias("_supa_id"),
            f.lit(job_id).alias("_supa_job_id"),
        )
    )


def append(spark: SparkSession, rows: DataFrame, table: str, codec: str, partition: str) -> None:
    """Append to a new table."""
    columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in rows.schema)
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {table.rsplit('.', 1)[0]}")
    spark.sql(
        f"CREATE TABLE {table} ({columns}) USING iceberg "
        + (f"PARTITIONED BY ({partition}) " if partition else "")
        + "TBLPROPERTIES ('write.merge.mode' = 'merge-on-read', "
        f"'write.parquet.compression-codec' = '{codec}')"
    )
    rows.writeTo(table).append()


def overwrite(rows: DataFrame, table: str) -> None:
    """Replace all rows of a table."""
    rows.writeTo(table).overwrite(f.lit(True))


def merge(spark: SparkSession, rows: DataFrame, table: str) -> None:
    """Merge the latest row of each key."""
    latest = Window.partitionBy(KEY).orderBy(f.col("_supa_index").desc())
    ranked = rows.withColumn("rank", f.row_number().over(latest))
    ranked.where("rank = 1").drop("rank").createOrReplaceTempView("changes")
    spark.sql(
        f"MERGE INTO {table} t USING changes s ON t.{KEY} = s.{KEY} "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


def main(
    what: str, source: str, table: str, job_id: str, schema: str, codec: str, partition: str
) -> None:
    """Append or merge `source` into `table`, or replace its rows."""
    spark = SparkSession.builder.appName("iceberg-bare").getOrCreate()
    rows, target = read(spark, source, job_id, schema), f"lake.{table}"
    if what == "append":
        append(spark, rows, target, codec, partition)
    elif what == "overwrite":
        overwrite(rows, target)
    else:
        merge(spark, rows, target)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

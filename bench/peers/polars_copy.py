"""polars to gzip Parquet with the same 18 columns, in a process of its own.

Arguments: CSV or PARQUET, the input folder, the output folder, the job id, threads (which polars
takes from the environment), the columns as JSON {name: Spark type}. polars streams; it has no
SHA-256, so Python computes it batch by batch.
"""

from __future__ import annotations

import hashlib
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

TYPES = {
    "bigint": pl.Int64,
    "int": pl.Int32,
    "string": pl.String,
    "double": pl.Float64,
    "boolean": pl.Boolean,
    "date": pl.Date,
    "timestamp": pl.Datetime("us", "UTC"),
    "timestamp_ntz": pl.Datetime("us"),
    "decimal(12,2)": pl.Decimal(12, 2),
}
PARSED = ("timestamp", "timestamp_ntz")
"""Types that polars does not read from CSV under a declared type: read as text, then parsed."""


def source(form: str, folder: str, columns: dict[str, str]) -> pl.LazyFrame:
    """Return the input with the data set's types; those of CSV are given, not sniffed."""
    if form == "PARQUET":
        return pl.scan_parquet(f"{folder}/*.parquet")
    schema = {name: pl.String if kind in PARSED else TYPES[kind] for name, kind in columns.items()}
    frame = pl.scan_csv(f"{folder}/*.csv", schema=schema, missing_utf8_is_empty_string=False)
    return frame.with_columns(
        pl.col(name).str.to_datetime(time_unit="us", time_zone=TYPES[kind].time_zone)
        for name, kind in columns.items()
        if kind in PARSED
    )


def sha256(keys: pl.Series) -> pl.Series:
    """Return the SHA-256 of the text of each key."""
    return pl.Series([hashlib.sha256(str(key).encode()).hexdigest() for key in keys])


def main(form: str, folder: str, target: str, job_id: str, _threads: str, columns: str) -> None:
    """Copy `folder` to one file in `target` with the tracking columns added."""
    Path(target).mkdir(parents=True)
    frame = source(form, folder, json.loads(columns)).with_row_index("_supa_index", offset=1)
    index = pl.col("_supa_index").cast(pl.Int64)
    key = pl.col("order_id")
    frame.with_columns(
        pl.lit(datetime.now(UTC)).cast(pl.Datetime("us", "UTC")).alias("_supa_synced"),
        pl.lit(value=False).alias("_supa_deleted"),
        index,
        key.map_batches(sha256, return_dtype=pl.String, is_elementwise=True).alias("_supa_id"),
        pl.lit(job_id).alias("_supa_job_id"),
    ).sink_parquet(f"{target}/part-0.parquet", compression="gzip")


if __name__ == "__main__":
    main(*sys.argv[1:])

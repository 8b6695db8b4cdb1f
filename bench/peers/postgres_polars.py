"""A table of PostgreSQL by ADBC and polars, to one gzip Parquet file.

Arguments: the URL of the database without a login, the output folder, the job id. ADBC hands over
`numeric` as text. polars has no SHA-256, so Python computes it. The login is in the environment.
"""

from __future__ import annotations

import hashlib
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import adbc_driver_postgresql.dbapi as adbc
import polars as pl


def main(url: str, target: str, job_id: str) -> None:
    """Copy the table `orders` to one file in `target`."""
    login = f"{os.environ['BENCH_USER']}:{os.environ['BENCH_URL_PASSWORD']}"
    scheme, _, place = url.partition("://")
    with adbc.connect(f"{scheme}://{login}@{place}") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM orders")
        frame = pl.DataFrame(cursor.fetch_arrow_table())
    ids = [hashlib.sha256(str(key).encode()).hexdigest() for key in frame["order_id"]]
    frame = frame.with_columns(
        pl.col("amount").cast(pl.Decimal(12, 2)),
        pl.lit(datetime.now(UTC)).cast(pl.Datetime("us", "UTC")).alias("_supa_synced"),
        pl.lit(value=False).alias("_supa_deleted"),
        pl.int_range(1, pl.len() + 1, dtype=pl.Int64).alias("_supa_index"),
        pl.Series("_supa_id", ids),
        pl.lit(job_id).alias("_supa_job_id"),
    )
    Path(target).mkdir(parents=True)
    frame.write_parquet(f"{target}/part-0.parquet", compression="gzip")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A table of PostgreSQL by dlt: its sql_table with connectorx, to gzip Parquet in a folder.

Arguments: the URL of the database without a login, the output folder, the job id. connectorx is the
fastest of dlt's documented backends. The five tracking columns are added to its Arrow tables; the
types are those of the table, as dlt reflects them. The login is in the environment.
"""

from __future__ import annotations

import hashlib
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import dlt
import pyarrow as pa
from dlt.sources.sql_database import sql_table

CHUNK_ROWS = 250_000


def main(url: str, target: str, job_id: str) -> None:
    """Copy the table `orders` to `target`."""
    login = f"{os.environ['BENCH_USER']}:{os.environ['BENCH_URL_PASSWORD']}"
    scheme, _, place = url.partition("://")
    address = f"{scheme}://{login}@{place}"
    table = sql_table(
        credentials=address,
        schema="public",
        table="orders",
        backend="connectorx",
        chunk_size=CHUNK_ROWS,
        reflection_level="full_with_precision",
        backend_kwargs={"conn": address, "return_type": "arrow_stream"},
    )
    table.add_map(_Tracking(job_id))
    pipeline = dlt.pipeline(
        "bench",
        pipelines_dir=str(Path.cwd().parent / f"dlt-{job_id}"),
        destination=dlt.destinations.filesystem(Path(target).as_uri()),
        dataset_name="shop",
    )
    pipeline.run(table, loader_file_format="parquet").raise_on_failed_jobs()


class _Tracking:
    """Adds the tracking columns; rows are numbered in the order in which they come."""

    def __init__(self, job_id: str) -> None:
        self._job_id = job_id
        self._synced = pa.scalar(datetime.now(UTC), pa.timestamp("us", tz="UTC"))
        self._rows = 0

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Return the rows with five more columns, and the decimal as it is in the table."""
        count, first = rows.num_rows, self._rows + 1
        self._rows += count
        texts = rows.column("order_id").cast(pa.string()).to_pylist()
        ids = pa.array((hashlib.sha256(text.encode()).hexdigest() for text in texts), pa.string())
        place = rows.schema.get_field_index("amount")
        amount = rows.column(place).cast(pa.decimal128(12, 2))
        return (
            rows.set_column(place, "amount", amount)
            .append_column("_supa_synced", pa.repeat(self._synced, count))
            .append_column("_supa_deleted", pa.repeat(pa.scalar(False), count))
            .append_column("_supa_index", pa.array(range(first, first + count), pa.int64()))
            .append_column("_supa_id", ids)
            .append_column("_supa_job_id", pa.repeat(pa.scalar(self._job_id), count))
        )


if __name__ == "__main__":
    main(*sys.argv[1:])

"""DuckDB's COPY to gzip Parquet with the same 18 columns, in a process of its own.

Arguments: CSV or PARQUET, the input folder, the output folder, the job id, threads, the columns as
JSON {name: Spark type}. `_supa_index` is `row_number() OVER ()`, dense from 1.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import duckdb

TYPES = {"string": "VARCHAR", "timestamp": "TIMESTAMPTZ", "timestamp_ntz": "TIMESTAMP"}


def source(form: str, folder: str, columns: dict[str, str]) -> str:
    """The table function that reads the input; the CSV columns' types are given, not sniffed."""
    if form == "PARQUET":
        return f"read_parquet('{folder}/*.parquet')"
    types = ", ".join(f"'{name}': '{TYPES.get(kind, kind)}'" for name, kind in columns.items())
    dialect = "header = true, delim = ',', quote = '\"', escape = '\"', auto_detect = false"
    return f"read_csv('{folder}/*.csv', {dialect}, columns = {{{types}}})"


def main(form: str, folder: str, target: str, job_id: str, threads: str, columns: str) -> None:
    """Copy `folder` to one file in `target` with the tracking columns added."""
    synced = datetime.now(UTC).isoformat()
    Path(target).mkdir(parents=True)
    connection = duckdb.connect(config={"threads": int(threads)})
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(
        f"""
        COPY (
            SELECT *,
                TIMESTAMPTZ '{synced}' AS _supa_synced,
                false AS _supa_deleted,
                row_number() OVER () AS _supa_index,
                sha256(order_id::VARCHAR) AS _supa_id,
                '{job_id}' AS _supa_job_id
            FROM {source(form, folder, json.loads(columns))}
        ) TO '{target}/part-0.parquet' (FORMAT parquet, COMPRESSION gzip)
        """
    )
    connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])

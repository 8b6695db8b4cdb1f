"""pyarrow to gzip Parquet with the same 18 columns, in a process of its own.

Arguments: CSV or PARQUET, the input folder, the output folder, the job id, threads, the columns as
JSON {name: Spark type}. It streams batches; Python computes the SHA-256 of the keys, and one thread
encodes: pyarrow's writer has no others.
"""

from __future__ import annotations

import hashlib
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet

TYPES = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "string": pa.string(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "decimal(12,2)": pa.decimal128(12, 2),
}

GZIP: dict[str, Any] = {"compression": "gzip", "compression_level": 6}
"""The level of most tools: pyarrow's own is 9, with which it takes four times the CPU of DuckDB."""


def source(form: str, folder: str, columns: dict[str, str]) -> pyarrow.dataset.Dataset:
    """Return the input with the data set's types; those of CSV are given, not sniffed."""
    if form == "PARQUET":
        return pyarrow.dataset.dataset(folder, format="parquet")
    types = {name: TYPES[kind] for name, kind in columns.items()}
    convert = pyarrow.csv.ConvertOptions(
        column_types=types,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
    read = pyarrow.dataset.CsvFileFormat(parse_options=parse, convert_options=convert)
    return pyarrow.dataset.dataset(folder, pa.schema(list(types.items())), format=read)


def main(form: str, folder: str, target: str, job_id: str, threads: str, columns: str) -> None:
    """Copy `folder` to one file in `target` with the tracking columns added."""
    Path(target).mkdir(parents=True)
    pa.set_cpu_count(int(threads))
    data = source(form, folder, json.loads(columns))
    tracking = {
        "_supa_synced": pa.timestamp("us", "UTC"),
        "_supa_deleted": pa.bool_(),
        "_supa_index": pa.int64(),
        "_supa_id": pa.string(),
        "_supa_job_id": pa.string(),
    }
    schema = pa.schema([*data.schema.remove_metadata(), *tracking.items()])
    synced = pa.scalar(datetime.now(UTC), tracking["_supa_synced"])
    index = 1
    path = f"{target}/part-0.parquet"
    with pyarrow.parquet.ParquetWriter(path, schema, **GZIP) as writer:
        for batch in data.to_batches(batch_size=1 << 17):
            rows = batch.num_rows
            keys = batch.column("order_id").to_pylist()
            added = [
                pa.repeat(synced, rows),
                pa.repeat(pa.scalar(value=False), rows),
                pa.array(range(index, index + rows), pa.int64()),
                pa.array([hashlib.sha256(str(key).encode()).hexdigest() for key in keys]),
                pa.repeat(pa.scalar(job_id), rows),
            ]
            index += rows
            writer.write_batch(pa.RecordBatch.from_arrays([*batch.columns, *added], schema=schema))


if __name__ == "__main__":
    main(*sys.argv[1:])

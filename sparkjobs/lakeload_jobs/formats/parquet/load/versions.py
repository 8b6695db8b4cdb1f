"""Keys and versions of the rows that a table has, read from its files inside the tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from lakeload_jobs.contract.spec import JobSpec
from lakeload_jobs.formats.data_files.tracked import tracking_fields
from lakeload_jobs.sources.base import Splits
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import S3_SCHEME, FileState
from lakeload_jobs.sources.spark_frames import split_frame
from lakeload_jobs.storage.objects import ObjectEntry

_PARTS = 64
"""Tasks at most: each reads several files where there are more."""


def read_versions(
    spark: SparkSession, spec: JobSpec, files: Sequence[ObjectEntry], key: Sequence[StructField]
) -> DataFrame | None:
    """Return the key and the tracking columns of every row in some files of a table; None where
    there are no files. `key` are the columns of the key, in the types that the table has."""
    if not files:
        return None
    own = tracking_fields(("_supa_synced", "_supa_index", "_supa_deleted"))
    fields = [StructField(field.name, field.dataType) for field in key]
    schema = StructType([*fields, *own])
    bucket = spec.destination.bucket
    states = [
        FileState(f"{S3_SCHEME}{bucket}/{file.key}", file.size, 0, file.etag.strip('"'))
        for file in sorted(files, key=lambda file: -file.size)
    ]
    parts = tuple(tuple(states[start::_PARTS]) for start in range(min(_PARTS, len(states))))
    opener = FileBytes(spec.destination, spec.label)
    read = _ReadFiles(opener, to_arrow_schema(schema))
    return split_frame(spark, Splits(parts, read), schema)


@dataclass(frozen=True)
class _ReadFiles:
    """Reads columns of files; it travels to the tasks. A column that a file lacks is null."""

    opener: FileBytes
    schema: Any

    def __call__(self, files: Sequence[FileState]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some files. Raises `AwsError` and `LoadFailed`."""
        for file in files:
            with self.opener.seekable(file) as opened, pq.ParquetFile(opened) as stored:
                there = [name for name in self.schema.names if name in stored.schema_arrow.names]
                for batch in stored.iter_batches(columns=there):
                    yield self._conformed(batch)

    def _conformed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            batch.column(field.name).cast(field.type)
            if field.name in batch.schema.names
            else pa.nulls(batch.num_rows, field.type)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

"""Rows of tables that fit into memory, read from their Parquet files without Spark."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from lakeload_jobs.formats.iceberg.commits.manifests import (
    DATA,
    DELETED,
    MetadataFiles,
    read_list,
    read_manifest,
)
from lakeload_jobs.formats.iceberg.commits.metadata import (
    MAIN,
    Metadata,
    ref,
    schema_of,
    snapshot_of,
    spec_of,
)
from lakeload_jobs.formats.iceberg.load.arrow_schema import FIELD_ID

_MAGIC = b"PAR1"


class UnreadableFiles(Exception):
    """Spark has to read the table: the text says why, as a clause."""


def read_batches(
    files: MetadataFiles,
    metadata: Metadata,
    columns: pa.Schema,
    partition: tuple[str, Callable[[str | None], bool]],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that `main` has in some partitions, with these columns, nulls for those that a
    file lacks. `partition` is a column and what says of a value whether it is wanted: rows of other
    partitions may come too, where they are in one file. One file is held at a time.

    Raises `UnreadableFiles`, before a row or later, and `AwsError`.
    """
    head = ref(metadata, MAIN)
    snapshot = None if head is None else snapshot_of(metadata, head)
    places = list(_places(files, metadata, snapshot, partition))
    ids = {field["name"]: field["id"] for field in schema_of(metadata)["fields"]}
    for place in places:
        data = files.read(place)
        if not data.startswith(_MAGIC):
            raise UnreadableFiles("a data file is of another format than Parquet")
        file = pq.ParquetFile(io.BytesIO(data))
        own = {
            int(field.metadata[FIELD_ID.encode()]): field.name
            for field in file.schema_arrow
            if field.metadata and FIELD_ID.encode() in field.metadata
        }
        if not own:
            raise UnreadableFiles("a data file has no field ids")
        names = {one.name: own.get(ids.get(one.name, 0)) for one in columns}
        there = [name for name in names.values() if name is not None]
        for batch in file.iter_batches(columns=there):
            arrays = [
                pa.nulls(batch.num_rows, one.type)
                if (name := names[one.name]) is None
                else batch.column(name).cast(one.type)
                for one in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=columns)


def _places(
    files: MetadataFiles,
    metadata: Metadata,
    snapshot: dict[str, object] | None,
    partition: tuple[str, Callable[[str | None], bool]],
) -> Iterator[str]:
    column, is_wanted = partition
    for row in read_list(files, snapshot):
        if not row["added_files_count"] and not row["existing_files_count"]:
            continue
        if row["content"] != DATA:
            raise UnreadableFiles("single rows are deleted")
        fields = spec_of(metadata, row["partition_spec_id"])["fields"]
        names = [one["name"] for one in fields if one["transform"] == "identity"]
        at = [one["name"] for one in fields].index(column) if column in names else None
        for entry in read_manifest(files, row).entries:
            one = entry["data_file"]
            if entry["status"] == DELETED:
                continue
            if at is not None and not is_wanted(tuple(one["partition"].values())[at]):
                continue
            yield one["file_path"]

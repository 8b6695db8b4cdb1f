"""Metadata files that are written, compressed, placed and deleted as the table says."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.formats.iceberg.catalogs.table_stores import MetadataWriter, ReadTable
from lakeload_jobs.formats.iceberg.commits.errors import Unsupported
from lakeload_jobs.formats.iceberg.commits.metadata import (
    Json,
    NewTable,
    remove_properties,
    set_properties,
)

PLACE = "s3://lake/shop/orders"
DELETES = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "2",
}


class Bucket:
    """Files in memory; `refuses` is the code with which a request to delete one fails."""

    def __init__(self, refuses: str | None = None) -> None:
        self.files: dict[str, bytes] = {}
        self.refuses = refuses
        self.asked: list[str] = []

    def read(self, location: str) -> bytes:
        return self.files[location]

    def write(self, location: str, data: bytes) -> None:
        self.files[location] = data

    def delete(self, location: str) -> None:
        self.asked.append(location)
        if self.refuses is not None:
            raise AwsError("it stays", code=self.refuses, operation="DeleteObject")
        self.files.pop(location, None)


def created(bucket: Bucket, **properties: str) -> tuple[MetadataWriter, ReadTable]:
    writer = MetadataWriter(bucket)
    schema: Json = {"type": "struct", "schema-id": 0, "fields": []}
    new = NewTable(schema, {"spec-id": 0, "fields": []}, {"order-id": 0, "fields": []}, properties)
    metadata, place = writer.create(new, PLACE)
    return writer, ReadTable("shop", "orders", metadata, place)


def committed(writer: MetadataWriter, table: ReadTable, *updates: Json) -> ReadTable:
    metadata, place = writer.commit(table, [], updates)
    writer.delete_old(table.metadata, metadata)
    return ReadTable("shop", "orders", metadata, place)


def test_files_that_leave_the_log_are_deleted_where_the_table_says_so() -> None:
    bucket = Bucket()
    writer, table = created(bucket, **DELETES)
    places = [table.metadata_location]
    for number in range(5):
        table = committed(writer, table, set_properties({"n": str(number)}))
        places.append(table.metadata_location)
    assert list(bucket.files) == places[-3:]
    assert bucket.asked == places[:3]
    table = committed(writer, table, remove_properties(DELETES))
    assert len(bucket.files) == 4


def test_role_that_may_not_delete_is_asked_once_and_commits_on() -> None:
    bucket = Bucket("AccessDenied")
    writer, table = created(bucket, **DELETES)
    for _ in range(5):
        table = committed(writer, table)
    assert len(bucket.files) == 6
    assert len(bucket.asked) == 1


def test_old_file_that_cannot_be_deleted_now_is_no_reason_to_leave_later_ones() -> None:
    bucket = Bucket("SlowDown")
    writer, table = created(bucket, **DELETES)
    places = [table.metadata_location]
    for _ in range(4):
        table = committed(writer, table)
        places.append(table.metadata_location)
    assert bucket.asked == places[:2]
    bucket.refuses = None
    table = committed(writer, table)
    assert bucket.asked == places[:3]
    assert list(bucket.files) == [*places[:2], *places[3:], table.metadata_location]


def test_metadata_is_compressed_and_placed_as_the_table_says() -> None:
    bucket = Bucket()
    writer, table = created(
        bucket,
        **{
            "write.metadata.compression-codec": "GZIP",
            "write.metadata.path": "s3://lake/elsewhere/",
        },
    )
    name = table.metadata_location
    assert name.startswith("s3://lake/elsewhere/00000-")
    assert name.endswith(".gz.metadata.json")
    assert json.loads(gzip.decompress(bucket.files[name])) == table.metadata
    assert MetadataWriter(bucket).read(name) == table.metadata
    plain = committed(writer, table, remove_properties(["write.metadata.compression-codec"]))
    assert plain.metadata_location.startswith("s3://lake/elsewhere/00001-")
    assert ".gz" not in plain.metadata_location
    assert MetadataWriter(bucket).read(plain.metadata_location) == plain.metadata


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ({}, "the format version None"),
        ({"format-version": 4}, "the format version 4"),
        ({"format-version": 3, "encryption-keys": [{"key-id": "k"}]}, "encryption keys"),
        ({"format-version": 3, "properties": {"encryption.key-id": "k"}}, "encryption keys"),
    ],
)
def test_metadata_that_would_not_be_kept_is_not_read(metadata: dict[str, Any], says: str) -> None:
    bucket = Bucket()
    bucket.write("v.json", json.dumps(metadata).encode())
    with pytest.raises(Unsupported, match=says):
        MetadataWriter(bucket).read("v.json")


def test_metadata_that_is_read_names_what_its_writer_has_left_out() -> None:
    bucket = Bucket()
    schema: Json = {"type": "struct", "schema-id": 0, "fields": []}
    old = {
        "format-version": 1,
        "location": PLACE,
        "schema": schema,
        "partition-spec": [],
        "current-snapshot-id": 7,
        "snapshots": [{"snapshot-id": 7, "timestamp-ms": 1}],
        "properties": None,
    }
    bucket.write("v.json", json.dumps(old).encode())
    read = MetadataWriter(bucket).read("v.json")
    assert read["refs"]["main"]["snapshot-id"] == 7
    assert (read["schemas"], read["properties"], read["metadata-log"]) == ([schema], {}, [])


@pytest.mark.parametrize("content", [b"", b"{", gzip.compress(b"{}")[:-9], b"\x1f\x8b\x00"])
def test_metadata_that_is_damaged_is_named(content: bytes) -> None:
    bucket = Bucket()
    bucket.write("s3://lake/v.json", content)
    with pytest.raises(LoadFailed, match=r"/v\.json`: the metadata file is damaged") as bad:
        MetadataWriter(bucket).read("s3://lake/v.json")
    assert bad.value.hint

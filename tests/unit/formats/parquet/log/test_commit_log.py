"""What a log takes from its objects: no checkpoint that was changed, no record of another table."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, cast

import pytest

from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.commit_log import Checkpoint, CommitLog, PipelineHistory
from lakeload_jobs.formats.parquet.log.records import (
    Column,
    LoadRecord,
    LogDamaged,
    Rejects,
    encode,
)
from lakeload_jobs.storage.objects import Objects
from tests.unit.formats.parquet.log.test_codec import LOAD

LOCATION = TableLocation("data-lake/production", "postgres_public", "orders")
COPY = TableLocation("data-lake/copy", "postgres_public", "orders")
CHECKPOINT = Checkpoint(
    "lakeload 0.1.0",
    3,
    {
        "shop": PipelineHistory(
            "public.orders", 3, {"id": "id"}, {"job-1": 1, "job-3": 3}, {"job-2": 2}, {"at": 3}, 3
        )
    },
    (Column("id", "bigint"),),
)


class Bucket:
    """Objects in memory."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}

    def get(self, key: str, *, denied_is_missing: bool = False) -> bytes | None:
        return self.bodies.get(key)

    def put(self, key: str, body: bytes) -> None:
        self.bodies[key] = body

    def list(self, prefix: str, start_after: str | None = None) -> list[Any]:
        return []

    def url(self, key: str) -> str:
        return f"s3://lake/{key}"


def log_of(bucket: Bucket, location: TableLocation = LOCATION) -> CommitLog:
    return CommitLog(cast(Objects, bucket), location)


@pytest.fixture
def bucket() -> Bucket:
    bucket = Bucket()
    log_of(bucket).write_checkpoint(CHECKPOINT)
    return bucket


def test_checkpoint_is_read_as_it_was_written(bucket: Bucket) -> None:
    stored = log_of(bucket).read().checkpoint
    assert stored is not None
    assert replace(stored, digest=None) == CHECKPOINT


def test_checkpoint_of_before_there_was_a_digest_is_used(bucket: Bucket) -> None:
    bucket.bodies[LOCATION.checkpoint_key] = encode(CHECKPOINT)
    assert b"digest" not in encode(CHECKPOINT)
    assert log_of(bucket).read().checkpoint == CHECKPOINT


def test_checkpoint_with_any_other_byte_is_passed_over(bucket: Bucket) -> None:
    """It is a cache: without it the records are read. With a wrong one jobs are loaded twice."""
    body = bucket.bodies[LOCATION.checkpoint_key]
    for place, byte in enumerate(body):
        other = bytes([byte ^ 1])
        bucket.bodies[LOCATION.checkpoint_key] = body[:place] + other + body[place + 1 :]
        stored = log_of(bucket).read().checkpoint
        # White space that became another changes nothing.
        assert stored is None or replace(stored, digest=None) == CHECKPOINT


def test_checkpoint_of_another_table_is_passed_over(bucket: Bucket) -> None:
    bucket.bodies[COPY.checkpoint_key] = bucket.bodies[LOCATION.checkpoint_key]
    assert log_of(bucket, COPY).read().checkpoint is None


@pytest.mark.parametrize("number", [10**400, 10**20, -1, 2])
def test_checkpoint_with_an_impossible_number_is_passed_over(bucket: Bucket, number: int) -> None:
    document = {**json.loads(encode(CHECKPOINT)), "number": number}
    bucket.bodies[LOCATION.checkpoint_key] = json.dumps(document).encode()
    assert log_of(bucket).read().checkpoint is None


REJECTED = Rejects("orders_rejected", (), 1, LOAD.files)


@pytest.mark.parametrize(
    ("record", "location", "says"),
    [
        (LOAD, COPY, "is a record of the table `data-lake/production/postgres_public/orders`"),
        (
            replace(LOAD, target=replace(LOAD.target, prefix="data-lake/copy")),
            COPY,
            "names the file `data-lake/production/postgres_public/orders/2026",
        ),
        (replace(LOAD, rejected=REJECTED), LOCATION, "names the file"),
    ],
)
def test_record_of_another_table_is_damage(
    record: LoadRecord, location: TableLocation, says: str
) -> None:
    bucket = Bucket()
    bucket.bodies[location.record_key(1)] = encode(record)
    with pytest.raises(LogDamaged) as caught:
        log_of(bucket, location).record(1)
    assert says in caught.value.message
    assert "if the log was copied here, remove the copy" in (caught.value.hint or "")


def test_record_of_this_table_is_read() -> None:
    side = replace(LOAD.files[0], key="data-lake/production/postgres_public/orders_rejected/a")
    record = replace(LOAD, rejected=replace(REJECTED, files=(side,)))
    bucket = Bucket()
    bucket.bodies[LOCATION.record_key(1)] = encode(record)
    assert log_of(bucket).record(1) == record

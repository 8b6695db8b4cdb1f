"""Files that one task writes: how many are open at a time, and how long their footers are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.formats.data_files import stage
from lakeload_jobs.formats.data_files.encode import Encoding, FileTail, PartWriter, UploadPool
from lakeload_jobs.formats.data_files.stage import PartitionWriter
from lakeload_jobs.formats.data_files.tracked import Tracking
from lakeload_jobs.formats.iceberg.load import file_tasks
from lakeload_jobs.formats.iceberg.load.file_tasks import IcebergFiles
from lakeload_jobs.formats.iceberg.load.partitioned import PartitionFileWriter
from lakeload_jobs.formats.iceberg.rules.writers import file_settings
from lakeload_jobs.storage.objects import Objects, Part
from tests.hints import follow, follows

KINDS: dict[str, pa.DataType] = {"id": pa.int64(), "text": pa.string()}
SCHEMA = pa.schema(KINDS)
ICEBERG = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": False},
        {"id": 2, "name": "text", "type": "string", "required": False},
    ],
}
ROWS = 500


class Sink:
    """Takes the bytes of a file."""

    size = 0

    def write(self, data: bytes, /) -> int:
        """Forget them."""
        self.size += len(data)
        return len(data)


@dataclass
class Store:
    """Takes uploads, and notes how many are under way and what Arrow holds meanwhile."""

    started: int = 0
    ended: int = 0
    most: int = 0
    memory: list[int] = field(default_factory=list)

    def create_upload(self, key: str, metadata: Any) -> str:
        self.started += 1
        self.most = max(self.most, self.started - self.ended)
        self.memory.append(pa.total_allocated_bytes())
        return key

    def abort_upload(self, key: str, upload_id: str) -> None:
        """Nothing is kept."""

    def upload_part(self, key: str, upload_id: str, number: int, body: bytes) -> Part:
        self.ended += 1
        return Part(number, str(len(body)), "")


def _written(monkeypatch: pytest.MonkeyPatch, partitions: int) -> tuple[Store, int]:
    """Write so many partitions in one task; return the store, and how many files it told."""
    store, pool = Store(), UploadPool(2)
    monkeypatch.setattr(stage, "_connection", lambda *_, **__: (cast("Objects", store), pool))
    files = IcebergFiles("data/", "b", json.dumps(ICEBERG), "orders", (), 1 << 30, Encoding("zstd"))
    writer = PartitionWriter(
        DestinationSpec("lake", "us-east-1"),
        files,
        Tracking("job", "attempt", datetime(2026, 11, 21, tzinfo=UTC), (), (), None),
        partitions=1,
        registry=None,
        on_executor=False,
    )

    def pieces() -> Iterator[Any]:
        texts = pa.array(["x" * 200] * ROWS)
        for number in range(partitions):
            rows = pa.record_batch([pa.array([number] * ROWS), texts], schema=SCHEMA)
            yield SimpleNamespace(
                partition=json.dumps([number]), rows=bytearray(rows.serialize().to_pybytes())
            )

    (report,) = PartitionFileWriter(writer, SCHEMA, ())(0, pieces())
    pool.close()
    return store, len(report.files)


def test_memory_of_a_task_does_not_grow_with_its_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, _ = _written(monkeypatch, 20)
    many, files = _written(monkeypatch, 400)

    assert (files, many.started, many.ended) == (400, 400, 400)
    assert (few.most, many.most) == (1, 1)
    assert max(many.memory) < 1.5 * max(few.memory)


def test_a_footer_that_is_too_long_is_shorter_in_smaller_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_tasks, "FileTail", partial(FileTail, most=4000))
    size = "write.target-file-size-bytes"
    document: dict[str, Any] = {
        "destination": {"iceberg": {}}, "source": {"type": "FILES"},
        "tables": [{"table": "orders", "table_properties": {size: str(1 << 30)}}],
    }  # fmt: skip

    def encoded(changed: dict[str, Any]) -> int:
        """Write a file of what there is, and return its rows."""
        properties = changed["tables"][0]["table_properties"]
        texts = pa.array([f"{number:0200d}" for number in range(1024)])
        batch = pa.record_batch([pa.array(range(1024)), texts], schema=SCHEMA)
        encoding = Encoding("uncompressed", row_group_bytes=1)
        target = file_settings(properties).target_size
        sink = cast("PartWriter", Sink())
        files = IcebergFiles("data/", "b", json.dumps(ICEBERG), "orders", (), target, encoding)
        return files.encode(batch, iter([batch] * 60), sink).rows

    with pytest.raises(LoadFailed, match="the footer of a data file is longer") as failed:
        encoded(document)
    hint = failed.value.hint or ""
    follows(__file__, "a footer that is too long", hint)
    values = {size: str(1 << 20), "table_properties": {size: str(1 << 20)}}
    changed = follow(document, hint, "tables[0].table", **values)

    assert 1024 < encoded(changed) < 60 * 1024

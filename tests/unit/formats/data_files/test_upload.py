"""Parts: their sizes and order, how many are in flight, and how failures come out."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from lakeload_jobs.formats.data_files.encode import (
    MIN_PART_BYTES,
    PartWriter,
    UploadPool,
    part_bytes,
)
from lakeload_jobs.formats.data_files.stage import FileStager
from lakeload_jobs.storage.objects import Objects, Part


class RecordingObjects:
    """Takes parts; counts how many are being sent at once."""

    def __init__(self, *, fail_at: int | None = None, seconds: float = 0.0) -> None:
        self.parts: dict[int, bytes] = {}
        self.most_at_once = 0
        self._at_once = 0
        self._fail_at = fail_at
        self._seconds = seconds
        self._lock = threading.Lock()

    def upload_part(self, key: str, upload_id: str, number: int, body: bytes) -> Part:
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        time.sleep(self._seconds)
        with self._lock:
            self._at_once -= 1
            if number == self._fail_at:
                raise PermissionError(f"part {number} was refused")
            self.parts[number] = body
        return Part(number, f"etag-{number}", "")


def writer(objects: RecordingObjects, *, parallelism: int = 3, size: int = 10) -> PartWriter:
    pool = UploadPool(parallelism)
    return PartWriter(cast(Objects, objects), pool, "k", "u", size_of_part=size)


def test_parts_are_full_except_the_last_and_come_back_in_order() -> None:
    objects = RecordingObjects()
    target = writer(objects)

    for chunk in (b"abc", b"defghijklmnop", b"", b"qrstuvwxyz"):
        target.write(chunk)
    parts = target.finish()

    assert [part.number for part in parts] == [1, 2, 3]
    assert [objects.parts[n] for n in (1, 2, 3)] == [b"abcdefghij", b"klmnopqrst", b"uvwxyz"]
    assert target.size == 26


def test_a_file_of_exactly_one_part_has_no_empty_second_one() -> None:
    objects = RecordingObjects()
    target = writer(objects)

    target.write(b"0123456789")

    assert len(target.finish()) == 1


def test_empty_upload_has_one_part() -> None:
    assert len(writer(RecordingObjects()).finish()) == 1


def test_no_more_parts_are_in_memory_than_the_pool_allows() -> None:
    objects = RecordingObjects(seconds=0.01)
    target = writer(objects, parallelism=2)

    target.write(bytes(200))
    target.finish()

    assert objects.most_at_once == 2
    assert len(objects.parts) == 20


def test_rejected_part_fails_a_later_write() -> None:
    target = writer(RecordingObjects(fail_at=1))

    target.write(bytes(10))
    target.wait()

    with pytest.raises(PermissionError, match="part 1 was refused"):
        target.write(bytes(10))


def test_rejected_last_part_fails_the_close() -> None:
    target = writer(RecordingObjects(fail_at=2))
    target.write(bytes(15))

    with pytest.raises(PermissionError, match="part 2 was refused"):
        target.finish()


@pytest.mark.parametrize("target", [1, 1 << 30, 100 << 30, 2 << 40])
def test_ten_thousand_parts_hold_twice_the_target_size(target: int) -> None:
    size = part_bytes(target)

    assert size >= MIN_PART_BYTES > 5 << 20
    assert size * 10_000 >= 2 * target


def test_file_stager_tells_the_bytes_of_a_file_that_is_not_complete(tmp_path: Path) -> None:
    progress = tmp_path / "0.1"
    progress.touch()

    def encode(first: pa.RecordBatch, rest: object, writer: PartWriter) -> None:
        writer.write(b"x" * 100)
        stager.tell(first.num_rows, last=True)
        raise KeyboardInterrupt

    files = SimpleNamespace(key=lambda seq, rejects: "key", target_size=1 << 30, encode=encode)
    given: Any = SimpleNamespace(
        progress=str(progress), partitions=1, files=files, registry=None,
        tracking=SimpleNamespace(job_id="j", attempt_id="a"),
    )  # fmt: skip
    objects: Any = SimpleNamespace(create_upload=lambda key, metadata: "upload")
    rows = iter([pa.record_batch({"id": [1, 2]})])
    with closing(UploadPool(1)) as pool:
        stager = FileStager(given, 0, (objects, pool))
        with pytest.raises(KeyboardInterrupt):
            next(stager.files(rows))
    assert progress.read_text() == "2 100\n"

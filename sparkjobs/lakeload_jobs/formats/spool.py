"""Rows that cannot be read twice: read once, and kept on Spark's disks until the load has ended.

What is kept is the output of one attempt at each task, and what its read returned at the end is
kept with it: rows and state cannot come from different attempts. Spark's local checkpoint knows no
way back to the source, so a block that is lost fails the load instead of being read again.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import StorageLevel, TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.rows.arrow import pc
from lakeload_jobs.rows.batches import map_batches, numbers, part_numbers
from lakeload_jobs.rows.failures import failures_for_driver
from lakeload_jobs.rows.progress import TaskProgress
from lakeload_jobs.rows.tracking import KEY_ONLY_HELPER
from lakeload_jobs.sources.base import Rows, Splits, unchecked
from lakeload_jobs.sources.spark_frames import (
    as_handed_over,
    columns_of,
    frame_of,
    frame_splits,
    split_frame,
)

_SPOOL = "part bigint, batch binary, rows bigint, end string"
_BLOCK_BYTES = 8 << 20
"""One row of the spool: a record batch of about so many bytes."""


@dataclass(frozen=True)
class Spool:
    """The `rows` of a source that was read once; close it."""

    rows: Rows
    kept: DataFrame

    def close(self) -> None:
        """Give back the disk."""
        unpersist(self.kept)


def unpersist(kept: DataFrame) -> None:
    """Give back the disk of a local checkpoint. Where Java is gone, the disk was given back with
    it."""
    with contextlib.suppress(Py4JError, OSError):
        kept._jdf.queryExecution().analyzed().rdd().unpersist(False)


def spooled(rows: Rows, progress: str | None = None) -> Spool:
    """Read the rows, once, and return what was read. `progress` is the file of `rows.progress`.

    Raises what reading raises, and `LoadFailed` where Spark tries a task again.
    """
    splits = rows.splits
    # A second read would be one of another moment.
    own = replace(rows, check_type=None, check_values=unchecked)
    if splits.frame is not None and splits.read is as_handed_over:
        kept = splits.frame.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)
        return Spool(replace(own, splits=frame_splits(kept)), kept)
    if splits.frame is None:
        tasks, read = part_numbers(rows.spark, len(splits.parts)), _Read(splits, progress)
    else:
        tasks, read = splits.frame, _Read(replace(splits, frame=None), progress, whole=True)
    read = replace(read, splits=replace(read.splits, unfinished=None))
    spool = map_batches(tasks, read, _SPOOL, at_once=splits.at_once)
    spool = spool.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)
    ended = spool.where(F.col("end").isNotNull()).select("part", "rows", "end").collect()
    ends = {row["part"]: json.loads(row["end"]) for row in ended}
    if sorted(ends) != list(range(len(splits.parts))):
        raise LoadFailed(
            f"{len(ends)} of {len(splits.parts)} parts of the source were read completely",
            hint="run again: nothing was committed",
            retryable=True,
        )
    batches = spool.where(F.col("batch").isNotNull()).select("batch")
    read_rows = {row["part"]: row["rows"] for row in ended}
    parts = sorted(ends)
    counts = tuple(read_rows[number] for number in parts)
    ended_with = [ends[number] for number in parts]
    own = replace(
        own,
        splits=Splits(tuple(parts), unpacked, counts, splits.unfinished, batches),
        finish=lambda _: rows.finish(ended_with),
    )
    return Spool(_finished(own), spool)


def _finished(rows: Rows) -> Rows:
    """Return rows that are kept, with what Spark has to do with them, and without those that are
    keys alone."""
    splits, unfinished = rows.splits, rows.splits.unfinished
    if unfinished is not None:
        plain = split_frame(rows.spark, replace(splits, unfinished=None), unfinished.schema)
        check = partial(unfinished.check, plain)
        splits = frame_splits(unfinished.finish(plain), splits.counts)
        rows = replace(rows, splits=splits, check_values=check)
    if KEY_ONLY_HELPER not in rows.schema.names:
        return rows if rows.keys is None else replace(rows, keys=partial(columns_of, rows))
    frame = frame_of(rows)
    is_key = F.col(KEY_ONLY_HELPER)
    loaded = frame.where(~is_key).drop(KEY_ONLY_HELPER)
    keys = replace(rows, splits=frame_splits(frame.where(is_key), splits.counts))
    return replace(
        rows,
        schema=loaded.schema,
        splits=frame_splits(loaded, splits.counts),
        keys=None if rows.keys is None else partial(columns_of, keys),
    )


@dataclass(frozen=True)
class _Read:
    """The function of tasks that pack what they read, and at last what the read returned."""

    splits: Splits
    progress: str | None
    whole: bool = False
    """Whether the batches of the task are what the one part is read from."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with failures_for_driver("open"):
            refuse_second_attempt(TaskContext.get())
            for number in (0,) if self.whole else numbers(batches):
                yield from self._pack(number, batches if self.whole else self.splits.parts[number])

    def _pack(self, number: int, part: Any) -> Iterator[pa.RecordBatch]:
        rows, count, size = self.splits.read(part), 0, 0
        progress = TaskProgress(self.progress)
        while True:
            try:
                batch = next(rows)
            except StopIteration as stop:
                progress.at(count, size, last=True)
                yield _spool_row(number, None, count, json.dumps(stop.value))
                return
            for block in blocks(batch):
                yield _spool_row(number, packed(block), None, None)
            count += batch.num_rows
            if KEY_ONLY_HELPER in batch.schema.names:
                count -= pc.sum(batch.column(KEY_ONLY_HELPER)).as_py() or 0
            size += batch.nbytes
            progress.at(count, size)


def refuse_second_attempt(context: TaskContext | None) -> None:
    """Raise `LoadFailed` in a task that Spark tries again: what its first attempt has read of the
    source may be gone."""
    if context is not None and context.attemptNumber() > 0:
        raise LoadFailed(
            "a task that was reading the source failed, and what it had read cannot be read again",
            hint=(
                "run again: nothing was committed, and the next load continues after the "
                "last committed one"
            ),
            retryable=True,
        )


def _spool_row(part: int, batch: bytes | None, rows: int | None, end: str | None) -> pa.RecordBatch:
    values: list[pa.Array[Any]] = [
        pa.array([part]),
        pa.array([batch], pa.binary()),
        pa.array([rows], pa.int64()),
        pa.array([end], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(values, names=["part", "batch", "rows", "end"])


def blocks(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch in batches of about `_BLOCK_BYTES`."""
    rows = max(1, batch.num_rows * _BLOCK_BYTES // max(batch.nbytes, 1))
    for first in range(0, batch.num_rows, rows):
        yield batch.slice(first, rows)


def packed(batch: pa.RecordBatch) -> bytes:
    """Return a batch as bytes, with its schema."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches that are packed in the only column of others."""
    for batch in batches:
        for packed in batch.column(0):
            with pa.ipc.open_stream(packed.as_buffer()) as reader:
                yield from reader

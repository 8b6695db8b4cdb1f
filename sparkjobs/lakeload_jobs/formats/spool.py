"""Rows that cannot be read twice: read once, and kept on Spark's disks until the load has ended.

What is kept is the output of one attempt at each task, and what its read returned at the end is
kept with it: rows and state cannot come from different attempts. Spark's local checkpoint knows no
way back to the source, so a block that is lost fails the load instead of being read again.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Iterator, Sequence
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
from lakeload_jobs.rows.failures import failures_for_driver
from lakeload_jobs.rows.progress import TaskProgress
from lakeload_jobs.rows.tracking import KEY_ONLY_HELPER
from lakeload_jobs.sources.base import Rows, Splits, unchecked
from lakeload_jobs.sources.spark_frames import (
    as_handed_over,
    columns_of,
    frame_of,
    frame_splits,
    part_tasks,
    split_frame,
)

KEPT = "part bigint, batch binary, end binary"
"""A batch of a part, packed as a stream of Arrow's, or what the part ends with."""
_BLOCK_BYTES = 8 << 20
"""About so many bytes one batch has."""


@dataclass(frozen=True)
class Kept:
    """What tasks have packed, on Spark's disks; close it. `ends` are what parts ended with, in
    their order."""

    frame: DataFrame
    ends: tuple[Any, ...]

    @property
    def batches(self) -> DataFrame:
        """The batches as bytes, those of part n in partition n."""
        return self.frame.where(F.col("batch").isNotNull()).select("batch")

    def close(self) -> None:
        """Give back the disk."""
        unpersist(self.frame)


def keep(tasks: DataFrame, parts: int, *, eager: bool) -> Kept:
    """Run the tasks of a frame with the columns `KEPT`, one for each of so many parts, and keep
    what they yield. Raises what they raise.

    `eager`: no block is computed again, as Spark may where the tasks of the first query keep them
    and an executor is lost before it ends. Else that is a query less, and what tasks that fail have
    kept is given back at once.
    """
    frame = tasks.localCheckpoint(eager=eager, storageLevel=StorageLevel.DISK_ONLY)
    try:
        rows = frame.where(F.col("end").isNotNull()).select("part", "end").collect()
        # Our own tasks have made them.
        ends = {row["part"]: pickle.loads(row["end"]) for row in rows}  # noqa: S301
        if sorted(ends) != list(range(parts)):
            raise LoadFailed(
                f"{len(ends)} of {parts} parts of the source were read completely",
                hint="run again: nothing was committed",
                retryable=True,
            )
    except BaseException:
        unpersist(frame)
        raise
    return Kept(frame, tuple(ends[part] for part in range(parts)))


def kept_blocks(part: int, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch as rows of `KEPT`, each of about `_BLOCK_BYTES`."""
    rows = max(1, batch.num_rows * _BLOCK_BYTES // max(batch.nbytes, 1))
    for first in range(0, batch.num_rows, rows):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch.slice(first, rows))
        yield _kept_row(part, bytes(sink.getvalue()), None)


def kept_end(part: int, end: Any) -> pa.RecordBatch:
    """Return what a part ends with as a row of `KEPT`."""
    return _kept_row(part, None, pickle.dumps(end))


def _kept_row(part: int, batch: bytes | None, end: bytes | None) -> pa.RecordBatch:
    values: list[pa.Array[Any]] = [
        pa.array([part]),
        pa.array([batch], pa.binary()),
        pa.array([end], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(values, names=["part", "batch", "end"])


def unpacked(
    batches: Iterator[pa.RecordBatch], names: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the batches that are packed in the only column of others, with the columns `names`;
    None: with all."""
    for batch in batches:
        for packed in batch.column(0):
            with pa.ipc.open_stream(packed.as_buffer()) as reader:
                yield from (rows if names is None else rows.select(names) for rows in reader)


def unpersist(kept: DataFrame) -> None:
    """Give back the disk of a local checkpoint. Where Java is gone, the disk was given back with
    it."""
    with contextlib.suppress(Py4JError, OSError):
        kept._jdf.queryExecution().analyzed().rdd().unpersist(False)


@dataclass(frozen=True)
class Spool:
    """The `rows` of a source that was read once; close it."""

    rows: Rows
    kept: Kept

    def close(self) -> None:
        """Give back the disk."""
        self.kept.close()


def spooled(rows: Rows, progress: str | None = None) -> Spool:
    """Read the rows, once, and return what was read. `progress` is the file of `rows.progress`.

    Raises what reading raises, and `LoadFailed` where Spark tries a task again.
    """
    splits = rows.splits
    # A second read would be one of another moment.
    own = replace(rows, check_type=None, check_values=unchecked)
    if splits.frame is not None and splits.read is as_handed_over:
        frame = splits.frame.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)
        own = replace(own, splits=frame_splits(frame))
        keys = None if rows.keys is None else partial(columns_of, own)
        return Spool(replace(own, keys=keys), Kept(frame, ()))
    read = _Read(splits.read, progress)
    tasks = part_tasks(rows.spark, splits.parts, splits.frame, read, KEPT, at_once=splits.at_once)
    kept = keep(tasks, len(splits.parts), eager=True)
    counts = tuple(count for count, _ in kept.ends)
    ends = [end for _, end in kept.ends]
    own = replace(
        own,
        splits=Splits(splits.parts, unpacked, counts, splits.unfinished, kept.batches),
        finish=lambda _: rows.finish(ends),
    )
    try:
        return Spool(_finished(own), kept)
    except BaseException:
        kept.close()
        raise


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

    read: Callable[[Any], Iterator[pa.RecordBatch]]
    progress: str | None

    def __call__(self, number: int, part: Any) -> Iterator[pa.RecordBatch]:
        with failures_for_driver("open"):
            refuse_second_attempt(TaskContext.get())
            yield from self._pack(number, part)

    def _pack(self, number: int, part: Any) -> Iterator[pa.RecordBatch]:
        rows, count, size = self.read(part), 0, 0
        progress = TaskProgress(self.progress)
        while True:
            try:
                batch = next(rows)
            except StopIteration as stop:
                progress.at(count, size, last=True)
                yield kept_end(number, (count, stop.value))
                return
            yield from kept_blocks(number, batch)
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

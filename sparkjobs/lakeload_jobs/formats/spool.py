"""Rows that cannot be read twice: read once, and kept on Spark's disks until the load has ended.

What is kept is the output of one attempt at each task, and what its read returned at the end is
kept with it: rows and state cannot come from different attempts. Spark's local checkpoint knows no
way back to the source, so a block that is lost fails the load instead of being read again.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import StorageLevel, TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.state import StateChange
from lakeload_jobs.rows.arrow import pc
from lakeload_jobs.rows.batches import map_batches, numbers, part_numbers
from lakeload_jobs.rows.casts import quoted
from lakeload_jobs.rows.failures import failures_for_driver
from lakeload_jobs.rows.progress import TaskProgress
from lakeload_jobs.rows.tracking import KEY_ONLY_HELPER
from lakeload_jobs.sources.base import CheckType, Keys, Reader, Rows, Splits

_SPOOL = "part bigint, batch binary, rows bigint, end string"
_BLOCK_BYTES = 8 << 20
"""One row of the spool: a record batch of about so many bytes."""


class SpooledRows:
    """The rows of a source that was read once (`sources.base.Rows`); close them."""

    repeatable = False

    def __init__(
        self,
        rows: Rows,
        spool: DataFrame,
        frame: DataFrame,
        ends: Sequence[Any],
        counts: tuple[int, ...] | None = None,
        splits: Splits | None = None,
        why_no_splits: str = "",
        check: Callable[[], None] | None = None,
    ) -> None:
        self.counts = counts
        self.splits = splits
        self.why_no_splits = why_no_splits
        self._read = frame
        self.frame = frame
        if KEY_ONLY_HELPER in frame.columns:
            self._read = frame.where(F.col(KEY_ONLY_HELPER))
            self.frame = frame.where(~F.col(KEY_ONLY_HELPER)).drop(KEY_ONLY_HELPER)
        self.schema = self.frame.schema
        self.names = rows.names
        self.reader: Reader = rows.reader
        self.count_reads_all_columns = rows.count_reads_all_columns
        self.comments = rows.comments
        self.spellings = rows.spellings
        self.warnings = rows.warnings
        self.check_type: CheckType | None = None
        # Of what is kept: a second read would be one of another moment.
        self.keys: Keys | None = None if rows.keys is None else self._keys
        self._rows = rows
        self._spool = spool
        self._ends = tuple(ends)
        self._check = check

    def _keys(self, names: Sequence[str]) -> DataFrame:
        return self._read.select(*map(quoted, names))

    def check_unchanged(self) -> None:
        """Ask the source."""
        self._rows.check_unchanged()

    def check_read(self, count: int | None) -> None:
        """Do nothing: all have been read."""

    def check_values(self) -> None:
        """Raise `BadValuesFound` with the values of which Spark cannot make rows. All others the
        read has reported."""
        if self._check is not None:
            self._check()

    def finish(self, ends: Sequence[Any]) -> StateChange | None:
        """Return the state at the end of the read that was kept."""
        return self._rows.finish(self._ends)

    def close(self) -> None:
        """Give back the disk. Where Java is gone, the disk was given back with it."""
        with contextlib.suppress(Py4JError, OSError):
            self._spool._jdf.queryExecution().analyzed().rdd().unpersist(False)


def spooled(spark: SparkSession, rows: Rows, progress: str | None = None) -> SpooledRows:
    """Read the rows, once, and return what was read. `progress` is the file of `rows.progress`.

    Raises what reading raises, and `LoadFailed` where Spark tries a task again.
    """
    splits = rows.splits
    if splits is None:
        kept = rows.frame.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)
        return SpooledRows(rows, kept, kept, (), why_no_splits=why_not_stored(rows))
    if splits.frame is None:
        tasks, read = part_numbers(spark, len(splits.parts)), _Read(splits, progress)
    else:
        tasks, read = splits.frame, _Read(replace(splits, frame=None), progress, whole=True)
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
    check = None
    if splits.unfinished is None:
        frame = map_batches(batches, _unpacked, rows.schema)
    else:
        unfinished = map_batches(batches, _unpacked, splits.unfinished.schema)
        frame = splits.unfinished.finish(unfinished)
        check = partial(splits.unfinished.check, unfinished)
    read_rows = {row["part"]: row["rows"] for row in ended}
    parts = sorted(ends)
    counts = tuple(read_rows[number] for number in parts)
    why = why_not_stored(rows)
    stored = None if why else Splits(tuple(parts), _blocks_of, counts, stored=batches)
    ended_with = [ends[number] for number in parts]
    return SpooledRows(rows, spool, frame, ended_with, counts, stored, why, check)


def why_not_stored(rows: Rows) -> str:
    """Return why only Spark makes rows of what was read once, as a clause; '' where tasks do."""
    if rows.splits is None:
        return rows.why_no_splits or "Spark reads the source"
    if rows.splits.unfinished is not None:
        return "Spark casts what was read"
    if KEY_ONLY_HELPER in rows.schema.names:
        return "keys are read that belong to no row of this load"
    return ""


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
            for block in _blocks(batch):
                yield _spool_row(number, _packed(block), None, None)
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


def _blocks(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    rows = max(1, batch.num_rows * _BLOCK_BYTES // max(batch.nbytes, 1))
    for first in range(0, batch.num_rows, rows):
        yield batch.slice(first, rows)


def _packed(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _blocks_of(rows: Iterator[Any]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of one part, given its rows of the spool."""
    for row in rows:
        with pa.ipc.open_stream(row.batch) as reader:
            yield from reader


def _unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for packed in batch.column(0):
            with pa.ipc.open_stream(packed.as_buffer()) as reader:
                yield from reader

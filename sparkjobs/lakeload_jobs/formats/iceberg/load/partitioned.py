"""Data files of partitioned tables: tasks read rows and work out their partitions, Spark brings the
rows of each partition together, and tasks write one file after the other.

Between the tasks rows are bytes in Arrow's IPC format: Spark sorts them, on disk where they are
many, and never looks into them. A task holds the rows of one buffer or one row group, however many
partitions there are.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from lakeload_jobs.contract.codec import from_json, to_json
from lakeload_jobs.contract.spec import PartitionField
from lakeload_jobs.formats.data_files.parts import TableParts
from lakeload_jobs.formats.data_files.stage import (
    PartitionReport,
    PartitionWriter,
)
from lakeload_jobs.formats.data_files.tracked import TrackedRows, Tracking
from lakeload_jobs.formats.data_files.uploads import StagedFile
from lakeload_jobs.formats.iceberg.load.transforms import by_partition
from lakeload_jobs.rows.counting import NO_ROWS, RowsReport
from lakeload_jobs.rows.failures import failures_for_driver
from lakeload_jobs.rows.rejects import SideRows
from lakeload_jobs.rows.tracking import add_tracking, tracked_schema
from lakeload_jobs.sources.batch_sizes import row_ranges

BUFFER_BYTES = 64 << 20
"""Arrow bytes of rows that a task sorts by partition at once: the more, the fewer pieces."""
_PIECE_BYTES = 4 << 20
"""Arrow bytes of what Spark moves as one value, at most, unless a single row is larger."""
_BATCH_BYTES = 8 << 20
"""Pieces are joined to batches of about so many bytes before they are encoded."""
_MOST_TASKS = 1000
_MOVED = "partition string, spread int, place long, rows binary"
_KINDS: Mapping[str, Any] = {
    "partition": pa.string(),
    "spread": pa.int32(),
    "place": pa.int64(),
    "rows": pa.binary(),
}
_MOVED_SCHEMA = pa.schema(_KINDS)
_EARLY = ("_supa_deleted", "_supa_index")
"""Tracking columns that are known only where rows are read. The others are added where they are
written, so that fewer bytes are moved."""
_COUNTED = ""
"""In place of a partition: how many rows a part has, and what else than rows that are loaded."""


@dataclass(frozen=True)
class Partitioner:
    """Reads parts and yields their rows by partition, as `_MOVED`; it travels to the tasks."""

    tracking: Tracking
    fields: tuple[PartitionField, ...]

    def __call__(
        self, partition: int, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one part."""
        with failures_for_driver("stage"):
            places = itertools.count(partition << 32)
            for key, rows in self._moved(partition, batches):
                # A partition that fills a buffer would be too much for one task in the end.
                large = rows.nbytes > BUFFER_BYTES // 2
                spread = 1 + partition if large else 0
                for piece in _pieces(rows):
                    packed = piece.serialize().to_pybytes()
                    row = key, spread, next(places), packed
                    pairs = zip(row, _MOVED_SCHEMA, strict=True)
                    arrays = [pa.array([value], field.type) for value, field in pairs]
                    yield pa.RecordBatch.from_arrays(arrays, schema=_MOVED_SCHEMA)

    def _moved(
        self, partition: int, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        with SideRows() as side:
            rows = TrackedRows(self.tracking, partition, batches, side)
            for batch in _joined(iter(rows), BUFFER_BYTES):
                yield from by_partition(batch, self.fields)
            self.tracking.check_count(partition, rows.count)
            yield _COUNTED, _as_batch(rows.report)


@dataclass(frozen=True)
class PartitionFileWriter:
    """Writes the files of the partitions that a task is given, in the order of the partitions.

    `schema` is that of the rows, to which the columns `late` are added.
    """

    writer: PartitionWriter
    schema: pa.Schema
    late: tuple[str, ...]

    def __call__(self, task: int, pieces: Iterable[Any]) -> Iterator[PartitionReport]:
        """Stage the rows of one task and yield its report."""
        with failures_for_driver("stage"):
            yield self._staged(task, pieces)

    def _staged(self, task: int, pieces: Iterable[Any]) -> PartitionReport:
        files: list[StagedFile] = []
        facts: list[str] = []
        read, written = NO_ROWS, 0
        with self.writer.stager(task) as stager:
            for key, group in itertools.groupby(pieces, key=lambda piece: str(piece.partition)):
                if key == _COUNTED:
                    read = sum((_read_report(piece.rows) for piece in group), read)
                    continue
                batches = (
                    pa.ipc.read_record_batch(pa.py_buffer(piece.rows), self.schema)
                    for piece in group
                )
                tracked = map(self._tracked, _joined(batches, _BATCH_BYTES))
                for file, found in stager.files(tracked):
                    files.append(file)
                    facts.append(json.dumps({**json.loads(found), "partition": json.loads(key)}))
                    written += file.rows
                    stager.tell(written)
            stager.tell(written, last=True)
        return PartitionReport(task, read, tuple(files), (), tuple(facts))

    def _tracked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return add_tracking(
            batch,
            first_index=0,
            synced=self.writer.tracking.synced,
            job_id=self.writer.tracking.job_id,
            key_columns=self.writer.tracking.key,
            columns=self.late,
        )


def stage_partitions(
    spark: SparkSession,
    rows: TableParts,
    writer: PartitionWriter,
    fields: tuple[PartitionField, ...],
) -> list[PartitionReport]:
    """Write the rows partition by partition, and return a report of each task that wrote."""
    if not rows.parts:
        return []
    named = {*_EARLY, *(field.column for field in fields)}
    tracking = writer.tracking
    early = tuple(name for name in tracking.columns if name in named)
    late = tuple(name for name in tracking.columns if name not in named)
    moved = rows.tasks(spark, Partitioner(replace(tracking, columns=early), fields), _MOVED)
    # Parts are as large as one task should have, but for those of a source that is read at once.
    least = 1 if rows.frame is None else spark.sparkContext.defaultParallelism
    tasks = min(max(len(rows.parts), least), _MOST_TASKS)
    sorted_rows = moved.repartition(tasks, "partition", "spread").sortWithinPartitions(
        "partition", "place"
    )
    # The files of a task are numbered by how many tasks there are.
    numbered = replace(writer, partitions=tasks)
    write = PartitionFileWriter(numbered, tracked_schema(rows.read.schema, early), late)
    return sorted_rows.rdd.mapPartitionsWithIndex(write).collect()


def _joined(batches: Iterator[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of about `size` bytes, or larger ones as they come."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.nbytes for one in held) >= size:
            yield from _as_one(held)
            held = []
    if held:
        yield from _as_one(held)


def _as_one(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield one batch, or a few where text of more than 2 GiB does not fit into one."""
    yield from pa.Table.from_batches(batches).combine_chunks().to_batches()


def _pieces(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for first, count in row_ranges(rows.columns, rows.num_rows, _PIECE_BYTES):
        yield rows.slice(first, count)


def _as_batch(report: RowsReport) -> pa.RecordBatch:
    return pa.record_batch([pa.array([json.dumps(to_json(report))])], names=["report"])


def _read_report(data: bytearray) -> RowsReport:
    schema = _as_batch(NO_ROWS).schema
    text = pa.ipc.read_record_batch(pa.py_buffer(data), schema).column(0)[0].as_py()
    return from_json(RowsReport, json.loads(text))

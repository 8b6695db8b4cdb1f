"""The rows of a load for Spark's SQL and its writer: read once, with their tracking columns, and
kept on Spark's disks until the load has ended.

Kept are Arrow's bytes, which Spark does not look into before it uses the rows. What tasks have
counted is kept with them: rows and counts cannot come from different attempts at a task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from lakeload_jobs.formats.data_files.parts import TableParts
from lakeload_jobs.formats.data_files.tracked import TrackedRows, Tracking
from lakeload_jobs.formats.spool import KEPT, Kept, keep, kept_blocks, kept_end, unpacked
from lakeload_jobs.rows.batches import map_batches
from lakeload_jobs.rows.counting import NO_ROWS, Bounds, RowsReport, bounds_of, united
from lakeload_jobs.rows.failures import failures_for_driver
from lakeload_jobs.rows.progress import TaskProgress
from lakeload_jobs.rows.rejects import SideRows
from lakeload_jobs.rows.required import check_key, check_required
from lakeload_jobs.rows.tracking import DELETED_HELPER, tracked_schema


@dataclass(frozen=True)
class KeptRows:
    """Rows with their tracking columns, and at the end `DELETED_HELPER`, without those that are
    rejected; close them."""

    frame: DataFrame
    report: RowsReport
    kept: Kept

    def columns(self, names: Sequence[str]) -> DataFrame:
        """Return some columns: the others stay packed."""
        schema = StructType([self.frame.schema[name] for name in names])
        return map_batches(self.kept.batches, partial(unpacked, names=tuple(names)), schema)

    def close(self) -> None:
        """Give back the disk."""
        self.kept.close()


def keep_rows(spark: SparkSession, rows: TableParts, work: KeepRows, *, retried: bool) -> KeptRows:
    """Read rows once and keep them. `retried`: Spark may run a task again, whose rows must not come
    beside counts of an earlier attempt. Raises what reading raises, and `LoadFailed` when there are
    other rows than were counted."""
    work = replace(work, tracking=replace(work.tracking, marks=True))
    kept = keep(rows.tasks(spark, work, KEPT), len(rows.parts), eager=retried)
    frame = map_batches(kept.batches, unpacked, _schema(rows, work.tracking))
    return KeptRows(frame, sum(kept.ends, NO_ROWS), kept)


def tracked_frame(
    spark: SparkSession, rows: TableParts, tracking: Tracking, part: int
) -> DataFrame:
    """Return rows of one part with their tracking columns, numbered as part number `part`."""
    return rows.tasks(spark, partial(_tracked, tracking, part), _schema(rows, tracking))


def _tracked(
    tracking: Tracking, part: int, number: int, rows: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    # `number` is that of the partition in the end, such as in a union.
    with failures_for_driver("stage"), SideRows() as side:
        yield from TrackedRows(tracking, part, rows, side)


def _schema(rows: TableParts, tracking: Tracking) -> StructType:
    schema = tracked_schema(rows.read.schema, tracking.columns)
    if tracking.marks:
        schema = schema.append(pa.field(DELETED_HELPER, pa.bool_()))
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


@dataclass(frozen=True)
class KeepRows:
    """The function of tasks that read and pack the rows of a part, and at last what they found. A
    null in the key, or where the table's `schema` requires a value, fails the load of `source`.
    `progress` is the file of `rows.progress`."""

    tracking: Tracking
    source: str
    schema: pa.Schema
    progress: str | None

    def __call__(self, number: int, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with failures_for_driver("stage"), SideRows() as side:
            progress, size = TaskProgress(self.progress), 0
            tracked = TrackedRows(self.tracking, number, rows, side)
            bounds: Bounds = {}
            for batch in tracked:
                check_key(batch, self.tracking.key, self.source)
                check_required(batch, self.schema, self.source)
                bounds = united((bounds, bounds_of(batch, self.tracking.key)))
                yield from kept_blocks(number, batch)
                size += batch.nbytes
                progress.at(tracked.count, size)
            self.tracking.check_count(number, tracked.count)
            progress.at(tracked.count, size, last=True)
            yield kept_end(number, replace(tracked.report, bounds=bounds))

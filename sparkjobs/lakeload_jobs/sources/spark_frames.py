"""The rows of a source as a DataFrame, and those of a DataFrame as parts: the one place where rows
pass between Python and Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeload_jobs.rows.batches import map_batches, numbers, part_numbers
from lakeload_jobs.rows.casts import cast_types, quoted
from lakeload_jobs.rows.failures import failures_for_driver
from lakeload_jobs.rows.rejects import REJECTED_HELPER
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER
from lakeload_jobs.sources.base import (
    BadValue,
    BadValuesFound,
    Rows,
    Splits,
    check_part,
    place_text,
)

PartWork = Callable[[int, Any], Iterator[pa.RecordBatch]]
"""Yields batches for a part, given its number too; it travels to the tasks. Of a part that is the
partition of a frame this is the number of the task: another one where the batches become a part of
a union, or of fewer partitions."""


def as_handed_over(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read a part of a frame as it is (`Splits.read`)."""
    return batches


def frame_splits(frame: DataFrame, counts: tuple[int, ...] | None = None) -> Splits:
    """Return the rows of a frame, partition n as part n. `counts` are the rows of each, where they
    are known."""
    count = frame.rdd.getNumPartitions() if counts is None else len(counts)
    return Splits(tuple(range(count)), as_handed_over, counts, frame=frame)


def frame_of(rows: Rows) -> DataFrame:
    """Return the rows as a DataFrame, part n as its partition n."""
    return split_frame(rows.spark, rows.splits, rows.schema)


def columns_of(rows: Rows, names: Sequence[str]) -> DataFrame:
    """Return columns of the rows."""
    return frame_of(rows).select(*map(quoted, names))


def is_empty(rows: Rows) -> bool:
    """Return whether there is no row; rows are read where nobody has counted them."""
    return frame_of(rows).isEmpty() if rows.counts is None else not any(rows.counts)


def split_frame(spark: SparkSession, splits: Splits, schema: StructType) -> DataFrame:
    """Return the rows of splits as a DataFrame, part n as its partition n. `schema` has the columns
    that Spark makes of them."""
    if splits.unfinished is not None:
        plain = split_frame(spark, replace(splits, unfinished=None), splits.unfinished.schema)
        return splits.unfinished.finish(plain)
    if splits.frame is not None and splits.read is as_handed_over:
        return splits.frame
    counts = splits.counts if splits.frame is None else None
    return part_tasks(spark, splits.parts, splits.frame, _HandOn(splits.read, counts), schema)


@dataclass(frozen=True)
class _HandOn:
    """The work of tasks that hand on what they read, with failures as they cross to the driver."""

    read: Callable[[Any], Iterator[pa.RecordBatch]]
    counts: tuple[int, ...] | None

    def __call__(self, number: int, part: Any) -> Iterator[pa.RecordBatch]:
        with failures_for_driver("stage"):
            rows = 0
            for batch in self.read(part):
                rows += batch.num_rows
                yield batch
            # Not where a limit ends the read. Behind a condition of Spark nobody counts them.
            if self.counts is not None:
                check_part(number, self.counts[number], rows)


def part_tasks(
    spark: SparkSession,
    parts: Sequence[Any],
    frame: DataFrame | None,
    work: PartWork,
    schema: str | StructType,
    *,
    at_once: bool = False,
) -> DataFrame:
    """Return the batches that `work` yields for each part, as partitions of a DataFrame. Parts that
    are partitions of a `frame` it gets as the batches of that partition. `at_once` is that of
    `map_batches`."""
    if frame is None:
        numbered = part_numbers(spark, len(parts))
        return map_batches(numbered, _OnNumbers(tuple(parts), work), schema, at_once=at_once)
    return map_batches(frame, _OnPartition(work), schema, at_once=at_once)


@dataclass(frozen=True)
class _OnNumbers:
    """The function of tasks that are given numbers of parts."""

    parts: tuple[Any, ...]
    work: PartWork

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in numbers(batches):
            yield from self.work(number, self.parts[number])


@dataclass(frozen=True)
class _OnPartition:
    """The function of tasks that are given the batches of a partition."""

    work: PartWork

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        yield from self.work(0 if context is None else context.partitionId(), batches)


def check_casts(frame: DataFrame, types: Mapping[str, str], source: str = "") -> None:
    """Raise `BadValuesFound` with the first values that are no `types` and how many there are.
    `frame` are the rows before the cast, with `PLACE_HELPER` where that is known; else they are of
    `source`."""
    counted = cast_types(frame, types, "NULL").agg(F.sum(BAD_VALUES_HELPER)).head()
    count = int(counted[0] or 0) if counted is not None else 0
    if not count:
        return
    rejected = cast_types(frame, types, "QUARANTINE").select(f"{REJECTED_HELPER}.*")
    some = rejected.where("reason is not null").orderBy(*_PLACE).limit(_SHOWN).collect()
    found = []
    for row in some:
        place = place_text(row.row_group, row.row_number) if row.source_file else ""
        text = f": column `{row.column_name}`: {row.reason}"
        found.append(BadValue(row.source_file or source, place, text))
    raise BadValuesFound.of(found, count, hint="set `on_bad_value: 'NULL'`")


_SHOWN = 10
_PLACE = ("source_file", "row_group", "row_number")

"""Rows under the names and types that are written, in parts that tasks read."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.types as pt
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, StructField, StructType

from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.rows.arrow import Column, Kind, pc, with_child
from lakeload_jobs.rows.casts import quoted
from lakeload_jobs.rows.columns import ColumnMapping
from lakeload_jobs.rows.conditions import Condition, arrow_condition, evaluated
from lakeload_jobs.rows.failures import failures_for_driver
from lakeload_jobs.rows.rejects import REJECTED_HELPER, ROW_HELPERS
from lakeload_jobs.rows.tracking import DELETED_HELPER
from lakeload_jobs.sources.base import Rows, Splits
from lakeload_jobs.sources.spark_frames import as_handed_over, frame_of, part_tasks

R = TypeVar("R")

SMALL_BYTES = 4 << 20
SMALL_ROWS = 100_000
SMALL_PARTS = 8
"""Up to so much is read and written in the driver."""


@dataclass(frozen=True)
class SplitPart:
    """One part of a source's splits, and how many of its rows are read; None where nobody has
    counted them."""

    source: Any
    rows: int | None
    cut: bool = False
    """Whether it has more rows, which a limit leaves out."""


@dataclass(frozen=True)
class TableParts:
    """The rows of a table, part by part, as they are written. `frame` is that of `Splits`."""

    parts: tuple[SplitPart, ...]
    read: ReadWritten
    size: int | None = None
    """About how many bytes they have; None where it is not known."""
    frame: DataFrame | None = None

    @property
    def small(self) -> bool:
        """Whether reading and writing them takes less than starting tasks for them."""
        if self.size is None or self.total is None or self.frame is not None:
            return False
        few = self.size <= SMALL_BYTES and self.total <= SMALL_ROWS
        return few and len(self.parts) <= SMALL_PARTS

    @property
    def total(self) -> int | None:
        """The rows of all parts, as the source counts them: also those that a condition drops. None
        where it does not."""
        counts = [part.rows for part in self.parts if part.rows is not None]
        return sum(counts) if len(counts) == len(self.parts) else None

    @property
    def counts(self) -> tuple[int, ...] | None:
        """The rows of each part that are loaded; None where nobody knows before they are read."""
        if self.read.where is not None or self.total is None:
            return None
        return tuple(part.rows or 0 for part in self.parts)

    def results(self, spark: SparkSession, work: Callable[[int, LoadedRows], R]) -> list[R]:
        """Return what `work` makes of each part, in tasks. It is given the number of the part."""
        if not self.parts:
            return []
        if self.frame is None:
            parts = spark.sparkContext.parallelize(self.parts, len(self.parts))
            return parts.mapPartitionsWithIndex(_WorkOnPart(self.read, work)).collect()
        packed = self.tasks(spark, _Packed(work), "result binary").collect()
        return [pickle.loads(row[0]) for row in packed]  # noqa: S301 - our own tasks have sent it

    def tasks(
        self,
        spark: SparkSession,
        work: Callable[[int, LoadedRows], Iterator[pa.RecordBatch]],
        schema: str | StructType,
    ) -> DataFrame:
        """Return the batches that `work` yields for each part, as partitions of a DataFrame."""
        read = _ReadAndWork(self.read, work, of_frame=self.frame is not None)
        return part_tasks(spark, self.parts, self.frame, read, schema)

    def to_count(self, *, all_columns: bool) -> TableParts:
        """Return them with one column where Spark makes them. With `all_columns` it has to make all
        that may be null for that one, so that a row that cannot be read fails here as it would in
        the load."""
        if self.frame is None or not self.read.is_handed_over:
            return self
        row = F.lit(1)
        if all_columns:
            # Maps have no hash; whether it is null can be asked of every column.
            row = F.hash(row, *(F.col(quoted(name)).isNull() for name in self.frame.columns))
        return of_frame(self.frame.select(row.alias("row")), [None] * len(self.parts))

    def renamed(self, names: Sequence[str]) -> TableParts:
        """Return them with other names of columns."""
        if self.frame is not None and self.read.is_handed_over:
            return of_frame(self.frame.toDF(*names), [part.rows for part in self.parts])
        fields = zip(self.read.schema, names, strict=True)
        schema = pa.schema([field.with_name(name) for field, name in fields])
        return replace(self, read=replace(self.read, schema=schema))

    def to_frame(self, spark: SparkSession, schema: StructType) -> DataFrame:
        """Return the rows as a DataFrame, for what Spark's SQL does with them."""
        if self.frame is not None and self.read.is_handed_over:
            return self.frame
        return self.tasks(spark, _handed_on, schema)


def of_frame(frame: DataFrame, counts: Sequence[int | None] | None = None) -> TableParts:
    """Return rows that Spark's SQL has made as they are written. `counts` are those of each
    partition, where they are known."""
    count = frame.rdd.getNumPartitions() if counts is None else len(counts)
    rows: Sequence[int | None] = [None] * count if counts is None else counts
    parts = tuple(SplitPart(number, own) for number, own in enumerate(rows))
    schema = to_arrow_schema(frame.schema)
    return TableParts(parts, ReadWritten(as_handed_over, tuple(schema.names), schema), frame=frame)


def _handed_on(number: int, rows: LoadedRows) -> Iterator[pa.RecordBatch]:
    with failures_for_driver("stage"):
        yield from rows


@dataclass(frozen=True)
class _WorkOnPart:
    """The function of tasks of one part each."""

    read: ReadWritten
    work: Callable[[int, LoadedRows], Any]

    def __call__(self, number: int, parts: Iterable[SplitPart]) -> Iterator[Any]:
        for part in parts:
            yield self.work(number, self.read(part))


@dataclass(frozen=True)
class _ReadAndWork:
    """The work of tasks that read a part. Those of a frame are batches, all of which are read."""

    read: ReadWritten
    work: Callable[[int, LoadedRows], Iterator[pa.RecordBatch]]
    of_frame: bool

    def __call__(self, number: int, part: Any) -> Iterator[pa.RecordBatch]:
        own = SplitPart(part, None) if self.of_frame else part
        yield from self.work(number, self.read(own))


@dataclass(frozen=True)
class _Packed:
    """Packs what is made of a part into a batch of one value."""

    work: Callable[[int, LoadedRows], Any]

    def __call__(self, number: int, rows: LoadedRows) -> Iterator[pa.RecordBatch]:
        packed = pickle.dumps(self.work(number, rows))
        yield pa.RecordBatch.from_arrays([pa.array([packed], pa.binary())], names=["result"])


@dataclass(frozen=True)
class ReadWritten:
    """Reads parts; it travels to the tasks. `columns` are names in the source, in the order of
    `schema`, whose names and types are those of the target. Where there is a condition `deleted`,
    the column `DELETED_HELPER` says for which rows it is true. Where there is a condition `where`,
    only rows for which it is true are loaded. `read_where` reads the columns of `where`, perhaps
    without others."""

    read: Callable[[Any], Iterator[pa.RecordBatch]]
    columns: tuple[str, ...]
    schema: pa.Schema
    where: Condition | None = None
    deleted: Condition | None = None
    read_where: Callable[[Any], Iterator[pa.RecordBatch]] | None = None

    def __call__(self, part: SplitPart) -> LoadedRows:
        """Return the rows of one part that are loaded."""
        return LoadedRows(self, part)

    @property
    def is_handed_over(self) -> bool:
        """Whether the rows are those of a frame as they are."""
        return self.read is as_handed_over


class LoadedRows(Iterator[pa.RecordBatch]):
    """The rows of one part that are loaded. `dropped` counts those before them for which the
    condition `where` is not true."""

    def __init__(self, read: ReadWritten, part: SplitPart) -> None:
        self.dropped = 0
        self._read, self._part = read, part
        self._batches = self._loaded(read, part)

    def count(self) -> int:
        """Read them all, with no more columns than are needed to count them."""
        read, where = self._read, self._read.where
        if where is None:
            return sum(batch.num_rows for batch in _rows(read.read, self._part))
        batches = _rows(read.read_where or read.read, self._part)
        return sum(evaluated(where, rows).true_count for rows in batches)

    def __next__(self) -> pa.RecordBatch:
        return next(self._batches)

    def _loaded(self, read: ReadWritten, part: SplitPart) -> Iterator[pa.RecordBatch]:
        for batch in _rows(read.read, part):
            rows = batch
            if read.where is not None:
                chosen = evaluated(read.where, rows)
                self.dropped += rows.num_rows - chosen.true_count
                rows = rows.filter(chosen)
            if read.deleted is not None:
                marks = pc.fill_null(evaluated(read.deleted, rows), False)
                rows = rows.append_column(DELETED_HELPER, marks)
            yield pa.RecordBatch.from_arrays(
                [
                    relabelled(rows.column(name), field.type)
                    for name, field in zip(read.columns, read.schema, strict=True)
                ],
                schema=read.schema,
            )


def _rows(
    read: Callable[[Any], Iterator[pa.RecordBatch]], part: SplitPart
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part. It is read to its end, where its reader compares what it has read
    with what was counted, unless a limit cuts it."""
    if not part.cut or part.rows is None:
        yield from read(part.source)
        return
    left = part.rows
    for batch in read(part.source):
        rows = batch.slice(0, left)
        yield rows
        left -= rows.num_rows
        if left == 0:
            return


def rows_in_arrow(
    spec: JobSpec, table: TableSpec, rows: Rows, mapping: ColumnMapping, written: StructType
) -> TableParts | None:
    """Return the columns of `mapping` as they are `written`; None where only Spark's SQL makes them
    of the source's."""
    splits, limit = rows.splits, spec.options.limit
    if splits.unfinished is not None or splits.read is as_handed_over:
        return None
    counted = splits.counts is not None and rows.repeatable
    if limit is not None and (table.where is not None or not counted):
        return None
    helpers = tuple(name for name in ROW_HELPERS if name in rows.schema.names)
    if table.where is not None and REJECTED_HELPER in helpers:
        return None
    names = tuple(column.source for column in mapping.columns)
    if table.deleted_when is not None:
        names = (*names, DELETED_HELPER)
    names = (*names, *helpers)
    known = {field.name: field for field in (*rows.schema.fields, _DELETED)}
    try:
        read = to_arrow_schema(StructType([known[name] for name in names]))
    except PySparkException:
        return None
    schema = to_arrow_schema(written)
    pairs = zip(names, schema, strict=True)
    if not all(same_shape(read.field(name).type, field.type) for name, field in pairs):
        return None
    conditions: list[Condition | None] = []
    for sql in (table.where, table.deleted_when):
        conditions.append(None if sql is None else arrow_condition(frame_of(rows), sql))
        if sql is not None and conditions[-1] is None:
            return None
    where, deleted = conditions
    read_where = None
    if where is not None and where.columns and splits.of_columns is not None:
        read_where = splits.of_columns(where.columns)
    return TableParts(
        _limited(splits, limit),
        ReadWritten(splits.read, names, schema, where, deleted, read_where),
        splits.size,
        splits.frame,
    )


_DELETED = StructField(DELETED_HELPER, BooleanType(), nullable=False)


def _limited(splits: Splits, limit: int | None) -> tuple[SplitPart, ...]:
    """Return the parts, up to the one in which the limit is reached. Those of no rows are left out
    where they need not be the partitions of a frame."""
    if splits.counts is None:
        return tuple(SplitPart(part, None) for part in splits.parts)
    if splits.frame is not None:
        return tuple(map(SplitPart, splits.parts, splits.counts))
    most = sum(splits.counts) if limit is None else limit
    before = accumulate(splits.counts, initial=0)
    rows = (min(count, most - done) for count, done in zip(splits.counts, before, strict=False))
    parts = zip(splits.parts, rows, splits.counts, strict=True)
    return tuple(SplitPart(part, left, left < count) for part, left, count in parts if left > 0)


def same_shape(own: Kind, kind: Kind) -> bool:
    """Whether two types differ in nothing but the names of fields."""
    if own == kind:
        return True
    if pt.is_struct(own) and pt.is_struct(kind) and own.num_fields == kind.num_fields:
        return all(same_shape(a.type, b.type) for a, b in zip(own, kind, strict=True))
    if pt.is_map(own) and pt.is_map(kind):
        return same_shape(own.key_type, kind.key_type) and same_shape(own.item_type, kind.item_type)
    if pt.is_list(own) and pt.is_list(kind):
        return same_shape(own.value_type, kind.value_type)
    return False


def relabelled(column: Column, kind: Kind) -> Column:
    """Return a column as `kind`, which has the same shape, by the position of fields."""
    if column.type == kind:
        return column
    if pt.is_struct(kind):
        fields = [relabelled(column.field(n), kind[n].type) for n in range(kind.num_fields)]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=column.is_null())
    if pt.is_map(kind):
        pairs = zip((column.keys, column.items), (kind.key_type, kind.item_type), strict=True)
        entries = [relabelled(values, wanted) for values, wanted in pairs]
        fields = [kind.key_field, kind.item_field]
        return with_child(column, kind, pa.StructArray.from_arrays(entries, fields=fields))
    return with_child(column, kind, relabelled(column.values, kind.value_type))

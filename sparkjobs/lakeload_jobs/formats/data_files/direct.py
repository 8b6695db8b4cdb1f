"""Rows that a source reads inside the tasks, under the names and types that are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.types as pt
from pyspark import RDD
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, StructField, StructType

from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.formats.base import PreparedRows
from lakeload_jobs.formats.spool import why_not_stored
from lakeload_jobs.rows.arrow import Column, Kind, with_child
from lakeload_jobs.rows.conditions import Condition, NotInArrow, arrow_condition, evaluated
from lakeload_jobs.rows.rejects import REJECTED_HELPER, ROW_HELPERS
from lakeload_jobs.rows.tracking import DELETED_HELPER
from lakeload_jobs.sources.base import Rows, Splits

pc: Any = pyarrow.compute


class OnlySpark(Exception):
    """Only Spark makes the rows that are written; the message says why, as a clause."""


SMALL_BYTES = 4 << 20
SMALL_ROWS = 100_000
SMALL_PARTS = 8
"""Up to so much is read and written in the driver."""


@dataclass(frozen=True)
class SplitPart:
    """One part of a source's splits, and how many of its rows are read."""

    source: Any
    rows: int


@dataclass(frozen=True)
class DirectRows:
    """The rows of a table, part by part, as they are written; no row passes through Spark.
    `stored` is that of `Splits`."""

    parts: tuple[SplitPart, ...]
    read: ReadWritten
    size: int | None = None
    """About how many bytes they have; None where it is not known."""
    stored: DataFrame | None = None

    @property
    def small(self) -> bool:
        """Whether reading and writing them takes less than starting tasks for them."""
        known = self.size is not None and self.size <= SMALL_BYTES
        return known and self.total <= SMALL_ROWS and len(self.parts) <= SMALL_PARTS

    @property
    def total(self) -> int:
        """The rows of all parts, as the source counts them: also those that a condition drops."""
        return sum(part.rows for part in self.parts)

    @property
    def counts(self) -> tuple[int, ...] | None:
        """The rows of each part that are loaded; None where a condition decides."""
        return None if self.read.where is not None else tuple(part.rows for part in self.parts)

    def to_rdd(self, spark: SparkSession) -> RDD[SplitPart]:
        """Return the parts, each in a partition of its own."""
        if self.stored is None:
            return spark.sparkContext.parallelize(self.parts, len(self.parts))
        rows = tuple(part.rows for part in self.parts)

        def stored(number: int, blocks: Iterable[Any]) -> Iterator[SplitPart]:
            yield SplitPart(blocks, rows[number])

        return self.stored.rdd.mapPartitionsWithIndex(stored)


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

    def count(self, part: SplitPart) -> int:
        """Count the rows of one part that are loaded."""
        if self.where is None:
            return part.rows
        batches = _rows(self.read_where or self.read, part)
        wanted = (evaluated(self.where, rows) for rows in batches)
        return sum(one.true_count for one in wanted)


class LoadedRows(Iterator[pa.RecordBatch]):
    """The rows of one part that are loaded. `dropped` counts those before them for which the
    condition `where` is not true."""

    def __init__(self, read: ReadWritten, part: SplitPart) -> None:
        self.dropped = 0
        self._batches = self._loaded(read, part)

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
    left = part.rows
    for batch in read(part.source):
        rows = batch.slice(0, left)
        yield rows
        left -= rows.num_rows
        if left == 0:
            return


def direct_rows(
    spec: JobSpec, table: TableSpec, prepared: PreparedRows
) -> tuple[DirectRows | None, str]:
    """Return the rows, none of which passes through Spark; else None, and why."""
    try:
        return _direct(spec, table, prepared), ""
    except OnlySpark as reason:
        return None, str(reason)


def _direct(spec: JobSpec, table: TableSpec, prepared: PreparedRows) -> DirectRows:
    rows = prepared.rows
    splits, counts = rows.splits, rows.splits.counts if rows.splits else None
    if splits is not None and splits.stored is None and not rows.repeatable:
        # A plan reads nothing: there will be as many rows as are stored.
        if why := why_not_stored(rows):
            raise OnlySpark(why)
        counts = (0,) * len(splits.parts)
    if splits is None or counts is None:
        raise OnlySpark(rows.why_no_splits or "the number of rows is not known before the read")
    if not rows.repeatable and spec.options.limit is not None:
        raise OnlySpark("Spark finds the rows within the limit")
    if table.where is not None and spec.options.limit is not None:
        raise OnlySpark("with `where`, Spark finds the rows within the limit")
    if prepared.filled:
        raise OnlySpark(f"structs of column `{prepared.filled[0]}` have other fields in the table")
    helpers = tuple(name for name in ROW_HELPERS if name in rows.schema.names)
    loaded = tuple(column.source for column in prepared.mapping.columns)
    where = deleted = read_where = None
    names = (*loaded, *helpers)
    if table.where is not None:
        if REJECTED_HELPER in helpers:
            raise OnlySpark("with `where`, Spark sets records aside")
        where = _condition(rows, "where", table.where)
        if splits.of_columns is not None and where.columns:
            read_where = splits.of_columns(where.columns)
    if table.deleted_when is not None:
        deleted = _condition(rows, "deleted_when", table.deleted_when)
        names = (*loaded, DELETED_HELPER, *helpers)
    known = {field.name: field for field in (*rows.schema.fields, _DELETED)}
    try:
        read = to_arrow_schema(StructType([known[name] for name in names]))
        written = to_arrow_schema(prepared.schema)
    except PySparkException as error:
        raise OnlySpark("a column has a type that only Spark supports") from error
    for name, field in zip(names, written, strict=True):
        if not same_shape(read.field(name).type, field.type):
            raise OnlySpark(f"column `{name}` is written as `{field.type}`")
    if rows.repeatable:
        parts = _limited(splits, counts, spec.options.limit)
    else:
        parts = tuple(map(SplitPart, splits.parts, counts))
    return DirectRows(
        parts,
        ReadWritten(splits.read, names, written, where, deleted, read_where),
        splits.size,
        splits.stored,
    )


_DELETED = StructField(DELETED_HELPER, BooleanType(), nullable=False)


def _condition(rows: Rows, setting: str, sql: str) -> Condition:
    try:
        return arrow_condition(rows.frame, sql)
    except NotInArrow as reason:
        raise OnlySpark(f"`{setting}` is evaluated by Spark: {reason}") from reason


def _limited(splits: Splits, counts: tuple[int, ...], limit: int | None) -> tuple[SplitPart, ...]:
    """Return the parts, up to the one in which the limit is reached, without those of no rows."""
    most = sum(counts) if limit is None else limit
    before = accumulate(counts, initial=0)
    rows = (min(count, most - done) for count, done in zip(counts, before, strict=False))
    parts = (SplitPart(part, left) for part, left in zip(splits.parts, rows, strict=True))
    return tuple(part for part in parts if part.rows > 0)


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

"""Tables of any other database, which one task reads by Spark's JDBC source.

Sessions share no snapshot, so the table is read once, by one SELECT in one connection. The same
SELECT counts the rows. Python checks them and compares those at the bound of a cursor, inside the
task.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import OnBadValue
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.rows.casts import cast_types
from lakeload_jobs.rows.deferred_frame import DeferredFrame
from lakeload_jobs.rows.row_id import pc
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER
from lakeload_jobs.sources.base import BadValuesFound, Rows, Splits, Unfinished
from lakeload_jobs.sources.databases import jdbc_driver as driver
from lakeload_jobs.sources.databases.columns import SelectedColumn
from lakeload_jobs.sources.databases.cursors import Cursor, Kind, Window, value_of
from lakeload_jobs.sources.databases.readers import DRIVER_WARNING, check_reader, why_jvm
from lakeload_jobs.sources.databases.seen import (
    ENTRY_BYTES,
    ID_BYTES,
    Seen,
    check_size,
    comparison,
    digests,
    entries,
)
from lakeload_jobs.sources.databases.source import (
    DatabaseSlice,
    DatabaseSource,
    MysqlRows,
    casts_of,
)

_FETCHED = 1000
_FIRST_DAY, _LAST_DAY = date(1582, 10, 15), date(9999, 12, 31)
"""Of the Gregorian calendar; earlier days mean others to Java's old classes, which JDBC uses."""
_NOT_A_DATE = "it is not within 1582-10-15 and 9999-12-31, where JDBC and Spark agree on dates"
_SHOWN = 10


class JdbcUrlSource(DatabaseSource):
    """One table of any other database."""

    def slice(self, bookmark: Bookmark) -> JdbcUrlSlice:
        """Read the catalog, and with a `cursor` its greatest value. The rows are read later.

        Raises `Refused` where the database cannot be reached, `LoadFailed` for a table that cannot
        be read, and `InvalidInput` for settings that it does not bear out.
        """
        given = self.given
        check_reader(given, self.spec.reader)
        self._take(1)
        with closing(driver.connect(given, self._password(), _of_spark)) as connection:
            relation = driver.find_relation(connection, given)
            columns = driver.columns(connection, relation)
            found = self._found(relation, columns, driver.select(given, relation, columns))
            with driver.failures(f"finding what is new in `{relation.shown}`"):
                window = self._window(found, (), bookmark, connection.fetch)
        return JdbcUrlSlice(found, window, self._key_change(bookmark), source=self)

    def options(self) -> dict[str, str]:
        """Return the options of Spark's source. The password is in the one that Spark hides in all
        it shows."""
        given = self.given
        return driver.login_of(given, self._password()) | {
            "url": given.url or "",
            "driver": driver.driver_class(given),
            "fetchsize": str(_FETCHED),
            "queryTimeout": str(given.statement_timeout),
            "preferTimestampNTZ": "true",
        }


def _of_spark(name: str) -> tuple[Any, Any]:
    """Return a driver of Spark's class path, and empty properties."""
    context = SparkContext._active_spark_context
    assert context is not None  # noqa: S101
    jvm: Any = context._jvm
    registry = jvm.org.apache.spark.sql.execution.datasources.jdbc.DriverRegistry
    registry.register(name)
    return registry.get(name), jvm.java.util.Properties()


@dataclass(frozen=True, kw_only=True)
class JdbcUrlSlice(DatabaseSlice):
    """Rows of a table that one task reads."""

    source: JdbcUrlSource

    def open(
        self, spark: SparkSession, earlier: Mapping[str, str], *, splits: bool = False
    ) -> Rows:
        """Return the rows, unread. Raises `LoadFailed` for types that Spark does not know, and
        `InvalidInput` for settings that the table does not bear out."""
        spec, found = self.source.spec, self.found
        frame = self._frame(spark)
        names = [column.name for column in found.selected]
        fields = [
            StructField(name, field.dataType)
            for name, field in zip(names, frame.schema.fields, strict=False)
        ]
        plain = StructType(list(fields))
        reader = ReadRows(
            found.relation.shown, tuple(names), spec.on_bad_value, found.key, self._noting()
        )
        if reader.counts_bad_values:
            fields.append(StructField(BAD_VALUES_HELPER, LongType()))
        schema = StructType(fields)

        def whole() -> DataFrame:
            rows = frame.select(frame.columns[: len(names)]).toDF(*names)
            return (
                rows.withColumn(BAD_VALUES_HELPER, F.lit(0)) if reader.counts_bad_values else rows
            )

        once = Splits((None,), reader, frame=frame)
        rows = MysqlRows(
            DeferredFrame(schema, whole), found.names, once, (DRIVER_WARNING,), on_end=self._ended,
            why_no_splits=why_jvm(self.source.given, spec.reader), reader="jvm",
            comments=found.comments,
        )  # fmt: skip
        casts = casts_of(found.table, plain, found.names)
        if not casts:
            return rows
        cast = partial(cast_types, types=casts, on_bad_value=spec.on_bad_value)
        return replace(
            rows,
            deferred=DeferredFrame.made(cast(whole())),
            splits=replace(once, unfinished=Unfinished(schema, cast)),
        )

    def _frame(self, spark: SparkSession) -> DataFrame:
        """Return the columns by place, the cursor behind them where there is one, and at last how
        many rows there are."""
        found, relation = self.found, self.found.relation
        where = f" WHERE {self.wanted}" if self.wanted else ""
        values = [column.expression for column in found.selected]
        kinds = [column.type for column in found.selected]
        if isinstance(self.window, Window):
            values.append(self.window.cursor.value)
            kinds.append(self._cursor_type(self.window.cursor))
        values.append(f"(SELECT COUNT(*) FROM {relation.sql}{where})")  # noqa: S608
        kinds.append("bigint")
        # Names by place: Spark does not read two columns that differ in case only.
        names = [relation.quoted(f"c{place}") for place in range(len(values))]
        listed = ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
        told = ", ".join(f"c{place} {kind}" for place, kind in enumerate(kinds) if kind)
        table = f"(SELECT {listed} FROM {relation.sql}{where}) lakeload"  # noqa: S608
        reader = spark.read.format("jdbc").options(**self.source.options())
        try:
            return reader.options(dbtable=table, customSchema=told).load()
        except (PySparkException, Py4JJavaError) as error:
            raise _not_opened(relation.shown, error) from None

    def _cursor_type(self, cursor: Cursor) -> str:
        """Return the type in which the cursor crosses."""
        if cursor.kind != "INTEGER":
            return "date" if cursor.kind == "DATE" else "timestamp_ntz"
        (kind,) = (column.type for column in self.found.columns if column.name == cursor.name)
        return "decimal(38,0)" if kind in ("NUMERIC", "DECIMAL") else "bigint"

    def _noting(self) -> Noting | None:
        window, found = self.window, self.found
        if not isinstance(window, Window) or window.high is None:
            return None
        kind, appended = window.cursor.kind, window.appended
        if appended is None or appended.kept_from is None:
            return Noting(kind)
        noting = Noting(kind, found.key, appended.kept_from, looks_back=window.looks_back)
        if appended.seen is None or appended.last is None:
            return noting
        compared = comparison(appended.seen, self._compared(), found.key, found.relation.shown)
        return replace(
            noting,
            last=appended.last,
            compared=tuple(column.name for column in compared.columns),
            seen=appended.seen.entries,
            length=compared.length,
        )

    def _compared(self) -> tuple[SelectedColumn, ...]:
        """Return the columns whose values make an entry, with their types in the database."""
        declared = {column.name: column.declared for column in self.found.columns}
        return tuple(
            replace(column, expression=f"{column.expression} {declared[column.name]}")
            for column in self.found.selected
        )

    def _ended(self, ends: Sequence[Any]) -> None:
        """Keep what the task has noted."""
        window = self.window
        if not isinstance(window, Window) or not ends or ends[0] is None:
            return
        appended = window.appended
        if appended is not None and appended.kept_from is not None:
            packed = b64decode(ends[0])
            self.kept.seen = Seen(
                appended.kept_from, digests(self._compared()), self.found.key, packed
            )


def _not_opened(name: str, error: Exception) -> LoadFailed:
    if isinstance(error, Py4JJavaError):
        state, text = driver.sql_error(error)
        if "[UNRECOGNIZED_SQL_TYPE]" in text:
            return LoadFailed(
                f"reading `{name}`: Spark knows no type for a column: "
                f"{text.split('] ')[-1].split(' SQLSTATE')[0]}",
                hint="leave the column out with `columns.exclude`, or cast it in a `query`",
            )
        return driver.failure(f"reading `{name}`", state, text)
    said = driver.safe_text(str(error).split("JVM stacktrace")[0])
    return LoadFailed(f"reading `{name}`: {said}", hint="check the table and its columns")


@dataclass(frozen=True)
class Noting:
    """The cursor of the rows, and how they are compared with those that were seen, and noted.

    Rows from `kept_from` on are noted, None: none are. Rows up to `last` are left out where their
    entry, made of the columns `compared`, is in `seen`; `length` bytes of it count. `last` None:
    none are.
    """

    kind: Kind
    key: tuple[str, ...] = ()
    kept_from: str | None = None
    last: str | None = None
    compared: tuple[str, ...] = ()
    seen: bytes = b""
    length: int = ENTRY_BYTES
    looks_back: bool = False


@dataclass(frozen=True)
class ReadRows:
    """Checks the rows that Spark reads; it travels to the task.

    With `on_bad_value` FAIL bad values raise `BadValuesFound`; else they are null, and counted in
    `BAD_VALUES_HELPER`.
    """

    name: str
    columns: tuple[str, ...]
    on_bad_value: OnBadValue
    key: tuple[str, ...]
    noting: Noting | None

    @property
    def counts_bad_values(self) -> bool:
        """Whether batches have the helper."""
        return self.on_bad_value == "NULL"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Generator[pa.RecordBatch, None, Any]:
        """Yield the rows, and return the entries that are noted, base64. Raises `LakeloadError`,
        also where the rows are not as many as the same SELECT has counted."""
        read, counted = 0, 0
        noted: list[bytes] = []
        seen = Counter[bytes]()
        if self.noting is not None:
            seen.update(entries(self.noting.seen, self.noting.length))
        for batch in batches:
            if not batch.num_rows:
                continue
            read += batch.num_rows
            counted = batch.column(batch.num_columns - 1)[0].as_py()
            rows = pa.RecordBatch.from_arrays(
                batch.columns[: len(self.columns)], names=list(self.columns)
            )
            if self.noting is not None:
                rows = self._new(rows, batch.column(len(self.columns)), seen, noted)
            yield self._checked(rows)
        if read != counted:
            raise LoadFailed(
                f"reading `{self.name}`: {counted:,} rows were counted, and {read:,} were read by "
                "the same statement",
                hint="run again: nothing was committed",
                retryable=True,
            )
        return None if self.noting is None else b64encode(b"".join(noted)).decode()

    def _new(
        self, rows: pa.RecordBatch, cursor: Any, seen: Counter[bytes], noted: list[bytes]
    ) -> pa.RecordBatch:
        """Return the rows that were not seen, and note those that the next load reads again."""
        noting = self.noting
        assert noting is not None  # noqa: S101
        if noting.kept_from is not None:
            bound = pa.scalar(value_of(noting.kind, noting.kept_from), cursor.type)
            kept = pc.greater_equal(cursor, bound)
            noted += _entries(rows.filter(kept), cursor.filter(kept), noting.key, self.columns)
            check_size(len(noted), self.name, lookback=noting.looks_back)
        if noting.last is None:
            return rows
        last = pa.scalar(value_of(noting.kind, noting.last), cursor.type)
        again = pc.less_equal(cursor, last).to_pylist()
        if not any(again):
            return rows
        wanted = [not one for one in again]
        places = [place for place, one in enumerate(again) if one]
        at = pa.array(places)
        late = _entries(rows.take(at), cursor.take(at), noting.key, noting.compared)
        for place, entry in zip(places, late, strict=True):
            entry_seen = entry[: noting.length]
            wanted[place] = not seen[entry_seen]
            seen[entry_seen] -= bool(seen[entry_seen])
        return rows.filter(pa.array(wanted))

    def _checked(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with dates that JDBC may have moved as null, or raise for them."""
        bad = {name: _bad(rows.column(name)) for name in rows.schema.names}
        found = {name: mask for name, mask in bad.items() if mask is not None}
        if found and self.on_bad_value != "NULL":
            raise BadValuesFound(self._texts(rows, found), hint="set `on_bad_value: 'NULL'`")
        if not self.counts_bad_values:
            return rows
        arrays = [
            pc.if_else(found[name], pa.scalar(None, column.type), column)
            if name in found
            else column
            for name, column in zip(rows.schema.names, rows.columns, strict=True)
        ]
        total = pa.array([0] * rows.num_rows, pa.int64())
        for mask in found.values():
            total = pc.add(total, mask.cast(pa.int64()))
        names = [*rows.schema.names, BAD_VALUES_HELPER]
        return pa.RecordBatch.from_arrays([*arrays, total], names=names)

    def _texts(self, rows: pa.RecordBatch, found: Mapping[str, Any]) -> str:
        texts = []
        for name, mask in found.items():
            for row in rows.filter(mask).to_pylist():
                at = ", ".join(f"{column} = {row[column]}" for column in self.key if column in row)
                where = f", row with {at}" if at else ""
                texts.append(
                    f"reading `{self.name}`{where}: column `{name}`: a value that was read as "
                    f"`{row[name]}` cannot be loaded: {_NOT_A_DATE}"
                )
        more = len(texts) - _SHOWN
        return "; ".join([*texts[:_SHOWN], *([f"and {more:,} more"] if more > 0 else [])])


def _bad(column: Any) -> Any:
    """Return which values of a column are dates that may have been moved, None for none."""
    kind: Any = column.type
    if pa.types.is_date(kind):
        first, last = pa.scalar(_FIRST_DAY, kind), pa.scalar(_LAST_DAY, kind)
    elif pa.types.is_timestamp(kind):
        plain: Any = pa.timestamp(kind.unit)
        first = pa.scalar(datetime.combine(_FIRST_DAY, datetime.min.time()), plain).cast(kind)
        last = pa.scalar(datetime.combine(_LAST_DAY, datetime.max.time()), plain).cast(kind)
    else:
        return None
    outside = pc.or_(pc.less(column, first), pc.greater(column, last))
    mask = pc.fill_null(outside, fill_value=False)
    return mask if pc.any(mask).as_py() else None


def _entries(
    rows: pa.RecordBatch, cursor: Any, key: Sequence[str], columns: Sequence[str]
) -> Iterator[bytes]:
    """Yield the entry of each row as `seen` has it."""
    for row, at in zip(rows.to_pylist(), cursor.to_pylist(), strict=True):
        values = [row[name] for name in columns]
        by = [*(row[name] for name in key), at] if key else values
        yield _digest(by)[:ID_BYTES] + _digest(values)[ID_BYTES:ENTRY_BYTES]


def _digest(values: Sequence[Any]) -> bytes:
    return hashlib.sha256(repr(values).encode()).digest()

"""Tables that one task reads by Spark's JDBC source: of SQL Server, Oracle, and databases that only
a driver of the user knows.

Sessions share no snapshot, so the table is read once, by one SELECT in one connection. The same
SELECT counts the rows. Python checks them and compares those at the bound of a cursor, inside the
task.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from lakeload_jobs.aws.session import AwsSession
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import JdbcInput, JobSpec, OnBadValue, TableSpec
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.rows.arrow import pc
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER
from lakeload_jobs.sources.base import (
    BadValue,
    BadValuesFound,
    EarlierColumns,
    Rows,
    Source,
    Splits,
)
from lakeload_jobs.sources.databases.base import DatabaseRun, DatabaseSlice, DatabaseSource
from lakeload_jobs.sources.databases.bookmark import Kind
from lakeload_jobs.sources.databases.columns import SelectedColumn, bad_value
from lakeload_jobs.sources.databases.cursor_sql import Cursor, value_of
from lakeload_jobs.sources.databases.cursors import Window
from lakeload_jobs.sources.databases.engines.base import Engine
from lakeload_jobs.sources.databases.engines.driver import catalog as driver
from lakeload_jobs.sources.databases.engines.driver.dialect import DriverDialect
from lakeload_jobs.sources.databases.engines.failures import LOST_HINT, failure, safe_text
from lakeload_jobs.sources.databases.rows import cast_at_last, read_once
from lakeload_jobs.sources.databases.seen import (
    ENTRY_BYTES,
    ID_BYTES,
    SeenRows,
    check_size,
    comparison,
    digests,
    entries,
)

_FETCHED = 1000
_FIRST_DAY, _LAST_DAY = date(1582, 10, 15), date(9999, 12, 31)
"""Of the Gregorian calendar; earlier days mean others to Java's old classes, which JDBC uses."""
_NOT_A_DATE = "it is not within 1582-10-15 and 9999-12-31, where JDBC and Spark agree on dates"
_SHOWN = 10
_Found = dict[str, tuple[Any, Any, str]]
"""The bad values of a batch by column: which they are, their text, and what is wrong with them."""


def connect_tables(
    engine: Engine, dialect: DriverDialect, spec: JobSpec, aws: AwsSession
) -> Callable[[TableSpec, JdbcInput], Source]:
    """Return what makes the source of a table. The tables of a run share the connections."""
    run = DatabaseRun(engine, spec, aws)
    return lambda table, given: DriverSource(run, table, given, dialect)


class DriverSource(DatabaseSource):
    """One table of such a database."""

    def __init__(
        self, run: DatabaseRun, table: TableSpec, given: JdbcInput, dialect: DriverDialect
    ) -> None:
        super().__init__(run, table, given)
        self.dialect = dialect

    def slice(self, bookmark: Bookmark) -> DriverSlice:
        """Read the catalog, and with a `cursor` its greatest value. The rows are read later.

        Raises `Refused` where the database cannot be reached, `LoadFailed` for a table that cannot
        be read, and `InvalidInput` for settings that it does not bear out.
        """
        given = self.given
        self.engine.check_reader(self.spec.reader)
        dialect = self.dialect
        self._take(1)
        with closing(driver.connect(dialect, given, self._password(), _of_spark)) as connection:
            relation = driver.find_relation(connection, given)
            columns = driver.columns(connection, relation)
            selected = driver.select(dialect, given, relation, columns)
            found = self._found(relation, columns, selected)
            with driver.failures(f"finding what is new in `{relation.shown}`"):
                window = self._window(found, (), bookmark, connection.fetch)
                session, warnings = dialect.session_of(given, connection.fetch)
        change = self._key_change(bookmark)
        return DriverSlice(found, window, change, source=self, session=session, notes=warnings)

    def options(self, session: str) -> dict[str, str]:
        """Return the options of Spark's source. The password is in the one that Spark hides in all
        it shows."""
        given, dialect = self.given, self.dialect
        return driver.login_of(dialect, given, self._password()) | {
            "url": dialect.url_of(given),
            **({"sessionInitStatement": session} if session else {}),
            "driver": driver.driver_class(dialect, given),
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
class DriverSlice(DatabaseSlice):
    """Rows of a table that one task reads."""

    source: DriverSource
    session: str
    """Statements that set up the session that reads, '' for none."""
    notes: tuple[str, ...] = ()
    """Warnings of the database."""

    def open(self, spark: SparkSession, earlier: EarlierColumns) -> Rows:
        """Return the rows, unread. Raises `LoadFailed` for types that Spark does not know, and
        `InvalidInput` for settings that the table does not bear out."""
        spec, found, engine = self.source.spec, self.found, self.source.engine
        on_bad_value = spec.on_bad_value_of(found.table)
        frame = self._frame(spark)
        names = [column.name for column in found.selected]
        fields = [
            StructField(name, field.dataType)
            for name, field in zip(names, frame.schema.fields, strict=False)
        ]
        plain = StructType(list(fields))
        reader = ReadRows(
            found.relation.shown, tuple(names), on_bad_value, found.key, self._noting(),
            tuple((one.name, one.reason) for one in found.selected if one.bad),
            checks_dates=not self.source.dialect.writes_dates,
        )  # fmt: skip
        warnings = (engine.facts.warning, *self.notes)
        if reader.counts_bad_values:
            fields.append(StructField(BAD_VALUES_HELPER, LongType()))
        schema = StructType(fields)

        once = Splits((0,), reader, frame=frame)
        why = self.source.only_spark
        rows = read_once(spark, schema, found, once, self._ended, warnings=warnings, only_spark=why)
        return cast_at_last(rows, found.table, plain, found.relation.shown, on_bad_value)

    def _frame(self, spark: SparkSession) -> DataFrame:
        """Return the columns by place. Behind them are the bad values as text, the cursor where
        there is one, and at last how many rows there are."""
        found, relation, dialect = self.found, self.found.relation, self.source.dialect
        selected = found.selected
        kinds = ["string" if column.carried == "TEXT" else column.type for column in selected]
        kinds += ["string"] * sum(bool(column.bad) for column in selected)
        cursor = self.window.cursor if isinstance(self.window, Window) else None
        if cursor is not None:
            kinds.append(self._cursor_type(cursor))
        kinds.append("bigint")
        told = ", ".join(f"c{place} {kind}" for place, kind in enumerate(kinds) if kind)
        value = "" if cursor is None else cursor.value
        table = f"({driver.statement(dialect, relation, selected, self.wanted, value)}) lakeload"
        reader = spark.read.format("jdbc").options(**self.source.options(self.session))
        try:
            frame = reader.options(dbtable=table, customSchema=told).load()
        except (PySparkException, Py4JJavaError) as error:
            raise _not_opened(relation.shown, error) from None
        typed = [
            F.col(name).cast(column.type) if column.carried == "TEXT" else F.col(name)
            for name, column in zip(frame.columns, selected, strict=False)
        ]
        return frame.select(*typed, *frame.columns[len(typed) :])

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
            self.kept.seen = SeenRows(
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
        return failure(f"reading `{name}`", state, text)
    said = safe_text(str(error).split("JVM stacktrace")[0])
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
    bad: tuple[tuple[str, str], ...] = ()
    """Columns whose bad values the SELECT knows, with what is wrong with them."""
    checks_dates: bool = True
    """Whether dates are those that the driver has made."""

    @property
    def counts_bad_values(self) -> bool:
        """Whether batches have the helper."""
        return self.on_bad_value == "NULL"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Generator[pa.RecordBatch, None, Any]:
        """Yield the rows, and return the entries that are noted, base64. Raises `LakeloadError`,
        also where the rows are not as many as the same SELECT has counted. Bad values are reported
        when all rows are read."""
        read, counted = 0, 0
        bad: list[BadValue] = []
        bad_count = 0
        noted: list[bytes] = []
        seen = Counter[bytes]()
        if self.noting is not None:
            seen.update(entries(self.noting.seen, self.noting.length))
        for batch in batches:
            if not batch.num_rows:
                continue
            read += batch.num_rows
            counted = batch.column(batch.num_columns - 1)[0].as_py()
            width, checked = len(self.columns), len(self.columns) + len(self.bad)
            rows = pa.RecordBatch.from_arrays(batch.columns[:width], names=list(self.columns))
            found = self._found(rows, batch.columns[width:checked])
            if found and not self.counts_bad_values:
                values = self._bad_values(rows, found)
                bad += values[: _SHOWN - len(bad)]
                bad_count += len(values)
            if bad_count:
                continue
            rows = self._checked(rows, found)
            if self.noting is not None:
                rows = self._new(rows, batch.column(checked), seen, noted)
            yield rows
        if bad_count:
            raise BadValuesFound.of(bad, bad_count, hint="set `on_bad_value: 'NULL'`")
        if read != counted:
            raise LoadFailed(
                f"reading `{self.name}`: {counted:,} rows were counted, and {read:,} were read by "
                "the same statement",
                hint=LOST_HINT,
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

    def _found(self, rows: pa.RecordBatch, texts: Sequence[Any]) -> _Found:
        """Return the bad values of a batch. `texts` has those that the SELECT knows, null for a
        value that is not bad."""
        found: _Found = {}
        for (name, reason), text in zip(self.bad, texts, strict=True):
            if text.null_count < len(text):
                found[name] = (text.is_valid(), text, reason)
        for name in self.columns if self.checks_dates else ():
            if (mask := _moved(rows.column(name))) is not None:
                text = rows.column(name).cast(pa.string())
                found[name] = (mask, text, f"{_NOT_A_DATE}, and was read as this")
        return found

    def _checked(self, rows: pa.RecordBatch, found: _Found) -> pa.RecordBatch:
        """Return the rows with bad values as null, and how many each row has had."""
        if not self.counts_bad_values:
            return rows
        arrays = list(rows.columns)
        total: Any = pa.array([0] * rows.num_rows, pa.int64())
        for name, (mask, *_) in found.items():
            place = self.columns.index(name)
            arrays[place] = pc.if_else(mask, pa.scalar(None, arrays[place].type), arrays[place])
            total = pc.add(total, mask.cast(pa.int64()))
        names = [*rows.schema.names, BAD_VALUES_HELPER]
        return pa.RecordBatch.from_arrays([*arrays, total], names=names)

    def _bad_values(self, rows: pa.RecordBatch, found: _Found) -> list[BadValue]:
        values = []
        for name, (mask, text, reason) in found.items():
            bad = zip(rows.filter(mask).to_pylist(), text.filter(mask).to_pylist(), strict=True)
            for row, value in bad:
                at = ((column, row[column]) for column in self.key if column in row)
                values.append(bad_value(self.name, at, name, value, reason))
        return values


def _moved(column: Any) -> Any:
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

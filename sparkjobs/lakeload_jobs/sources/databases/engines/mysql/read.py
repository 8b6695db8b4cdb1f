"""Rows of MySQL and MariaDB, read inside the tasks.

Each value crosses as text or bytes, and becomes one of its column's type here.
"""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pymysql
import pymysql.cursors
from pymysql.constants import ER

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import JdbcInput, OnBadValue
from lakeload_jobs.rows.arrow import Column, Kind
from lakeload_jobs.rows.batches import barrier_task
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER, KEY_ONLY_HELPER
from lakeload_jobs.sources.base import BadValue, BadValuesFound
from lakeload_jobs.sources.batch_sizes import BATCH_BYTES, BATCH_ROWS, bounded
from lakeload_jobs.sources.databases.columns import SelectedColumn, bad_value
from lakeload_jobs.sources.databases.engines.failures import LOST_HINT
from lakeload_jobs.sources.databases.engines.mysql.catalog import MysqlRelation, key_of
from lakeload_jobs.sources.databases.engines.mysql.connection import (
    connect,
    failures,
    fetch,
    not_granted,
    number_of,
)
from lakeload_jobs.sources.databases.engines.mysql.sql import quoted, select_sql
from lakeload_jobs.sources.databases.identity import TaskIdentity
from lakeload_jobs.sources.databases.key_ranges import all_of
from lakeload_jobs.sources.databases.seen import ENTRY_BYTES, check_size, entries
from lakeload_jobs.sources.type_names import text_type

if TYPE_CHECKING:
    from lakeload_jobs.sources.databases.engines.mysql.connection import Connection


@dataclass(frozen=True)
class MysqlPart:
    """The rows of a table that one task reads: those that meet a condition, '' for all.

    `locked`: the tasks of all parts run at the same time, and all transactions begin while the
    table is locked.
    """

    condition: str = ""
    locked: bool = False


_LOCK_SECONDS = 30
"""After so many the server ends a session that holds the lock and does nothing."""
_BEGIN = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"


def _begin_locked(
    read: JdbcInput, password: Secret | None, relation: MysqlRelation, connection: Connection
) -> None:
    """Begin the transaction of one of several tasks, which all see the rows of one moment: while
    they begin, the first one holds a lock, with which no other session writes to the table."""
    tasks = barrier_task()
    # Nobody has to wait for the table while tasks connect.
    tasks.barrier()
    lock = _lock(read, password, relation) if tasks.partitionId() == 0 else None
    try:
        tasks.barrier()
        fetch(connection, _BEGIN)
        tasks.barrier()
        if lock is not None:
            with failures(f"unlocking `{relation.shown}`", relation.sql):
                # An error where the server has ended the session: then it was not locked all along.
                fetch(lock, "UNLOCK TABLES")
    finally:
        if lock is not None:
            lock.close()


def _lock(read: JdbcInput, password: Secret | None, relation: MysqlRelation) -> Connection:
    """Return a connection that has locked a table, after the transactions that have written to it.
    Raises `LoadFailed` where the user may not, or they do not end."""
    connection = connect(read, password)
    doing = f"locking `{relation.shown}` (`consistency: LOCK`)"
    try:
        with failures(doing, relation.sql):
            # Without autocommit InnoDB locks the table too, and not the server alone.
            fetch(connection, "SET SESSION TRANSACTION READ WRITE")
            fetch(connection, f"SET SESSION wait_timeout = {_LOCK_SECONDS}, autocommit = 0")
            try:
                fetch(connection, f"LOCK TABLES {relation.sql} READ")
            except pymysql.Error as error:
                if number_of(error) not in (ER.DBACCESS_DENIED_ERROR, ER.TABLEACCESS_DENIED_ERROR):
                    raise
                what = f"{quoted(relation.schema)}.*"
                raise not_granted(connection, doing, error, "LOCK TABLES", what) from None
    except BaseException:
        connection.close()
        raise
    return connection


_SHOWN = 10
_CELL_BYTES = 8
"""Arrow bytes of a short value, beside those of its text."""
_KEYS_AT_ONCE = 4096


@dataclass(frozen=True)
class Noting:
    """How the rows of a load are compared with those that were seen, and noted.

    Rows whose entry `compared` is in `seen` are left out; `length` bytes of it count. `compared`
    '': none are. The entries `entry` of the rows with the condition `rows` are noted.
    """

    entry: str
    rows: str
    lookback: bool
    compared: str = ""
    seen: bytes = b""
    length: int = ENTRY_BYTES


@dataclass(frozen=True)
class ReadTable:
    """Reads one table, or parts of it, each in one transaction; it travels to the tasks.

    With `on_bad_value` FAIL bad values raise `BadValuesFound`, before a row is read; else they are
    null, and counted in `BAD_VALUES_HELPER`.
    """

    read: JdbcInput
    identity: TaskIdentity
    relation: MysqlRelation
    selected: tuple[SelectedColumn, ...]
    on_bad_value: OnBadValue
    wanted: str = ""
    """The condition of the rows that are read, '' for all."""
    noting: Noting | None = None
    """Where rows are appended by a cursor."""
    keys: tuple[str, ...] = ()
    """Columns that are read of every row too, behind the rows, and told by `KEY_ONLY_HELPER`."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the batches, helpers included."""
        fields: list[Any] = [(column.name, text_type(column.type)) for column in self.selected]
        if self._counts_bad_values:
            fields.append((BAD_VALUES_HELPER, pa.int64()))
        if self.keys:
            fields.append((KEY_ONLY_HELPER, pa.bool_()))
        return pa.schema(fields)

    def __call__(self, part: MysqlPart) -> Generator[pa.RecordBatch, None, str | None]:
        """Yield the rows of a part, and return the entries that are noted, base64.

        Raises `LakeloadError`, also where the rows are not as many as were counted in the same
        transaction.
        """
        if part.condition:
            whole = replace(part, condition="")
            wanted = all_of((part.condition, self.wanted))
            return (yield from replace(self, wanted=wanted)(whole))
        name = self.relation.shown
        password = self.identity.password(self.read)
        with closing(connect(self.read, password, streams=True)) as connection:
            with failures(f"counting the rows of `{name}`", self.relation.sql):
                if part.locked:
                    _begin_locked(self.read, password, self.relation, connection)
                else:
                    fetch(connection, _BEGIN)
                counted = self._check(connection)
            rows = 0
            with failures(f"reading `{name}`", self.relation.sql):
                for count, batch in self._batches(connection):
                    rows += count
                    if batch is not None:
                        yield self._told(batch, key_only=False)
                _check_warnings(connection, name)
            if rows != counted:
                raise LoadFailed(
                    f"reading `{name}`: {counted:,} rows were counted, and {rows:,} were read in "
                    "the same transaction",
                    hint=LOST_HINT,
                    retryable=True,
                )
            if self.keys:
                with failures(f"reading the keys of `{name}`", self.relation.sql):
                    yield from self._key_batches(connection)
            return None if self.noting is None else self._entries(connection, self.noting)

    def _entries(self, connection: Connection, noting: Noting) -> str:
        name = self.relation.shown
        where = f" FROM {self.relation.sql} WHERE {noting.rows}"
        with failures(f"noting the rows of `{name}` that were read", self.relation.sql):
            ((count,),) = fetch(connection, f"SELECT COUNT(*){where}")
            check_size(int(count), name, lookback=noting.lookback)
            rows = fetch(connection, f"SELECT {noting.entry}{where}")
        return b64encode(bytes.fromhex("".join(text for (text,) in rows))).decode()

    @property
    def _row_schema(self) -> pa.Schema:
        """The columns of `schema` that are selected."""
        return pa.schema([field for field in self.schema if field.name != KEY_ONLY_HELPER])

    def _key_batches(self, connection: Connection) -> Iterator[pa.RecordBatch]:
        """Yield the keys of all rows, with nulls in other columns."""
        selected = [column for column in self.selected if column.name in self.keys]
        fields = pa.schema([self.schema.field(column.name) for column in selected])
        select = select_sql(self.relation, selected, counts_bad=False)
        with _streamed(connection, select) as cursor:
            while rows := cursor.fetchmany(_KEYS_AT_ONCE):
                batch = _batch(rows, fields)
                columns = [
                    batch.column(field.name)
                    if field.name in fields.names
                    else pa.nulls(batch.num_rows, field.type)
                    for field in self._row_schema
                ]
                whole = pa.RecordBatch.from_arrays(columns, schema=self._row_schema)
                yield self._told(whole, key_only=True)

    def _told(self, batch: pa.RecordBatch, *, key_only: bool) -> pa.RecordBatch:
        """Return the batch with `KEY_ONLY_HELPER` where keys are read."""
        if not self.keys:
            return batch
        helper = pa.repeat(pa.scalar(key_only), batch.num_rows)
        return pa.RecordBatch.from_arrays([*batch.columns, helper], schema=self.schema)

    @property
    def _checked(self) -> tuple[SelectedColumn, ...]:
        return tuple(column for column in self.selected if column.bad)

    @property
    def _counts_bad_values(self) -> bool:
        return self.on_bad_value == "NULL" and bool(self._checked)

    def _check(self, connection: Connection) -> int:
        """Return the number of rows. Raises `BadValuesFound`."""
        sums = "".join(f", COALESCE(SUM({column.bad}), 0)" for column in self._checked)
        where = f" WHERE {self.wanted}" if self.wanted else ""
        statement = f"SELECT COUNT(*){sums} FROM {self.relation.sql}{where}"  # noqa: S608
        ((counted, *bad),) = fetch(connection, statement)
        total = sum(map(int, bad))
        if total and self.on_bad_value == "FAIL":
            first = self._bad_values(connection)
            raise BadValuesFound.of(first, total, hint="set `on_bad_value: 'NULL'`")
        return int(counted)

    def _bad_values(self, connection: Connection) -> list[BadValue]:
        """Return the first bad values."""
        found: list[BadValue] = []
        key = key_of(connection, self.relation)
        also = f" AND {self.wanted}" if self.wanted else ""
        shown_key = "".join(f", CAST({quoted(name)} AS CHAR)" for name in key)
        for column in self._checked:
            rows = fetch(
                connection,
                f"SELECT CAST({column.shown} AS CHAR){shown_key} FROM {self.relation.sql}"  # noqa: S608
                f" WHERE {column.bad}{also} LIMIT {_SHOWN - len(found)}",
            )
            for value, *place in rows:
                at, shown = zip(key, place, strict=True), self.relation.shown
                found.append(bad_value(shown, at, column.name, value, column.reason))
            if len(found) == _SHOWN:
                break
        return found

    def _batches(self, connection: Connection) -> Iterator[tuple[int, pa.RecordBatch | None]]:
        """Yield how many rows were read, and those of them that are new."""
        schema, name = self._row_schema, self.relation.shown
        noting = self.noting
        compared = noting.compared if noting is not None else ""
        known = Counter(entries(noting.seen, noting.length)) if noting is not None else Counter()
        where = f" WHERE {self.wanted}" if self.wanted else ""
        select = select_sql(self.relation, self.selected, self._counts_bad_values, compared)
        with _streamed(connection, f"{select}{where}") as cursor:
            while found := fetch_batch(cursor):
                rows = found
                if noting is not None and compared:
                    rows = [row[:-1] for row in found if _is_new(row[-1], noting.length, known)]
                if not rows:
                    yield len(found), None
                    continue
                left_out = len(found) - len(rows)
                for batch in bounded(_batch(rows, schema), name, quoted):
                    yield batch.num_rows + left_out, batch
                    left_out = 0


_CUT = (ER.CUT_VALUE_GROUP_CONCAT, ER.WARN_ALLOWED_PACKET_OVERFLOWED)


def _check_warnings(connection: Connection, name: str) -> None:
    """Raise `LoadFailed` where the server has left something out of the rows of a SELECT, which it
    only warns of."""
    for _, number, text in fetch(connection, "SHOW WARNINGS"):
        if int(number) in _CUT:
            raise LoadFailed(
                f"reading `{name}`: the server has cut a value: {text} (warning {number})",
                hint="raise `max_allowed_packet` on the server",
            )


def fetch_batch(cursor: Any) -> list[Sequence[Any]]:
    """Return the next rows of a cursor that streams them, as many as make a batch, none at the end.
    The rows that come may be wider than those that came."""
    rows: list[Sequence[Any]] = []
    size = 0
    while size < BATCH_BYTES and len(rows) < BATCH_ROWS and (row := cursor.fetchone()) is not None:
        rows.append(row)
        size += _CELL_BYTES * len(row) + sum(map(len, filter(None, row)))
    return rows


@contextmanager
def _streamed(connection: Connection, select: str) -> Iterator[Any]:
    """Return a cursor over the rows of a SELECT."""
    cursor: Any = connection.cursor()
    try:
        cursor.execute(select)
        yield cursor
    finally:
        # PyMySQL would read all rows that are left, even from a connection that is lost.
        if cursor._result is not None:
            cursor._result.unbuffered_active = False


def _batch(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(zip(*rows, strict=True), schema, strict=True)
    arrays = [_values(column, field.name, field.type) for column, field in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _is_new(digits: str, length: int, known: Counter[bytes]) -> bool:
    """Whether a row is new: of equal rows the first ones were seen. `known` counts them down."""
    entry = bytes.fromhex(digits)[:length]
    if known[entry] > 0:
        known[entry] -= 1
        return False
    return True


def _values(values: Sequence[Any], name: str, kind: Kind) -> Column:
    """Return the values of a column, which are text or bytes."""
    if kind == pa.binary():
        values = [value.encode() if isinstance(value, str) else value for value in values]
        return pa.array(values, pa.binary())
    try:
        text = pa.array(values, pa.string())
        # Text without a zone is of no zone; as an instant it is in UTC, as the session is.
        plain = pa.timestamp("us") if kind == pa.timestamp("us", "UTC") else kind
        return text.cast(plain).cast(kind)
    except pa.ArrowException as error:
        raise LoadFailed(
            f"column `{name}`: a value was read that is no `{kind}`: {error}",
            hint="run again: the type of the column may have changed",
            retryable=True,
        ) from error

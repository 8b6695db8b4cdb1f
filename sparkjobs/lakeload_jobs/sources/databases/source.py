"""JDBC source: tables of a database, each read in one snapshot."""

from __future__ import annotations

import threading
from base64 import b64decode
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DataType, StructType

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import (
    BY_DRIVER,
    DatabaseType,
    JdbcInput,
    JobSpec,
    OnBadValue,
    TableSpec,
)
from lakeload_jobs.contract.state import Bookmark, Evidence, StateChange
from lakeload_jobs.core.comments import Comments
from lakeload_jobs.rows.batches import tasks_at_once
from lakeload_jobs.rows.casts import cast_types, quoted
from lakeload_jobs.rows.columns import in_source_spelling, source_names
from lakeload_jobs.sources.base import (
    BadValuesFound,
    EarlierColumns,
    Rows,
    Source,
    Splits,
    Unfinished,
)
from lakeload_jobs.sources.databases import mysql, postgres
from lakeload_jobs.sources.databases.adbc import ReadSplit
from lakeload_jobs.sources.databases.columns import CatalogColumn, SelectedColumn, is_read
from lakeload_jobs.sources.databases.cursors import (
    Cursor,
    Fetch,
    Window,
    find_window,
    request_of,
)
from lakeload_jobs.sources.databases.identity import TaskIdentity, password_of
from lakeload_jobs.sources.databases.jvm import split_frames
from lakeload_jobs.sources.databases.key_ranges import Ranges
from lakeload_jobs.sources.databases.keys import key_change, remembered
from lakeload_jobs.sources.databases.readers import check_reader, why_jvm
from lakeload_jobs.sources.databases.seen import Seen, comparison, digests, unseen
from lakeload_jobs.sources.databases.xids import XminWindow, find_xmin_window
from lakeload_jobs.sources.files.bookmark import refuse_limit
from lakeload_jobs.sources.files.spark.reader import check_casts, check_types
from lakeload_jobs.sources.spark_parts import columns_of, frame_splits, split_frame

_LEAST = 2
"""Connections of one table: that of the snapshot, and one that reads."""


def connect_databases(spec: JobSpec, aws: AwsSession) -> Callable[[TableSpec, JdbcInput], Source]:
    """Return what makes the source of a table. The tables of a run share the connections."""
    shared = _Shared(
        _Budget(min(spec.concurrency, len(spec.tables))), _CommonSnapshot(len(spec.tables))
    )
    return lambda table, given: _source_class(given.database)(spec, table, given, aws, shared)


def _source_class(database: DatabaseType) -> Callable[..., Source]:
    if database in BY_DRIVER:
        # It is built on this module.
        from lakeload_jobs.sources.databases.jdbc_url import JdbcUrlSource

        return JdbcUrlSource
    return JdbcSource if database == "POSTGRESQL" else MysqlSource


class _Budget:
    """The connections that the tables of a run have open, of which `tables` load at once."""

    def __init__(self, tables: int) -> None:
        self._tables = max(1, tables)
        self._open = 0
        self._changed = threading.Condition()

    def take(self, most: int, share: int | None = None) -> int:
        """Wait until no more than `most` are open with those of one more table, and return how
        many these are: `share`, or as many as each table can have."""
        if share is None:
            share = max(_LEAST, most // self._tables)
        with self._changed:
            self._changed.wait_for(lambda: self._open + share <= most)
            self._open += share
        return share

    def give_back(self, count: int) -> None:
        """Let other tables have so many connections."""
        with self._changed:
            self._open -= count
            self._changed.notify_all()


class _CommonSnapshot:
    """The snapshot of all tables of a run (`consistency: SYNC`), which is held until the last of
    them is closed."""

    def __init__(self, tables: int) -> None:
        self._tables = tables
        self._snapshot: postgres.Snapshot | None = None
        self._lock = threading.Lock()

    def id_for(self, read: JdbcInput, password: Secret | None) -> str:
        """Return what other sessions import. Raises as connecting does."""
        with self._lock:
            if self._snapshot is None:
                self._snapshot = postgres.Snapshot(read, password)
            return self._snapshot.id

    def leave(self) -> None:
        """Count a table that is closed."""
        with self._lock:
            self._tables -= 1
            if not self._tables and self._snapshot is not None:
                self._snapshot.close()


@dataclass(frozen=True)
class _Shared:
    """What the tables of a run have in common."""

    budget: _Budget
    snapshot: _CommonSnapshot


class DatabaseSource:
    """One table of a database, and the connections that it has of the run."""

    def __init__(
        self,
        spec: JobSpec,
        table: TableSpec,
        given: JdbcInput,
        aws: AwsSession,
        shared: _Shared,
    ) -> None:
        self.spec = spec
        self.table = table
        self.given = given
        self._aws = aws
        self._shared = shared
        self._budget = shared.budget
        self._connections = 0

    @property
    def incremental(self) -> bool:
        """Whether the table has a `cursor`."""
        return self.given.incremental

    def close(self) -> None:
        """Give the connections back."""
        self._budget.give_back(self._connections)
        self._connections = 0

    def _take(self, share: int | None = None) -> int:
        """Return how many connections the table has, taking them if it has none yet."""
        if not self._connections:
            most = self.given.max_connections - (self.given.consistency == "SYNC")
            self._connections = self._budget.take(most, share)
        return self._connections

    def _give_back_all_but(self, count: int) -> None:
        """Give the connections back that the table does not need."""
        self._budget.give_back(self._connections - count)
        self._connections = count

    def _key_change(self, bookmark: Bookmark) -> StateChange | None:
        replaces = self.table.mode == "OVERWRITE"
        return key_change(self.given, bookmark, replaces=replaces)

    def _password(self) -> Secret | None:
        return password_of(self._aws, self.given)

    def _found(
        self, relation: Any, columns: Sequence[CatalogColumn], selected: Sequence[SelectedColumn]
    ) -> FoundTable:
        names = tuple(column.name for column in columns)
        table = replace(self.table, columns=in_source_spelling(self.table.columns, names))
        read = tuple(column for column in selected if is_read(table, table.columns, column))
        return FoundTable(table, relation, tuple(columns), read)

    def _window(
        self, found: FoundTable, key: tuple[str, ...], bookmark: Bookmark, fetch: Fetch
    ) -> Window | None:
        """Return the rows to read, None where all are."""
        if not self.incremental:
            return None
        refuse_limit(incremental=True, limit=self.spec.options.limit)
        table, options = self.table, self.spec.options
        request = request_of(
            self.given, table, found.relation, found.columns, found.selected, key, options
        )
        window = find_window(request, bookmark, fetch)
        before, after = window.state.before, window.state.after
        kept = remembered(self.given, bookmark.state)
        return replace(window, state=StateChange(before, {**after, **kept}))


@dataclass(frozen=True)
class FoundTable:
    """What the catalog says of a table: `table` has the settings with names as the source has them,
    `selected` are the columns that are read."""

    table: TableSpec
    relation: Any
    columns: tuple[CatalogColumn, ...]
    selected: tuple[SelectedColumn, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All columns."""
        return tuple(column.name for column in self.columns)

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the table's `primary_key`."""
        return tuple(source_names(self.table.primary_key, self.names).values())

    def by_key(self, cursor: str | None) -> postgres.ByKey:
        """Return the columns in whose ranges the rows may be read: of those that are read, that of
        the cursor and the first one of the key."""
        read = {column.name for column in self.selected}
        by_name = {column.name: column for column in self.columns if column.name in read}
        names = dict.fromkeys((cursor, *self.key[:1]))
        columns = tuple(by_name[name] for name in names if name in by_name)
        return postgres.ByKey(columns, self.selected)

    @property
    def comments(self) -> Comments:
        """Those of the table and of its columns."""
        return Comments.of(
            self.relation.comment, {column.name: column.comment for column in self.columns}
        )

    def entry_key(self, cursor: Cursor) -> tuple[str, ...]:
        """Return the expressions of key and cursor, by which a row is known again; none without a
        key."""
        by_name = {column.name: column.expression for column in self.selected}
        key = [by_name[name] for name in self.key]
        return (*key, cursor.value) if key else ()


@dataclass
class _Noted:
    """What a load notes of its rows; None until they are read, or where it notes nothing."""

    seen: Seen | None = None

    def note(self, found: FoundTable, window: Window, packed: bytes) -> None:
        """Keep the entries of the rows that the next load reads again."""
        appended = window.appended
        if appended is not None and appended.kept_from is not None:
            self.seen = Seen(appended.kept_from, digests(found.selected), found.key, packed)


@dataclass(frozen=True)
class DatabaseSlice:
    """The rows of one load: those of the window, all without one."""

    found: FoundTable
    window: Window | XminWindow | None
    key: StateChange | None
    """The change of the state of a table that is loaded whole."""
    bytes: int | None = None
    kept: _Noted = field(default_factory=lambda: _Noted())

    @property
    def idle(self) -> bool:
        """Whether no row is new."""
        return self.window is not None and self.window.idle

    @property
    def records_anyway(self) -> bool:
        """Whether the state is so old that it is kept anew without rows."""
        return isinstance(self.window, XminWindow) and self.window.refreshes

    @property
    def must_record(self) -> bool:
        """Whether that is so: a state that is much older cannot be used."""
        return self.records_anyway

    @property
    def more(self) -> bool:
        """Whether there are later rows, which a limit leaves for later loads."""
        return isinstance(self.window, Window) and self.window.more

    @property
    def sentence(self) -> str:
        """From where to where rows are read."""
        return self.window.sentence if self.window else ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the window has to say."""
        return self.window.warnings if self.window else ()

    @property
    def change(self) -> StateChange | None:
        """The state when the rows of the window are loaded."""
        return self.window.state if self.window else self.key

    @property
    def wanted(self) -> str:
        """The condition of the rows in SQL, '' for all."""
        return self.window.condition if self.window else ""

    def noted(self, rejected_from: Collection[str]) -> Evidence | None:
        """Return the rows with which the next load compares; None where the state says all."""
        if isinstance(self.window, XminWindow):
            return self.window.evidence
        return None if self.kept.seen is None else self.kept.seen.evidence()


class JdbcSource(DatabaseSource):
    """One table of a database. It holds the snapshot of its newest slice until it is closed."""

    _snapshot: postgres.Snapshot | None = None

    def slice(self, bookmark: Bookmark) -> JdbcSlice:
        """Take a snapshot, and find in it what is to be read.

        Raises `Refused` where the server cannot be reached, `LoadFailed` for a table that cannot
        be read, `InvalidInput` for settings that it does not bear out, and `MachineNotReady`
        without the driver.
        """
        given = self.given
        check_reader(given, self.spec.reader)
        snapshot, readers = self._new_snapshot()
        connection = snapshot.connection
        postgres.check_encoding(connection, given)
        relation = postgres.find_relation(connection, given)
        columns = postgres.columns(connection, relation, given)
        names = [column.name for column in columns]
        key = source_names(self.table.primary_key, names).values()
        found = self._found(relation, columns, postgres.select(columns, tuple(key)))
        postgres.check_select(connection, relation, found.selected, given)
        window: Window | XminWindow | None
        with postgres.failures(given, f"finding what is new in `{relation.name}`"):
            if given.by_xmin:
                window = self._xmin_window(relation, bookmark, snapshot)
            else:
                own_key = postgres.key_of(connection, relation) if self.incremental else ()
                window = self._window(found, own_key, bookmark, snapshot.fetch)
        key_change = self._key_change(bookmark)
        return JdbcSlice(found, window, key_change, source=self, snapshot=snapshot, readers=readers)

    def _xmin_window(
        self, relation: postgres.Relation, bookmark: Bookmark, snapshot: postgres.Snapshot
    ) -> XminWindow:
        options = self.spec.options
        refuse_limit(incremental=True, limit=options.limit)
        request = postgres.xmin_request(relation, self.table, options)
        server = postgres.server_of(snapshot.connection)
        found = find_xmin_window(request, bookmark, snapshot.fetch, server)
        before, after = found.state.before, found.state.after
        kept = remembered(self.given, bookmark.state)
        return replace(found, state=StateChange(before, {**after, **kept}))

    def _new_snapshot(self) -> tuple[postgres.Snapshot, int]:
        """Return a new snapshot, in place of the one before, and how many sessions may read in it.

        Raises `Refused` and `LoadFailed` as connecting does.
        """
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None
        connections = self._take()
        exported = None
        if self.given.consistency == "SYNC":
            exported = self._shared.snapshot.id_for(self.given, self._password())
        self._snapshot = postgres.Snapshot(self.given, self._password(), exported)
        return self._snapshot, connections - 1

    def close(self) -> None:
        """Close the snapshot and give its connections back."""
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None
        self._shared.snapshot.leave()
        super().close()


@dataclass(frozen=True, kw_only=True)
class JdbcSlice(DatabaseSlice):
    """Rows of a table in one snapshot, in which `readers` sessions may read."""

    source: JdbcSource
    snapshot: postgres.Snapshot
    readers: int

    def open(self, spark: SparkSession, earlier: EarlierColumns) -> Rows:
        """Count the rows. Raises `LoadFailed`, and `InvalidInput` for settings that the table does
        not bear out."""
        spec, given, found = self.source.spec, self.source.given, self.found
        parts = self._parts()
        remote = not spec.runtime.tasks_share_driver
        identity = TaskIdentity(spec.destination, spec.label, remote)
        reader = ReadSplit(
            given,
            identity,
            found.relation,
            self.snapshot.id,
            found.selected,
            spec.on_bad_value_of(found.table),
        )
        splits = Splits(parts, reader, tuple(part.rows for part in parts))
        read = _spark_reads(spark, spec, splits, self.snapshot)
        check = partial(self._check_values, reader)
        schema = from_arrow_schema(reader.schema, prefer_timestamp_ntz=True)
        rows = Rows(
            spark,
            schema,
            found.names,
            read,
            why_jvm(given, spec.reader),
            keys=partial(self._keys, spark, splits),
            comments=found.comments,
            warnings=found.relation.warnings,
            check_unchanged=self.snapshot.check,
            check_values=check,
        )
        casts = casts_of(found.table, schema, found.names)
        if not casts:
            return rows
        frame = split_frame(spark, read, schema)
        cast = cast_types(frame, casts, spec.on_bad_value_of(found.table))

        def check_all() -> None:
            check()
            check_casts(frame, casts, found.relation.name)

        splits = frame_splits(cast, splits.counts)
        return replace(rows, schema=cast.schema, splits=splits, check_values=check_all)

    def _check_values(self, read: ReadSplit) -> None:
        """Raise `LoadFailed` with the bad values of the table, by column and key."""
        bad_columns = tuple(column for column in read.selected if column.bad)
        found, count = postgres.bad_values(
            self.snapshot, read.relation, bad_columns, read.read, self.wanted
        )
        if count:
            raise BadValuesFound.of(found, count, hint="set `on_bad_value: 'NULL'`")

    def _keys(self, spark: SparkSession, rows: Splits, names: Sequence[str]) -> DataFrame:
        """Return columns of all rows of the table, and read no others."""
        spec, read, parts = self.source.spec, rows.read, rows.parts
        assert isinstance(read, ReadSplit)  # noqa: S101
        if self.window is not None:
            parts = self.snapshot.splits(self.found.relation, self.readers, by_key=self._by_key)
        reader = replace(read, selected=tuple(c for c in read.selected if c.name in names))
        schema = from_arrow_schema(reader.schema, prefer_timestamp_ntz=True)
        splits = _spark_reads(spark, spec, Splits(parts, reader), self.snapshot)
        frame = split_frame(spark, splits, schema)
        casts = casts_of(self.found.table, schema, self.found.names)
        cast = cast_types(frame, casts, spec.on_bad_value_of(self.found.table)) if casts else frame
        return cast.select(*map(quoted, names))

    @property
    def _by_key(self) -> postgres.ByKey:
        window = self.window
        return self.found.by_key(window.cursor.name if isinstance(window, Window) else None)

    def _parts(self) -> tuple[postgres.Split, ...]:
        """Return the parts with new rows; note those that the next load reads again."""
        relation, window, snapshot = self.found.relation, self.window, self.snapshot
        if not isinstance(window, Window) or window.appended is None or window.high is None:
            return snapshot.splits(relation, self.readers, self.wanted, self._by_key)
        appended, cursor = window.appended, window.cursor
        new = self.wanted
        if appended.last is not None:
            new = cursor.between(appended.last, window.high, after=True)
        parts = snapshot.splits(relation, self.readers, new, self._by_key)
        if appended.seen is not None and window.low is not None:
            again = cursor.between(window.low, appended.last)
            parts += self._unseen(window, appended.seen, again)
        entry = postgres.entry_sql(self.found.entry_key(cursor), self.found.selected)
        kept = cursor.between(appended.kept_from, window.high)
        packed = snapshot.entries(relation, entry, kept, lookback=window.looks_back)
        self.kept.note(self.found, window, packed)
        return parts

    def _unseen(self, window: Window, seen: Seen, again: str) -> tuple[postgres.Split, ...]:
        found, relation = self.found, self.found.relation
        compared = comparison(seen, found.selected, found.key, relation.name)
        entry = postgres.entry_sql(found.entry_key(window.cursor), compared.columns)
        now = self.snapshot.entries(relation, entry, again, lookback=window.looks_back)
        late = unseen(now, seen.entries, compared.length)
        return postgres.unseen_splits(relation, found.selected, again, entry, late)


class MysqlSource(DatabaseSource):
    """One table of MySQL or MariaDB. Sessions have no snapshot in common there: one task reads the
    table, once, in one transaction, unless `consistency` allows several."""

    def slice(self, bookmark: Bookmark) -> MysqlSlice:
        """Read the catalog, and with a `cursor` its greatest value. The rows are read later, by one
        task; those with greater values are left to the next load.

        Raises `Refused` where the server cannot be reached, `LoadFailed` for a table that cannot
        be read, and `InvalidInput` for settings that it does not bear out.
        """
        given = self.given
        check_reader(given, self.spec.reader)
        consistency = given.consistency
        readers = self._take(1 if consistency == "TABLE" else None) - (consistency == "LOCK")
        with closing(mysql.connect(given, self._password())) as connection:
            relation = mysql.find_relation(connection, given)
            columns = mysql.columns(connection, relation, given)
            found = self._found(relation, columns, mysql.select(columns))
            fetch = partial(mysql.fetch, connection)
            with mysql.failures(f"finding what is new in `{relation.shown}`", relation):
                fetch("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
                key = mysql.key_of(connection, relation) if self.incremental else ()
                window = self._window(found, key, bookmark, fetch)
            ranges = None
            if readers > 1 and not self._needs_one_transaction(window):
                most = readers if consistency == "NONE" else min(readers, tasks_at_once())
                ranges = mysql.find_ranges(connection, relation, columns, most)
        needed = 1 if ranges is None else len(ranges.conditions) + (consistency == "LOCK")
        self._give_back_all_but(needed)
        return MysqlSlice(found, window, self._key_change(bookmark), source=self, ranges=ranges)

    def _needs_one_transaction(self, window: Window | None) -> bool:
        """Whether the rows are compared or counted with others of the same moment."""
        appends = window is not None and window.appended is not None
        return appends or self.table.max_deleted is not None


@dataclass(frozen=True, kw_only=True)
class MysqlSlice(DatabaseSlice):
    """Rows of a table that one task reads, or one for each of its `ranges`."""

    source: MysqlSource
    ranges: Ranges | None = None

    @property
    def sentence(self) -> str:
        """From where to where rows are read, and in which ranges."""
        said = super().sentence
        if self.ranges is None:
            return said
        how = f"{len(self.ranges.conditions)} ranges of `{self.ranges.name}`"
        locked = self.source.given.consistency == "LOCK"
        moment = "all as of one moment" if locked else "each as of another moment"
        how = f"{how}, {moment} (`consistency: {self.source.given.consistency}`)"
        return "; ".join(filter(None, (said, how)))

    @property
    def _parts(self) -> tuple[mysql.Part, ...]:
        if self.ranges is None:
            return (mysql.Part(),)
        locked = self.source.given.consistency == "LOCK"
        return tuple(mysql.Part(condition, locked) for condition in self.ranges.conditions)

    def open(self, spark: SparkSession, earlier: EarlierColumns) -> Rows:
        """Return the rows, unread. Raises `InvalidInput` for settings that the table does not bear
        out."""
        spec, given, found = self.source.spec, self.source.given, self.found
        remote = not spec.runtime.tasks_share_driver
        identity = TaskIdentity(spec.destination, spec.label, remote)
        wanted, keys = self.wanted, tuple[str, ...]()
        if wanted and self.source.table.max_deleted is not None and not self.more:
            keys = tuple(source_names(self.source.table.primary_key, found.names).values())
        reader = mysql.ReadTable(
            given, identity, found.relation, found.selected,
            spec.on_bad_value_of(found.table), wanted, self._noting(), keys,
        )  # fmt: skip
        parts = self._parts
        once = Splits(parts, reader, at_once=parts[0].locked)
        schema = from_arrow_schema(reader.schema, prefer_timestamp_ntz=True)
        warnings, on_bad_value = found.relation.warnings, spec.on_bad_value_of(found.table)
        rows = read_once(spark, schema, found, once, self._ended, warnings=warnings)
        return cast_at_last(rows, found.table, schema, found.relation.shown, on_bad_value)

    def _noting(self) -> mysql.Noting | None:
        window, found = self.window, self.found
        if not isinstance(window, Window) or window.appended is None or window.high is None:
            return None
        cursor, appended, key = window.cursor, window.appended, found.entry_key(window.cursor)
        name = found.relation.shown
        noting = mysql.Noting(
            entry=mysql.entry_sql(key, found.selected),
            rows=cursor.between(appended.kept_from, window.high),
            lookback=window.looks_back,
        )
        if appended.seen is None:
            return noting
        compared = comparison(appended.seen, found.selected, found.key, name)
        return replace(
            noting,
            compared=mysql.entry_sql(key, compared.columns),
            seen=appended.seen.entries,
            length=compared.length,
        )

    def _ended(self, ends: Sequence[Any]) -> None:
        """Keep what the task has noted."""
        if isinstance(self.window, Window) and ends and ends[0] is not None:
            self.kept.note(self.found, self.window, b64decode(ends[0]))


def read_once(
    spark: SparkSession,
    schema: StructType,
    found: FoundTable,
    once: Splits,
    on_end: Callable[[Sequence[Any]], None],
    *,
    warnings: tuple[str, ...],
    only_spark: str = "",
) -> Rows:
    """Return the rows of a table that is read once, in transactions that report all bad values.
    `on_end` is given what the reads returned."""
    # What is left to do when they have been read: the slice knows the state.
    rows = Rows(
        spark,
        schema,
        found.names,
        once,
        only_spark,
        repeatable=False,
        comments=found.comments,
        warnings=warnings,
        finish=on_end,
    )
    return replace(rows, keys=partial(columns_of, rows))


def cast_at_last(
    rows: Rows, table: TableSpec, plain: StructType, name: str, on_bad_value: OnBadValue
) -> Rows:
    """Return rows that are read once with the casts of `columns.types`, which Spark does when all
    have been read. `plain` are the columns without helpers, `name` is that of the source."""
    casts = casts_of(table, plain, rows.names)
    if not casts:
        return rows
    cast = partial(cast_types, types=casts, on_bad_value=on_bad_value)
    check = partial(check_casts, types=casts, source=name)
    splits = replace(rows.splits, unfinished=Unfinished(rows.schema, cast, check))
    schema = split_frame(rows.spark, splits, rows.schema).schema
    return replace(rows, schema=schema, splits=splits)


def casts_of(table: TableSpec, schema: StructType, names: tuple[str, ...]) -> dict[str, str]:
    """Return the types of `columns.types` that columns do not have already."""
    kinds = {field.name: field.dataType for field in schema}
    return {
        name: kind
        for name, kind in check_types(table.columns.types or {}, names).items()
        if name in kinds and DataType.fromDDL(kind) != kinds[name]
    }


def _spark_reads(
    spark: SparkSession, spec: JobSpec, splits: Splits, snapshot: postgres.Snapshot
) -> Splits:
    """Return splits as the reader that there is reads them."""
    reader: Any = splits.read
    if not why_jvm(reader.read, spec.reader):
        return splits
    return frame_splits(split_frames(spark, snapshot, reader, splits.parts), splits.counts)

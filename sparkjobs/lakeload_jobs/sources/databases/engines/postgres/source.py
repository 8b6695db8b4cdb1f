"""Rows of PostgreSQL, each table in one snapshot."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import JdbcInput, JobSpec, TableSpec
from lakeload_jobs.contract.state import Bookmark, StateChange
from lakeload_jobs.rows.casts import cast_types, quoted
from lakeload_jobs.rows.columns import source_names
from lakeload_jobs.sources.base import (
    BadValuesFound,
    EarlierColumns,
    Rows,
    Source,
    Splits,
)
from lakeload_jobs.sources.databases.base import (
    ConnectionBudget,
    DatabaseSlice,
    DatabaseSource,
    FoundTable,
)
from lakeload_jobs.sources.databases.cursors import (
    Window,
)
from lakeload_jobs.sources.databases.engines.postgres import catalog as postgres
from lakeload_jobs.sources.databases.engines.postgres.adbc import ReadSplit
from lakeload_jobs.sources.databases.engines.postgres.jvm import split_frames
from lakeload_jobs.sources.databases.engines.postgres.xids import XminWindow, find_xmin_window
from lakeload_jobs.sources.databases.identity import TaskIdentity
from lakeload_jobs.sources.databases.keys import remembered
from lakeload_jobs.sources.databases.readers import check_reader, only_spark
from lakeload_jobs.sources.databases.rows import casts_of
from lakeload_jobs.sources.databases.seen import Seen, comparison, unseen
from lakeload_jobs.sources.settings import refuse_limit
from lakeload_jobs.sources.spark_frames import check_casts, frame_splits, split_frame


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


class JdbcSource(DatabaseSource):
    """One table of a database. It holds the snapshot of its newest slice until it is closed."""

    def __init__(
        self,
        spec: JobSpec,
        table: TableSpec,
        given: JdbcInput,
        aws: AwsSession,
        budget: ConnectionBudget,
        common: _CommonSnapshot,
    ) -> None:
        super().__init__(spec, table, given, aws, budget)
        self._common = common
        self._snapshot: postgres.Snapshot | None = None

    @classmethod
    def of_run(cls, spec: JobSpec, aws: AwsSession) -> Callable[[TableSpec, JdbcInput], Source]:
        """Return what makes the source of a table, which share connections and a snapshot."""
        budget, common = ConnectionBudget.of_run(spec), _CommonSnapshot(len(spec.tables))
        return lambda table, given: cls(spec, table, given, aws, budget, common)

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
            exported = self._common.id_for(self.given, self._password())
        self._snapshot = postgres.Snapshot(self.given, self._password(), exported)
        return self._snapshot, connections - 1

    def close(self) -> None:
        """Close the snapshot and give its connections back."""
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None
        self._common.leave()
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
            only_spark(given, spec.reader),
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
        return _by_key(self.found, window.cursor.name if isinstance(window, Window) else None)

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


def _by_key(found: FoundTable, cursor: str | None) -> postgres.ByKey:
    """Return the columns in whose ranges the rows may be read: of those that are read, that of the
    cursor and the first one of the key."""
    read = {column.name for column in found.selected}
    by_name = {column.name: column for column in found.columns if column.name in read}
    names = dict.fromkeys((cursor, *found.key[:1]))
    columns = tuple(by_name[name] for name in names if name in by_name)
    return postgres.ByKey(columns, found.selected)


def _spark_reads(
    spark: SparkSession, spec: JobSpec, splits: Splits, snapshot: postgres.Snapshot
) -> Splits:
    """Return splits as the reader that there is reads them."""
    reader: Any = splits.read
    if not only_spark(reader.read, spec.reader):
        return splits
    return frame_splits(split_frames(spark, snapshot, reader, splits.parts), splits.counts)

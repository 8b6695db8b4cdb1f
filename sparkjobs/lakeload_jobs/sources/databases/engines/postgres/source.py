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
from lakeload_jobs.sources.base import BadValuesFound, EarlierColumns, Rows, Source, Splits
from lakeload_jobs.sources.databases.base import (
    DatabaseRun,
    DatabaseSlice,
    DatabaseSource,
    FoundTable,
)
from lakeload_jobs.sources.databases.cursors import Window
from lakeload_jobs.sources.databases.engines.base import Engine
from lakeload_jobs.sources.databases.engines.postgres import catalog
from lakeload_jobs.sources.databases.engines.postgres.adbc import ReadPart
from lakeload_jobs.sources.databases.engines.postgres.catalog import (
    bad_values,
)
from lakeload_jobs.sources.databases.engines.postgres.connection import failures
from lakeload_jobs.sources.databases.engines.postgres.jvm import part_frames
from lakeload_jobs.sources.databases.engines.postgres.snapshot import (
    ByKey,
    ExportedSnapshot,
    PostgresPart,
    PostgresRelation,
    entry_sql,
    unseen_parts,
)
from lakeload_jobs.sources.databases.engines.postgres.xids import XminWindow
from lakeload_jobs.sources.databases.identity import TaskIdentity
from lakeload_jobs.sources.databases.keys import remembered
from lakeload_jobs.sources.databases.rows import casts_of
from lakeload_jobs.sources.databases.seen import SeenRows, comparison, unseen
from lakeload_jobs.sources.settings import refuse_limit
from lakeload_jobs.sources.spark_frames import check_casts, frame_splits, split_frame


class _CommonSnapshot:
    """The snapshot of all tables of a run (`consistency: SYNC`), which is held until the last of
    them is closed."""

    def __init__(self, tables: int) -> None:
        self._tables = tables
        self._snapshot: ExportedSnapshot | None = None
        self._lock = threading.Lock()

    def id_for(self, read: JdbcInput, password: Secret | None) -> str:
        """Return what other sessions import. Raises as connecting does."""
        with self._lock:
            if self._snapshot is None:
                self._snapshot = ExportedSnapshot(read, password)
            return self._snapshot.id

    def leave(self) -> None:
        """Count a table that is closed."""
        with self._lock:
            self._tables -= 1
            if not self._tables and self._snapshot is not None:
                self._snapshot.close()


def connect_tables(
    engine: Engine, spec: JobSpec, aws: AwsSession
) -> Callable[[TableSpec, JdbcInput], Source]:
    """Return what makes the source of a table. The tables of a run share connections, and with
    `consistency: SYNC` a snapshot."""
    run, common = DatabaseRun(engine, spec, aws), _CommonSnapshot(len(spec.tables))
    return lambda table, given: PostgresSource(run, table, given, common)


class PostgresSource(DatabaseSource):
    """One table of a database. It holds the snapshot of its newest slice until it is closed."""

    def __init__(
        self, run: DatabaseRun, table: TableSpec, given: JdbcInput, common: _CommonSnapshot
    ) -> None:
        super().__init__(run, table, given)
        self._common = common
        self._snapshot: ExportedSnapshot | None = None

    def slice(self, bookmark: Bookmark) -> PostgresSlice:
        """Take a snapshot, and find in it what is to be read.

        Raises `Refused` where the server cannot be reached, `LoadFailed` for a table that cannot
        be read, `InvalidInput` for settings that it does not bear out, and `MachineNotReady`
        without the driver.
        """
        given = self.given
        self.engine.check_reader(self.spec.reader)
        snapshot, readers = self._new_snapshot()
        connection = snapshot.connection
        relation = catalog.find_relation(connection, given)
        columns = catalog.columns(connection, relation, given)
        names = [column.name for column in columns]
        key = source_names(self.table.primary_key, names).values()
        found = self._found(relation, columns, catalog.select(columns, tuple(key)))
        catalog.check_select(connection, relation, found.selected, given)
        window: Window | XminWindow | None
        with failures(given, f"finding what is new in `{relation.shown}`"):
            if given.by_xmin:
                window = self._xmin_window(relation, bookmark, snapshot)
            else:
                own_key = catalog.key_of(connection, relation) if self.incremental else ()
                window = self._window(found, own_key, bookmark, snapshot.fetch)
        key_change = self._key_change(bookmark)
        return PostgresSlice(
            found, window, key_change, source=self, snapshot=snapshot, readers=readers
        )

    def _xmin_window(
        self,
        relation: PostgresRelation,
        bookmark: Bookmark,
        snapshot: ExportedSnapshot,
    ) -> XminWindow:
        options = self.spec.options
        refuse_limit(incremental=True, limit=options.limit)
        found = catalog.xmin_window(
            snapshot.connection,
            relation,
            self.table,
            options,
            bookmark,
            snapshot.fetch,
            loads=True,
        )
        before, after = found.state.before, found.state.after
        kept = remembered(self.given, bookmark.state)
        return replace(found, state=StateChange(before, {**after, **kept}))

    def _new_snapshot(self) -> tuple[ExportedSnapshot, int]:
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
        self._snapshot = ExportedSnapshot(self.given, self._password(), exported)
        return self._snapshot, connections - 1

    def close(self) -> None:
        """Close the snapshot and give its connections back."""
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None
        self._common.leave()
        super().close()


@dataclass(frozen=True, kw_only=True)
class PostgresSlice(DatabaseSlice):
    """Rows of a table in one snapshot, in which `readers` sessions may read."""

    source: PostgresSource
    snapshot: ExportedSnapshot
    readers: int

    def open(self, spark: SparkSession, earlier: EarlierColumns) -> Rows:
        """Count the rows. Raises `LoadFailed`, and `InvalidInput` for settings that the table does
        not bear out."""
        spec, given, found = self.source.spec, self.source.given, self.found
        parts = self._parts()
        remote = not spec.runtime.tasks_share_driver
        identity = TaskIdentity(spec.destination, spec.label, remote)
        reader = ReadPart(
            given,
            identity,
            found.relation,
            self.snapshot.id,
            found.selected,
            spec.on_bad_value_of(found.table),
        )
        splits = Splits(parts, reader, tuple(part.rows for part in parts))
        read = _spark_reads(spark, self.source.only_spark, splits, self.snapshot)
        check = partial(self._check_values, reader)
        schema = from_arrow_schema(reader.schema, prefer_timestamp_ntz=True)
        rows = Rows(
            spark,
            schema,
            found.names,
            read,
            self.source.only_spark,
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
            check_casts(frame, casts, found.relation.shown)

        splits = frame_splits(cast, splits.counts)
        return replace(rows, schema=cast.schema, splits=splits, check_values=check_all)

    def _check_values(self, read: ReadPart) -> None:
        """Raise `LoadFailed` with the bad values of the table, by column and key."""
        found, count = bad_values(
            self.snapshot.connection, read.relation, read.selected, read.read, self.wanted
        )
        if count:
            raise BadValuesFound.of(found, count, hint="set `on_bad_value: 'NULL'`")

    def _keys(self, spark: SparkSession, rows: Splits, names: Sequence[str]) -> DataFrame:
        """Return columns of all rows of the table, and read no others."""
        spec, read, parts = self.source.spec, rows.read, rows.parts
        assert isinstance(read, ReadPart)  # noqa: S101
        if self.window is not None:
            parts = self.snapshot.parts(self.found.relation, self.readers, by_key=self._by_key)
        reader = replace(read, selected=tuple(c for c in read.selected if c.name in names))
        schema = from_arrow_schema(reader.schema, prefer_timestamp_ntz=True)
        counted = Splits(parts, reader, tuple(part.rows for part in parts))
        splits = _spark_reads(spark, self.source.only_spark, counted, self.snapshot)
        frame = split_frame(spark, splits, schema)
        casts = casts_of(self.found.table, schema, self.found.names)
        cast = cast_types(frame, casts, spec.on_bad_value_of(self.found.table)) if casts else frame
        return cast.select(*map(quoted, names))

    @property
    def _by_key(self) -> ByKey:
        window = self.window
        return _by_key(self.found, window.cursor.name if isinstance(window, Window) else None)

    def _parts(self) -> tuple[PostgresPart, ...]:
        """Return the parts with new rows; note those that the next load reads again."""
        relation, window, snapshot = self.found.relation, self.window, self.snapshot
        if not isinstance(window, Window) or window.appended is None or window.high is None:
            return snapshot.parts(relation, self.readers, self.wanted, self._by_key)
        appended, cursor = window.appended, window.cursor
        new = self.wanted
        if appended.last is not None:
            new = cursor.between(appended.last, window.high, after=True)
        parts = snapshot.parts(relation, self.readers, new, self._by_key)
        if appended.seen is not None and window.low is not None:
            again = cursor.between(window.low, appended.last)
            parts += self._unseen(window, appended.seen, again)
        entry = entry_sql(self.found.entry_key(cursor), self.found.selected)
        kept = cursor.between(appended.kept_from, window.high)
        packed = snapshot.entries(relation, entry, kept, lookback=window.looks_back)
        self.kept.note(self.found, window, packed)
        return parts

    def _unseen(self, window: Window, seen: SeenRows, again: str) -> tuple[PostgresPart, ...]:
        found, relation = self.found, self.found.relation
        compared = comparison(seen, found.selected, found.key, relation.shown)
        entry = entry_sql(found.entry_key(window.cursor), compared.columns)
        now = self.snapshot.entries(relation, entry, again, lookback=window.looks_back)
        late = unseen(now, seen.entries, compared.length)
        return unseen_parts(relation, found.selected, again, entry, late)


def _by_key(found: FoundTable, cursor: str | None) -> ByKey:
    """Return the columns in whose ranges the rows may be read: of those that are read, that of the
    cursor and the first one of the key."""
    read = {column.name for column in found.selected}
    by_name = {column.name: column for column in found.columns if column.name in read}
    names = dict.fromkeys((cursor, *found.key[:1]))
    columns = tuple(by_name[name] for name in names if name in by_name)
    return ByKey(columns, found.selected)


def _spark_reads(
    spark: SparkSession, reason: str, splits: Splits, snapshot: ExportedSnapshot
) -> Splits:
    """Return splits as the reader that there is reads them: Spark where there is a reason."""
    if not reason:
        return splits
    reader: Any = splits.read
    return frame_splits(part_frames(spark, snapshot, reader, splits.parts), splits.counts)

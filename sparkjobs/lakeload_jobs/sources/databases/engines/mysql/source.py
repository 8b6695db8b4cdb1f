"""Rows of MySQL and MariaDB."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from lakeload_jobs.aws.session import AwsSession
from lakeload_jobs.contract.spec import JdbcInput, JobSpec, TableSpec
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.rows.batches import tasks_at_once
from lakeload_jobs.rows.columns import source_names
from lakeload_jobs.sources.base import EarlierColumns, Rows, Source, Splits
from lakeload_jobs.sources.databases.base import DatabaseRun, DatabaseSlice, DatabaseSource
from lakeload_jobs.sources.databases.cursors import Window
from lakeload_jobs.sources.databases.engines.base import Engine
from lakeload_jobs.sources.databases.engines.mysql import catalog
from lakeload_jobs.sources.databases.engines.mysql.catalog import find_ranges
from lakeload_jobs.sources.databases.engines.mysql.connection import connect, failures, fetch
from lakeload_jobs.sources.databases.engines.mysql.read import MysqlPart, Noting, ReadTable
from lakeload_jobs.sources.databases.engines.mysql.sql import entry_sql
from lakeload_jobs.sources.databases.identity import TaskIdentity
from lakeload_jobs.sources.databases.key_ranges import Ranges
from lakeload_jobs.sources.databases.rows import cast_at_last, read_once
from lakeload_jobs.sources.databases.seen import comparison


def connect_tables(
    engine: Engine, spec: JobSpec, aws: AwsSession
) -> Callable[[TableSpec, JdbcInput], Source]:
    """Return what makes the source of a table. The tables of a run share connections."""
    run = DatabaseRun(engine, spec, aws)
    return lambda table, given: MysqlSource(run, table, given)


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
        self.engine.check_reader(self.spec.reader)
        consistency = given.consistency
        readers = self._take(1 if consistency == "TABLE" else None) - (consistency == "LOCK")
        with closing(connect(given, self._password())) as connection:
            relation = catalog.find_relation(connection, given)
            columns = catalog.columns(connection, relation, given)
            found = self._found(relation, columns, catalog.select(columns))
            run = partial(fetch, connection)
            with failures(f"finding what is new in `{relation.shown}`", relation.sql):
                run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
                key = catalog.key_of(connection, relation) if self.incremental else ()
                window = self._window(found, key, bookmark, run)
            ranges = None
            if readers > 1 and not self._needs_one_transaction(window):
                most = readers if consistency == "NONE" else min(readers, tasks_at_once())
                ranges = find_ranges(connection, relation, columns, most)
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
    def _parts(self) -> tuple[MysqlPart, ...]:
        if self.ranges is None:
            return (MysqlPart(),)
        locked = self.source.given.consistency == "LOCK"
        return tuple(MysqlPart(condition, locked) for condition in self.ranges.conditions)

    def open(self, spark: SparkSession, earlier: EarlierColumns) -> Rows:
        """Return the rows, unread. Raises `InvalidInput` for settings that the table does not bear
        out."""
        spec, given, found = self.source.spec, self.source.given, self.found
        remote = not spec.runtime.tasks_share_driver
        identity = TaskIdentity(spec.destination, spec.label, remote)
        wanted, keys = self.wanted, tuple[str, ...]()
        if wanted and self.source.table.max_deleted is not None and not self.more:
            keys = tuple(source_names(self.source.table.primary_key, found.names).values())
        reader = ReadTable(
            given, identity, found.relation, found.selected,
            spec.on_bad_value_of(found.table), wanted, self._noting(), keys,
        )  # fmt: skip
        parts = self._parts
        once = Splits(parts, reader, at_once=parts[0].locked)
        schema = from_arrow_schema(reader.schema, prefer_timestamp_ntz=True)
        warnings, on_bad_value = found.relation.warnings, spec.on_bad_value_of(found.table)
        rows = read_once(spark, schema, found, once, self._ended, warnings=warnings)
        return cast_at_last(rows, found.table, schema, found.relation.shown, on_bad_value)

    def _noting(self) -> Noting | None:
        window, found = self.window, self.found
        if not isinstance(window, Window) or window.appended is None or window.high is None:
            return None
        cursor, appended, key = window.cursor, window.appended, found.entry_key(window.cursor)
        name = found.relation.shown
        noting = Noting(
            entry=entry_sql(key, found.selected),
            rows=cursor.between(appended.kept_from, window.high),
            lookback=window.looks_back,
        )
        if appended.seen is None:
            return noting
        compared = comparison(appended.seen, found.selected, found.key, name)
        return replace(
            noting,
            compared=entry_sql(key, compared.columns),
            seen=appended.seen.entries,
            length=compared.length,
        )

    def _ended(self, ends: Sequence[Any]) -> None:
        """Keep what the task has noted."""
        if isinstance(self.window, Window) and ends and ends[0] is not None:
            self.kept.note(self.found, self.window, b64decode(ends[0]))

"""JDBC source: tables of a database, each read in one snapshot."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DataType, StructType

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import DatabaseType, JdbcInput, JobSpec, TableSpec
from lakeload_jobs.contract.state import Bookmark, StateChange
from lakeload_jobs.rows.casts import cast_types
from lakeload_jobs.rows.columns import in_source_spelling
from lakeload_jobs.rows.deferred_frame import DeferredFrame
from lakeload_jobs.sources.base import AllRows, BadValuesFound, Reader, Rows, Splits
from lakeload_jobs.sources.databases import mysql, postgres
from lakeload_jobs.sources.databases.adbc import ReadSplit, check_installed
from lakeload_jobs.sources.databases.columns import CatalogColumn, SelectedColumn, is_read
from lakeload_jobs.sources.databases.identity import TaskIdentity
from lakeload_jobs.sources.files.spark.reader import check_casts, check_types
from lakeload_jobs.sources.files.spark.typed import split_frame

_LEAST = 2
"""Connections of one table: that of the snapshot, and one that reads."""


def connect_databases(
    spec: JobSpec, aws: AwsSession
) -> Callable[[TableSpec, JdbcInput], JdbcSource | MysqlSource]:
    """Return what makes the source of a table. The tables of a run share the connections."""
    budget = _Budget(min(spec.concurrency, len(spec.tables)))
    sources: dict[DatabaseType, type[JdbcSource | MysqlSource]] = {
        "POSTGRESQL": JdbcSource,
        "MYSQL": MysqlSource,
    }
    return lambda table, given: sources[given.database](spec, table, given, aws, budget)


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


class _DatabaseSource:
    """One table of a database, and the connections that it has of the run."""

    incremental = False

    def __init__(
        self,
        spec: JobSpec,
        table: TableSpec,
        given: JdbcInput,
        aws: AwsSession,
        budget: _Budget,
    ) -> None:
        self.spec = spec
        self.table = table
        self.given = given
        self._aws = aws
        self._budget = budget
        self._connections = 0

    def close(self) -> None:
        """Give the connections back."""
        self._budget.give_back(self._connections)
        self._connections = 0

    def _take(self, share: int | None = None) -> int:
        """Return how many connections the table has, taking them if it has none yet."""
        if not self._connections:
            self._connections = self._budget.take(self.given.max_connections, share)
        return self._connections

    def _password(self) -> Secret | None:
        reference = self.given.password
        return None if reference is None else self._aws.resolve(reference)


class JdbcSource(_DatabaseSource):
    """One table of a database. It holds the snapshot of its newest slice until it is closed."""

    _snapshot: postgres.Snapshot | None = None

    def slice(self, bookmark: Bookmark) -> JdbcSlice:
        """Return all of the table: nothing is remembered."""
        return JdbcSlice(self)

    def new_snapshot(self) -> tuple[postgres.Snapshot, int]:
        """Return a new snapshot, in place of the one before, and how many sessions may read in it.

        Raises `Refused` and `LoadFailed` as connecting does.
        """
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None
        connections = self._take()
        self._snapshot = postgres.Snapshot(self.given, self._password())
        return self._snapshot, connections - 1

    def close(self) -> None:
        """Close the snapshot and give its connections back."""
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None
        super().close()


@dataclass(frozen=True)
class JdbcSlice(AllRows):
    """All rows of the table."""

    source: JdbcSource

    def open(
        self, spark: SparkSession, earlier: Mapping[str, str], *, splits: bool = False
    ) -> Rows:
        """Take a snapshot, and count the rows in it.

        Raises `Refused` where the server cannot be reached, `LoadFailed` for a table that cannot
        be read, `InvalidInput` for settings that it does not bear out, and `MachineNotReady`
        without the driver.
        """
        source, spec, given = self.source, self.source.spec, self.source.given
        _check_reader(spec)
        check_installed()
        snapshot, readers = source.new_snapshot()
        postgres.check_encoding(snapshot.connection, given)
        relation = postgres.find_relation(snapshot.connection, given)
        columns = postgres.columns(snapshot.connection, relation, given)
        names = tuple(column.name for column in columns)
        table = _in_source_spelling(source.table, names)
        selected = postgres.select(columns)
        read = tuple(column for column in selected if is_read(table, table.columns, column))
        postgres.check_select(snapshot.connection, relation, read, given)
        parts = snapshot.splits(relation, readers)
        remote = not spec.runtime.tasks_share_driver
        identity = TaskIdentity(spec.destination, spec.label, remote)
        reader = ReadSplit(given, identity, relation, snapshot.id, read, spec.on_bad_value)
        return _rows(spark, spec, table, names, Splits(parts, reader, _counts(parts)), snapshot)


class MysqlSource(_DatabaseSource):
    """One table of MySQL or MariaDB. Sessions have no snapshot in common there, so that one task
    reads the table, once, in one transaction."""

    def slice(self, bookmark: Bookmark) -> MysqlSlice:
        """Return all of the table: nothing is remembered."""
        return MysqlSlice(self)

    def columns(self) -> tuple[mysql.Relation, tuple[CatalogColumn, ...]]:
        """Return the table and its columns. Raises as connecting does, and `LoadFailed`."""
        self._take(1)
        with closing(mysql.connect(self.given, self._password())) as connection:
            relation = mysql.find_relation(connection, self.given)
            return relation, mysql.columns(connection, relation, self.given)


@dataclass(frozen=True)
class MysqlSlice(AllRows):
    """All rows of the table."""

    source: MysqlSource

    def open(
        self, spark: SparkSession, earlier: Mapping[str, str], *, splits: bool = False
    ) -> Rows:
        """Read the catalog. The rows are read later, by one task.

        Raises `Refused` where the server cannot be reached, `LoadFailed` for a table that cannot
        be read, and `InvalidInput` for settings that it does not bear out.
        """
        source, spec, given = self.source, self.source.spec, self.source.given
        _check_reader(spec)
        relation, columns = source.columns()
        names = tuple(column.name for column in columns)
        table = _in_source_spelling(source.table, names)
        selected = mysql.select(columns)
        read = tuple(column for column in selected if is_read(table, table.columns, column))
        remote = not spec.runtime.tasks_share_driver
        identity = TaskIdentity(spec.destination, spec.label, remote)
        reader = mysql.ReadTable(given, identity, relation, read, spec.on_bad_value)
        once = Splits((None,), reader)
        schema = from_arrow_schema(reader.schema, prefer_timestamp_ntz=True)
        rows = MysqlRows(split_frame(spark, once, schema), names, once, relation.warnings)
        casts = _casts(table, schema, names)
        if not casts:
            return rows
        frame = cast_types(rows.frame, casts, spec.on_bad_value)
        return replace(rows, deferred=DeferredFrame.made(frame), splits=None)


@dataclass(frozen=True)
class MysqlRows:
    """The rows of a table that is read once (`sources.base.Rows`)."""

    deferred: DeferredFrame
    names: tuple[str, ...]
    splits: Splits | None
    warnings: tuple[str, ...]
    why_no_splits: str = "`columns.types` casts a column"
    counts: tuple[int, ...] | None = None
    reader: Reader = "direct"
    repeatable: bool = False
    count_reads_all_columns: bool = False

    @property
    def frame(self) -> DataFrame:
        """The rows as Spark gets them."""
        return self.deferred.frame

    @property
    def schema(self) -> StructType:
        """The columns of `frame`."""
        return self.deferred.schema

    def check_unchanged(self) -> None:
        """Do nothing: the read was one transaction, which has ended."""

    def check_values(self) -> None:
        """Do nothing: the read has reported all bad values, in the transaction."""

    def finish(self, ends: Sequence[Any]) -> StateChange | None:
        """Return None: nothing is remembered."""


def _check_reader(spec: JobSpec) -> None:
    if spec.reader == "JVM":
        raise InvalidInput(
            "a source of type JDBC cannot be read with `spark.reader: JVM`",
            hint="leave `spark.reader` out",
        )


def _casts(table: TableSpec, schema: StructType, names: tuple[str, ...]) -> dict[str, str]:
    """Return the types of `columns.types` that columns do not have already."""
    kinds = {field.name: field.dataType for field in schema}
    return {
        name: kind
        for name, kind in check_types(table.columns.types or {}, names).items()
        if name in kinds and DataType.fromDDL(kind) != kinds[name]
    }


def _counts(parts: Sequence[postgres.Split]) -> tuple[int, ...]:
    return tuple(part.rows for part in parts)


def _rows(
    spark: SparkSession,
    spec: JobSpec,
    table: TableSpec,
    names: tuple[str, ...],
    splits: Splits,
    snapshot: postgres.Snapshot,
) -> JdbcRows:
    reader: Any = splits.read
    schema = from_arrow_schema(reader.schema, prefer_timestamp_ntz=True)
    deferred = split_frame(spark, splits, schema)
    casts = _casts(table, schema, names)
    if not casts:
        warnings = reader.relation.warnings
        return JdbcRows(deferred, names, splits, reader, snapshot, warnings=warnings)
    frame = deferred.frame
    return JdbcRows(
        DeferredFrame.made(cast_types(frame, casts, spec.on_bad_value)),
        names,
        None,
        reader,
        snapshot,
        f"`columns.types` casts column `{next(iter(casts))}`",
        _counts(splits.parts),
        lambda: check_casts(frame, casts),
        warnings=reader.relation.warnings,
    )


@dataclass(frozen=True)
class JdbcRows:
    """The rows of a snapshot (`sources.base.Rows`)."""

    deferred: DeferredFrame
    names: tuple[str, ...]
    splits: Splits | None
    read: ReadSplit
    snapshot: postgres.Snapshot
    why_no_splits: str = ""
    counted: tuple[int, ...] = ()
    check_casts: Callable[[], None] | None = None
    reader: Reader = "direct"
    repeatable: bool = True
    count_reads_all_columns: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def frame(self) -> DataFrame:
        """The rows as Spark gets them."""
        return self.deferred.frame

    @property
    def schema(self) -> StructType:
        """The columns of `frame`."""
        return self.deferred.schema

    @property
    def counts(self) -> tuple[int, ...] | None:
        """The rows of each split, as the database has counted them."""
        return self.counted if self.splits is None else self.splits.counts

    def check_unchanged(self) -> None:
        """Raise `LoadFailed` where the snapshot is lost."""
        self.snapshot.check()

    def check_values(self) -> None:
        """Raise `LoadFailed` with the bad values of the table, by column and key."""
        read = self.read
        texts, count = postgres.bad_values(
            self.snapshot, read.relation, self._bad_columns(), read.read
        )
        if count:
            more = count - len(texts)
            tail = [f"and {more:,} more"] if more else []
            raise BadValuesFound("; ".join([*texts, *tail]), hint="set `on_bad_value: 'NULL'`")
        if self.check_casts is not None:
            self.check_casts()

    def _bad_columns(self) -> tuple[SelectedColumn, ...]:
        return tuple(column for column in self.read.selected if column.bad)

    def finish(self, ends: Sequence[Any]) -> StateChange | None:
        """Return None: nothing is remembered."""


def _in_source_spelling(table: TableSpec, names: Collection[str]) -> TableSpec:
    return replace(table, columns=in_source_spelling(table.columns, names))

"""Tables of a database, and what the engines share of loading them."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import JdbcInput, JobSpec, TableSpec
from lakeload_jobs.contract.state import Bookmark, Evidence, StateChange
from lakeload_jobs.core.comments import Comments
from lakeload_jobs.rows.columns import in_source_spelling, source_names
from lakeload_jobs.sources.base import Slice
from lakeload_jobs.sources.databases.columns import (
    CatalogColumn,
    Fetch,
    Relation,
    SelectedColumn,
    is_read,
)
from lakeload_jobs.sources.databases.cursor_sql import Cursor
from lakeload_jobs.sources.databases.cursors import RowsWindow, Window, find_window, request_of
from lakeload_jobs.sources.databases.engines.base import Engine
from lakeload_jobs.sources.databases.identity import password_of
from lakeload_jobs.sources.databases.keys import key_change, remembered
from lakeload_jobs.sources.databases.seen import SeenRows, digests
from lakeload_jobs.sources.settings import refuse_limit

_LEAST = 2
"""Connections of one table: that of the snapshot, and one that reads."""


class ConnectionBudget:
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


class DatabaseRun:
    """What the tables of a run have in common: their engine, and its connections."""

    def __init__(self, engine: Engine, spec: JobSpec, aws: AwsSession) -> None:
        self.engine = engine
        self.spec = spec
        self.aws = aws
        self.budget = ConnectionBudget(min(spec.concurrency, len(spec.tables)))


class DatabaseSource(ABC):
    """One table of a database, and the connections that it has of the run."""

    def __init__(self, run: DatabaseRun, table: TableSpec, given: JdbcInput) -> None:
        self.engine = run.engine
        self.spec = run.spec
        self.table = table
        self.given = given
        self._aws = run.aws
        self._budget = run.budget
        self._connections = 0

    @abstractmethod
    def slice(self, bookmark: Bookmark) -> Slice:
        """Return what is to be read, as `sources.base.Source` says."""

    @property
    def incremental(self) -> bool:
        """Whether the table has a `cursor`."""
        return self.given.incremental

    @property
    def only_spark(self) -> str:
        """Why Spark reads the table; '' where it does not."""
        return self.engine.only_spark(self.spec.reader)

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
        self,
        relation: Relation,
        columns: Sequence[CatalogColumn],
        selected: Sequence[SelectedColumn],
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
            self.given,
            self.engine.cursors,
            table,
            found.relation,
            found.columns,
            found.selected,
            key,
            options,
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
    """The `Relation`, of the engine's own class."""
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

    seen: SeenRows | None = None

    def note(self, found: FoundTable, window: Window, packed: bytes) -> None:
        """Keep the entries of the rows that the next load reads again."""
        appended = window.appended
        if appended is not None and appended.kept_from is not None:
            self.seen = SeenRows(appended.kept_from, digests(found.selected), found.key, packed)


@dataclass(frozen=True)
class DatabaseSlice:
    """The rows of one load: those of the window, all without one."""

    found: FoundTable
    window: RowsWindow | None
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
        return self.window is not None and self.window.refreshes

    @property
    def must_record(self) -> bool:
        """Whether that is so: a state that is much older cannot be used."""
        return self.records_anyway

    @property
    def more(self) -> bool:
        """Whether there are later rows, which a limit leaves for later loads."""
        return self.window is not None and self.window.more

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
        if self.window is not None and self.window.evidence is not None:
            return self.window.evidence
        return None if self.kept.seen is None else self.kept.seen.evidence()

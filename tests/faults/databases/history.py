"""What happens to a schema between loads, and what the database's own driver reads of it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from itertools import islice
from typing import Any, Protocol

import pymysql.cursors

from tests.faults.databases import values
from tests.faults.databases.tables import BEGIN, KINDS, LOOKBACK_SECONDS, Server, Table, quoted

_BATCH = 100_000
_PREPARED: dict[Server, tuple[str, ...]] = {
    "postgres": (
        "SET IntervalStyle = iso_8601; SET DateStyle = ISO; CREATE EXTENSION citext;"
        "CREATE EXTENSION hstore; CREATE TYPE mood AS ENUM ('ok'); CREATE TYPE comp AS (a int,"
        "b text); CREATE DOMAIN posint AS int CHECK (value > 0);"
        "CREATE DOMAIN amount AS numeric(9,3); CREATE DOMAIN price AS amount",
    ),
    "mysql": ("SET sql_mode = 'ALLOW_INVALID_DATES'",),
}
"""What the tables of all types need."""


class Database(Protocol):
    """A running server."""

    def url(self, database: str) -> str:
        """Return the URL of a database, without a login."""

    def connect(self, database: str, **settings: Any) -> Any:
        """Connect as the administrator, each statement a transaction of its own."""

    def new_database(self) -> str:
        """Create an empty database and return its name."""


class History:
    """One database: its tables, the transactions that change them, and those not yet committed."""

    def __init__(
        self, server: Server, database: Database, seed: str, tables: Sequence[Table]
    ) -> None:
        self.server = server
        self.tables = tables
        self.name = database.new_database()
        self.schema = "public" if server == "postgres" else self.name
        self.database = database
        self._random = random.Random(seed)  # noqa: S311
        self._admin = self._connect()
        self._late: list[Any] = []
        self._ticks = 0

    def create(self) -> None:
        """Create all tables with their first rows, and the views."""
        for statement in _PREPARED[self.server]:
            self._run(statement)
        for table in self.tables:
            name = quoted(self.server, table.name)
            if table.types:
                for statement in values.statements(self.server, table):
                    self._run(statement)
                continue
            if table.view_of:
                columns = ", ".join(quoted(self.server, column) for column in table.columns)
                source = quoted(self.server, table.view_of)
                self._run(f"CREATE VIEW {name} AS SELECT {columns} FROM {source}")
                continue
            parts = [
                f"{quoted(self.server, column)} {KINDS[kind].type_of(self.server)}"
                + (" NOT NULL" if column in table.key else "")
                for column, kind in table.columns.items()
            ]
            if table.key:
                keys = ", ".join(quoted(self.server, column) for column in table.key)
                parts.append(f"PRIMARY KEY ({keys})")
            self._run(f"CREATE TABLE {name} ({', '.join(parts)}) {table.partitioned}")
            for statement in table.after:
                self._run(statement.format(name=table.name))
            if table.large:
                self._fill(table)
            else:
                self._insert(self._admin, table, table.rows)

    def change(self) -> None:
        """Commit what was late, then insert, update and delete in every table that changes."""
        self.commit_late()
        for table in self.tables:
            if not table.changes:
                continue
            self._insert(self._admin, table, self._random.randrange(1, 20))
            if table.large:
                continue
            if table.key:
                self._update(self._admin, table, self._some(table))
            if table.way not in ("append cursor, no key",):
                self._delete(table, self._some(table))

    def begin_late(self) -> None:
        """Insert and update rows in transactions that are open during the load to come."""
        for table in self.tables:
            if not table.changes or table.large or table.way == "append cursor, no key":
                continue
            connection = self._connect(autocommit=False)
            # Before rows that are committed already, by the cursor: within the lookback.
            self._insert(
                connection, table, self._random.randrange(1, 5), back=LOOKBACK_SECONDS // 3
            )
            if table.key:
                self._update(connection, table, self._some(table)[:3])
            self._late.append(connection)
        for table in self.tables:
            if table.changes and not table.large:
                self._insert(self._admin, table, 2)

    def commit_late(self) -> None:
        """Commit the transactions that were left open."""
        for connection in self._late:
            connection.commit()
            connection.close()
        self._late = []

    def rows(self, table: Table) -> Iterator[tuple[Any, ...]]:
        """Return the rows that are committed now."""
        columns = ", ".join(
            quoted(self.server, name) + ("+0" if kind == "bool" and self.server == "mysql" else "")
            for name, kind in table.columns.items()
        )
        statement = f"SELECT {columns} FROM {quoted(self.server, table.name)}"
        if self.server == "postgres":
            with self._admin.transaction(), self._admin.cursor(name="rows") as cursor:
                cursor.itersize = _BATCH
                cursor.execute(statement.encode())
                yield from cursor
        else:
            with self._admin.cursor(pymysql.cursors.SSCursor) as cursor:
                cursor.execute(statement)
                while batch := cursor.fetchmany(_BATCH):
                    yield from batch

    def wrong_values(self, table: Table, own: Any) -> list[str]:
        """Return what is wrong with the values of a table of all types in the lake."""
        return values.problems(self.server, self._admin, table, own)

    def close(self) -> None:
        """End the connections."""
        for connection in (*self._late, self._admin):
            connection.close()

    def _connect(self, *, autocommit: bool = True) -> Any:
        if self.server == "postgres":
            connection = self.database.connect(self.name, autocommit=True)
            connection.execute("SET TimeZone = 'UTC'")
            connection.autocommit = autocommit
            return connection
        settings = (
            "SET time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES', innodb_lock_wait_timeout = 5"
        )
        return self.database.connect(self.name, init_command=settings, autocommit=autocommit)

    def _run(self, statement: str) -> None:
        with closing(self._admin.cursor()) as cursor:
            cursor.execute(statement)

    def _fill(self, table: Table) -> None:
        if self.server == "postgres":
            self._run(
                f"INSERT INTO large SELECT n, n / 7.0, timestamptz '{BEGIN:%Y-%m-%d} 00:00:00+00'"
                f" - n * interval '1 s', 'note ' || n FROM generate_series(1, {table.rows}) n"
            )
        elif table.rows:
            self._run(
                f"INSERT INTO large SELECT seq, seq / 7, '{BEGIN:%Y-%m-%d}' - INTERVAL seq SECOND,"
                f" CONCAT('note ', seq) FROM seq_1_to_{table.rows}"
            )
        table.ids = [table.rows]

    def _insert(self, connection: Any, table: Table, count: int, *, back: int = 0) -> None:
        first = (table.ids[-1] if table.ids else 0) + 1
        new = list(range(first, first + count))
        rows = [self._row(table, number, back) for number in new]
        if table.way == "append cursor, no key":
            # Rows that are equal, also to one that a load has seen as the greatest of the cursor.
            rows = [*table.last, *rows, rows[-1]]
            table.last = rows[-1:]
        table.ids += new
        self._many(connection, "INSERT INTO {name} ({columns}) VALUES ({places})", table, rows)

    def _row(self, table: Table, number: int, back: int) -> tuple[Any, ...]:
        self._ticks += 1
        return tuple(
            self._value(name, kind, number, back, never_null=name in table.key or table.large)
            for name, kind in table.columns.items()
        )

    def _value(self, name: str, kind: str, number: int, back: int, *, never_null: bool) -> Any:
        match name:
            case "id":
                return number
            case "changed":
                return BEGIN + timedelta(seconds=self._ticks - back)
            case "version":
                return self._ticks - back
        if not never_null and self._random.random() < 0.1:
            return None
        return KINDS[kind].draw(self._random)

    def _update(self, connection: Any, table: Table, ids: Sequence[int]) -> None:
        names = [name for name in table.columns if name not in table.key]
        written = [quoted(self.server, name).replace("%", "%%") for name in names]
        sets = ", ".join(f"{name} = %s" for name in written)
        rows = []
        for number in ids:
            new = dict(zip(table.columns, self._row(table, number, 0), strict=True))
            rows.append((*(new[name] for name in names), number))
        self._many(connection, f"UPDATE {{name}} SET {sets} WHERE id = %s", table, rows)

    def _delete(self, table: Table, ids: Sequence[int]) -> None:
        self._many(self._admin, "DELETE FROM {name} WHERE id = %s", table, [(one,) for one in ids])
        gone = set(ids)
        # The greatest stays, so that no number comes twice.
        table.ids = [one for one in table.ids if one not in gone or one == table.ids[-1]]

    def _some(self, table: Table) -> list[int]:
        return self._random.sample(table.ids[:-8], min(6, max(0, len(table.ids) - 8)))

    def _many(self, connection: Any, statement: str, table: Table, rows: Sequence[Any]) -> None:
        if not rows:
            return
        names = [quoted(self.server, name).replace("%", "%%") for name in table.columns]
        text = statement.format(
            name=quoted(self.server, table.name).replace("%", "%%"),
            columns=", ".join(names),
            places=", ".join(["%s"] * len(names)),
        )
        left = iter(rows)
        with closing(connection.cursor()) as cursor:
            while batch := list(islice(left, 1000)):
                cursor.executemany(text, batch)

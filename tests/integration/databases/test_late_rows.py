"""Rows that are committed late, or with the greatest cursor of the load before, are appended once.

The oracle is the list of what each load has to bring, written beside the statements.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from lakeload_jobs.contract.spec import JdbcInput, TableSpec
from lakeload_jobs.sources.databases import seen
from tests.integration.databases.conftest import Database, MariaDatabase
from tests.integration.formats.worlds import World, load

FILES_ONLY = pytest.mark.parametrize("world", ["parquet"], indirect=True)
"""What the format has no part in, where commits are quick."""
AT = "timestamptz '2024-02-29 12:00:00+00' + interval '1 s' *"


def by_cursor(table: TableSpec, lookback: str | None = None) -> TableSpec:
    """Return a table whose rows are appended by its cursor."""
    given = table.input
    assert isinstance(given, JdbcInput)
    return replace(table, input=replace(given, incremental=True, lookback=lookback))


class Lake:
    """A table that is loaded again and again: each load must bring exactly what is expected."""

    def __init__(self, world: World, table: TableSpec) -> None:
        self.world = world
        self.table = table
        self._rows: Counter[Any] = Counter()

    def load(self, *expected: object) -> None:
        """Load, and compare the rows that were added: their ids, or values of columns."""
        result = load(self.world, self.table)
        assert result.error is None, result.error
        assert result.status == ("LOADED" if expected else "NO_OP")
        self.check(*expected)

    def check(self, *expected: object) -> None:
        """Compare the rows that were added since."""
        rows = Counter(row["id"] for row in self.world.rows())
        assert rows - self._rows == Counter(expected)
        assert not self._rows - rows
        self._rows = rows


@FILES_ONLY
def test_late_rows_and_updates_within_lookback_are_appended_once(
    world: World, database: Database
) -> None:
    database.run(
        "CREATE TABLE orders (id bigint PRIMARY KEY, at timestamptz NOT NULL, v text, gone int);"
        f"INSERT INTO orders SELECT n, {AT} n, 'v' FROM generate_series(1, 30) n"
    )
    table = by_cursor(database.table(world, primary_key=("id",), cursor="at"), "PT10M")
    lake = Lake(world, table)
    with closing(database.session()) as late, closing(database.session()) as other:
        late.execute(f"BEGIN; INSERT INTO orders VALUES (100, {AT} 20)".encode())
        late.execute(f"SAVEPOINT s; INSERT INTO orders VALUES (101, {AT} 30)".encode())
        other.execute(f"BEGIN; INSERT INTO orders VALUES (102, {AT} -570)".encode())
        lake.load(*range(1, 31))
        lake.load()
        late.execute("COMMIT")
        # At the bound, above it, a real update, and one that changes nothing.
        database.run(f"INSERT INTO orders VALUES (103, {AT} 30), (104, {AT} 31)")
        database.run("UPDATE orders SET v = 'new' WHERE id = 3; UPDATE orders SET v = v")
        lake.load(100, 101, 103, 104, 3)
        other.execute("COMMIT")
        # 601 seconds before the greatest cursor: not found, as documented.
        lake.load()
    database.run(f"DELETE FROM orders WHERE id = 104; INSERT INTO orders VALUES (105, {AT} 29)")
    lake.load(105)
    database.run(
        f"ALTER TABLE orders ADD COLUMN more int; INSERT INTO orders VALUES (106, {AT} 31)"
    )
    lake.load(106)
    database.run(f"ALTER TABLE orders DROP COLUMN gone; INSERT INTO orders VALUES (107, {AT} 5)")
    lake.load(107)
    # A greater `lookback` begins where rows were noted.
    lake.table = by_cursor(table, "P1D")
    database.run(f"INSERT INTO orders VALUES (108, {AT} 32)")
    lake.load(108)
    database.run(f"INSERT INTO orders VALUES (109, {AT} -3600)")
    lake.load(109)


def test_a_load_that_ends_before_its_commit_or_is_overtaken_doubles_nothing(
    world: World, database: Database
) -> None:
    database.run("CREATE TABLE orders (id int PRIMARY KEY, v text); INSERT INTO orders VALUES (9)")
    table = by_cursor(database.table(world, primary_key=("id",), cursor="id"), "5")
    lake = Lake(world, table)
    lake.load(9)
    database.run("INSERT INTO orders VALUES (8), (10), (3)")

    def fail() -> None:
        raise ConnectionResetError("the process ends here")

    world.before_commit(fail)
    with pytest.raises(AssertionError):
        lake.load()
    lake.check()
    lake.load(8, 10)
    database.run("INSERT INTO orders VALUES (7), (11)")

    def overtake() -> None:
        lake.load(7, 11)
        database.run("INSERT INTO orders VALUES (6), (12)")

    world.before_commit(overtake)
    load(world, table)
    overtaken = Counter(row["id"] for row in world.rows())
    assert max(overtaken.values()) == 1
    load(world, table)
    assert sorted(row["id"] for row in world.rows()) == [6, 7, 8, 9, 10, 11, 12]


@pytest.mark.parametrize("world", ["iceberg"], indirect=True)
def test_an_upsert_finds_late_rows_within_lookback(world: World, database: Database) -> None:
    database.run("CREATE TABLE orders (id int PRIMARY KEY, n int NOT NULL)")
    database.run("INSERT INTO orders VALUES (1, 100), (2, 90)")
    table = database.table(world, primary_key=("id",), cursor="n", mode="UPSERT")
    table = by_cursor(table, "10")
    load(world, table)
    database.run("INSERT INTO orders VALUES (3, 90), (4, 89)")

    result = load(world, table)

    assert result.error is None, result.error
    assert sorted(row["id"] for row in world.rows()) == [1, 2, 3]
    assert load(world, table).status == "NO_OP"


@FILES_ONLY
def test_without_a_key_equal_rows_with_the_last_cursor_are_counted(
    world: World, database: Database
) -> None:
    database.run(
        "CREATE TABLE orders (n date, id text);"
        "INSERT INTO orders VALUES ('2024-02-28', 'a'), ('2024-02-29', 'b'), ('2024-02-29', 'b')"
    )
    lake = Lake(world, by_cursor(database.table(world, cursor="n")))
    lake.load("a", "b", "b")
    database.run("INSERT INTO orders VALUES ('2024-02-29', 'b'), ('2024-02-29', NULL)")
    database.run("INSERT INTO orders VALUES ('2024-02-28', 'late')")
    lake.load("b", None)
    lake.load()
    database.run("ALTER TABLE orders ADD COLUMN more int")
    database.run("INSERT INTO orders VALUES ('2024-02-29', 'b', 5), ('2024-03-01', 'b', NULL)")
    lake.load("b", "b")
    database.run("ALTER TABLE orders DROP COLUMN more; INSERT INTO orders VALUES ('2024-03-01')")

    failed = load(world, lake.table)

    assert failed.error is not None
    assert "column `more` has changed since the last load" in failed.error.message


@FILES_ONLY
@pytest.mark.parametrize(
    ("lookback", "key", "why"),
    [
        ("PT10M", (), "`lookback` of `public.orders` needs a key"),
        ("10", ("id",), "`lookback: 10` of `public.orders` does not fit its cursor"),
    ],
)
def test_a_lookback_without_a_key_or_of_another_kind_is_an_error(
    world: World, database: Database, lookback: str, key: tuple[str, ...], why: str
) -> None:
    database.run("CREATE TABLE orders (id int, at timestamp)")

    table = by_cursor(database.table(world, primary_key=key, cursor="at"), lookback)
    result = load(world, table)

    assert result.error is not None
    assert result.error.message.startswith(why)


@FILES_ONLY
def test_more_rows_than_are_noted_are_an_error(
    world: World, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen, "MOST_ROWS", 3)
    database.run("CREATE TABLE orders (id int, day date)")
    database.run("INSERT INTO orders SELECT n, '2024-02-29' FROM generate_series(1, 4) n")

    result = load(world, by_cursor(database.table(world, cursor="day")))

    assert result.error is not None
    assert result.error.message == (
        "loading `public.orders`: 4 rows are in the greatest cursor, and a load remembers 3 at most"
    )


@FILES_ONLY
def test_late_rows_of_mariadb_are_appended_once(world: World, maria: MariaDatabase) -> None:
    at = "'2024-02-29 12:00:00.5' + INTERVAL %d SECOND"
    maria.run(
        "CREATE TABLE orders (id bigint PRIMARY KEY, at datetime(6) NOT NULL, v varchar(9),"
        " raw blob, f float)",
        "INSERT INTO orders SELECT seq, " + at.replace("%d", "seq") + ", 'v', 0xFF, 1.1"
        " FROM seq_1_to_30",
    )
    table = maria.table(world, "orders", primary_key=("id",), cursor="at")
    lake = Lake(world, by_cursor(table, "PT10M"))
    lake.load(*range(1, 31))
    lake.load()
    maria.run(
        f"INSERT INTO orders (id, at) VALUES (100, {at % 20}), (101, {at % 30}), (102, {at % 31}),"
        f" (103, {at % -600})",
        "UPDATE orders SET f = 1.1000001 WHERE id = 3",
        "UPDATE orders SET v = NULL WHERE id = 4",
    )
    lake.load(100, 101, 102, 3, 4)
    maria.run(f"INSERT INTO orders (id, at) VALUES (104, {at % 31})")
    lake.load(104)
    lake.load()


@FILES_ONLY
def test_without_a_key_equal_rows_of_mariadb_are_counted(
    world: World, maria: MariaDatabase
) -> None:
    maria.run(
        "CREATE TABLE orders (n int, id varchar(9))",
        "INSERT INTO orders VALUES (1, 'a'), (2, 'b'), (2, 'b')",
    )
    lake = Lake(world, by_cursor(maria.table(world, "orders", cursor="n")))
    lake.load("a", "b", "b")
    maria.run("INSERT INTO orders VALUES (2, 'b'), (2, NULL), (2, ''), (1, 'late')")
    lake.load("b", None, "")
    lake.load()

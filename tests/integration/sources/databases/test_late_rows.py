"""Rows that are committed late, or with the greatest cursor of the load before, are appended once.

The oracle is the list of what each load has to bring, written beside the statements.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

import pytest

from lakeload_jobs.contract.spec import ColumnsSpec, JdbcInput, RejectLimit, TableSpec
from lakeload_jobs.contract.state import Bookmark, Evidence
from lakeload_jobs.sources.databases import seen
from lakeload_jobs.sources.databases.columns import SelectedColumn
from lakeload_jobs.sources.databases.engines.postgres import catalog
from lakeload_jobs.sources.databases.engines.postgres.snapshot import (
    PostgresRelation,
    entry_sql,
    select_sql,
    unseen_parts,
)
from lakeload_jobs.sources.databases.engines.postgres.xids import XminRequest, find_xmin_window
from tests.integration.formats.worlds import World, load
from tests.integration.sources.databases.conftest import Database, MariaDatabase
from tests.integration.sources.databases.test_cursors import without_spark

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


@FILES_ONLY
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


@pytest.mark.parametrize("world", ["iceberg"], indirect=True)
def test_a_load_of_mariadb_that_only_deletes_appends_no_row_again(
    world: World, maria: MariaDatabase
) -> None:
    maria.run(
        "CREATE TABLE orders (id int PRIMARY KEY, n int NOT NULL)",
        "INSERT INTO orders VALUES (1, 1), (2, 1), (3, 9), (4, 9)",
    )
    table = maria.table(world, "orders", primary_key=("id",), cursor="n")
    lake = Lake(world, replace(by_cursor(table), max_deleted=RejectLimit(percent=100)))
    lake.load(1, 2, 3, 4)
    maria.run("DELETE FROM orders WHERE id = 1")
    # The row that says so.
    lake.load(1)
    maria.run("DELETE FROM orders WHERE n = 9")
    lake.load(3, 4)
    maria.run("INSERT INTO orders VALUES (5, 9)")
    lake.load(5)


@FILES_ONLY
def test_without_a_key_equal_rows_of_mariadb_are_counted_also_with_casts(
    world: World, maria: MariaDatabase
) -> None:
    maria.run(
        "CREATE TABLE orders (n int, id varchar(9))",
        "INSERT INTO orders VALUES (1, 'a'), (2, 'b'), (2, 'b')",
    )
    columns = ColumnsSpec(types={"n": "string"})
    lake = Lake(world, by_cursor(maria.table(world, "orders", cursor="n", columns=columns)))
    lake.load("a", "b", "b")
    assert {row["n"] for row in world.rows()} == {"1", "2"}
    maria.run("INSERT INTO orders VALUES (2, 'b'), (2, NULL), (2, ''), (1, 'late')")
    lake.load("b", None, "")
    lake.load()


def by_xmin(table: TableSpec) -> TableSpec:
    """Return a table of which a load reads the row versions that are new."""
    given = table.input
    assert isinstance(given, JdbcInput)
    return replace(table, input=replace(given, incremental=True, by_xmin=True))


@FILES_ONLY
def test_by_xmin_each_row_version_is_appended_once_however_late_it_is_committed(
    world: World, database: Database
) -> None:
    database.run("CREATE TABLE orders (id int PRIMARY KEY, v text)")
    database.run("INSERT INTO orders SELECT generate_series(1, 5)")
    lake = Lake(world, by_xmin(database.table(world)))
    assert without_spark(world, lake.table).action == "LOAD"
    with closing(database.session()) as late, closing(database.session()) as other:
        late.execute("BEGIN; INSERT INTO orders VALUES (100)")
        late.execute("SAVEPOINT s; INSERT INTO orders VALUES (101); RELEASE s")
        other.execute("BEGIN; INSERT INTO orders VALUES (102)")
        lake.load(1, 2, 3, 4, 5)
        database.run("INSERT INTO orders VALUES (103)")
        lake.load(103)
        lake.load()
        assert without_spark(world, lake.table).note == "no new rows"
        late.execute("COMMIT")
        assert without_spark(world, lake.table).action == "LOAD"
        database.run("UPDATE orders SET v = 'new' WHERE id = 1; DELETE FROM orders WHERE id = 2")
        database.run("BEGIN; SELECT FROM orders WHERE id = 3 FOR UPDATE; COMMIT")
        lake.load(100, 101, 1)
        other.execute("ROLLBACK")
        late.execute("BEGIN; INSERT INTO orders VALUES (104); PREPARE TRANSACTION 'late'")
        database.run("INSERT INTO orders VALUES (105)")
        lake.load(105)
        late.execute("COMMIT PREPARED 'late'")
    database.run("VACUUM (FREEZE, FULL) orders")
    lake.load(104)
    database.run("VACUUM FREEZE orders")
    lake.load()
    world.before_commit(lambda: database.run("INSERT INTO orders VALUES (107)"))
    database.run("INSERT INTO orders VALUES (106)")
    lake.load(106)
    lake.load(107)


@pytest.mark.parametrize("world", ["iceberg"], indirect=True)
def test_by_xmin_an_upsert_finds_late_rows_and_those_of_an_attached_partition(
    world: World, database: Database
) -> None:
    database.run(
        "CREATE TABLE two (id int PRIMARY KEY, v text); INSERT INTO two VALUES (20);"
        "CREATE TABLE orders (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);"
        "CREATE TABLE one PARTITION OF orders FOR VALUES FROM (1) TO (10);"
        "INSERT INTO orders VALUES (1, 'a'), (2, 'b')"
    )
    table = by_xmin(database.table(world, primary_key=("id",), mode="UPSERT"))
    with closing(database.session()) as late:
        late.execute("BEGIN; UPDATE orders SET v = 'late' WHERE id = 1")
        load(world, table)
        late.execute("COMMIT")
    database.run("ALTER TABLE orders ATTACH PARTITION two FOR VALUES FROM (10) TO (30)")

    result = load(world, table)

    assert result.error is None, result.error
    assert {row["id"]: row["v"] for row in world.rows()} == {1: "late", 2: "b", 20: None}
    assert load(world, table).status == "NO_OP"


@FILES_ONLY
def test_by_xmin_a_view_and_another_server_are_errors(
    world: World, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.run("CREATE TABLE orders (id int); INSERT INTO orders VALUES (1)")
    database.run("CREATE VIEW seen AS SELECT id FROM orders")

    failed = load(world, by_xmin(database.table(world, "seen")))

    assert failed.error is not None
    assert failed.error.message.startswith("`cursor: xmin` of `public.seen`: only tables of")
    table = by_xmin(database.table(world))
    load(world, table)
    monkeypatch.setattr(catalog, "server_of", lambda _: "7/2")
    failed = load(world, table)
    assert failed.error is not None
    assert "and this is `7/2`" in failed.error.message
    failed = load(world, by_cursor(database.table(world, cursor="id")))
    assert failed.error is not None
    assert "earlier loads of this pipeline have used `xmin`" in failed.error.message


def test_sessions_at_once_lose_and_double_nothing(database: Database) -> None:
    """The rules of both, on what a real server shows while sessions write, without any load."""
    chance = random.Random(16)  # noqa: S311 - not for secrets
    database.run("CREATE TABLE orders (id int PRIMARY KEY, n int NOT NULL, v int)")
    oid = database.run("SELECT 'orders'::regclass::oid::int8").fetchone()
    assert oid is not None
    columns = [SelectedColumn(name, f'"{name}"', "int") for name in ("id", "n", "v")]
    entry = entry_sql(('"id"', '"n"'), columns)
    relation = PostgresRelation("orders", "orders")
    xmin = XminRequest(oid[0], "r", "orders", "orders", appends=True)
    noted: list[Evidence] = []
    state: Any = None
    before: set[Any] = set()
    bound, packed, found_late = -1, b"", 0
    number = itertools.count(1)
    with ExitStack() as stack:
        sessions = [stack.enter_context(closing(database.session())) for _ in range(4)]
        reader = stack.enter_context(closing(database.session()))

        def fetch(statement: str) -> list[Any]:
            return reader.execute(statement.encode()).fetchall()

        for _ in range(200):
            for place, session in enumerate(sessions):
                write(session, place * 1_000_000, chance, number)
            reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            rows = set(fetch("SELECT id, n, v FROM orders"))
            bookmark = Bookmark(state, state is None, len(noted), lambda since: noted[since:])
            window = find_xmin_window(xmin, bookmark, fetch, "")
            where = f" WHERE {window.condition}" if window.condition else ""
            loaded = Counter(fetch(f"SELECT id, n, v FROM orders{where}"))
            assert loaded == Counter(rows - before)
            assert window.evidence is not None
            noted.append(window.evidence)
            state = window.state.after

            new = Counter(fetch(f"SELECT id, n, v FROM orders WHERE n > {bound}"))
            now = fetch(f"SELECT {entry} FROM orders WHERE n <= {bound}")
            late = seen.unseen(b"".join(one for (one,) in now), packed)
            for part in unseen_parts(relation, columns, f"n <= {bound}", entry, late):
                found = Counter(fetch(select_sql(relation, columns, part)))
                assert found.total() == part.rows
                found_late += part.rows
                new += found
            assert new == loaded
            bound = max([bound, *(n for _, n, _ in rows)])
            packed = b"".join(one for (one,) in fetch(f"SELECT {entry} FROM orders"))
            before = rows
            reader.execute("COMMIT")
    assert found_late > 50


def write(session: Any, own: int, chance: random.Random, number: Iterator[int]) -> None:
    """Do something in a session. Its rows are those from `own` on, so that none waits."""
    status = session.info.transaction_status.name
    what = chance.choice(["write", "write", "write", "savepoint", "back", "commit", "abort"])
    if status == "IDLE":
        session.execute("BEGIN")
    if what == "savepoint":
        session.execute("SAVEPOINT s")
    elif what == "back" and status != "IDLE":
        session.execute("SAVEPOINT t")
        session.execute(f"INSERT INTO orders VALUES ({own + next(number)}, 0, 0)".encode())
        session.execute("ROLLBACK TO SAVEPOINT t")
    elif what in ("commit", "abort"):
        session.execute("COMMIT" if what == "commit" else "ROLLBACK")
    else:
        one = next(number)
        session.execute(f"INSERT INTO orders VALUES ({own + one}, {one}, {one})".encode())
        if chance.random() < 0.4:
            rows = f"id / 1000000 = {own // 1_000_000} AND id % 7 = {chance.randrange(7)}"
            change = chance.choice(["DELETE FROM orders", f"UPDATE orders SET v = {one}"])
            session.execute(f"{change} WHERE {rows}".encode())

"""Incremental loads by a cursor: which rows a load reads, and what the lake has afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import psycopg
import pytest

from lakeload.formats.iceberg.runs import read_snapshots
from lakeload.formats.inspection import InspectionRequest, outcome_without_spark
from lakeload.formats.parquet.runs import read_history
from lakeload.formats.plan import plan_table
from lakeload.formats.registry import commands_of
from lakeload.formats.tables import TableRef
from lakeload.launch.spec import new_attempt
from lakeload.sources.report import CursorPlan
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.spec import NO_OPTIONS, RunOptions, TableSpec
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.iceberg.catalogs.tables import open_tables
from lakeload_jobs.sources.databases.columns import Fetch
from lakeload_jobs.sources.databases.cursors import Window, find_window, request_of
from lakeload_jobs.sources.databases.engines.mysql import catalog as mysql
from lakeload_jobs.sources.databases.engines.mysql import connection as mysql_connection
from lakeload_jobs.sources.databases.engines.mysql import types as mysql_types
from lakeload_jobs.sources.databases.engines.mysql.engine import MYSQL
from lakeload_jobs.sources.databases.engines.postgres import catalog as postgres
from lakeload_jobs.sources.databases.engines.postgres import connection as postgres_connection
from lakeload_jobs.sources.databases.engines.postgres import types as postgres_types
from lakeload_jobs.sources.databases.engines.postgres.engine import POSTGRES
from lakeload_jobs.sources.databases.engines.postgres.xids import XminRequest, find_xmin_window
from lakeload_jobs.storage.objects import Objects
from tests.integration.formats.worlds import World, load
from tests.integration.sources.databases.conftest import Database, MariaDatabase

POSTGRES_VALUES: dict[str, list[str]] = {
    "int2": ["-32768", "-1", "0", "32767"],
    "int4": ["-2147483648", "2147483647"],
    "int8": ["-9223372036854775808", "9223372036854775806", "9223372036854775807"],
    "numeric(38,0)": ["-" + "9" * 38, "-1", "9" * 37 + "8", "9" * 38],
    "date": ["0001-01-01", "1969-12-31", "2024-02-29", "9999-12-31"],
    "timestamp": [
        "0001-01-01 00:00:00",
        "1969-12-31 23:59:59.999999",
        "2024-03-31 02:30:00.000001",
        "2024-03-31 02:30:00.000002",
        "9999-12-31 23:59:59.999999",
    ],
    "timestamptz": [
        "0001-01-01 00:00:00+00",
        "2024-10-27 00:59:59.999999+00",
        "2024-10-27 01:00:00.000001+00",
        "9999-12-31 23:59:59.999999+00",
    ],
    "text": ["", " ", "A", "Z", "a", "a ", "a'b\\", "b", "ä", "日本", "😀"],
    "varchar(9)": ["10", "9", "ß"],
}
MARIADB_VALUES: dict[str, list[str]] = {
    "tinyint": ["-128", "127"],
    "bigint": ["-9223372036854775808", "9223372036854775807"],
    "bigint unsigned": ["0", "18446744073709551614", "18446744073709551615"],
    "decimal(65,0)": ["-" + "9" * 65, "9" * 64 + "8", "9" * 65],
    "date": ["0001-01-01", "2024-02-29", "9999-12-31"],
    "datetime": ["0001-01-01 00:00:00", "2024-03-31 02:30:00", "9999-12-31 23:59:59"],
    "datetime(6)": ["2024-03-31 02:30:00.000001", "2024-03-31 02:30:00.000002"],
    "timestamp(6)": ["1970-01-01 00:00:01.000001", "2038-01-19 03:14:07.999999"],
    "varchar(9)": ["", " ", "A", "Z", "a", "a ", "a'b\\", "b", "ä", "日本", "😀"],
    "varchar(9) CHARACTER SET latin1": ["A", "a", "ß"],
    "longtext": ["10", "9"],
}
Windows = Callable[..., Window]


def bookmark(state: Any) -> Bookmark:
    """Return what a table with this state keeps."""
    return Bookmark(state, state is None, 1, lambda _: ())


@pytest.fixture
def postgres_windows(database: Database) -> Windows:
    """Return what finds the window of the table `orders` by a cursor."""

    def find(
        state: Any = None, name: str = "c", reload: bool = False, since: str | None = None
    ) -> Window:
        relation = postgres.find_relation(database.admin, database.input)
        columns = postgres.columns(database.admin, relation, database.input)
        selected = postgres_types.select(columns)
        key = postgres.key_of(database.admin, relation)
        options = RunOptions(reload=reload, since=since)
        table = TableSpec("orders", "", "orders", database.input, "", mode="UPSERT", cursor=name)
        request = request_of(
            database.input, POSTGRES.cursors, table, relation, columns, selected, key, options
        )
        return find_window(request, bookmark(state), lambda sql: database.run(sql).fetchall())

    # As the sessions of a load are.
    database.run(postgres_connection.session_settings(database.input))
    # They create no tables, and these would be in the schema of the catalog.
    database.run("SET search_path = public")
    return find


@pytest.fixture
def mariadb_windows(maria: MariaDatabase) -> Windows:
    """Return what finds the window of the table `orders` by a cursor."""

    def find(
        state: Any = None, name: str = "c", reload: bool = False, since: str | None = None
    ) -> Window:
        given = replace(maria.input, table="orders")
        with closing(mysql_connection.connect(given, password_of(maria))) as connection:
            relation = mysql.find_relation(connection, given)
            columns = mysql.columns(connection, relation, given)
            selected, key = mysql_types.select(columns), mysql.key_of(connection, relation)
            options = RunOptions(reload=reload, since=since)
            table = TableSpec("orders", "", "orders", given, "", mode="UPSERT", cursor=name)
            request = request_of(
                given, MYSQL.cursors, table, relation, columns, selected, key, options
            )
            fetch: Fetch = partial(mysql_connection.fetch, connection)
            return find_window(request, bookmark(state), fetch)

    return find


def password_of(maria: MariaDatabase) -> Any:
    """Return the administrator's password."""
    from lakeload_jobs.contract.secrets import Secret
    from tests.servers.mariadb import PASSWORD

    return Secret(PASSWORD)


@pytest.mark.parametrize("kind", POSTGRES_VALUES)
def test_postgres_finds_every_value_from_a_bound_on(
    database: Database, postgres_windows: Windows, kind: str
) -> None:
    values = POSTGRES_VALUES[kind]
    database.run(f"CREATE TABLE orders (n int PRIMARY KEY, c {kind} NOT NULL)")
    with database.admin.cursor() as cursor:
        for place, value in enumerate(values):
            cursor.execute(f"INSERT INTO orders VALUES (%s, %s::{kind})".encode(), (place, value))

    check_bounds(postgres_windows, values, lambda sql: database.run(sql).fetchall())


@pytest.mark.parametrize("kind", MARIADB_VALUES)
def test_mariadb_finds_every_value_from_a_bound_on(
    maria: MariaDatabase, mariadb_windows: Windows, kind: str
) -> None:
    values = MARIADB_VALUES[kind]
    maria.run(f"CREATE TABLE orders (n int PRIMARY KEY, c {kind} NOT NULL) CHARSET utf8mb4")
    with closing(mysql_connection.connect(maria.input, password_of(maria))) as connection:
        connection.cursor().execute("SET SESSION TRANSACTION READ WRITE")
        for place, value in enumerate(values):
            mysql_connection.fetch(connection, f"INSERT INTO orders VALUES ({place}, %s)", value)

        check_bounds(mariadb_windows, values, partial(mysql_connection.fetch, connection))


def check_bounds(windows: Windows, values: list[str], fetch: Fetch) -> None:
    """Check the windows after a load that has ended at each of the values, which ascend."""
    first = windows()
    assert (first.low, first.idle) == (None, False)
    assert first.high is not None
    greatest = first.high.removesuffix("+00")
    assert greatest == values[-1].removesuffix("+00")
    assert len(fetch(f"SELECT n FROM orders WHERE {first.condition}")) == len(values)
    for place, value in enumerate(values):
        window = windows({**first.state.after, "last": value, "at": None})
        assert not window.warnings
        found = fetch(f"SELECT n FROM orders WHERE {window.condition}")
        assert sorted(int(n) for (n,) in found) == list(range(place, len(values))), value
        again = windows(first.state.after, since=value)
        assert not again.idle
        assert fetch(f"SELECT n FROM orders WHERE {again.condition}") == found
        if place:
            with pytest.raises(LakeloadError, match="some of them would be left out"):
                windows({**first.state.after, "last": values[place - 1]}, since=value)
    assert windows(first.state.after).idle


def test_what_no_incremental_load_would_find_is_refused(
    database: Database, postgres_windows: Windows, maria: MariaDatabase, mariadb_windows: Windows
) -> None:
    database.run(
        "CREATE TABLE orders (id int PRIMARY KEY, c timestamptz, d date NOT NULL, n numeric(9,2));"
        "INSERT INTO orders VALUES (1, now(), 'infinity', 1), (2, NULL, now(), 1);"
        "INSERT INTO orders VALUES (3, NULL, now(), 1)"
    )
    maria.run(
        "CREATE TABLE orders (id int PRIMARY KEY, c datetime, d date NOT NULL, n decimal(9,2))",
        "INSERT INTO orders VALUES (1, now(), '0000-00-00', 1), (2, NULL, now(), 1)",
    )

    def message(windows: Windows, *arguments: Any) -> str:
        with pytest.raises(LakeloadError) as caught:
            windows(*arguments)
        return caught.value.message

    found = "is null in 2 rows, such as the row with id = 2: no incremental load would find them"
    assert message(postgres_windows).endswith(f"the cursor `c` {found}")
    assert "the cursor `d` is `infinity` in 1 rows, such as the row with id = 1" in message(
        postgres_windows, None, "d"
    )
    assert "is null in 1 rows, such as the row with id = 2" in message(mariadb_windows)
    assert "`0000-00-00` in 1 rows, such as the row with id = 1" in message(
        mariadb_windows, None, "d"
    )
    for windows in (postgres_windows, mariadb_windows):
        assert "column `n` has the type" in message(windows, None, "n")
        assert "there is no column `x`" in message(windows, None, "x")


def test_a_state_of_another_cursor_or_type_is_refused(
    database: Database, postgres_windows: Windows
) -> None:
    database.run("CREATE TABLE orders (c int NOT NULL, d date NOT NULL)")
    database.run("INSERT INTO orders VALUES (1, '2024-01-01'), (2, '2024-01-02')")
    state = postgres_windows().state.after

    with pytest.raises(LakeloadError, match=r"is `d`, and earlier loads .* have used `c`"):
        postgres_windows(state, "d")
    assert postgres_windows(state, "d", reload=True).low is None
    database.run("ALTER TABLE orders ALTER c TYPE bigint")
    assert postgres_windows(state).idle
    database.run("ALTER TABLE orders ALTER c TYPE text")
    with pytest.raises(LakeloadError, match=r"`c` of `public.orders` is text, and was an integer"):
        postgres_windows(state)
    with pytest.raises(LakeloadError, match="cannot be used: `1; DROP` is not an integer"):
        postgres_windows({**state, "last": "1; DROP"})
    with pytest.raises(LakeloadError, match="it is not the state of a table of a database"):
        postgres_windows({"kind": "FILES"})


def test_a_cursor_that_goes_back_is_a_warning_and_an_idle_load(
    database: Database, postgres_windows: Windows
) -> None:
    database.run("CREATE TABLE orders (c int NOT NULL)")
    database.run("INSERT INTO orders VALUES (1), (2)")
    state = postgres_windows().state.after

    for change, now in (
        ("DELETE FROM orders WHERE c = 2", "its greatest value is 1"),
        ("DELETE FROM orders", "the source has no rows"),
    ):
        database.run(change)
        window = postgres_windows(state)
        assert (window.idle, window.state.after) == (True, state)
        assert f"`c` of `public.orders` was at 2 in an earlier load, and now {now}: " in "".join(
            window.warnings
        )

    database.run("INSERT INTO orders VALUES (3)")
    assert (postgres_windows(state).low, postgres_windows(state).high) == ("2", "3")


def test_a_load_from_a_value_on_is_checked_and_recorded(
    database: Database, postgres_windows: Windows
) -> None:
    database.run("CREATE TABLE orders (c timestamptz NOT NULL)")
    database.run("INSERT INTO orders VALUES ('2024-01-01 10:00+00'), ('2024-01-02 10:00+00')")

    first = postgres_windows(since="2024-01-02")
    assert (first.low, first.high) == ("2024-01-02 00:00:00", "2024-01-02 10:00:00+00")
    assert first.warnings == ("rows of `public.orders` before `--from 2024-01-02 00:00:00` were "
                              "left out",)  # fmt: skip
    assert first.state.after["from"] == "2024-01-02 00:00:00"
    again = postgres_windows(first.state.after, since="2024-01-01T12:00:00+02:00")
    assert (again.low, again.warnings) == ("2024-01-01 10:00:00", ())
    assert "from" not in postgres_windows(again.state.after).state.after
    with pytest.raises(LakeloadError, match="has no such rows, the greatest `c` is 2024-01-02 10"):
        postgres_windows(since="2024-01-03")
    with pytest.raises(LakeloadError, match=r"`--from soon`: column `c` .* is a timestamp with"):
        postgres_windows(since="soon")


@pytest.mark.parametrize("world", ["parquet"], indirect=True)
def test_a_load_from_a_value_on_appends_its_rows_again_and_later_loads_go_on(
    world: World, database: Database, maria: MariaDatabase
) -> None:
    database.run("CREATE TABLE orders (id int PRIMARY KEY)")
    maria.run("CREATE TABLE orders (id int PRIMARY KEY)")
    visits = maria.table(world, "orders", cursor="id")
    tables = (
        (database.run, database.table(world, cursor="id")),
        (maria.run, replace(visits, table="visits", source="visits")),
    )
    for run, whole in tables:
        table = replace(whole, input=replace(whole.input, incremental=True))
        run("INSERT INTO orders VALUES (1), (2), (3)")
        assert load(world, table).rows == 3
        run("INSERT INTO orders VALUES (4)")

        result = load(world, table, options=RunOptions(since="2"))

        assert (result.error, result.rows) == (None, 3)
        assert result.notes[0] == "rows with `id` from 2 (`--from`) to 4"
        assert read_by_newest(world, table) == result.notes[0]
        assert "`--from 2` appended rows" in result.warnings[0]
        assert load(world, table).status == "NO_OP"
        run("INSERT INTO orders VALUES (5)")
        assert load(world, table).rows == 1
        assert read_by_newest(world, table) == "rows with `id` to 5, after a load to 4"
        rows = [row["id"] for row in world.rows(table.table)]
        assert sorted(rows) == [1, 2, 2, 3, 3, 4, 5]


def test_rows_that_were_loaded_without_a_cursor_are_not_appended_again(
    database: Database, postgres_windows: Windows
) -> None:
    database.run("CREATE TABLE orders (c int NOT NULL)")
    relation = postgres.find_relation(database.admin, database.input)
    columns = postgres.columns(database.admin, relation, database.input)
    table = TableSpec("orders", "", "orders", database.input, "", cursor="c")
    about = (
        database.input,
        POSTGRES.cursors,
        table,
        relation,
        columns,
        postgres_types.select(columns),
        (),
    )
    loaded = Bookmark(None, False, 2, lambda _: ())

    def find(options: RunOptions) -> Window:
        return find_window(request_of(*about, options), loaded, fetch)

    def fetch(statement: str) -> list[tuple[Any, ...]]:
        return database.run(statement).fetchall()

    with pytest.raises(LakeloadError, match=r"has loaded `public.orders` without `cursor`"):
        find(RunOptions())
    assert find(RunOptions(reload=True)).low is None

    xmin = XminRequest(relation.oid, "r", "orders", "public.orders", appends=True)
    with pytest.raises(LakeloadError, match=r"has loaded `public.orders` without `cursor`"):
        find_xmin_window(xmin, loaded, fetch, "")
    assert find_xmin_window(replace(xmin, reload=True), loaded, fetch, "").condition == ""
    assert find_xmin_window(replace(xmin, appends=False), loaded, fetch, "").condition == ""


ROUNDS = (
    ("INSERT INTO orders VALUES (1, 'a', '{0}01'), (2, 'b', '{0}02'), (3, 'c', '{0}02')",),
    # Rows with the bound itself, one of them new, and a new version of an old one.
    (
        "INSERT INTO orders VALUES (4, 'd', '{0}02'), (5, 'e', '{0}03')",
        "UPDATE orders SET note = 'B', at = '{0}02' WHERE id = 2",
        "UPDATE orders SET note = 'A', at = '{0}03' WHERE id = 1",
    ),
    # Only the rows at the bound are others.
    ("UPDATE orders SET note = 'E' WHERE id = 5",),
)
TIME = "2024-02-29 12:00:00.0000"


@dataclass(frozen=True)
class Found:
    """What the command line finds without Spark: the plan, and the note of a table that is up to
    date."""

    action: str
    cursor: CursorPlan | None
    note: str


def without_spark(world: World, table: TableSpec) -> Found:
    """Inspect a table as `plan` and `sync` do."""
    spec = world.spec(table)
    request = InspectionRequest(spec.destination, spec.pipeline, new_attempt(None), NO_OPTIONS)
    commands = commands_of(spec.destination.table_format)
    states = commands.inspect(AwsSession(spec.destination), [table], request)
    plan = plan_table(states[0], request, local=True)
    done = outcome_without_spark(states)
    notes = done.tables[0].notes if done else ()
    return Found(plan.action, plan.cursor, "".join(notes))


def read_by_newest(world: World, table: TableSpec) -> object:
    """Return what the newest job of a table has read, as `runs` shows it."""
    destination = world.spec(table).destination
    session = AwsSession(destination)
    places = [TableRef("", TableLocation(destination.prefix, table.schema, table.table))]
    if destination.table_format == "PARQUET":
        report = read_history(Objects(session, destination), places, 1)
    else:
        report = read_snapshots(open_tables(destination, session), places, "main", 1)
    return report.runs[0].document["read"]


def check_rounds(
    world: World, table: TableSpec, run: Callable[[str], object], oracle: Callable[[], Any]
) -> None:
    """Check that after each round the lake has what the database's own driver reads."""
    for number, statements in enumerate(ROUNDS):
        for statement in statements:
            run(statement.format(TIME))
        result = load(world, table)
        assert (result.error, result.status) == (None, "LOADED")
        assert f"to {TIME}{'02' if number == 0 else '03'}" in result.notes[0]
        assert read_by_newest(world, table) == result.notes[0]
        found = [(row["id"], row["note"], row["at"]) for row in world.rows()]
        assert sorted(found) == oracle()
    before = world.state()
    assert without_spark(world, table).note == f"no new rows (`at` is at {before['last']})"

    idle = load(world, table)

    assert (idle.error, idle.status) == (None, "NO_OP")
    assert idle.notes == (f"no new rows (`at` is at {before['last']})",)
    run(f"INSERT INTO orders VALUES (8, 'w', '{TIME}04')")
    waits = without_spark(world, table)
    assert (waits.action, waits.note) == ("LOAD", "")
    assert waits.cursor == CursorPlan("at", before["last"], before["last"].replace("3", "4"))
    run("INSERT INTO orders VALUES (9, 'x', NULL)")
    assert without_spark(world, table).action == "BLOCKED"
    failed = load(world, table)
    assert failed.status == "FAILED"
    assert world.state() == before
    run("DELETE FROM orders WHERE id = 8")
    run("DELETE FROM orders WHERE at IS NULL")
    run("DELETE FROM orders WHERE id = 3")
    refreshed = load(world, table, options=RunOptions(full_refresh=True))
    assert refreshed.error is None
    assert sorted((row["id"], row["note"], row["at"]) for row in world.rows()) == oracle()
    assert world.state() == before


@pytest.mark.parametrize("world", ["iceberg"], indirect=True)
def test_rounds_of_changes_in_postgres_are_in_the_lake(world: World, database: Database) -> None:
    database.run("CREATE TABLE orders (id int PRIMARY KEY, note text, at timestamptz)")
    table = database.table(world, primary_key=("id",), mode="UPSERT", cursor="AT")
    table = replace(table, input=replace(table.input, incremental=True))

    def oracle() -> Any:
        rows: psycopg.Cursor[Any] = database.run("SELECT id, note, at FROM orders ORDER BY id")
        return rows.fetchall()

    check_rounds(world, table, database.run, oracle)


@pytest.mark.parametrize("world", ["iceberg"], indirect=True)
def test_rounds_of_changes_in_mariadb_are_in_the_lake(world: World, maria: MariaDatabase) -> None:
    maria.run("CREATE TABLE orders (id int PRIMARY KEY, note varchar(9), at datetime(6))")
    table = maria.table(world, "orders", primary_key=("id",), mode="UPSERT", cursor="at")
    table = replace(table, input=replace(table.input, incremental=True))

    def oracle() -> Any:
        with closing(maria.server.connect(maria.input.name)) as admin, admin.cursor() as cursor:
            cursor.execute("SELECT id, note, at FROM orders ORDER BY id")
            return list(cursor.fetchall())

    check_rounds(world, table, maria.run, oracle)


FILL_POSTGRES = (
    "INSERT INTO orders SELECT n, 'old ' || n FROM generate_series(1, 3) n",
    "INSERT INTO orders SELECT n, 'new ' || n FROM generate_series(1, 5) n",
)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ("DROP TABLE orders; CREATE TABLE orders (c int NOT NULL, v text)", "dropped and created"),
        ("TRUNCATE orders RESTART IDENTITY", "was truncated, created again or rewritten"),
    ],
)
def test_another_relation_of_the_name_in_postgres_is_refused(
    database: Database, postgres_windows: Windows, change: str, error: str
) -> None:
    database.run("CREATE TABLE orders (c int NOT NULL, v text)")
    database.run(FILL_POSTGRES[0])
    state = json.loads(json.dumps(postgres_windows().state.after))
    database.run(change)
    database.run(FILL_POSTGRES[1])

    with pytest.raises(LakeloadError, match=error) as refused:
        postgres_windows(state)
    assert "`lakeload sync --full-refresh`" in (refused.value.hint or "")
    # A state of an earlier version has no relation; it is noted with the next load.
    accepted = postgres_windows({**state, "relation": None}).state.after
    assert accepted["relation"]["id"] != ""
    assert accepted["last"] == "5"
    assert postgres_windows(reload=True).low is None


def test_a_rewritten_or_emptied_table_of_postgres_goes_on(
    database: Database, postgres_windows: Windows
) -> None:
    database.run("CREATE TABLE orders (c int NOT NULL, v text)")
    database.run(FILL_POSTGRES[0])
    state = postgres_windows().state.after
    database.run("VACUUM FULL orders")
    database.run("ALTER TABLE orders ALTER c TYPE bigint, ADD w text, DROP v")
    database.run("ALTER TABLE orders ADD v text")
    database.run("UPDATE orders SET v = 'old ' || c")
    assert postgres_windows(state).low == "3"

    database.run("TRUNCATE orders")
    emptied = postgres_windows(state)
    assert emptied.idle
    assert emptied.state.after == state
    database.run("INSERT INTO orders VALUES (4, 'w', 'v')")
    window = postgres_windows(state)
    assert (window.low, window.high) == ("3", "4")
    assert window.state.after["relation"]["files"] != state["relation"]["files"]


def test_partitions_come_and_go_in_postgres(database: Database, postgres_windows: Windows) -> None:
    database.run("CREATE TABLE orders (c int NOT NULL, v text) PARTITION BY RANGE (c)")
    for number in (0, 10):
        database.run(
            f"CREATE TABLE p{number} PARTITION OF orders FOR VALUES FROM ({number}) "
            f"TO ({number + 10})"
        )
    database.run("INSERT INTO orders VALUES (1, 'a'), (11, 'b')")
    state = postgres_windows().state.after
    database.run("DROP TABLE p0")
    database.run("CREATE TABLE p20 PARTITION OF orders FOR VALUES FROM (20) TO (30)")
    database.run("INSERT INTO orders VALUES (21, 'c')")
    assert postgres_windows(state).low == "11"
    database.run("TRUNCATE orders")
    database.run("INSERT INTO orders VALUES (11, 'other'), (12, 'd')")
    with pytest.raises(LakeloadError, match="1 rows up to this value may be new"):
        postgres_windows(state)


def test_another_table_of_the_name_in_mariadb_is_refused(
    maria: MariaDatabase, mariadb_windows: Windows
) -> None:
    create = "CREATE TABLE orders (c INT PRIMARY KEY, v TEXT)"
    maria.run(create, "INSERT INTO orders VALUES (1, 'old'), (2, 'old')")
    state = json.loads(json.dumps(mariadb_windows().state.after))
    # The catalog has seconds.
    state["relation"]["files"] = ["2024-01-01 00:00:00"]
    maria.run("ALTER TABLE orders ADD w INT")
    assert mariadb_windows(state).low == "2"
    maria.run("DROP TABLE orders", create, "INSERT INTO orders VALUES (1, 'new'), (3, 'new')")

    with pytest.raises(LakeloadError, match="was truncated, created again or rewritten") as refused:
        mariadb_windows(state)
    assert "`lakeload sync --full-refresh`" in (refused.value.hint or "")
    assert mariadb_windows({**state, "relation": None}).high == "3"


def test_another_relation_by_xmin_is_refused(database: Database) -> None:
    def find(state: Any = None) -> Any:
        relation = postgres.find_relation(database.admin, database.input)
        table = TableSpec("orders", "", "orders", database.input, "", mode="UPSERT")
        request = postgres.xmin_request(relation, table, RunOptions())
        fetch: Fetch = lambda sql: database.run(sql).fetchall()  # noqa: E731
        return find_xmin_window(request, bookmark(state), fetch, "")

    database.run("CREATE TABLE orders (c int)")
    database.run("INSERT INTO orders VALUES (1)")
    state = {**find().state.after, "seen": None}
    database.run("TRUNCATE orders; INSERT INTO orders VALUES (1)")
    # All its rows are new, and are loaded.
    assert not find(state).idle
    database.run("DROP TABLE orders; CREATE TABLE orders (c int)")
    with pytest.raises(LakeloadError, match="dropped and created again") as refused:
        find(state)
    assert "`lakeload sync --full-refresh`" in (refused.value.hint or "")
    assert find({**state, "relation": None}).state.after["relation"]["id"] != ""

"""Rows that the source no longer has: `detect_deletes` in both formats, and `deleted_when`."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from lakeload.documents.spec import table_specs
from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import RejectLimit, RunOptions, TableSpec
from lakeload_jobs.formats.iceberg.load.write import StagedIceberg
from lakeload_jobs.formats.parquet.load.write import StagedParquet
from tests.hints import follow, follows
from tests.integration.formats.worlds import IcebergWorld, ParquetWorld, World, load
from tests.integration.sources.databases.conftest import Database, MariaDatabase
from tests.unit.documents.documents import pipeline

ANY = RejectLimit(percent=100)
THIRTY = RejectLimit(percent=30)
KEY = ("a", "b")
ODD = [
    "",
    " ",
    "x ",
    "X",
    "x",
    "ä",
    "a\u0308",
    "'",
    '"',
    "`",
    "\\",
    "\t",
    "\n",
    "{}",
    "~",
    "1;n1",
    "\U0001f600",
]
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_loads = itertools.count()


def run(world: World, table: TableSpec, **changes: Any) -> TableResult:
    """Load once more, later than before."""
    synced = _BEGIN + timedelta(seconds=next(_loads))
    return load(world, table, synced=synced, **changes)


def newest(world: World, *key: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the newest row of each key, as readers choose it (docs/query.md)."""
    rows = sorted(world.rows(), key=lambda row: (row["_supa_synced"], row["_supa_index"]))
    return {tuple(row[name] for name in key): row for row in rows}


def live(world: World, *key: str) -> dict[tuple[Any, ...], Any]:
    """Return the value `v` of each key that is not deleted."""
    return {k: row["v"] for k, row in newest(world, *key).items() if not row["_supa_deleted"]}


def source(database: Database) -> dict[tuple[Any, ...], Any]:
    """Return what the table has now, as psycopg reads it."""
    return {(a, b): v for a, b, v in database.run("SELECT a, b, v FROM orders").fetchall()}


@pytest.fixture
def table(world: World, database: Database) -> TableSpec:
    """A table of 40 rows with a key of two columns, one of odd text."""
    database.run(
        "CREATE TABLE orders (v text, b text, a int);"
        "INSERT INTO orders SELECT 'v' || n, 'b' || n % 3, n FROM generate_series(1, 23) n"
    )
    with database.admin.cursor() as cursor:
        cursor.executemany("INSERT INTO orders VALUES ('odd', %s, 0)", [(text,) for text in ODD])
    return database.table(world, primary_key=KEY, max_deleted=ANY)


MODES = [
    pytest.param("parquet", "APPEND", "MARK", id="parquet"),
    pytest.param("iceberg", "UPSERT", "DELETE", id="iceberg-delete"),
]
"""Tests below have an Iceberg table that is appended to, and one whose rows are marked."""


@pytest.mark.parametrize(("world", "mode", "deletes"), MODES, indirect=["world"])
def test_the_table_has_the_keys_that_the_source_has_after_each_round(
    world: World, database: Database, table: TableSpec, mode: Any, deletes: Any
) -> None:
    table = replace(table, mode=mode, deletes=deletes)
    rounds = [
        ("SELECT", 0),
        ("DELETE FROM orders WHERE a IN (3, 4, 23) OR b IN ('x', '''', E'\\n', '')", 7),
        ("INSERT INTO orders VALUES ('back', 'b0', 3), ('new', 'b', 99); DELETE FROM orders"
         " WHERE a = 5; UPDATE orders SET v = 'changed' WHERE a = 6;"
         " UPDATE orders SET a = 98 WHERE a = 7", 2),
        ("DELETE FROM orders", 34),
    ]  # fmt: skip
    # What empties the source is the same for all: two modes show it.
    emptied = (mode == "APPEND") is isinstance(world, ParquetWorld) and deletes == "MARK"
    for number, (statement, deleted) in enumerate(rounds if emptied else rounds[:3]):
        database.run(statement)
        expected = source(database)

        result = run(world, table)

        assert result.error is None, result.error
        assert (result.status, result.deleted) == ("LOADED", deleted), number
        assert live(world, *KEY) == expected, number
        assert result.rows == len(expected), number
    rows = world.rows()
    assert len({(row["_supa_job_id"], row["_supa_index"]) for row in rows}) == len(rows)
    gone = newest(world, *KEY).get((0, "x"))
    if deletes == "DELETE":
        assert gone is None
        assert len(rows) == len(expected)
        return
    assert gone is not None
    ids = {row["_supa_id"] for row in rows if (row["a"], row["b"]) == (0, "x")}
    assert (len(ids), gone["_supa_deleted"]) == (1, True)
    assert gone["v"] == ("odd" if mode == "UPSERT" else None)
    marked = [row for row in rows if row["_supa_deleted"]]
    assert len(marked) == (9 if not emptied else 42 if mode == "UPSERT" else 43)


@pytest.mark.parametrize("world", ["iceberg"], indirect=True)
@pytest.mark.parametrize("mode", ["APPEND", "UPSERT"])
def test_rows_are_marked_in_the_commit_that_adds_a_column(
    world: World, database: Database, table: TableSpec, mode: Any
) -> None:
    table = replace(table, mode=mode, deletes="MARK")
    run(world, table)
    before = len(world.rows())
    database.run("ALTER TABLE orders ADD COLUMN new int; UPDATE orders SET new = 1 WHERE a = 6")
    database.run("DELETE FROM orders WHERE a < 5")
    expected = source(database)

    result = run(world, table)

    assert result.error is None, result.error
    assert (result.deleted, live(world, *KEY)) == (4 + len(ODD), expected)
    assert newest(world, *KEY)[6, "b0"]["new"] == 1
    assert len(world.rows()) == before + (len(expected) + result.deleted) * (mode == "APPEND")


@pytest.mark.parametrize("world", ["iceberg"], indirect=True)
def test_more_deleted_rows_than_allowed_leave_everything_as_it_was(
    world: World, database: Database, table: TableSpec, tmp_path: Path
) -> None:
    mode: Any = "UPSERT" if isinstance(world, IcebergWorld) else "APPEND"
    table = replace(table, mode=mode, max_deleted=THIRTY)
    run(world, table)
    before = live(world, *KEY)

    database.run("DELETE FROM orders WHERE a BETWEEN 1 AND 13")
    many = run(world, table)
    database.run("DELETE FROM orders")
    empty = run(world, replace(table, max_deleted=RejectLimit(rows=1000)))
    database.run("INSERT INTO orders VALUES ('v', NULL, 1)")
    null = run(world, table)

    errors = [result.error.message for result in (many, empty) if result.error]
    assert errors == [
        f"the source no longer has 13 of the 40 keys of `{table.target}` (32.5 %), and "
        "`max_deleted` is 30 %: nothing was deleted",
        f"the source has no rows, and all 40 rows of `{table.target}` would be deleted",
    ]
    assert null.error is not None
    assert "the primary key column `b` is null" in null.error.message
    assert live(world, *KEY) == before
    assert len(world.rows()) == 40
    assert world.left() == []

    hints = [result.error.hint or "" for result in (many, empty) if result.error]
    database.run("DELETE FROM orders; INSERT INTO orders VALUES ('v', 'b1', 1), ('v', 'b2', 2)")
    raised = limit(
        tmp_path, "more deleted rows than allowed", hints[0], "raise `max_deleted`", "99 %"
    )
    assert run(world, replace(table, max_deleted=raised)).deleted == 38
    database.run("DELETE FROM orders")
    everything = "set `max_deleted: 100 %`"
    whole = limit(tmp_path, "a source without rows", hints[1], everything, None)
    assert run(world, replace(table, max_deleted=whole)).deleted == 2


def limit(folder: Path, case: str, hint: str, clause: str, value: str | None) -> RejectLimit | None:
    """Return `max_deleted` of a pipeline that is changed as a clause of a hint says."""
    follows(__file__, case, hint)
    assert clause in hint
    document: dict[str, Any] = {
        "version": 1, "name": "shop",
        "source": {"type": "JDBC", "url": "postgresql://db.example.com/shop", "user": "reader"},
        "destination": {"version": 1, "bucket": "my-data-lake", "region": "us-east-1"},
        "tables": [{
            "table": "public.orders", "primary_key": ["a", "b"], "detect_deletes": True,
            "max_deleted": "30 %",
        }],
    }  # fmt: skip
    given = {} if value is None else {"max_deleted": value}
    changed = follow(document, clause, "tables[0].max_deleted", **given)
    [spec] = table_specs(pipeline(folder, yaml.safe_dump(changed)))
    return spec.max_deleted


@pytest.mark.parametrize("world", ["parquet", "iceberg"], indirect=True)
def test_a_failed_commit_that_is_repeated_deletes_once(
    world: World, database: Database, table: TableSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(world, table)
    database.run("DELETE FROM orders WHERE a < 5")
    staged: Any = StagedIceberg if isinstance(world, IcebergWorld) else StagedParquet
    commit = staged.commit

    def broken(self: Any, change: Any) -> Any:
        self.abandon()
        raise ConnectionError("the network is down")

    monkeypatch.setattr(staged, "commit", broken)
    spec = world.spec(table, synced=_BEGIN + timedelta(days=1))
    failed = world.run(spec)
    monkeypatch.setattr(staged, "commit", commit)
    again = world.run(replace(spec, attempt_id=str(uuid4())))
    repeated = world.run(replace(spec, attempt_id=str(uuid4())))

    assert failed.status == "FAILED"
    assert [result.tables[0].status for result in (again, repeated)] == ["LOADED", "NO_OP"]
    assert [result.tables[0].deleted for result in (again, repeated)] == [21, 21]
    assert sum(row["_supa_deleted"] for row in world.rows()) == 21
    assert live(world, *KEY) == source(database)
    assert world.left() == []


@pytest.mark.parametrize("world", ["parquet", "iceberg"], indirect=True)
def test_another_load_that_comes_first_is_not_deleted(
    world: World, database: Database, table: TableSpec
) -> None:
    run(world, table)
    database.run("DELETE FROM orders WHERE a = 1")

    def another() -> None:
        database.run("INSERT INTO orders VALUES ('late', 'late', 1)")
        assert run(world, table).rows == 40

    world.before_commit(another)
    result = run(world, table)

    if isinstance(world, IcebergWorld):
        assert result.status == "LOADED"
    else:
        assert result.error is not None
        assert result.error.retryable
        assert "compared the keys of the source" in result.error.message
    assert live(world, *KEY) == source(database)


def test_10000_keys_beside_conditions_and_casts(world: World, database: Database) -> None:
    database.run(
        "CREATE TABLE orders (a int PRIMARY KEY, b text, v numeric(10,2), gone timestamptz);"
        "INSERT INTO orders SELECT n, 'b', n / 100.0, CASE WHEN n = 7 THEN now() END"
        " FROM generate_series(1, 10000) n"
    )
    mode: Any = "UPSERT" if isinstance(world, IcebergWorld) else "APPEND"
    # No row is deleted because `where` leaves it out.
    columns = replace(world.table("none").columns, types={"a": "decimal(12,0)"}, rename={"a": "k"})
    conditions: Any = {"where": "b = 'b'", "deleted_when": "gone IS NOT NULL"}
    table = database.table(
        world, primary_key=("a",), max_deleted=ANY, mode=mode, columns=columns, **conditions
    )
    assert run(world, table).deleted == 0
    database.run("DELETE FROM orders WHERE a % 3 = 0; UPDATE orders SET b = 'c' WHERE a % 5 = 0")
    database.run("UPDATE orders SET gone = CASE WHEN a = 8 THEN now() END")

    result = run(world, table)

    assert (result.error, result.deleted) == (None, 3333)
    found = sorted(int(key) for (key,) in live(world, "k"))
    assert found == [n for n in range(1, 10001) if n % 3 and n != 8]


@pytest.mark.parametrize(
    ("world", "kind"), [("iceberg", "postgres"), ("parquet", "mariadb")], indirect=["world"]
)
def test_incremental_loads_compare_the_keys_of_all_rows(
    world: World, kind: str, request: pytest.FixtureRequest
) -> None:
    mode: Any = "UPSERT" if isinstance(world, IcebergWorld) else "APPEND"
    if kind == "postgres":
        source: Database | MariaDatabase = request.getfixturevalue("database")
    else:
        source = request.getfixturevalue("maria")
    source.run("CREATE TABLE orders (b varchar(9), v int, a int, PRIMARY KEY (a, b))")
    source.run("INSERT INTO orders VALUES ('b', 1, 1), ('b', 2, 2), ('b', 3, 3), ('b', 4, 4)")
    table = source.table(world, "orders", primary_key=KEY, mode=mode, cursor="v")
    given: Any = table.input
    table = replace(table, input=replace(given, incremental=True), max_deleted=ANY)
    rounds: list[tuple[str, str, int, dict[int, int]]] = [
        ("SELECT 1", "LOADED", 0, {1: 1, 2: 2, 3: 3, 4: 4}),
        ("DELETE FROM orders WHERE a = 1", "LOADED", 1, {2: 2, 3: 3, 4: 4}),
        ("INSERT INTO orders VALUES ('b', 5, 5)", "LOADED", 0, {2: 2, 3: 3, 4: 4, 5: 5}),
        ("DELETE FROM orders WHERE a = 5", "LOADED", 1, {2: 2, 3: 3, 4: 4}),
        # No load reads it: the cursor has passed its value.
        ("INSERT INTO orders VALUES ('b', 0, 5)", "NO_OP", 0, {2: 2, 3: 3, 4: 4}),
    ]
    for statement, status, deleted, expected in rounds:
        source.run(statement)

        result = run(world, table)

        assert result.error is None, result.error
        assert (result.status, result.deleted) == (status, deleted), statement
        assert live(world, *KEY) == {(a, "b"): v for a, v in expected.items()}
        assert world.left() == []

    again = run(world, table, options=RunOptions(reload=True))

    assert again.status == "LOADED"
    assert live(world, *KEY) == {(2, "b"): 2, (3, "b"): 3, (4, "b"): 4, (5, "b"): 0}


@pytest.mark.parametrize("world", ["iceberg"], indirect=True)
def test_keys_of_mariadb_are_those_of_the_one_read(world: World, maria: MariaDatabase) -> None:
    maria.run(
        "CREATE TABLE t (a int, b varchar(9) COLLATE utf8mb4_bin, v int, PRIMARY KEY (b, a))",
        "INSERT INTO t SELECT seq, IF(seq % 2, 'x', 'X'), seq FROM seq_1_to_20",
    )
    mode: Any = "UPSERT" if isinstance(world, IcebergWorld) else "APPEND"
    table = maria.table(world, "t", primary_key=KEY, max_deleted=THIRTY, mode=mode)
    run(world, table)
    maria.run("DELETE FROM t WHERE a IN (1, 2)", "UPDATE t SET b = 'X' WHERE a = 3")

    result = run(world, table)

    assert result.error is None, result.error
    # A MERGE that was given rows without a count reports those that it has changed.
    assert (result.rows, result.deleted) == (1 if mode == "UPSERT" else 18, 3)
    with maria.server.connect(maria.input.name) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT a, b, v FROM t")
        assert live(world, *KEY) == {(a, b): v for a, b, v in cursor.fetchall()}
    rows = world.rows()
    assert len({(row["_supa_job_id"], row["_supa_index"]) for row in rows}) == len(rows)

    maria.run("DELETE FROM t")
    refused = run(world, table)

    assert refused.error is not None
    assert "the source has no rows" in refused.error.message

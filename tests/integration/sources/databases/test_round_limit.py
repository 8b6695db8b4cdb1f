"""Tables of databases in rounds: each row once, ties together, deletes in the last round."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import RejectLimit, RoundLimit, TableSpec
from tests.integration.formats.worlds import World, load
from tests.integration.sources.databases.conftest import Database, MariaDatabase


def in_rounds(world: World, table: TableSpec) -> list[TableResult]:
    """Load until nothing is left."""
    rounds = [load(world, table)]
    while rounds[-1].more:
        assert len(rounds) < 20
        rounds.append(load(world, table))
    return rounds


def limited(table: TableSpec, rows: int, **changes: Any) -> TableSpec:
    given = replace(table.input, incremental=True)
    return replace(table, input=given, cursor="at", round_limit=RoundLimit(rows=rows), **changes)


def test_rounds_load_each_row_once_and_one_value_together(world: World, database: Database) -> None:
    database.run(
        "CREATE TABLE orders (id int PRIMARY KEY, at int NOT NULL);"
        # One value has more rows than a round.
        "INSERT INTO orders SELECT n, CASE WHEN n BETWEEN 5 AND 11 THEN 5 ELSE n END"
        " FROM generate_series(1, 20) n"
    )
    table = limited(database.table(world), 4)
    first = load(world, table)
    # What arrives between two rounds, late or not, is loaded as between two loads.
    database.run("INSERT INTO orders VALUES (21, 4), (22, 20)")
    rounds = [first, *in_rounds(world, table)]

    assert first.notes == ("rows with `at` to 4; there are later ones",)
    assert [done.rows for done in rounds] == [4, 8, 4, 4, 2]
    assert sorted(row["id"] for row in world.rows()) == list(range(1, 23))
    assert load(world, table).status == "NO_OP"


def test_rounds_of_mariadb_load_each_row_once(world: World, maria: MariaDatabase) -> None:
    maria.run(
        "CREATE TABLE orders (id int PRIMARY KEY, at timestamp(6) NOT NULL)",
        "INSERT INTO orders SELECT seq, TIMESTAMPADD(MICROSECOND, seq DIV 3, '2024-01-01')"
        " FROM seq_1_to_20",
    )
    rounds = in_rounds(world, limited(maria.table(world, "orders"), 6))

    assert len(rounds) > 2
    assert sorted(row["id"] for row in world.rows()) == list(range(1, 21))


def test_deletes_are_compared_in_the_round_that_reaches_the_end(
    world: World, database: Database
) -> None:
    database.run(
        "CREATE TABLE orders (id int PRIMARY KEY, at int NOT NULL);"
        "INSERT INTO orders SELECT n, n FROM generate_series(1, 8) n"
    )
    table = database.table(world, primary_key=("id",), max_deleted=RejectLimit(percent=100))
    table = limited(table, 3)
    in_rounds(world, table)
    database.run(
        "DELETE FROM orders WHERE id = 2;"
        "INSERT INTO orders SELECT n, n FROM generate_series(9, 13) n"
    )
    rounds = in_rounds(world, table)

    assert [done.deleted for done in rounds] == [0, 1]
    newest = {row["id"]: row for row in world.rows() if row["_supa_deleted"]}
    assert list(newest) == [2]

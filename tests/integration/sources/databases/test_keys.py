"""The key that a table has in its database, kept with the table of both formats."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakeload_jobs.contract.spec import JdbcInput, RunOptions, TableSpec
from tests.integration.formats.worlds import World, load
from tests.integration.sources.databases.conftest import Database


def _keyed(table: TableSpec, *key: str) -> TableSpec:
    """Return the spec as the command line makes it of a key in the database."""
    assert isinstance(table.input, JdbcInput)
    return replace(table, primary_key=key, input=replace(table.input, key=key))


def test_another_key_of_the_database_is_refused_and_rows_are_left_alone(
    world: World, database: Database
) -> None:
    database.run("CREATE TABLE orders (id int, n int); INSERT INTO orders VALUES (1, 2), (2, 2)")
    table = database.table(world)

    for number in (2, 4):
        result = load(world, _keyed(table, "id"))
        assert result.error is None, result.error
        assert len(world.rows()) == number
    assert len({row["_supa_id"] for row in world.rows()}) == 2

    refused = load(world, _keyed(table, "n", "id"))

    assert refused.error is not None
    assert (refused.status, refused.error.exit_code) == ("FAILED", 2)
    assert "is `n`, `id`, and the table was loaded with `id`" in refused.error.message
    assert len(world.rows()) == 4

    said = load(world, replace(table, primary_key=("id",)))
    assert (said.status, said.rows) == ("LOADED", 2), said.error


# Rows of Parquet tables are not replaced.
@pytest.mark.parametrize("world", ["iceberg"], indirect=True)
def test_a_load_that_replaces_the_table_follows_a_new_key(world: World, database: Database) -> None:
    database.run("CREATE TABLE orders (id int, n int); INSERT INTO orders VALUES (1, 2), (2, 2)")
    table = database.table(world, mode="OVERWRITE")

    for _ in range(2):
        assert load(world, _keyed(table, "id")).error is None
    assert load(world, _keyed(table, "n", "id")).error is not None

    changed = load(world, _keyed(table, "n", "id"), options=RunOptions(full_refresh=True))

    assert changed.error is None, changed.error
    assert load(world, _keyed(table, "n", "id")).error is None
    assert len(world.rows()) == 2


# Rows of Parquet tables are not replaced.
@pytest.mark.parametrize("world", ["iceberg"], indirect=True)
def test_an_incremental_table_keeps_its_key_beside_the_cursor(
    world: World, database: Database
) -> None:
    database.run("CREATE TABLE orders (id int, n int); INSERT INTO orders VALUES (1, 2), (2, 2)")
    table = database.table(world, mode="UPSERT", cursor="n")
    table = replace(table, input=replace(table.input, incremental=True))

    first = load(world, _keyed(table, "id"))
    assert first.error is None, first.error
    assert load(world, _keyed(table, "id")).status == "NO_OP"
    database.run("INSERT INTO orders VALUES (3, 3)")
    refused = load(world, _keyed(table, "n", "id"))
    assert refused.error is not None
    assert "the table was loaded with `id`" in refused.error.message
    assert load(world, _keyed(table, "id")).error is None
    assert sorted(row["id"] for row in world.rows()) == [1, 2, 3]

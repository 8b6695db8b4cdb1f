"""Contract of an engine of databases with a server: its catalog, and loads by a cursor."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import JdbcInput
from lakeload_jobs.sources.databases.engines.registry import ENGINES
from tests.integration.formats.worlds import World, load
from tests.integration.sources.databases.conftest import Database, MariaDatabase
from tests.integration.sources.databases.test_jdbc_url import H2, h2, parquet_only
from tests.servers import mariadb, postgres

__all__ = ["h2"]

TABLE = "CREATE TABLE orders (id int NOT NULL PRIMARY KEY, note varchar(20), born date NOT NULL)"
ROWS = "INSERT INTO orders VALUES (1, 'a', '2024-02-29'), (2, NULL, '1583-01-01')"
LATER = "INSERT INTO orders VALUES (3, 'c', '9999-12-31')"


@dataclass(frozen=True)
class Server:
    """A database of an engine, with the table `orders`."""

    input: JdbcInput
    run: Callable[[str], object]
    password: str = ""
    id: str = "id"


@pytest.fixture(params=["POSTGRESQL", "MYSQL", "OTHER"])
def server(request: pytest.FixtureRequest) -> Server:
    """A server of each engine that the tests have; H2 stands in for those with a JDBC driver."""
    if request.param == "POSTGRESQL":
        database: Database = request.getfixturevalue("database")
        found = Server(database.input, database.run, postgres.PASSWORD)
    elif request.param == "MYSQL":
        maria: MariaDatabase = request.getfixturevalue("maria")
        given = replace(maria.input, table="orders")
        found = Server(given, maria.run, mariadb.PASSWORD)
    else:
        memory: H2 = request.getfixturevalue("h2")
        found = Server(memory.input, memory.run, id="ID")
    found.run(TABLE)
    found.run(ROWS)
    return found


@parquet_only
def test_rows_are_loaded_once_and_later_ones_by_a_cursor(world: World, server: Server) -> None:
    given = replace(server.input, incremental=True)
    table = replace(world.table("none", cursor=server.id), input=given)

    first = load(world, table)
    again = load(world, table)
    server.run(LATER)
    last = load(world, table)

    assert (first.error, again.error, last.error) == (None, None, None)
    assert (first.status, first.rows) == ("LOADED", 2)
    assert again.status == "NO_OP"
    assert (last.status, last.rows) == ("LOADED", 1)
    assert sorted(row[server.id] for row in world.rows()) == [1, 2, 3]


@parquet_only
def test_a_table_that_is_not_there_is_named(world: World, server: Server) -> None:
    missing = replace(server.input, table="order")

    failed = load(world, replace(world.table("none"), input=missing))

    assert failed.error is not None
    assert failed.error.type == "LoadFailed"
    assert "order`" in failed.error.message
    assert failed.error.hint


@pytest.mark.parametrize("server", ["POSTGRESQL", "MYSQL"], indirect=True)
def test_its_catalog_describes_the_table(server: Server) -> None:
    read, engine = server.input, ENGINES[server.input.database]
    catalog, password = engine.catalog(), Secret(server.password)
    place = (read.schema, "orders")
    with closing(catalog.connect_read_only(read, password)) as connection:
        relation = catalog.find_relation(connection, read)
        columns = catalog.columns(connection, relation, read)
        selected = catalog.select(columns)
        catalog.check_select(connection, relation, selected, read)
        listed = {
            (one.schema, one.name): one for one in catalog.list_tables(connection, read, None)
        }

        assert relation.shown == f"{read.schema}.orders"
        assert relation.identity is not None
        assert [column.name for column in columns] == ["id", "note", "born"]
        assert [column.nullable for column in columns] == [False, True, False]
        assert [column.type for column in selected] == ["int", "string", "date"]
        assert catalog.key_of(connection, relation) == ("id",)
        assert listed[place].is_table
        assert listed[place].keys == (("id",),)
        assert catalog.list_sizes(connection, read)[place] > 0
        assert place not in catalog.list_changed(connection, read)
        assert any(name.split()[0] in catalog.describe_session(connection)
                   for name in engine.facts.names)  # fmt: skip
        with catalog.one_transaction(connection, read, relation) as fetch:
            counted = f"SELECT count(*) FROM {relation.sql}"
            before = fetch(counted)
            server.run(LATER)
            assert fetch(counted) == before
            condition = f"{relation.quoted('id')} > 1"
            # A database that would read all rows to know says nothing.
            estimated = catalog.estimate_rows(connection, relation, condition)
            assert estimated is None or estimated >= 0
    for _, _, run in catalog.session_checks(read, lambda: password):
        run()


@pytest.mark.parametrize("server", ["POSTGRESQL", "MYSQL"], indirect=True)
def test_its_connection_only_reads(server: Server) -> None:
    read, catalog = server.input, ENGINES[server.input.database].catalog()
    with closing(catalog.connect_read_only(read, Secret(server.password))) as connection:
        relation = catalog.find_relation(connection, read)
        with (
            pytest.raises(LoadFailed, match=r"(?i)read.only"),
            catalog.one_transaction(connection, read, relation) as fetch,
        ):
            fetch(f"DELETE FROM {relation.sql}")

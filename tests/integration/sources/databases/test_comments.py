"""Comments of a database's tables and columns, in both formats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lakeload_jobs.contract.spec import EndpointsSpec, ParquetSpec
from tests.integration.formats.worlds import IcebergWorld, World, load
from tests.integration.jobs.conftest import Job
from tests.integration.sources.databases.conftest import Database, MariaDatabase
from tests.servers.glue import allow_glue, glue_of


def documented(world: World) -> dict[str, str | None]:
    """Return the comment of the table under '', and those of its columns."""
    assert isinstance(world, IcebergWorld)
    table = world._loads.read()
    columns = {field.name: field.doc for field in table.schema().fields if field.name[0] != "_"}
    return {"": table.properties.get("comment"), **columns}


@pytest.mark.parametrize("world", ["iceberg"], indirect=True)
def test_an_iceberg_table_gets_comments_where_it_has_none(world: World, database: Database) -> None:
    database.run("CREATE TABLE orders (id int, n int)")
    database.run("INSERT INTO orders VALUES (1, 2)")
    table = database.table(world)
    result = load(world, table)
    assert (result.error, result.rows, result.writer) == (None, 1, "direct")
    assert documented(world) == {"": None, "id": None, "n": None}

    database.run("COMMENT ON TABLE orders IS 'All\n orders'; COMMENT ON COLUMN orders.n IS 'Größe'")
    assert load(world, table).error is None
    assert documented(world) == {"": "All orders", "id": None, "n": "Größe"}

    database.run("ALTER TABLE orders ADD m int; COMMENT ON COLUMN orders.m IS 'new'")
    database.run("COMMENT ON TABLE orders IS 'other'; COMMENT ON COLUMN orders.n IS NULL")
    assert load(world, table).error is None
    assert documented(world) == {"": "All orders", "id": None, "n": "Größe", "m": "new"}


@pytest.mark.parametrize("world", ["iceberg"], indirect=True)
def test_a_new_iceberg_table_has_the_comments_of_mariadb(
    world: World, maria: MariaDatabase
) -> None:
    maria.run("CREATE TABLE orders (id int COMMENT 'the key', n int) COMMENT 'All orders'")
    maria.run("INSERT INTO orders VALUES (1, 2)")
    result = load(world, maria.table(world, "orders"))
    assert (result.error, result.rows, result.writer) == (None, 1, "direct")
    assert documented(world) == {"": "All orders", "id": "the key", "n": None}


def test_a_parquet_table_in_glue_has_the_comments(job: Job, database: Database) -> None:
    database.run("CREATE TABLE orders (id int, n int); INSERT INTO orders VALUES (1, 2)")
    database.run("COMMENT ON TABLE orders IS 'All orders'; COMMENT ON COLUMN orders.id IS 'key'")
    allow_glue(job.lake)
    place = job.lake.server.endpoint
    table = replace(job.table("none"), schema="supaflow_shop", input=database.input)
    destination = {
        "parquet": ParquetSpec(update_glue_catalog=True),
        "endpoints": EndpointsSpec(s3=place, sts=place, glue=place),
        "glue_database_prefix": "supaflow",
    }

    assert job.load_one(table, destination=destination).error is None

    glue: Any = glue_of(job.lake)
    found = glue.get_table(DatabaseName=table.schema, Name=table.table)["Table"]
    glue.delete_database(Name=table.schema)
    comments = {one["Name"]: one.get("Comment") for one in found["StorageDescriptor"]["Columns"]}
    assert (found["Description"], comments["id"], comments["n"]) == ("All orders", "key", None)

"""A second run of what `lakeload init` writes for a database loads no row twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakeload.commands.source_tables import with_found_tables
from lakeload.documents.load import load_pipeline
from lakeload.documents.spec import table_specs
from lakeload.init import database as product
from lakeload_jobs.contract.spec import JdbcInput, TableSpec
from tests.integration.formats.worlds import IcebergWorld, World, load
from tests.integration.sources.databases.conftest import Database, MariaDatabase
from tests.integration.sources.databases.test_init import init_database
from tests.servers.mariadb import PASSWORD as MARIADB_PASSWORD
from tests.servers.postgres import PASSWORD


@pytest.fixture(autouse=True)
def _no_small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "SMALL", -1)


def written_table(
    folder: Path, world: World, read: JdbcInput, password: str, monkeypatch: pytest.MonkeyPatch
) -> TableSpec:
    """Return the table `orders` as `init` writes it, in the place of the world."""
    monkeypatch.setenv("LAKELOAD_SOURCE_PASSWORD", password)
    scheme = "postgresql" if read.database == "POSTGRESQL" else "mysql"
    url = f"{scheme}://{read.user}@{read.host}:{read.port}/{read.name}"
    table_format = "ICEBERG" if isinstance(world, IcebergWorld) else "PARQUET"
    done = init_database(folder, url, "--table-format", table_format)
    assert done.exit_code == 0, done.output
    document = load_pipeline(folder / "pipeline.yml", {"LAKELOAD_SOURCE_PASSWORD": password})
    specs = table_specs(with_found_tables(document, "sync", keys=True))
    [written] = [spec for spec in specs if spec.source == f"{read.schema}.orders"]
    assert isinstance(written.input, JdbcInput)
    place = world.table("none")
    given = replace(written.input, password=read.password)
    return replace(written, input=given, schema=place.schema, table=place.table)


def test_second_run_loads_no_row_of_postgresql_twice(
    world: World, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.run("CREATE TABLE orders (id int PRIMARY KEY, note text)")
    database.run("INSERT INTO orders SELECT n, 'note' FROM generate_series(1, 5) n")
    table = written_table(tmp_path / "lake", world, database.input, PASSWORD, monkeypatch)

    assert load(world, table).rows == 5
    assert load(world, table).status == "NO_OP"

    assert len(world.rows()) == 5


def test_second_run_loads_no_row_of_mariadb_twice(
    world: World, maria: MariaDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maria.run(
        "CREATE TABLE orders (id int PRIMARY KEY, note text)",
        "INSERT INTO orders VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    )
    table = written_table(tmp_path / "lake", world, maria.input, MARIADB_PASSWORD, monkeypatch)

    assert load(world, table).rows == 3
    second = load(world, table)

    assert len(world.rows()) == 3
    if table.mode == "APPEND":
        assert second.error is not None
        assert "set `cursor` to a column that grows" in (second.error.hint or "")
    else:
        assert (second.error, second.changes and second.changes.rows) == (None, 0)

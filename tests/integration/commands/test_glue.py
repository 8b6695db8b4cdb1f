"""recover and reset with Glue: a catalog that lags behind is repaired, a table of ours dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakeload_jobs.formats.parquet.log.records import GlueTarget
from tests.integration.commands.conftest import ADMIN, TABLES, Command
from tests.integration.formats.parquet.log.writer import Writer
from tests.servers.glue import glue_of
from tests.servers.ministack import Lake

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient

Load = Callable[..., Writer]

DATABASE = "upkeep_shop"
ORDERS = GlueTarget(DATABASE, "orders", "lakeload_partition")


@pytest.fixture
def glue(shop: Lake, tmp_path: Path) -> Iterator[GlueClient]:
    """Glue of the pipeline's documents, whose database ends with the test."""
    place = shop.server.endpoint
    tables = [{"table": name, "path": f"{name}/*.csv"} for name in TABLES]
    endpoints = {"s3": place, "sts": place, "glue": place}
    shop.write_pipeline(
        tmp_path, tables=tables, destination={"credentials": ADMIN, "endpoints": endpoints}
    )
    client = glue_of(shop)
    yield client
    if DATABASE in {database["Name"] for database in client.get_databases()["DatabaseList"]}:
        client.delete_database(Name=DATABASE)


def tables(glue: GlueClient) -> list[str]:
    return [table["Name"] for table in glue.get_tables(DatabaseName=DATABASE)["TableList"]]


def test_recover_syncs_an_outdated_catalog_and_reset_drops_its_table(
    command: Command, load: Load, glue: GlueClient
) -> None:
    load("monday", glue=ORDERS)
    assert "done, catalog out of date" in command("runs", "pipeline.yml").out
    foreseen = command("recover", "pipeline.yml", "--dry-run")
    assert "would update the catalog for job monday" in foreseen.out
    ended = command("recover", "pipeline.yml")
    assert ended.code == 0
    assert "updated the catalog for job monday" in ended.out
    assert tables(glue) == ["orders"]
    assert "catalog out of date" not in command("runs", "pipeline.yml").out

    assert f"would drop Glue's table {DATABASE}.orders" in command(
        "reset", "pipeline.yml", "orders"
    ).out.replace("\n", " ")
    assert command("reset", "pipeline.yml", "orders", "--yes").code == 0
    assert tables(glue) == []


def test_denied_catalog_exits_with_5_and_a_table_of_another_writer_is_kept(
    command: Command, load: Load, glue: GlueClient
) -> None:
    glue.create_database(DatabaseInput={"Name": DATABASE})
    elsewhere = {"Location": "s3://another-bucket/orders/"}
    glue.create_table(
        DatabaseName=DATABASE,
        TableInput={
            "Name": "orders",
            "TableType": "EXTERNAL_TABLE",
            "StorageDescriptor": elsewhere,  # type: ignore[typeddict-item]
        },
    )
    load("monday", glue=ORDERS)
    ended = command("recover", "pipeline.yml", "--output", "json")
    assert ended.code == ended.document["exit_code"] == 5
    (orders,) = [t for t in ended.document["tables"] if t["target"] == "shop.orders"]
    assert orders["status"] == "CATALOG_OUT_OF_DATE"
    assert orders["errors"][0]["type"] == "CatalogConflict"
    assert command("reset", "pipeline.yml", "orders", "--yes").code == 0
    assert tables(glue) == ["orders"]

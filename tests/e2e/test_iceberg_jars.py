"""Iceberg's jars: loads that do without, and those that need them, known before Spark starts or
not. A warm Spark has every jar: what no class path may have, or must have, is shown without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakeload.documents.load import load_destination
from lakeload.documents.spec import destination_spec
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import CredentialsSpec
from lakeload_jobs.formats.iceberg.catalogs.table_stores import TableStore
from lakeload_jobs.formats.iceberg.catalogs.tables import open_tables
from lakeload_jobs.formats.iceberg.commits.metadata import add_sort_order
from tests.e2e.command import Ended, lakeload, sync
from tests.e2e.test_iceberg import DATABASE, allow, table, write
from tests.servers.glue import glue_of
from tests.servers.ministack import Lake
from tests.servers.spark import UNVERIFIED

pytestmark = pytest.mark.e2e

AGAIN = "starting Spark again with it"


@pytest.fixture
def folder(lake: Lake, tmp_path: Path) -> Iterator[Path]:
    """The current folder, with files of two tables."""
    for name in ("orders", "customers"):
        write(tmp_path / f"{name}/1.csv", "id,name", "1,a", "2,b", "3,c")
    yield tmp_path
    glue = glue_of(lake)
    for database in glue.get_databases()["DatabaseList"]:
        glue.delete_database(Name=database["Name"])


def documents(lake: Lake, folder: Path, *tables: dict[str, Any], **more: Any) -> None:
    """Write the documents of tables in Glue, and allow what their loads need."""
    place = lake.server.endpoint
    csv = {"header": True, "inferSchema": True}
    lake.write_pipeline(
        folder,
        tables=[{"path": f"{one['table']}/*.csv", "primary_key": ["id"], **one} for one in tables],
        source={"type": "FILES", "format": "CSV", "options": csv, "incremental": True},
        destination={
            "endpoints": {"s3": place, "sts": place, "glue": place},
            "table_format": "ICEBERG",
            "glue_database_prefix": "supaflow",
        },
        spark={"conf": {"spark.driver.extraJavaOptions": UNVERIFIED}},
        **more,
    )
    allow(lake, folder / "destination.yml")


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], TableStore]:
    """Return what opens the tables of a folder's destination with the administrator's keys."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")

    def tables(folder: Path) -> TableStore:
        destination = destination_spec(load_destination(folder / "destination.yml", {}))
        own = replace(destination, credentials=CredentialsSpec())
        return open_tables(own, AwsSession(own))

    return tables


def rows(lake: Lake, name: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table as another client reads them."""
    found = table(lake, name).scan(selected_fields=("id", "name")).to_arrow().to_pylist()
    return sorted((row["id"], row["name"]) for row in found)


def attempts(folder: Path) -> int:
    """Return how often Spark was started."""
    return len(list((folder / "runs").glob("*/spark.log")))


@pytest.mark.usefixtures("forked_commands")
def test_appends_rejected_records_and_an_expiry_need_no_jars_and_no_network(
    lake: Lake, folder: Path, warm_spark_home: Path
) -> None:
    orders = {
        "table": "orders",
        "partition_by": ["bucket(2, id)"],
        "columns": {"types": {"id": "bigint"}},
    }
    documents(lake, folder, orders, on_bad_value="QUARANTINE", max_rejected="100 %")
    nowhere = {
        "LAKELOAD_CACHE_DIR": str(folder / "cache"),
        "LAKELOAD_MAVEN_REPOSITORY": "file:///nowhere",
    }
    for number, header, more in ((2, "id,name", ""), (3, "id,name,more", ",2.5")):
        write(folder / f"orders/{number}.csv", header, f"{number}0,d{more}", f"many,e{more}")
        home = None if number == 2 else str(warm_spark_home)
        ended = sync(lake, folder, SPARK_HOME=home, **nowhere)
        assert ended.code == 0, ended.stdout
        loaded = ended.tables["orders"]
        assert (loaded["writer"], loaded["rejected"]) == ("direct", 1)
        assert AGAIN not in ended.stderr
    allow(lake, folder / "destination.yml", maintain=True)
    steps = ("--only", "branches,uploads,expire", "--older-than", "0", "--apply")
    kept = lakeload(lake, folder, "maintain", "pipeline.yml", *steps, "--output", "json", **nowhere)

    assert kept.code == 0, kept.stderr + kept.stdout
    expired = {
        name: {step["step"]: step["snapshots"] for step in found["steps"]}["expire"]
        for name, found in kept.tables.items()
    }
    assert expired["orders"] == 2, kept.stdout
    assert rows(lake, "orders") == [(1, "a"), (2, "b"), (3, "c"), (20, "d"), (30, "d")]
    assert "more" in table(lake, "orders").schema().column_names
    records = table(lake, "orders_rejected").scan().to_arrow()["raw_record"].to_pylist()
    assert set(records) == {"many,e", "many,e,2.5"}
    assert len(records) == 2
    assert not (folder / "cache/jars").exists()


@pytest.mark.usefixtures("jars_cache", "warm_spark")
def test_upsert_beside_an_append_and_table_with_a_sort_order_start_spark_once(
    lake: Lake, folder: Path, admin: Callable[[Path], TableStore]
) -> None:
    documents(lake, folder, {"table": "orders"}, {"table": "customers", "mode": "UPSERT"})
    first = sync(lake, folder)
    assert first.code == 0, first.stdout
    assert {name: one["writer"] for name, one in first.tables.items()} == {
        "orders": "direct",
        "customers": "spark",
    }
    for name in ("orders", "customers"):
        assert rows(lake, name) == [(1, "a"), (2, "b"), (3, "c")]
    assert AGAIN not in first.stderr
    assert attempts(folder) == 1
    known = table(lake, "orders").metadata
    order = {
        "order-id": 1,
        "fields": [
            {
                "transform": "identity",
                "source-id": known.schema().find_field("name").field_id,
                "direction": "asc",
                "null-order": "nulls-first",
            }
        ],
    }
    tables = admin(folder)
    before = tables.load(DATABASE, "orders")
    assert before is not None
    tables.commit(before, [], add_sort_order(order))
    write(folder / "orders/2.csv", "id,name", "4,d")
    ended = sync(lake, folder)
    assert ended.code == 0, ended.stdout
    assert ended.tables["orders"]["writer"] == "spark"
    assert rows(lake, "orders") == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert AGAIN not in ended.stderr
    assert attempts(folder) == 2


@pytest.mark.usefixtures("jars_cache", "forked_commands")
def test_table_that_needs_jars_after_all_is_loaded_once(lake: Lake, folder: Path) -> None:
    by_price = {"partition_by": ["truncate(5, price)"]}
    columns = {"types": {"price": "decimal(12,2)"}}
    documents(
        lake, folder, {"table": "orders"}, {"table": "priced", "columns": columns, **by_price}
    )
    write(folder / "priced/1.csv", "id,name,price", "1,a,3.10", "2,b,3.20", "3,c,9.99")

    planned = lakeload(lake, folder, "plan", "pipeline.yml", "--output", "json")
    assert planned.code == 0, planned.stdout + planned.stderr
    reasons = {name: one["iceberg"]["needs_java"] for name, one in planned.tables.items()}
    assert reasons == {
        "orders": None,
        "priced": "the table is partitioned by `truncate(5, price)`, a decimal(12, 2)",
    }
    started = attempts(folder)
    ended: Ended = sync(lake, folder)

    assert ended.code == 0, ended.stdout
    lines = [line for line in ended.stderr.splitlines() if AGAIN in line]
    assert len(lines) == 1, ended.stderr
    assert f"`{DATABASE}.priced` needs Iceberg's Java code (the table is partitioned" in lines[0]
    assert {name: one["writer"] for name, one in ended.tables.items()} == {
        "orders": "direct",
        "priced": "spark",
    }
    for name in ("orders", "priced"):
        assert rows(lake, name) == [(1, "a"), (2, "b"), (3, "c")]
    assert attempts(folder) == started + 2
    again = sync(lake, folder)
    assert again.code == 0, again.stdout
    assert {one["status"] for one in again.tables.values()} == {"NO_OP"}


@pytest.mark.usefixtures("jars_cache", "warm_spark")
def test_driver_of_rounds_is_started_again_once(lake: Lake, folder: Path) -> None:
    priced = {
        "table": "priced",
        "columns": {"types": {"price": "decimal(12,2)"}},
        "partition_by": ["truncate(5, price)"],
        "round_limit": {"files": 1},
    }
    documents(lake, folder, priced)
    for number in (1, 2, 3):
        write(folder / f"priced/{number}.csv", "id,name,price", f"{number},a,3.10")
    ended = lakeload(lake, folder, "sync", "pipeline.yml")
    assert ended.code == 0, ended.stdout + ended.stderr
    assert ended.stderr.count(AGAIN) == 1
    assert rows(lake, "priced") == [(1, "a"), (2, "a"), (3, "a")]
    drivers = [path.name for path in (folder / "runs").glob("*-driver-*")]
    assert len(drivers) == 2, drivers

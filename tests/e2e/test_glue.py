"""`plan`, `sync` and `recover` with Glue on: a stale catalog, its repair, an added column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests import athena
from tests.e2e.command import lakeload, sync
from tests.servers.glue import LOAD_ACTIONS, allow_glue, glue_of
from tests.servers.ministack import Lake

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("warm_spark")]

DATABASE = "supaflow_shop"


@pytest.fixture
def folder(lake: Lake, tmp_path: Path) -> Iterator[Path]:
    """A folder with documents that use Glue."""
    place = lake.server.endpoint
    destination = {
        "endpoints": {"s3": place, "sts": place, "glue": place},
        "glue_database_prefix": "supaflow",
        "parquet": {"update_glue_catalog": True, "partition_strategy": "DAY"},
    }
    tables = [{"table": "Orders", "path": "orders.csv"}]
    lake.write_pipeline(tmp_path, tables=tables, destination=destination)
    (tmp_path / "orders.csv").write_text("ID,Näme\n1,a\n2,b\n")
    yield tmp_path
    glue = glue_of(lake)
    for database in glue.get_databases()["DatabaseList"]:
        glue.delete_database(Name=database["Name"])


def query(lake: Lake) -> list[dict[str, Any]]:
    """Return what Athena would see of `orders`."""
    rows = athena.query(glue_of(lake), lake.server.s3, DATABASE, "orders")
    kept = [name for name in rows.column_names if not name.startswith("_supa_")]
    found: list[dict[str, Any]] = rows.select(kept).sort_by([("id", "ascending")]).to_pylist()
    return found


def answers(lake: Lake, folder: Path) -> dict[str, list[int]]:
    """Return the ids that the queries of `policy --for athena` find, by what they ask."""
    written = lakeload(lake, folder, "policy", "pipeline.yml", "--for", "athena")
    assert written.code == 0, written.stderr
    database = duckdb.connect()
    rows = athena.query(glue_of(lake), lake.server.s3, DATABASE, "orders")
    database.register("rows", rows)
    database.execute(f"CREATE SCHEMA {DATABASE}; USE {DATABASE}")
    database.execute("CREATE TABLE orders AS SELECT * FROM rows")
    found = {}
    for query in written.stdout.strip().split("\n\n"):
        title = query.splitlines()[0].rpartition(": ")[2]
        columns = database.sql(query).to_arrow_table()
        if title.startswith(("the rows", "the newest")):
            found[title] = sorted(columns["id"].to_pylist())
    return found


def test_recover_after_a_denied_glue_update_syncs_the_catalog(lake: Lake, folder: Path) -> None:
    allow_glue(lake, [action for action in LOAD_ACTIONS if action != "BatchCreatePartition"])
    plan = lakeload(lake, folder, "plan", "pipeline.yml")
    assert plan.code == 0, plan.stderr
    assert "Glue: supaflow_shop.orders, would be created, and its database" in plan.stdout

    stale = sync(lake, folder, "--job-id", "job-1")
    assert stale.code == 5, stale.stderr
    table = stale.tables["Orders"]
    assert (table["status"], table["rows"]) == ("LOADED_CATALOG_OUT_OF_DATE", 2)
    assert "glue:BatchCreatePartition" in table["error"]["hint"]
    assert "`lakeload recover`" in table["error"]["hint"]

    recovered = lakeload(lake, folder, "recover", "pipeline.yml")
    assert recovered.code == 5, recovered.stderr
    allow_glue(lake)
    recovered = lakeload(lake, folder, "recover", "pipeline.yml")
    assert recovered.code == 0, recovered.stderr
    assert "updated the catalog for job job-1" in recovered.stdout
    day = query(lake)[0]["lakeload_partition"]
    expected = [
        {"id": 1, "name": "a", "lakeload_partition": day},
        {"id": 2, "name": "b", "lakeload_partition": day},
    ]
    assert query(lake) == expected


def test_glue_table_with_a_new_column_returns_rows_to_generated_queries(
    lake: Lake, folder: Path
) -> None:
    allow_glue(lake)
    first = sync(lake, folder)
    assert first.code == 0, first.stderr
    (folder / "orders.csv").write_text("ID,Näme,Extra\n3,c,x\n")
    ended = sync(lake, folder)
    assert ended.code == 0, ended.stderr
    assert ended.tables["Orders"]["status"] == "LOADED"
    assert [(row["id"], row["extra"]) for row in query(lake)] == [(1, None), (2, None), (3, "x")]

    assert answers(lake, folder) == {
        "the rows of the latest sync": [3],
        "the newest version of each row": [1, 2, 3],
    }

    glue_of(lake).update_table(
        DatabaseName=DATABASE, TableInput={"Name": "orders", "TableType": "VIRTUAL_VIEW"}
    )
    refused = lakeload(lake, folder, "plan", "pipeline.yml")
    assert refused.code == 3
    assert "`VIRTUAL_VIEW`" in refused.stderr

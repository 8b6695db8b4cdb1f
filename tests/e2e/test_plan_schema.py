"""`lakeload plan` shows what a load would do to the columns of Iceberg tables, and does nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, IntegerType, NestedField, StringType

from tests.e2e.command import lakeload
from tests.integration.commands.conftest import ADMIN
from tests.servers.glue import glue_of
from tests.servers.ministack import Lake

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("warm_spark")]

NAMESPACE = "shop_planned"
HAS = {
    "orders": [("id", IntegerType()), ("name", StringType()), ("old", StringType())],
    "visits": [("id", IntegerType()), ("at", DateType())],
}


@pytest.fixture
def catalog(lake: Lake, tmp_path: Path) -> Iterator[Catalog]:
    """Two tables that this pipeline has made, and in `tmp_path` documents and files of three."""
    place = lake.server.endpoint
    lake.write_pipeline(
        tmp_path,
        tables=[
            {"table": "orders", "path": "orders.csv"},
            {"table": "visits", "path": "visits.csv", "columns": {"types": {"at": "string"}}},
            {"table": "new", "path": "new.csv", "mode": "UPSERT", "primary_key": ["id"]},
        ],
        source={
            "type": "FILES",
            "format": "CSV",
            "options": {"header": True, "inferSchema": True},
        },
        destination={
            "credentials": ADMIN,
            "table_format": "ICEBERG",
            "endpoints": dict.fromkeys(("s3", "sts", "glue"), place),
        },
        destination_prefix=NAMESPACE,
        tracking_columns="NONE",
    )
    (tmp_path / "orders.csv").write_text("id,name,price\n3000000000,a,1.5\n")
    (tmp_path / "visits.csv").write_text("id,at\n1,yesterday\n")
    (tmp_path / "new.csv").write_text("id\n1\n")
    made = load_catalog(
        "writer",
        **{
            "type": "glue",
            "glue.endpoint": place,
            "glue.region": lake.seeded.region,
            "s3.endpoint": place,
            "s3.region": lake.seeded.region,
            "client.access-key-id": "test",
            "client.secret-access-key": "test",
        },
    )
    root = f"s3://{lake.seeded.bucket}/{lake.seeded.prefix}/{NAMESPACE}"
    made.create_namespace(NAMESPACE, {"location": root})
    for name, columns in HAS.items():
        fields = [
            NestedField(number, column, kind, required=False)
            for number, (column, kind) in enumerate(columns, start=1)
        ]
        own = {"lakeload.created-by": "shop"}
        made.create_table((NAMESPACE, name), Schema(*fields), f"{root}/{name}", properties=own)
    yield made
    glue_of(lake).delete_database(Name=NAMESPACE)


def test_a_plan_shows_the_columns_that_change_and_writes_nothing(
    lake: Lake, catalog: Catalog, tmp_path: Path
) -> None:
    before = lake.keys()
    ended = lakeload(
        lake, tmp_path, "plan", "pipeline.yml", "--output", "json", LAKE_ADMIN_KEY="test"
    )
    # One change is refused; it is shown beside the others.
    assert ended.code == 3, ended.stderr
    orders, visits, new = (ended.tables[name]["schema"] for name in ("orders", "visits", "new"))
    assert orders["adds"] == {"price": "double"}
    assert orders["widens"] == [{"name": "id", "type": "long", "was": "int"}]
    assert (orders["removed"], orders["error"]) == (["old"], None)
    assert "`at`" in visits["error"]["message"]
    assert visits["columns"] == {"id": "int", "at": "string"}
    assert (new["creates"], new["columns"]) == (True, {"id": "long"})
    assert ended.tables["new"]["mode"] == "UPSERT"
    assert lake.keys() == before
    assert not catalog.table_exists((NAMESPACE, "new"))

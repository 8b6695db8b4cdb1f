"""Reports of real loads, compared with the lake: Parquet files and an Iceberg table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import sync
from tests.e2e.rest_lake import CLIENT_SECRET, gate_of
from tests.openlineage_schema import check
from tests.servers.ministack import Lake
from tests.servers.oauth2_gate import CATALOG
from tests.servers.report_receiver import receiving

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("warm_spark")]

TABLE = {
    "table": "orders",
    "path": "orders/*.csv",
    "columns": {"rename": {"Order No": "number"}, "types": {"Total": "decimal(12,2)"}},
}


def reported(lake: Lake, folder: Path, receiver: Any, **changes: Any) -> dict[str, Any]:
    """Load a table, and return the events of its end by job."""
    (folder / "orders").mkdir(exist_ok=True)
    (folder / "orders" / "1.csv").write_text("Order No,Total\n1,2.50\n2,3\n3,4\n")
    lineage = {"url": receiver.url}
    lake.write_pipeline(folder, tables=[TABLE], lineage=lineage, opentelemetry=True, **changes)
    variables = {
        "CLIENT_ID": "loader-id",
        "CLIENT_SECRET": CLIENT_SECRET,
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
    }
    ended = sync(lake, folder, **variables)
    assert ended.code == 0, ended.stdout + ended.stderr
    events = receiver.events
    for event in events:
        check(event)
    table = ended.tables["orders"]
    spans = {span.name: span for span in receiver.spans}
    assert spans["shop.orders"].parent_span_id == spans["tables"].span_id
    assert spans["commit"].parent_span_id == spans["shop.orders"].span_id
    gauges, of_table = receiver.gauges, "lakeload.table=shop.orders"
    assert gauges["lakeload.table.rows", of_table] == table["rows"] == 3
    assert gauges["lakeload.table.bytes", of_table] == table["bytes"]
    found = {one["job"]["name"]: one for one in events if one["eventType"] == "COMPLETE"}
    return {**found, "result": table, "events": events}


def written(found: dict[str, Any]) -> dict[str, Any]:
    """Return the one dataset that the table's run has written, after comparing its columns."""
    (output,) = found["shop.shop.orders"]["outputs"]
    fields = [(one["name"], one["type"]) for one in output["facets"]["schema"]["fields"]]
    assert fields[:2] == [("number", "bigint"), ("Total", "decimal(12,2)")]
    assert ("_supa_id", "string") in fields
    sources = output["facets"]["columnLineage"]["fields"]
    assert {name: one["inputFields"][0]["field"] for name, one in sources.items()} == {
        "number": "Order No",
        "Total": "Total",
    }
    result: dict[str, Any] = output
    return result


def test_lineage_of_parquet_files_is_what_is_in_the_lake(lake: Lake, tmp_path: Path) -> None:
    with receiving() as receiver:
        found = reported(lake, tmp_path, receiver)
    assert [one["eventType"] for one in found["events"]] == [
        *("START", "START", "COMPLETE", "COMPLETE")
    ]
    (read,) = found["shop.shop.orders"]["inputs"]
    assert (read["namespace"], read["name"]) == ("file", str(tmp_path / "orders"))
    output = written(found)
    assert output["namespace"] == f"s3://{lake.seeded.bucket}"
    assert output["name"] == f"{lake.seeded.prefix}/shop/orders"
    statistics = output["outputFacets"]["outputStatistics"]
    (key,) = lake.data_keys()
    assert key.startswith(output["name"])
    assert (statistics["rowCount"], statistics["fileCount"]) == (3, 1)
    assert statistics["size"] == len(lake.read(key))


def test_lineage_of_an_iceberg_table_is_its_location_and_its_name(
    lake: Lake, tmp_path: Path
) -> None:
    with gate_of(lake, tmp_path / "catalog") as gate, receiving() as receiver:
        catalog = {
            "type": "SNOWFLAKE_OPEN_CATALOG",
            "uri": gate.uri,
            "catalog_name": CATALOG,
            "client_id": {"env": "CLIENT_ID"},
            "client_secret": {"env": "CLIENT_SECRET"},
            "principal_role": "loader_role",
        }
        destination = {"table_format": "ICEBERG", "iceberg": {"catalog": catalog}}
        found = reported(lake, tmp_path, receiver, destination=destination)
    output = written(found)
    url = f"{output['namespace']}/{output['name']}"
    assert url == found["result"]["location"]
    facets = output["facets"]
    assert facets["version"]["datasetVersion"] == str(found["result"]["snapshot_id"])
    (name,) = facets["symlinks"]["identifiers"]
    assert (name["namespace"], name["name"]) == (gate.uri, "shop.orders")
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert lake.data_keys()
    assert all(f"s3://{lake.seeded.bucket}/{key}".startswith(url) for key in lake.data_keys())

"""Reports of real loads, compared with the lake: Parquet files and an Iceberg table."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import sync
from tests.e2e.rest_lake import CLIENT_SECRET, gate_of
from tests.openlineage_schema import check
from tests.servers import mariadb, postgres
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
    with gate_of(lake) as gate, receiving() as receiver:
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


DATABASES = {
    "postgres": (
        'CREATE SCHEMA sales; CREATE TABLE sales."Orders" '
        '("Order No" int PRIMARY KEY, total numeric(12,2), at timestamp);'
        """INSERT INTO sales."Orders" VALUES (1, 2.50, '2026-11-21'), (2, 3, '2026-11-22')""",
        "sales.Orders",
        'SELECT count(*) AS n FROM sales."Orders"',
    ),
    "mysql": (
        "CREATE TABLE Orders (`Order No` int PRIMARY KEY, total decimal(12,2), at datetime);"
        "INSERT INTO Orders VALUES (1, 2.50, '2026-11-21'), (2, 3, '2026-11-22')",
        "Orders",
        "SELECT count(*) AS n FROM Orders",
    ),
}


@pytest.fixture(params=[*DATABASES])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """A database with a table: its namespace, its name, and what a pipeline says of it."""
    statements, table, _ = DATABASES[request.param]
    server: Any
    if request.param == "postgres":
        server = request.getfixturevalue("postgres")
        name = server.new_database()
        with closing(server.connect(name)) as admin:
            admin.execute(statements)
        user, password = postgres.USER, postgres.PASSWORD
    else:
        server = request.getfixturevalue("mariadb")
        name = server.new_database()
        server.run(*statements.split(";"), database=name)
        user, password = mariadb.USER, mariadb.PASSWORD
    (tmp_path / "password").write_text(password)
    return {
        "kind": request.param,
        "namespace": f"{request.param}://127.0.0.1:{server.port}",
        # A schema of MySQL and MariaDB is a database.
        "table": f"{name}.{table}" if request.param == "mysql" else table,
        "name": f"{name}.{table}",
        "secret": password,
        "source": {
            "type": "JDBC",
            "url": server.url(name),
            "user": user,
            "password": {"file": str(tmp_path / "password")},
        },
    }


def test_lineage_of_a_database_has_its_tables_and_columns(
    lake: Lake, tmp_path: Path, database: dict[str, Any]
) -> None:
    table, query = database["table"], DATABASES[database["kind"]][2]
    columns = {"rename": {"Order No": "number"}}
    tables: list[dict[str, Any]] = [
        {"table": table, "cursor": "Order No", "columns": columns},
        {"table": "counted", "query": query},
    ]
    with receiving() as receiver:
        lake.write_pipeline(
            tmp_path, tables=tables, source=database["source"], lineage={"url": receiver.url}
        )
        first = sync(lake, tmp_path)
        assert first.code == 0, first.stdout + first.stderr
        events = receiver.events
        bodies = b"".join(one.body for one in receiver.requests)
    for event in events:
        check(event)
    assert database["secret"].encode() not in bodies
    ends = {one["job"]["name"]: one for one in events if one["eventType"] == "COMPLETE"}
    target = first.tables[table]["target"]
    loaded, counted = ends[f"shop.{target}"], ends["shop.shop.counted"]
    (read,) = loaded["inputs"]
    assert (read["namespace"], read["name"]) == (database["namespace"], database["name"])
    assert [one["name"] for one in read["facets"]["schema"]["fields"]] == [
        *("Order No", "total", "at")
    ]
    (output,) = loaded["outputs"]
    assert output["name"] == f"{lake.seeded.prefix}/{target.replace('.', '/')}"
    lineage = output["facets"]["columnLineage"]["fields"]
    found = {name: one["inputFields"] for name, one in lineage.items()}
    assert {name: [one["field"] for one in fields] for name, fields in found.items()} == {
        "number": ["Order No"],
        "total": ["total"],
        "at": ["at"],
    }
    names = {(one["namespace"], one["name"]) for fields in found.values() for one in fields}
    assert names == {(read["namespace"], read["name"])}
    types = {one["name"]: one["type"] for one in output["facets"]["schema"]["fields"]}
    assert (types["number"], types["total"]) == ("int", "decimal(12,2)")
    statistics = output["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["size"]) == (2, first.tables[table]["bytes"])
    # What a query reads is in its text alone.
    assert counted["inputs"] == []
    assert counted["job"]["facets"]["sql"]["query"] == query
    assert "columnLineage" not in counted["outputs"][0]["facets"]

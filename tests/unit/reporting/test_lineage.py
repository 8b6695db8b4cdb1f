"""OpenLineage events: judged by OpenLineage's schemas, and complete."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lakeload.documents.extras import Extra
from lakeload.documents.lineage import Lineage
from lakeload.reporting.job import ReportedJob
from lakeload.reporting.lineage import LineageReport, receiver_of
from lakeload.sources.datasets import Dataset
from lakeload.sources.registry import facts_of
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.errors import InvalidInput, MachineNotReady
from lakeload_jobs.contract.events import Event, Stage
from lakeload_jobs.contract.result import ColumnResult, ErrorInfo, FileResult, TableResult
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    ColumnsSpec,
    CredentialsSpec,
    DestinationSpec,
    FilesInput,
    IcebergSpec,
    JdbcInput,
    RejectLimit,
    TableSpec,
)
from tests.openlineage_schema import check

STARTED = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)
ROLE = CredentialsSpec(role_arn="arn:aws:iam::123456789012:role/loader")
ORDERS = TableSpec(
    "orders",
    "sales",
    "orders",
    FilesInput("CSV", ("/in/orders/*.csv",), {}),
    "f",
    columns=ColumnsSpec(types={"Total": "decimal(12,2)"}),
)
USERS = TableSpec("users", "sales", "users", FilesInput("CSV", ("/in/users.csv",), {}), "f")
COLUMNS = (
    ColumnResult("Id", "id", "bigint"),
    ColumnResult("Total", "total", "decimal(12,2)"),
    ColumnResult(None, "_supa_synced", "timestamp"),
)
LOADED = TableResult(
    "orders",
    "sales.orders",
    "LOADED",
    rows=3,
    bytes=100,
    files=(FileResult("lake/sales/orders/a.parquet", 3, 100),),
    file_count=1,
    location="s3://bucket/lake/sales/orders",
    columns=COLUMNS,
)


def job(*tables: TableSpec, destination: DestinationSpec | None = None, **changes: Any) -> Any:
    lake = destination or DestinationSpec("bucket", "us-east-1", "lake")
    inputs = {"orders": (Dataset("file", "/in/orders"),), "users": (Dataset("file", "/in/users"),)}
    return ReportedJob("shop", "job-1", "attempt-1", STARTED, lake, tables, inputs, **changes)


def document(*tables: TableResult, code: int = 0, **changes: Any) -> dict[str, Any]:
    status = {0: "SUCCEEDED", 5: "FAILED", 130: "INTERRUPTED"}.get(code, "FAILED")
    found = {"status": status, "exit_code": code, "error": None, **changes}
    return {**found, "tables": [to_json(table) for table in tables]}


def stage(name: Stage, table: str, second: int) -> Event:
    return Event("stage", STARTED + timedelta(seconds=second), table, stage=name)


def events(
    folder: Path,
    given: ReportedJob,
    end: Mapping[str, Any],
    *seen: Event,
    environment: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Return what a report writes into a file, each event judged by its schema."""
    settings = Lineage(file="events.jsonl")
    report = LineageReport(given, receiver_of(settings, folder, {}), environment or {})
    for event in seen:
        report.on_event(event)
    report.end(end)
    assert report.finish(time.monotonic() + 60) is None
    path = folder / "events.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines]
    for event in found:
        check(event)
    return found


def names(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["job"]["name"], event["eventType"]) for event in found]


def test_loaded_table_has_its_columns_their_sources_and_its_size(tmp_path: Path) -> None:
    seen = (
        stage("open", "orders", 5),
        stage("stage", "orders", 6),
        Event("table", STARTED + timedelta(seconds=9), "orders", "LOADED"),
    )
    found = events(tmp_path, job(ORDERS), document(LOADED), *seen)
    table = "shop.sales.orders"
    assert names(found) == [
        *(("shop", "START"), (table, "START"), (table, "COMPLETE"), ("shop", "COMPLETE")),
    ]
    pipeline, start, complete, end = found
    assert pipeline["run"]["runId"] == end["run"]["runId"] != start["run"]["runId"]
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert start["eventTime"] == "2026-11-27T12:00:05+00:00"
    assert complete["eventTime"] == "2026-11-27T12:00:09+00:00"
    facets = complete["run"]["facets"]
    assert facets["parent"]["run"]["runId"] == pipeline["run"]["runId"]
    assert facets["parent"]["job"] == {"namespace": "lakeload", "name": "shop"}
    tags = {tag["key"]: tag["value"] for tag in facets["tags"]["tags"]}
    assert {"job_id": "job-1", "attempt_id": "attempt-1"}.items() <= tags.items()
    (read,), (written,) = complete["inputs"], complete["outputs"]
    assert (read["namespace"], read["name"]) == ("file", "/in/orders")
    assert [field["name"] for field in read["facets"]["schema"]["fields"]] == ["Id", "Total"]
    assert (written["namespace"], written["name"]) == ("s3://bucket", "lake/sales/orders")
    statistics = written["outputFacets"]["outputStatistics"]
    assert [statistics[name] for name in ("rowCount", "size", "fileCount")] == [3, 100, 1]
    fields = written["facets"]["schema"]["fields"]
    assert [(one["name"], one["type"]) for one in fields] == [
        *(("id", "bigint"), ("total", "decimal(12,2)"), ("_supa_synced", "timestamp")),
    ]
    lineage_of = written["facets"]["columnLineage"]["fields"]
    assert set(lineage_of) == {"id", "total"}
    (source,) = lineage_of["total"]["inputFields"]
    assert (source["namespace"], source["name"], source["field"]) == ("file", "/in/orders", "Total")
    kinds = {name: one["inputFields"][0]["transformations"] for name, one in lineage_of.items()}
    assert kinds["id"][0]["subtype"] == "IDENTITY"
    assert kinds["total"][0]["description"] == "cast to decimal(12,2)"


def test_iceberg_table_is_its_location_with_its_name_in_the_catalog(tmp_path: Path) -> None:
    rest = CatalogSpec("REST", uri="https://catalog.example.com/api")
    glue = CatalogSpec("GLUE")
    result = to_json(LOADED) | {"snapshot_id": 7, "location": "s3://other/warehouse/orders-1"}
    for catalog, alias in (
        (rest, {"namespace": rest.uri, "name": "sales.orders", "type": "TABLE"}),
        (
            glue,
            {
                "namespace": "arn:aws:glue:us-east-1:123456789012",
                "name": "table/sales/orders",
                "type": "TABLE",
            },
        ),
    ):
        folder = tmp_path / catalog.type
        folder.mkdir()
        lake = DestinationSpec("bucket", "us-east-1", table_format="ICEBERG", credentials=ROLE)
        given = job(ORDERS, destination=_with(lake, catalog))
        end = document() | {"tables": [result]}
        *_, complete, _ = events(folder, given, end)
        (written,) = complete["outputs"]
        assert (written["namespace"], written["name"]) == ("s3://other", "warehouse/orders-1")
        assert written["facets"]["symlinks"]["identifiers"] == [alias]
        assert written["facets"]["version"]["datasetVersion"] == "7"
        assert written["facets"]["storage"]["storageLayer"] == "iceberg"


def _with(lake: DestinationSpec, catalog: CatalogSpec) -> DestinationSpec:
    return replace(lake, iceberg=IcebergSpec(catalog))


def test_failed_table_fails_its_run_and_the_pipeline(tmp_path: Path) -> None:
    error = ErrorInfo("LoadFailed", "no such host postgres://u:hunter2@db", 1)
    failed = TableResult("users", "sales.users", "FAILED", error=error)
    found = events(tmp_path, job(ORDERS, USERS), document(LOADED, failed, code=1))
    states = dict(names(found))
    assert states == {"shop.sales.orders": "COMPLETE", "shop.sales.users": "FAIL", "shop": "FAIL"}
    ends = {event["job"]["name"]: event["run"]["facets"] for event in found[-3:]}
    assert ends["shop.sales.users"]["errorMessage"]["message"] == (
        "no such host postgres://****@db"
    )
    assert ends["shop"]["errorMessage"]["message"].startswith("`sales.users`: no such host")
    assert "hunter2" not in (tmp_path / "events.jsonl").read_text()


@pytest.mark.parametrize(
    ("status", "code", "table", "pipeline"),
    [
        ("INTERRUPTED", 130, "ABORT", "ABORT"),
        ("SKIPPED", 3, "ABORT", "FAIL"),
        ("LOADED_CATALOG_OUT_OF_DATE", 5, "COMPLETE", "COMPLETE"),
        ("NO_OP", 0, "COMPLETE", "COMPLETE"),
    ],
)
def test_end_of_a_table_is_a_state_of_openlineage(
    tmp_path: Path, status: Any, code: int, table: str, pipeline: str
) -> None:
    already = status == "NO_OP"
    result = TableResult("orders", "sales.orders", status, rows=9, already=already)
    end = document(result, code=code)
    found = events(tmp_path, job(ORDERS), end)
    assert [state for _, state in names(found)] == ["START", "START", table, pipeline]
    if already:
        # Rows of an earlier attempt are none of this run.
        (written,) = found[2]["outputs"]
        assert written["outputFacets"]["outputStatistics"]["rowCount"] == 0


def test_refused_job_fails_without_tables(tmp_path: Path) -> None:
    error = to_json(ErrorInfo("Refused", "the role was denied", 3))
    found = events(tmp_path, job(ORDERS), document(code=3, error=error))
    assert names(found) == [("shop", "START"), ("shop", "FAIL")]
    assert found[1]["run"]["facets"]["errorMessage"]["message"] == "the role was denied"


def test_table_that_had_begun_when_the_driver_was_killed_fails(tmp_path: Path) -> None:
    error = to_json(ErrorInfo("SparkFailed", "Spark's driver has ended", 1))
    end = document(code=1, error=error)
    found = events(tmp_path, job(ORDERS), end, stage("count", "orders", 2))
    starts = [("shop", "START"), ("shop.sales.orders", "START")]
    assert names(found) == [*starts, ("shop.sales.orders", "FAIL"), ("shop", "FAIL")]


def test_round_reports_only_the_tables_with_news(tmp_path: Path) -> None:
    idle = TableResult("users", "sales.users", "NO_OP")
    given = job(ORDERS, USERS, only_news=True)
    seen = (stage("open", "users", 1), stage("open", "orders", 1), stage("count", "orders", 2))
    found = events(tmp_path, given, document(LOADED, idle), *seen)
    assert {name for name, _ in names(found)} == {"shop", "shop.sales.orders"}


def test_round_whose_keys_were_compared_in_vain_sends_nothing(tmp_path: Path) -> None:
    table = replace(ORDERS, max_deleted=RejectLimit(percent=30))
    seen = (stage("open", "orders", 1), stage("stage", "orders", 2))
    end = document(TableResult("orders", "sales.orders", "NO_OP"))
    assert events(tmp_path, job(table, only_news=True), end, *seen) == []


def test_columns_of_a_database_come_from_its_table(tmp_path: Path) -> None:
    read = JdbcInput("POSTGRESQL", "db", 5432, "shop", "Sales", "Orders")
    table = replace(ORDERS, input=read)
    given = replace(job(table), inputs={"orders": facts_of(read).datasets})
    *_, complete, _ = events(tmp_path, given, document(LOADED))
    (output,) = complete["outputs"]
    (column,) = output["facets"]["columnLineage"]["fields"]["total"]["inputFields"]
    place = ("postgres://db:5432", "shop.Sales.Orders")
    assert (column["namespace"], column["name"], column["field"]) == (*place, "Total")
    assert [(one["namespace"], one["name"]) for one in complete["inputs"]] == [place]


def test_query_is_given_as_sql_and_reads_no_dataset(tmp_path: Path) -> None:
    query = JdbcInput("POSTGRESQL", "db", 5432, "shop", "", "", query="SELECT 1 AS id")
    table = TableSpec("orders", "sales", "orders", query, "f")
    given = ReportedJob(
        "shop", "j", "a", STARTED, DestinationSpec("bucket", "us-east-1"), (table,), {}
    )
    *_, complete, _ = events(tmp_path, given, document(LOADED))
    assert complete["inputs"] == []
    assert complete["job"]["facets"]["sql"]["query"] == "SELECT 1 AS id"


def test_run_that_started_this_one_is_the_parent_and_the_root_of_all(tmp_path: Path) -> None:
    outer = "f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11"
    environment = {"OPENLINEAGE_PARENT_ID": f"airflow/etl.load/{outer}"}
    found = events(tmp_path, job(ORDERS), document(LOADED), environment=environment)
    parents = {event["job"]["name"]: event["run"]["facets"]["parent"] for event in found}
    assert parents["shop"]["run"]["runId"] == outer
    assert parents["shop"]["job"] == {"namespace": "airflow", "name": "etl.load"}
    assert parents["shop.sales.orders"]["job"]["name"] == "shop"
    assert parents["shop.sales.orders"]["root"]["run"]["runId"] == outer


def test_missing_client_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Extra, "is_installed", False)
    with pytest.raises(MachineNotReady) as raised:
        receiver_of(Lineage(file="e"), tmp_path, {})
    assert raised.value.hint == "install it with `pip install 'lakeload[lineage]'`"


def test_receiver_that_nothing_names_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(InvalidInput, match="neither `url` nor `file`"):
        receiver_of(Lineage(), tmp_path, {"OPENLINEAGE_NAMESPACE": "prod"})
    found = receiver_of(Lineage(), tmp_path, {"OPENLINEAGE_URL": "http://m", **_NAMESPACE})
    assert (found.namespace, found.url) == ("prod", None)


_NAMESPACE = {"OPENLINEAGE_NAMESPACE": "prod"}


def test_secret_that_is_no_value_of_a_header_is_named_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "TOKEN", "hunter2\r\nX: y")
    settings = Lineage.model_validate({"url": "http://m", "token": "${TOKEN}"})
    with pytest.raises(InvalidInput) as raised:
        receiver_of(settings, tmp_path, {})
    assert "lineage.token" in raised.value.message
    assert "hunter2" not in raised.value.message

"""Reports of `lakeload sync`, with a stand-in for spark-submit and a real receiver."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import Ended, lakeload
from tests.fakes.spark_home import fake_spark_home
from tests.openlineage_schema import check
from tests.servers.ministack import Lake
from tests.servers.report_receiver import ReportReceiver, receiving

pytestmark = pytest.mark.usefixtures("forked_commands")

TABLES = [
    {"table": "orders", "path": "orders.csv"},
    {"table": "customers", "path": "customers.csv"},
]
SECRET = "canary-lineage-token-31"


def sync(
    lake: Lake,
    folder: Path,
    lineage: dict[str, Any],
    scenario: str = "success",
    *more: str,
    endpoint: str = "",
) -> Ended:
    """Load two tables."""
    for name in ("orders", "customers"):
        (folder / f"{name}.csv").write_text("id,name\n1,a\n2,b\n")
    lake.write_pipeline(folder, tables=TABLES, lineage=lineage, opentelemetry=endpoint != "")
    fake_spark_home(folder)
    return lakeload(
        lake,
        folder,
        *("sync", "pipeline.yml", "--output", "json", *more),
        SPARK_HOME=str(folder / "spark"),
        FAKE_SPARK_SCENARIO=scenario,
        MARQUEZ_TOKEN=SECRET,
        OTEL_EXPORTER_OTLP_ENDPOINT=endpoint,
    )


def states(receiver: ReportReceiver) -> set[tuple[str, str]]:
    """Return the job and the type of each event; all keep to OpenLineage's schemas."""
    for event in receiver.events:
        check(event)
    return {(event["job"]["name"], event["eventType"]) for event in receiver.events}


def test_events_of_a_load_in_part_arrive_with_the_token_and_without_it_in_them(
    lake: Lake, tmp_path: Path
) -> None:
    with receiving(statuses=[500]) as receiver:
        settings = {"url": receiver.url, "endpoint": "lineage", "token": {"env": "MARQUEZ_TOKEN"}}
        ended = sync(lake, tmp_path, settings, "one_table_fails")
    assert ended.code == 1
    assert "OpenLineage" not in ended.stderr
    assert states(receiver) == {
        *(("shop", "START"), ("shop", "FAIL")),
        *(("shop.shop.orders", "START"), ("shop.shop.orders", "FAIL")),
        *(("shop.shop.customers", "START"), ("shop.shop.customers", "COMPLETE")),
    }
    assert {request.path for request in receiver.requests} == {"/lineage"}
    assert {one.headers["authorization"] for one in receiver.requests} == {f"Bearer {SECRET}"}
    assert not any(SECRET.encode() in request.body for request in receiver.requests)
    assert SECRET not in ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ({"hangs": True}, "it did not respond in time"),
        ({"statuses": [503] * 100}, "it responded with HTTP 503"),
    ],
)
def test_receiver_in_trouble_costs_no_load_and_only_seconds(
    lake: Lake, tmp_path: Path, trouble: dict[str, Any], reason: str
) -> None:
    with receiving(**trouble) as receiver:
        ended = sync(lake, tmp_path, {"url": receiver.url}, endpoint=receiver.url)
    assert ended.code == 0
    assert ended.document["status"] == "SUCCEEDED"
    assert f"6 of 6 were not delivered: {reason}" in " ".join(ended.stderr.split())
    assert f"traces and metrics for `{receiver.url}`: 2 of 2 were not delivered" in ended.stderr


def test_file_gets_the_events_of_a_job_that_failed(lake: Lake, tmp_path: Path) -> None:
    ended = sync(lake, tmp_path, {"file": "events.jsonl", "namespace": "prod"}, "job_fails")
    assert ended.code == 3
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    found = [(one["job"]["namespace"], one["job"]["name"], one["eventType"]) for one in events]
    assert found[0] == ("prod", "shop", "START")
    assert found[-1] == ("prod", "shop", "FAIL")


def test_missing_secret_ends_the_command_before_spark_starts(lake: Lake, tmp_path: Path) -> None:
    ended = sync(lake, tmp_path, {"url": "http://127.0.0.1:1", "token": {"env": "NOT_SET"}})
    assert ended.code == 2
    assert "`NOT_SET` is not set" in ended.stdout
    assert not (tmp_path / "runs").exists()


def test_setting_without_a_receiver_names_one(lake: Lake, tmp_path: Path) -> None:
    ended = sync(lake, tmp_path, {})
    assert ended.code == 2
    assert "neither `url` nor `file`" in ended.stdout


def test_dry_run_sends_nothing(lake: Lake, tmp_path: Path) -> None:
    ended = sync(lake, tmp_path, {"file": "events.jsonl"}, "success", "--dry-run", "--no-schema")
    assert ended.code == 0, ended.stderr
    assert not (tmp_path / "events.jsonl").exists()

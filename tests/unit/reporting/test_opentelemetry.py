"""Trace and metrics of a job, as a receiver on loopback decodes them."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakeload.documents.extras import Extra
from lakeload.launch.timings import Share, TableTime, WallTime
from lakeload.monitoring.metrics import Monitor
from lakeload.reporting.job import ReportedJob
from lakeload.reporting.opentelemetry import OpenTelemetryReport, check_opentelemetry
from lakeload_jobs.contract.codec import format_instant, to_json
from lakeload_jobs.contract.errors import InvalidInput, MachineNotReady
from lakeload_jobs.contract.events import Event, Stage
from lakeload_jobs.contract.result import ErrorInfo, TableResult
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.usage import Usage
from tests.servers.report_receiver import ReportReceiver, receiving

STARTED = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)
JOB = ReportedJob("shop", "job-1", "a-1", STARTED, DestinationSpec("b", "us-east-1"), ())
WALL_TIME = WallTime(
    10.0,
    (Share("spark", 4.0), Share("tables", 6.0)),
    (TableTime("orders", 4.0, (Share("open", 2.0), Share("commit", 2.0))),),
)
LOADED = TableResult(
    "orders", "sales.orders", "LOADED", 3, 100, 2.5, file_count=1, rejected=2, position=STARTED
)
ERROR = ErrorInfo("LoadFailed", "no such host postgres://u:hunter2@db", 1)
FAILED = TableResult("users", "sales.users", "FAILED", error=ERROR)


def stage(name: Stage, table: str, second: int) -> Event:
    return Event("stage", STARTED + timedelta(seconds=second), table, stage=name)


SEEN = (
    stage("open", "orders", 5),
    stage("commit", "orders", 7),
    Event("table", STARTED + timedelta(seconds=9), "orders", "LOADED"),
)


def report(
    receiver: ReportReceiver, *tables: TableResult, only_news: bool = False, **variables: str
) -> str | None:
    """Report a job of which an earlier one has failed; return the problem."""
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, **variables}
    document = ended(*tables)
    monitor = Monitor(print)
    monitor.add_metrics(ended(FAILED), ("sales.users",), None)
    metrics = monitor.add_metrics(document, [table.target for table in tables], None)
    with pytest.MonkeyPatch.context() as patched:
        for name, value in environment.items():
            patched.setitem(os.environ, name, value)
        given = OpenTelemetryReport(replace(JOB, only_news=only_news), environment)
        for event in SEEN:
            given.on_event(event)
        given.end(document, WALL_TIME, metrics)
        return given.finish(time.monotonic() + 30)


def ended(*tables: TableResult) -> dict[str, Any]:
    """Return the document of a job."""
    code = int(any(table.error for table in tables))
    return {
        "pipeline": "shop",
        "status": "FAILED" if code else "SUCCEEDED",
        "exit_code": code,
        "started_at": format_instant(STARTED + timedelta(seconds=10)),
        "seconds": 9.5,
        "error": None,
        "tables": [to_json(table) for table in tables],
        "timings": to_json(WALL_TIME),
        "usage": to_json(Usage(2.5, 1 << 20, {"s3.GetObject": 4})),
    }


def attributes(span: Any) -> dict[str, Any]:
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


def test_trace_has_the_phases_and_below_them_tables_and_stages() -> None:
    with receiving() as receiver:
        assert report(receiver, LOADED, FAILED) is None
    spans = {span.name: span for span in receiver.spans}
    root, tables = spans["sync shop"], spans["tables"]
    table, commit = spans["sales.orders"], spans["commit"]
    assert root.parent_span_id == b""
    assert {spans["spark"].parent_span_id, tables.parent_span_id} == {root.span_id}
    assert table.parent_span_id == tables.span_id
    assert commit.parent_span_id == table.span_id
    assert commit.end_time_unix_nano - commit.start_time_unix_nano == 2_000_000_000
    assert root.end_time_unix_nano - root.start_time_unix_nano == 10_000_000_000
    assert tables.end_time_unix_nano == root.end_time_unix_nano
    assert attributes(root)["lakeload.job_id"] == "job-1"
    assert attributes(table)["lakeload.rows"] == 3
    assert root.status.code == 2
    assert table.status.code == 0


def test_gauges_have_the_names_of_prometheus_and_the_numbers_of_the_document() -> None:
    with receiving() as receiver:
        report(receiver, LOADED, FAILED)
    orders, users = "lakeload.table=sales.orders", "lakeload.table=sales.users"
    gauges = receiver.gauges
    shown = {f"{name} {of}".strip(): value for (name, of), value in gauges.items()}
    end = STARTED.timestamp() + 19.5
    assert {name: value for name, value in shown.items() if users not in name} == {
        "lakeload.jobs lakeload.status=FAILED": 1,
        "lakeload.job.exit_code": 1,
        "lakeload.job.consecutive_failures": 2,
        "lakeload.job.last_end_timestamp": end,
        "lakeload.job.duration": 9.5,
        "lakeload.job.phase_duration lakeload.phase=spark": 4,
        "lakeload.job.phase_duration lakeload.phase=tables": 6,
        "lakeload.job.cpu": 2.5,
        "lakeload.job.peak_memory": 1 << 20,
        "lakeload.job.requests lakeload.operation=GetObject lakeload.service=s3": 4,
        f"lakeload.table.loads lakeload.status=LOADED {orders}": 1,
        f"lakeload.table.rows {orders}": 3,
        f"lakeload.table.bytes {orders}": 100,
        f"lakeload.table.files {orders}": 1,
        f"lakeload.table.rejected_records {orders}": 2,
        f"lakeload.table.deleted_rows {orders}": 0,
        f"lakeload.table.duration {orders}": 2.5,
        f"lakeload.table.stage_duration lakeload.stage=commit {orders}": 2,
        f"lakeload.table.stage_duration lakeload.stage=open {orders}": 2,
        f"lakeload.table.position_timestamp {orders}": STARTED.timestamp(),
        f"lakeload.table.lag {orders}": 19.5,
        f"lakeload.table.last_success_timestamp {orders}": end,
        f"lakeload.table.consecutive_failures {orders}": 0,
    }
    assert shown[f"lakeload.table.consecutive_failures {users}"] == 2
    assert f"lakeload.table.last_success_timestamp {users}" not in shown


def test_round_without_news_sends_its_metrics_and_no_trace() -> None:
    idle = TableResult("orders", "sales.orders", "NO_OP")
    with receiving() as receiver:
        report(receiver, idle, only_news=True)
    assert [request.path for request in receiver.requests] == ["/v1/metrics"]
    assert receiver.gauges["lakeload.table.rows", "lakeload.table=sales.orders"] == 0


def test_job_that_an_earlier_attempt_committed_has_written_nothing() -> None:
    with receiving() as receiver:
        report(receiver, replace(LOADED, status="NO_OP", already=True))
    assert receiver.gauges["lakeload.table.rows", "lakeload.table=sales.orders"] == 0
    spans = {span.name: span for span in receiver.spans}
    assert attributes(spans["sales.orders"])["lakeload.rows"] == 0


def test_standard_variables_choose_headers_parent_and_signals() -> None:
    parent = "0af7651916cd43dd8448eb211c80319c"
    with receiving() as receiver:
        problem = report(
            receiver,
            LOADED,
            OTEL_EXPORTER_OTLP_HEADERS="x-key=canary-otel-9",
            OTEL_METRICS_EXPORTER="none",
            TRACEPARENT=f"00-{parent}-b7ad6b7169203331-01",
        )
    assert problem is None
    (request,) = receiver.requests
    assert request.path == "/v1/traces"
    assert request.headers["x-key"] == "canary-otel-9"
    assert b"canary-otel-9" not in request.body
    assert {span.trace_id.hex() for span in receiver.spans} == {parent}


def test_disabled_sdk_sends_nothing() -> None:
    with receiving() as receiver:
        assert report(receiver, LOADED, OTEL_SDK_DISABLED="true") is None
    assert receiver.requests == []


def test_collector_that_rejects_all_is_named_with_the_reason() -> None:
    with receiving(statuses=[401] * 9) as receiver:
        problem = report(receiver, FAILED, OTEL_EXPORTER_OTLP_HEADERS="x-key=canary-otel-9")
        assert len(receiver.statuses) == 7
    assert problem == (
        f"traces and metrics for `{receiver.url}`: 2 of 2 were not delivered: "
        "the collector did not take the metrics: it responded with HTTP 401"
    )


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://canary:secret@127.0.0.1:1", "it cannot be reached"),
        ("https://canary:secret@127.0.0.1:{port}", "the TLS connection to it failed"),
    ],
)
def test_collector_out_of_reach_is_named_without_secrets(url: str, reason: str) -> None:
    with receiving() as receiver:
        own = url.format(port=receiver.url.rpartition(":")[2])
        problem = report(
            receiver,
            LOADED,
            OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=own,
            OTEL_TRACES_EXPORTER="none",
        )
    assert problem == (
        f"metrics for `{own.replace('canary:secret', '****')}`: 1 of 1 were not delivered: "
        f"the collector did not take the metrics: {reason}"
    )


def test_protocol_that_is_not_spoken_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    check_opentelemetry({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"})
    with pytest.raises(InvalidInput, match="`grpc`"):
        check_opentelemetry({"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"})
    monkeypatch.setattr(Extra, "is_installed", False)
    with pytest.raises(MachineNotReady) as raised:
        check_opentelemetry({})
    assert raised.value.hint == "install it with `pip install 'lakeload[otel]'`"

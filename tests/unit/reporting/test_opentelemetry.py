"""Trace and metrics of a job, as a receiver on loopback decodes them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakeload.documents.extras import Extra
from lakeload.launch.timings import Share, WallTime
from lakeload.reporting.job import ReportedJob
from lakeload.reporting.opentelemetry import OpenTelemetryReport, check_opentelemetry
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.errors import InvalidInput, MachineNotReady
from lakeload_jobs.contract.events import Event, Stage
from lakeload_jobs.contract.result import ErrorInfo, TableResult
from lakeload_jobs.contract.spec import DestinationSpec
from tests.servers.report_receiver import ReportReceiver, receiving

STARTED = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)
JOB = ReportedJob("shop", "job-1", "a-1", STARTED, DestinationSpec("b", "us-east-1"), ())
WALL_TIME = WallTime(10.0, (Share("spark", 4.0), Share("tables", 6.0)), ())
LOADED = TableResult("orders", "sales.orders", "LOADED", 3, 100, 2.5, file_count=1)
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
    receiver: ReportReceiver, *tables: TableResult, **variables: str
) -> tuple[str | None, Mapping[str, str]]:
    """Report a job to a receiver; return the problem."""
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, **variables}
    code = int(any(table.error for table in tables))
    document = {
        "status": "FAILED" if code else "SUCCEEDED",
        "exit_code": code,
        "seconds": 9.5,
        "error": None,
        "tables": [to_json(table) for table in tables],
    }
    with pytest.MonkeyPatch.context() as patched:
        for name, value in environment.items():
            patched.setitem(os.environ, name, value)
        given = OpenTelemetryReport(JOB, environment)
        for event in SEEN:
            given.on_event(event)
        given.end(document, WALL_TIME)
        return given.finish(time.monotonic() + 30), environment


def attributes(span: Any) -> dict[str, Any]:
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


def test_trace_has_the_phases_and_below_them_tables_and_stages() -> None:
    with receiving() as receiver:
        assert report(receiver, LOADED, FAILED)[0] is None
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


def test_gauges_are_the_numbers_of_the_document() -> None:
    with receiving() as receiver:
        report(receiver, LOADED, FAILED)
    gauges = receiver.gauges
    assert gauges["lakeload.table.rows", "sales.orders"] == 3
    assert gauges["lakeload.table.bytes", "sales.orders"] == 100
    assert gauges["lakeload.table.duration", "sales.orders"] == 2.5
    assert gauges["lakeload.table.failed", "sales.orders"] == 0
    assert gauges["lakeload.table.failed", "sales.users"] == 1
    assert gauges["lakeload.job.exit_code", ""] == 1
    assert ("lakeload.table.last_success", "sales.orders") in gauges
    assert ("lakeload.table.last_success", "sales.users") not in gauges
    assert ("lakeload.job.last_success", "") not in gauges


def test_standard_variables_choose_headers_parent_and_signals() -> None:
    parent = "0af7651916cd43dd8448eb211c80319c"
    with receiving() as receiver:
        problem, _ = report(
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
        assert report(receiver, LOADED, OTEL_SDK_DISABLED="true")[0] is None
    assert receiver.requests == []


def test_collector_that_rejects_all_is_named_with_what_is_lost() -> None:
    with receiving(statuses=[400] * 9) as receiver:
        problem, _ = report(receiver, FAILED)
    assert problem == (
        f"traces and metrics for `{receiver.url}`: 2 of 2 were not delivered: "
        "the collector did not take the traces"
    )


def test_protocol_that_is_not_spoken_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    check_opentelemetry({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"})
    with pytest.raises(InvalidInput, match="`grpc`"):
        check_opentelemetry({"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"})
    monkeypatch.setattr(Extra, "is_installed", False)
    with pytest.raises(MachineNotReady) as raised:
        check_opentelemetry({})
    assert raised.value.hint == "install it with `pip install 'lakeload[otel]'`"

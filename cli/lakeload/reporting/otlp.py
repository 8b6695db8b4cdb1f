"""Spans and measurements of a job with OpenTelemetry's SDK, and their export over OTLP."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Span, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from lakeload.config.secret_names import masked
from lakeload.reporting.delivery import REQUEST_SECONDS, NotTaken, Send
from lakeload.reporting.job import ReportedJob, TableTimes
from lakeload.reporting.opentelemetry import FinishedJob
from lakeload_jobs import __version__

_LOADED = ("LOADED", "NO_OP", "LOADED_CATALOG_OUT_OF_DATE")
_NANOSECONDS = 1_000_000_000
_TABLE_GAUGES: Mapping[str, tuple[str, str, str]] = {
    "rows": ("lakeload.table.rows", "{row}", "Rows that the job loaded"),
    "bytes": ("lakeload.table.bytes", "By", "Bytes that the job wrote"),
    "file_count": ("lakeload.table.files", "{file}", "Files that the job wrote"),
    "rejected": ("lakeload.table.rejected", "{record}", "Records that the job set aside"),
    "seconds": ("lakeload.table.duration", "s", "Time that the table took"),
}
"""Numbers of a table in the document, as gauges: name, unit, description."""


def connect(job: ReportedJob, environment: Mapping[str, str]) -> Send[FinishedJob]:
    """Return what sends a signal. Endpoint, headers and certificates are those of the standard
    variables."""
    # Its warnings would be on the terminal.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    resource = Resource.create(_service(environment))

    def send(finished: FinishedJob) -> None:
        if finished.signal == "traces":
            spans = _spans(job, finished, resource, environment)
            exporter = OTLPSpanExporter(timeout=REQUEST_SECONDS)
            taken = exporter.export(spans) is SpanExportResult.SUCCESS
            exporter.shutdown()  # type: ignore[no-untyped-call]
        else:
            metrics = OTLPMetricExporter(timeout=REQUEST_SECONDS)
            data = _measurements(job, finished, resource)
            taken = metrics.export(data) is MetricExportResult.SUCCESS
            metrics.shutdown()
        if not taken:
            raise NotTaken(f"the collector did not take the {finished.signal}")

    return send


def _service(environment: Mapping[str, str]) -> dict[str, str]:
    """Return name and version of the service; a name that the variables give is not replaced."""
    given = environment.get("OTEL_RESOURCE_ATTRIBUTES", "")
    named = environment.get("OTEL_SERVICE_NAME") or "service.name=" in given
    return {"service.version": __version__} | ({} if named else {"service.name": "lakeload"})


def _spans(
    job: ReportedJob, finished: FinishedJob, resource: Resource, environment: Mapping[str, str]
) -> Any:
    """Return the trace: the job, below it its phases, and below `tables` each table and stage."""
    kept = InMemorySpanExporter()
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer = provider.get_tracer("lakeload", __version__)
    document, end = finished.document, _time(finished.ended)
    begin = end - round(finished.wall_time.seconds * _NANOSECONDS)
    carrier = {"traceparent": environment.get("TRACEPARENT", "")}
    parent = TraceContextTextMapPropagator().extract(carrier)
    root = tracer.start_span(f"sync {job.pipeline}", parent, start_time=begin)
    root.set_attributes(
        {
            "lakeload.pipeline": job.pipeline,
            "lakeload.job_id": job.job_id,
            "lakeload.attempt_id": job.attempt_id,
            "lakeload.status": document["status"],
            "lakeload.exit_code": document["exit_code"],
        }
    )
    at, below = begin, root
    for phase in finished.wall_time.phases:
        span = _child(tracer, root, phase.name, at)
        at += round(phase.seconds * _NANOSECONDS)
        span.end(at)
        below = span if phase.name == "tables" else below
    for result in document["tables"]:
        if (times := finished.tables.get(result["table"])) is not None:
            _table_span(tracer, below, result, times, finished.ended)
    failed = document["exit_code"] not in (0, 5)
    _set_error(root, document["error"], failed=failed)
    root.end(end)
    return kept.get_finished_spans()


def _table_span(
    tracer: Tracer, parent: Span, result: Mapping[str, Any], times: TableTimes, ended: datetime
) -> None:
    end = times.ended or ended
    span = _child(tracer, parent, result["target"], _time(times.started))
    span.set_attributes(
        {
            "lakeload.table": result["target"],
            "lakeload.status": result["status"],
            "lakeload.rows": result["rows"],
            "lakeload.bytes": result["bytes"],
            "lakeload.files": result["file_count"],
            "lakeload.rejected": result["rejected"],
        }
    )
    limits = [*(at for _, at in times.stages[1:]), end]
    for (stage, at), until in zip(times.stages, limits, strict=True):
        _child(tracer, span, stage, _time(at)).end(_time(until))
    _set_error(span, result["error"], failed=result["status"] not in _LOADED)
    span.end(_time(end))


def _child(tracer: Tracer, parent: Span, name: str, at: int) -> Span:
    return tracer.start_span(name, set_span_in_context(parent), start_time=at)


def _set_error(span: Span, error: Mapping[str, Any] | None, *, failed: bool) -> None:
    if error is not None:
        span.set_attribute("error.type", error["type"])
    if failed:
        message = masked(error["message"]) if error is not None else None
        span.set_status(Status(StatusCode.ERROR, message))


def _time(at: datetime) -> int:
    return round(at.timestamp() * _NANOSECONDS)


def _measurements(job: ReportedJob, finished: FinishedJob, resource: Resource) -> Any:
    """Return the gauges of the job and of each table."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], resource, shutdown_on_exit=False)
    meter = provider.get_meter("lakeload", __version__)
    document, labels = finished.document, {"lakeload.pipeline": job.pipeline}
    now = finished.ended.timestamp()
    for name, unit, about, value in _job_values(document, now):
        meter.create_gauge(name, unit, about).set(value, labels)
    for result in document["tables"]:
        _set_table(meter, result, labels | {"lakeload.table": result["target"]}, now)
    data = reader.get_metrics_data()
    provider.shutdown()
    return data


def _job_values(
    document: Mapping[str, Any], now: float
) -> Iterator[tuple[str, str, str, float | int]]:
    yield "lakeload.job.duration", "s", "Time that the job took", document["seconds"]
    yield "lakeload.job.exit_code", "1", "Exit code of the job", document["exit_code"]
    if document["exit_code"] == 0:
        yield "lakeload.job.last_success", "s", "When a job ended well, since 1970", now


def _set_table(meter: Meter, result: Mapping[str, Any], labels: dict[str, str], now: float) -> None:
    for key, (name, unit, about) in _TABLE_GAUGES.items():
        # Numbers of a job that was loaded before are not of this one.
        idle = result["status"] == "NO_OP" and key != "seconds"
        meter.create_gauge(name, unit, about).set(0 if idle else result[key], labels)
    loaded = result["status"] in _LOADED
    about = "1 for a table that failed, was skipped or interrupted"
    meter.create_gauge("lakeload.table.failed", "1", about).set(int(not loaded), labels)
    if loaded:
        about = "When the table was up to date, since 1970"
        meter.create_gauge("lakeload.table.last_success", "s", about).set(now, labels)

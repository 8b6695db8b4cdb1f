"""Spans and measurements of a job with OpenTelemetry's SDK, and their export over OTLP."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import requests
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Span, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from lakeload.config.secret_names import masked
from lakeload.reporting.delivery import REQUEST_SECONDS, Send, describe_error, not_sent
from lakeload.reporting.job import ReportedJob, TableTimes
from lakeload_jobs import __version__
from lakeload_jobs.contract.result import GOOD

if TYPE_CHECKING:
    from lakeload.reporting.opentelemetry import FinishedJob, Signal

_NANOSECONDS = 1_000_000_000


def connect(job: ReportedJob, environment: Mapping[str, str]) -> Send[FinishedJob]:
    """Return what sends a signal. Endpoint, headers and certificates are those of the standard
    variables."""
    # Its warnings would be on the terminal.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    resource = Resource.create(_service(environment))

    def send(finished: FinishedJob) -> None:
        session = _Session()
        if finished.signal == "traces":
            spans = _spans(job, finished, resource, environment)
            exporter = OTLPSpanExporter(timeout=REQUEST_SECONDS, session=session)
            taken = exporter.export(spans) is SpanExportResult.SUCCESS
            exporter.shutdown()  # type: ignore[no-untyped-call]
        else:
            data = _measurements(finished, resource)
            metrics = OTLPMetricExporter(timeout=REQUEST_SECONDS, session=session)
            taken = metrics.export(data) is MetricExportResult.SUCCESS
            metrics.shutdown()
        if not taken:
            raise session.refusal(finished.signal)

    return send


class _Session(requests.Session):
    """A session that keeps why its last request failed: the exporters only log it."""

    def __init__(self) -> None:
        super().__init__()
        self._reason: str | None = None
        self._status: int | None = None

    def send(self, request: requests.PreparedRequest, **settings: Any) -> requests.Response:
        """Send a request."""
        try:
            response = super().send(request, **settings)
        except Exception as error:
            self._reason, self._status = describe_error(error), None
            raise
        self._status = response.status_code
        self._reason = None if response.ok else f"it responded with HTTP {response.status_code}"
        return response

    def refusal(self, signal: Signal) -> Exception:
        """Return the error of a signal that was not taken."""
        reason = f"the collector did not take the {signal}: {self._reason or 'they were not sent'}"
        return not_sent(self._status, reason)


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
    # The numbers of a job that an earlier attempt has committed are those of that one.
    new = 0 if result["already"] else 1
    span = _child(tracer, parent, result["target"], _time(times.started))
    span.set_attributes(
        {
            "lakeload.table": result["target"],
            "lakeload.status": result["status"],
            "lakeload.rows": new * result["rows"],
            "lakeload.bytes": new * result["bytes"],
            "lakeload.files": new * max(result["file_count"], len(result["files"])),
            "lakeload.rejected": new * result["rejected"],
        }
    )
    limits = [*(at for _, at in times.stages[1:]), end]
    for (stage, at), until in zip(times.stages, limits, strict=True):
        _child(tracer, span, stage, _time(at)).end(_time(until))
    _set_error(span, result["error"], failed=result["status"] not in GOOD)
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


def _measurements(finished: FinishedJob, resource: Resource) -> Any:
    """Return the metrics of the job as gauges."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], resource, shutdown_on_exit=False)
    meter = provider.get_meter("lakeload", __version__)
    for one in finished.metrics:
        meter.create_gauge(one.name, one.unit, one.about).set(one.value, one.attributes)
    data = reader.get_metrics_data()
    provider.shutdown()
    return data

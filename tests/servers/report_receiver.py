"""A receiver of reports over HTTP, on loopback: it keeps what it gets, and can be in trouble."""

from __future__ import annotations

import gzip
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Received:
    """One request. The names of its headers are in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        """The body as JSON."""
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass
class ReportReceiver:
    """`statuses` are those of the next responses, then it is 200. `hangs`: it never responds."""

    url: str = ""
    requests: list[Received] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    hangs: bool = False
    tls: ssl.SSLContext | None = None

    @property
    def events(self) -> list[dict[str, Any]]:
        """The bodies of all requests in JSON."""
        return [
            one.event for one in self.requests if one.headers["content-type"] == "application/json"
        ]

    @property
    def spans(self) -> list[Any]:
        """The spans of all traces, decoded."""
        batches = [
            ExportTraceServiceRequest.FromString(one.body)
            for one in self.requests
            if one.path == "/v1/traces"
        ]
        resources = [found for batch in batches for found in batch.resource_spans]
        return [span for one in resources for scope in one.scope_spans for span in scope.spans]

    @property
    def gauges(self) -> dict[tuple[str, str], float]:
        """The newest values of all gauges, decoded, by their name and their other attributes than
        the pipeline, such as `lakeload.table=sales.orders`."""
        found = {}
        for one in self.requests:
            if one.path != "/v1/metrics":
                continue
            for resource in ExportMetricsServiceRequest.FromString(one.body).resource_metrics:
                for metric in resource.scope_metrics[0].metrics:
                    for point in metric.gauge.data_points:
                        labels = {item.key: item.value.string_value for item in point.attributes}
                        labels.pop("lakeload.pipeline")
                        shown = " ".join(f"{name}={text}" for name, text in sorted(labels.items()))
                        found[metric.name, shown] = point.as_int or point.as_double
        return found


@contextmanager
def receiving(**settings: Any) -> Iterator[ReportReceiver]:
    """Run a receiver."""
    receiver = ReportReceiver(**settings)
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if receiver.hangs:
                ended.wait(60)
                return
            status = receiver.statuses.pop(0) if receiver.statuses else 200
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            headers = {name.lower(): value for name, value in self.headers.items()}
            if status == 200:
                receiver.requests.append(Received(self.path, headers, body))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if receiver.tls is not None:
        server.socket = receiver.tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    receiver.url = f"{'https' if receiver.tls else 'http'}://127.0.0.1:{server.server_address[1]}"
    try:
        yield receiver
    finally:
        ended.set()
        server.shutdown()
        server.server_close()

"""A receiver of reports over HTTP, on loopback: it keeps what it gets, and can be in trouble."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Received:
    """One request."""

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

    @property
    def events(self) -> list[dict[str, Any]]:
        """The bodies of all requests, as JSON."""
        return [request.event for request in self.requests]


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
            if status == 200:
                receiver.requests.append(Received(self.path, dict(self.headers), body))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield receiver
    finally:
        ended.set()
        server.shutdown()
        server.server_close()

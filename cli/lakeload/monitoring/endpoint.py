"""Metrics and signs of life over HTTP, of a process that stays: `/metrics` and `/healthz`."""

from __future__ import annotations

import re
import socket
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any, Self

from lakeload.monitoring.metrics import CONTENT_TYPE
from lakeload_jobs.contract.errors import InvalidInput

SILENCE_SECONDS = 600.0
"""Without a sign of life for this long, `/healthz` responds with 503. There is none while tables
are inspected."""
_REQUEST_SECONDS = 5.0
_ADDRESS = re.compile(r"(?:(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]*):)?(\d{1,5})", re.ASCII)
_LOOPBACK = "127.0.0.1"


def parse_address(text: str) -> tuple[str, int]:
    """Return host and port of `127.0.0.1:9464`, `[::1]:9464`, `:9464` or `9464`; without a host it
    is this machine's loopback. Raises `InvalidInput`."""
    match = _ADDRESS.fullmatch(text.strip())
    if match is None or int(match[2]) > 65535:
        raise InvalidInput(
            f"`--listen {text}` is not an address", hint="write it as `127.0.0.1:9464`"
        )
    return (match[1] or _LOOPBACK).strip("[]"), int(match[2])


class Endpoint:
    """Serves what was published last. Leaving the `with` block ends it."""

    def __init__(self, address: str, metrics: str | None = None) -> None:
        """`metrics` are those before the first job. Raises `InvalidInput` for an address that
        cannot be listened on."""
        self.metrics = metrics or "# EOF\n"
        self._alive = time.monotonic()
        host, port = parse_address(address)
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            self._server = _Server(self, family, (host, port))
        except OSError as error:
            raise InvalidInput(
                f"`--listen {address}`: {(error.strerror or str(error)).lower()}",
                hint="give `--listen` a free port on an address of this machine",
            ) from error
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="metrics", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def publish(self, metrics: str) -> None:
        """Serve other metrics from now on."""
        self.metrics = metrics

    def alive(self) -> None:
        """Take a sign of life."""
        self._alive = time.monotonic()

    @property
    def silent(self) -> bool:
        """Whether there was no sign of life for too long."""
        return time.monotonic() - self._alive > SILENCE_SECONDS


class _Server(ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, endpoint: Endpoint, family: int, address: tuple[str, int]) -> None:
        self.endpoint = endpoint
        self.address_family = family
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that has left."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _REQUEST_SECONDS
    server_version, sys_version = "lakeload", ""

    def do_GET(self) -> None:
        """Respond to a request for a page."""
        endpoint = self.server.endpoint
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._respond(HTTPStatus.OK, endpoint.metrics, CONTENT_TYPE)
        elif path == "/healthz" and endpoint.silent:
            self._respond(HTTPStatus.SERVICE_UNAVAILABLE, "no sign of life\n")
        elif path == "/healthz":
            self._respond(HTTPStatus.OK, "ok\n")
        else:
            self._respond(HTTPStatus.NOT_FOUND, "there are /metrics and /healthz\n")

    do_HEAD = do_GET

    def _respond(
        self, status: HTTPStatus, text: str, content_type: str = "text/plain; charset=utf-8"
    ) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log no request: probes come every few seconds."""

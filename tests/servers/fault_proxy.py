"""A loopback proxy in front of the emulator that breaks chosen requests of the protocol.

It knows a request by its AWS operation, bucket and key. A rule's action decides what happens: it
gets the request and the way to the server, and returns the answer, or raises `Drop`.
The Host header passes unchanged, so signatures still verify.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.servers.aws_requests import Request, read_body
from tests.servers.ministack import AwsServer

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "expect", "proxy-connection"}


@dataclass(frozen=True)
class Response:
    """An answer; `send_bytes` cuts the body short and closes the connection."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    send_bytes: int | None = None


class Drop(Exception):
    """Raised by an action: close the connection without an answer."""


Forward = Callable[[Request], Response]
Action = Callable[[Request, Forward], Response]


def answer(status: int, code: str, message: str = "injected") -> Action:
    """Answer with an AWS error; the server never sees the request."""

    def act(request: Request, forward: Forward) -> Response:
        if request.header("X-Amz-Target"):
            body = json.dumps({"__type": code, "Message": message})
            return Response(
                status, (("Content-Type", "application/x-amz-json-1.1"),), body.encode()
            )
        text = f"<Code>{code}</Code><Message>{message}</Message>"
        identifier = "<RequestId>injected</RequestId>"
        if request.service == "s3":
            body = f"<Error>{text}{identifier}</Error>"
        else:
            body = f"<ErrorResponse><Error>{text}</Error>{identifier}</ErrorResponse>"
        content = b"" if request.method == "HEAD" else body.encode()
        return Response(status, (("Content-Type", "text/xml"),), content)

    return act


def drop_answer(request: Request, forward: Forward) -> Response:
    """Let the server act, then lose its answer."""
    forward(request)
    raise Drop


def drop_request(request: Request, forward: Forward) -> Response:
    """Lose the request: the server never sees it."""
    raise Drop


def delay(seconds: float) -> Action:
    """Wait before the server sees the request."""

    def act(request: Request, forward: Forward) -> Response:
        time.sleep(seconds)
        return forward(request)

    return act


def truncate(size: int) -> Action:
    """Send only the first `size` bytes of the answer's body."""
    return lambda request, forward: replace(forward(request), send_bytes=size)


def before(call: Callable[[Request], None]) -> Action:
    """Call back before the server sees the request: kill -9 here, and it never will."""

    def act(request: Request, forward: Forward) -> Response:
        call(request)
        return forward(request)

    return act


def after(call: Callable[[Request], None]) -> Action:
    """Call back after the server acted, before its answer is passed on."""

    def act(request: Request, forward: Forward) -> Response:
        response = forward(request)
        call(request)
        return response

    return act


def edit_body(change: Callable[[bytes], bytes]) -> Action:
    """Change the body of the answer."""

    def act(request: Request, forward: Forward) -> Response:
        response = forward(request)
        return replace(response, body=change(response.body))

    return act


def without_header(name: str) -> Action:
    """Forward without one header. Only the emulator's administrator's signature survives it."""

    def act(request: Request, forward: Forward) -> Response:
        kept = tuple(pair for pair in request.headers if pair[0].lower() != name.lower())
        return forward(replace(request, headers=kept))

    return act


def without_support(beginning: str) -> Action:
    """Answer 501 to requests with a header that begins so, as a store that does not know it."""

    def act(request: Request, forward: Forward) -> Response:
        sent = any(name.lower().startswith(beginning) for name, _ in request.headers)
        return answer(501, "NotImplemented")(request, forward) if sent else forward(request)

    return act


@dataclass
class Rule:
    """Applies `action` to matching requests after the first `skip`, at most `times` times."""

    operation: str
    action: Action
    key: str = "*"
    skip: int = 0
    times: int | None = None
    hits: int = 0
    """How many requests matched, skipped ones included."""

    def takes(self, request: Request) -> bool:
        """Count a matching request and tell whether the action applies to it."""
        if self.operation not in ("*", request.operation):
            return False
        if not fnmatchcase(request.key, self.key):
            return False
        self.hits += 1
        number = self.hits - self.skip
        return number >= 1 and (self.times is None or number <= self.times)


@dataclass
class FaultProxy:
    """The running proxy: `endpoint` replaces the emulator's; `requests` is what passed."""

    upstream: str
    requests: list[Request] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    """What actions raised: those faults did not happen."""
    connections: int = 0
    """How many connections of clients are open: none when every request of a dead one is done."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _server: ThreadingHTTPServer | None = None

    @property
    def endpoint(self) -> str:
        """The proxy's own URL."""
        assert self._server is not None, "the proxy is not running"
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def on(
        self,
        operation: str,
        action: Action,
        *,
        key: str = "*",
        skip: int = 0,
        times: int | None = None,
    ) -> Rule:
        """Add a rule; the first matching rule wins. `key` is a pattern, `*` any operation."""
        rule = Rule(operation, action, key, skip, times)
        with self._lock:
            self.rules.append(rule)
        return rule

    def count(self, operation: str, key: str = "*") -> int:
        """Return how many requests of this operation arrived."""
        with self._lock:
            return sum(r.operation == operation and fnmatchcase(r.key, key) for r in self.requests)

    def count_connection(self, change: int) -> None:
        """Count a client that came or went."""
        with self._lock:
            self.connections += change

    def start(self) -> None:
        """Listen on a free loopback port."""
        handler = type("Handler", (_Handler,), {"proxy": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Stop listening; requests under way may still finish."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def handle(self, request: Request) -> Response:
        """Return what the client gets for this request; raises `Drop`."""
        with self._lock:
            self.requests.append(request)
            rule = next((rule for rule in self.rules if rule.takes(request)), None)
        if rule is None:
            return self.forward(request)
        try:
            return rule.action(request, self.forward)
        except Drop:
            raise
        except Exception as error:
            self.errors.append(error)
            raise Drop from error

    def forward(self, request: Request) -> Response:
        """Send the request to the server and return its answer."""
        connection = http.client.HTTPConnection(urlsplit(self.upstream).netloc, timeout=120)
        try:
            return self.exchange(connection, request)
        except OSError as error:
            raise Drop from error
        finally:
            connection.close()

    def exchange(self, connection: http.client.HTTPConnection, request: Request) -> Response:
        """Send the request on this connection and return the answer."""
        connection.putrequest(
            request.method, request.target, skip_host=True, skip_accept_encoding=True
        )
        for name, value in request.headers:
            if name.lower() not in _HOP_BY_HOP | {"content-length"}:
                connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(request.body)))
        connection.endheaders(request.body)
        response = connection.getresponse()
        return Response(response.status, tuple(response.getheaders()), response.read())


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed or hung up is what this proxy is for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # An answer leaves in one piece, and at once.
    wbufsize = -1
    disable_nagle_algorithm = True
    proxy: FaultProxy

    def handle(self) -> None:
        """Serve one connection."""
        self.proxy.count_connection(1)
        try:
            super().handle()
        finally:
            self.proxy.count_connection(-1)

    def _handle(self) -> None:
        request = Request(
            self.command,
            self.path,
            tuple(self.headers.items()),
            read_body(self.headers, self.rfile),
        )
        try:
            self._send(self.proxy.handle(request))
        except Drop:
            self.close_connection = True

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _handle

    def _send(self, response: Response) -> None:
        self.send_response_only(response.status)
        for name, value in response.headers:
            if name.lower() not in _HOP_BY_HOP | {"content-length"}:
                self.send_header(name, value)
        if self.command == "HEAD":
            length = next((v for n, v in response.headers if n.lower() == "content-length"), "0")
        else:
            length = str(len(response.body))
        if response.status != 204:
            self.send_header("Content-Length", length)
        self.end_headers()
        if response.send_bytes is not None:
            self.close_connection = True
        if self.command != "HEAD":
            self.wfile.write(response.body[: response.send_bytes])

    def handle_expect_100(self) -> bool:
        """Ask for the body, for which the client waits."""
        expected = super().handle_expect_100()
        self.wfile.flush()
        return expected

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent: the recorded requests are the log."""


MakeProxy = Callable[[str], FaultProxy]


@pytest.fixture
def make_proxy() -> Iterator[MakeProxy]:
    """Start proxies in front of servers of the test's own choice."""
    running: list[FaultProxy] = []

    def make(upstream: str) -> FaultProxy:
        proxy = FaultProxy(upstream)
        proxy.start()
        running.append(proxy)
        return proxy

    yield make
    for proxy in running:
        proxy.stop()
    assert [error for proxy in running for error in proxy.errors] == [], "a fault did not happen"


@pytest.fixture
def fault_proxy(aws: AwsServer, make_proxy: MakeProxy) -> FaultProxy:
    """A proxy in front of the emulator that lets everything pass until told otherwise."""
    return make_proxy(aws.endpoint)

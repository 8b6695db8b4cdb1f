"""A catalog that answers as the test says."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers and body."""


@dataclass(frozen=True)
class Raw:
    """Bytes in place of an answer, after which the connection is closed. With `stays` the client
    has to close it; with `bare` they do not pass the TLS of the connection."""

    data: bytes
    stays: bool = False
    bare: bool = False


CONFIG = b'{"defaults": {}, "overrides": {}}'


class Scripted(ThreadingHTTPServer):
    """A server that answers as the test says; `seen` are path and headers of what it was sent,
    `methods` that of each."""

    def __init__(self) -> None:
        self.answer: Callable[[str], Answer | Raw | None] = lambda path: (200, {}, CONFIG)
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.methods: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def uri(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}/catalog"


class _Handler(BaseHTTPRequestHandler):
    server: Scripted

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.seen.append((self.path, dict(self.headers)))
        self.server.methods.append(self.command)
        # A connection that is closed with something unread in it is reset.
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = self.server.answer(self.path)
        if found is None:
            return self.close_connection_now()
        if isinstance(found, Raw):
            return self._send_raw(found)
        status, headers, body = found
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        return None

    def close_connection_now(self) -> None:
        self.close_connection = True

    def _send_raw(self, found: Raw) -> None:
        self.close_connection = True
        if found.bare:
            with socket.socket(fileno=self.connection.detach()) as bare:
                bare.sendall(found.data)
                with suppress(OSError):
                    bare.shutdown(socket.SHUT_RDWR)
            return
        self.wfile.write(found.data)
        self.wfile.flush()
        if found.stays:
            with suppress(OSError, ssl.SSLError):
                self.connection.recv(1)

    do_POST = do_DELETE = do_GET


@contextmanager
def running() -> Iterator[Scripted]:
    """Serve until the block ends."""
    with Scripted() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()

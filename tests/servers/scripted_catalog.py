"""A catalog that answers as the test says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers and body."""
CONFIG = b'{"defaults": {}, "overrides": {}}'


class Scripted(ThreadingHTTPServer):
    """A server that answers as the test says; `seen` are path and headers of what it was sent."""

    def __init__(self) -> None:
        self.answer: Callable[[str], Answer | None] = lambda path: (200, {}, CONFIG)
        self.seen: list[tuple[str, dict[str, str]]] = []
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
        found = self.server.answer(self.path)
        if found is None:
            return self.close_connection_now()
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

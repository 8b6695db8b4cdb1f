"""A Maven repository on a loopback port: ranges, broken-off bodies, refusals, redirects."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass
class Asked:
    """One request as it came in."""

    path: str
    range: str
    login: str
    sent: int = 0


@dataclass
class MavenRepository:
    """What it has and how it misbehaves; every request is noted."""

    content: dict[str, bytes] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    ranges: bool = True
    """Whether it honours `Range`."""
    break_off: list[int] = field(default_factory=list)
    """After so many bytes of its body each next answer ends, and the connection with it."""
    statuses: list[int] = field(default_factory=list)
    """What the next answers are instead of the file; 0 for the file."""
    login: str = ""
    """The `Authorization` it wants; '' for none."""
    redirect_to: str = ""
    """Another server's base URL that every request is sent to."""
    seconds_a_chunk: float = 0.0
    announces_length: bool = True
    url: str = ""

    def paths(self) -> list[str]:
        """Return the paths that were asked for."""
        return [request.path for request in self.asked]


def _handler(repository: MavenRepository) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            noted = Asked(
                self.path, self.headers.get("Range", ""), self.headers.get("Authorization", "")
            )
            repository.asked.append(noted)
            if repository.redirect_to:
                self._empty(302, Location=repository.redirect_to + self.path)
                return
            if repository.login and noted.login != repository.login:
                self._empty(401)
                return
            if repository.statuses and (status := repository.statuses.pop(0)):
                self._empty(status)
                return
            body = repository.content.get(self.path.removeprefix("/maven/"))
            if body is None:
                self._empty(404)
                return
            self._send(body, noted)

        def _send(self, body: bytes, noted: Asked) -> None:
            start = 0
            if repository.ranges and (found := re.fullmatch(r"bytes=(\d+)-", noted.range)):
                start = int(found[1])
                if start >= len(body):
                    self._empty(416)
                    return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            if repository.announces_length:
                self.send_header("Content-Length", str(len(body) - start))
            self.end_headers()
            most = repository.break_off.pop(0) if repository.break_off else len(body)
            rest = body[start:][:most]
            with contextlib.suppress(OSError):
                for offset in range(0, len(rest), 4096):
                    piece = rest[offset : offset + 4096]
                    # Before the client has it, who may look at once.
                    noted.sent += len(piece)
                    self.wfile.write(piece)
                    time.sleep(repository.seconds_a_chunk)
            self.close_connection = True

        def _empty(self, status: int, **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


@contextlib.contextmanager
def serving(repository: MavenRepository) -> Iterator[MavenRepository]:
    """Serve it until the block ends; `url` is then its base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(repository))
    server.daemon_threads = True
    repository.url = f"http://127.0.0.1:{server.server_port}/maven"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield repository
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def maven_repository() -> Iterator[MavenRepository]:
    """One that has nothing yet."""
    with serving(MavenRepository()) as repository:
        yield repository

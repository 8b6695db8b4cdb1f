"""Servers on loopback that are not AWS: they answer one text, nothing, or only over TLS."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path

import trustme

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def http_answer(status: str, body: str = "", *headers: str) -> str:
    """Return a whole answer of HTTP/1.1."""
    size = f"Content-Length: {len(body)}"
    return "\r\n".join([f"HTTP/1.1 {status}", size, *headers, "", body])


def answering(cleanup: ExitStack, text: str) -> int:
    """Answer every request with this text; return the port."""

    def serve(connection: socket.socket) -> None:
        while connection.recv(65536):
            connection.sendall(text.encode())

    return _listen(cleanup, serve)


def silent(cleanup: ExitStack) -> int:
    """Accept connections and never answer; return the port."""
    listener = cleanup.enter_context(socket.create_server(("127.0.0.1", 0)))
    return int(listener.getsockname()[1])


def black_hole(cleanup: ExitStack) -> int:
    """Let nobody connect, as a firewall that drops packets; return the port.

    Linux drops what asks for a connection while the queue of those not accepted is full.
    """
    listener = cleanup.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
    for _ in range(3):
        waiting = cleanup.enter_context(socket.socket())
        waiting.setblocking(False)
        with suppress(BlockingIOError):
            waiting.connect(listener.getsockname())
    return int(listener.getsockname()[1])


def over_tls(
    cleanup: ExitStack, authority: trustme.CA, name: str, not_after: datetime | None = None
) -> int:
    """Speak TLS with a certificate for `name`, and answer nothing else; return the port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name, not_after=not_after).configure_cert(context)

    def serve(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secured:
            secured.recv(65536)

    return _listen(cleanup, serve)


def authority_file(authority: trustme.CA, folder: Path) -> Path:
    """Write the authority's certificate as AWS_CA_BUNDLE takes it."""
    path = folder / "authority.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


def _listen(cleanup: ExitStack, serve: Callable[[socket.socket], None]) -> int:
    listener = cleanup.enter_context(socket.create_server(("127.0.0.1", 0)))
    # A client is waited for no longer than a test takes.
    listener.settimeout(60)

    def one(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            serve(connection)

    def loop() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=one, args=(connection,), daemon=True).start()

    threading.Thread(target=loop, daemon=True).start()
    return int(listener.getsockname()[1])

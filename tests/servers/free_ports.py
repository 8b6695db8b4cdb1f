"""Ports of the loopback interface that nobody uses, for servers that cannot choose one.

A port stays this process's until it ends, whichever processes of whichever run ask for ports
meanwhile: a server takes a moment to listen, and may be started again on its port.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

GRPC_OFFSET = 10_000
_FIRST, _LAST = 20_000, 32_000
_GRPC_LAST = 22_500
"""With the offset it stays below the ports that Linux gives to outgoing connections (32,768)."""
_TRIES = 200
_reserved: list[int] = []
"""Descriptors of the locks of this process."""


def free_ports(count: int, *, with_grpc: bool = False) -> list[int]:
    """Return different free ports; `with_grpc`: the port 10,000 above each is free too."""
    ports: list[int] = []
    offsets = (0, GRPC_OFFSET) if with_grpc else (0,)
    for _ in range(_TRIES * count):
        if len(ports) == count:
            break
        port = random.randrange(_FIRST, _GRPC_LAST if with_grpc else _LAST)  # noqa: S311 - no secret
        if all(_is_free(port + offset) and _reserve(port + offset) for offset in offsets):
            ports.append(port)
    if len(ports) < count:
        raise RuntimeError(f"no {count} free ports were found")
    return ports


def free_block(length: int) -> int:
    """Return the first of so many ports in a row that are free, and free 10,000 higher."""
    for _ in range(_TRIES):
        first = random.randrange(_FIRST, _GRPC_LAST)  # noqa: S311 - no secret
        block = [first + number + high for number in range(length) for high in (0, GRPC_OFFSET)]
        if all(_is_free(port) and _reserve(port) for port in block):
            return first
    raise RuntimeError(f"no {length} free ports in a row were found")


def _reserve(port: int) -> bool:
    """Return whether no process holds the lock of the port; this one does from now on."""
    folder = Path(tempfile.gettempdir()) / f"lakeload-test-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(folder / str(port), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return False
    _reserved.append(lock)
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as candidate:
        try:
            candidate.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True

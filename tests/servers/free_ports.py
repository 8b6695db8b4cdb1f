"""Ports of the loopback interface that nobody uses, for servers that cannot choose one."""

from __future__ import annotations

import random
import socket

GRPC_OFFSET = 10_000
_TRIES = 200


def free_ports(count: int, *, with_grpc: bool = False) -> list[int]:
    """Return different free ports; `with_grpc`: the port 10,000 above each is free too."""
    found: list[int] = []
    for _ in range(_TRIES * count):
        if len(found) == count:
            break
        port = random.randrange(20_000, 32_000)  # noqa: S311 - not a secret
        offsets = (0, GRPC_OFFSET) if with_grpc else (0,)
        if port not in found and all(_is_free(port + offset) for offset in offsets):
            found.append(port)
    if len(found) < count:
        raise RuntimeError(f"no {count} free ports were found")
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as candidate:
        try:
            candidate.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True

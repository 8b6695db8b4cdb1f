"""Connections of a command to sources, which the next one who asks uses again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_AT_ONCE = threading.Semaphore(2)
"""Connections of one command: no source allows fewer (`max_connections`)."""
_lock = threading.Lock()
_blocks = 0
_idle: dict[str, list[Any]] = {}
"""Those that are open and not used, by where they lead to, while a block of `connections_kept`
runs."""


@contextmanager
def connections_kept() -> Iterator[None]:
    """Keep connections open until the end of the block, or of the outermost one, for all threads.
    A load does not begin within one: it has connections of its own."""
    global _blocks
    with _lock:
        _blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            ended = [] if _blocks else [one for kept in _idle.values() for one in kept]
            if not _blocks:
                _idle.clear()
        for connection in ended:
            connection.close()


@contextmanager
def connected(place: str, connect: Callable[[], Any]) -> Iterator[Any]:
    """Give a connection to a `place`: one that is kept, or what `connect` returns. What fails with
    it closes it."""
    with _AT_ONCE:
        with _lock:
            kept = _idle.get(place)
            connection = kept.pop() if kept else None
        if connection is None:
            connection = connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        with _lock:
            if keeps := _blocks > 0:
                _idle.setdefault(place, []).append(connection)
        if not keeps:
            connection.close()

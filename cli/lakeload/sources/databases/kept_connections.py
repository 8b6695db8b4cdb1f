"""Connections of a command to databases, which the next one who asks uses again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from lakeload_jobs.contract.spec import JdbcInput

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
def connected(read: JdbcInput, connect: Callable[[], Any]) -> Iterator[Any]:
    """Give a connection that leads to where `read` is: one that is kept, or what `connect` returns.
    What fails with it closes it."""
    place = _place(read)
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


def _place(read: JdbcInput) -> str:
    """Return what the connections of two tables have in common if they are the same."""
    return repr(
        replace(read, schema="", table="", query=None, key=None, incremental=False, by_xmin=False,
                lookback=None)
    )  # fmt: skip

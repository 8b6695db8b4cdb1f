"""spark.log: bounded while it is written, read from its end afterwards."""

from __future__ import annotations

import os
from pathlib import Path

LIMIT = 64 * 1024 * 1024
HEAD = 1024 * 1024
TAIL = 1024 * 1024
_TRIES = 10


def open_log(path: Path) -> int:
    """Create the log and return a descriptor that always appends, so that `trim` may shorten it."""
    return os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)


def trim(path: Path, limit: int = LIMIT, head: int = HEAD, tail: int = TAIL) -> bool:
    """Cut the middle out of a log beyond `limit` bytes while others go on appending to it.

    A file instead of a pipe keeps the job independent of whoever reads its output, and its size
    is looked at ten times a second: only a flood faster than `limit` in that time passes it, and
    only until the next look. What is written between reading the tail and cutting is lost, so the
    tail is read again while the log still grows.
    """
    size = path.stat().st_size
    if size <= limit:
        return False
    last = read_tail(path, tail)
    for _ in range(_TRIES):
        read, size = size, path.stat().st_size
        if read == size:
            break
        last = read_tail(path, tail)
    with path.open("r+b") as log:
        log.truncate(head)
    with path.open("ab") as log:
        log.write(b"\n[lakeload cut the middle of this log, which had grown too long]\n" + last)
    return True


def read_tail(path: Path, size: int = TAIL) -> bytes:
    """Return the last `size` bytes, or nothing when there is no log."""
    try:
        with path.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - size))
            return log.read(size)
    except FileNotFoundError:
        return b""


def read_log(path: Path) -> str:
    """Return the first and the last part of the log as text, for finding a cause in it."""
    try:
        with path.open("rb") as log:
            first = log.read(HEAD)
    except FileNotFoundError:
        return ""
    size = path.stat().st_size
    rest = read_tail(path, min(TAIL, max(0, size - len(first))))
    return (first + rest).decode("utf-8", errors="replace")

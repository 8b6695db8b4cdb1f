"""Files of a cache that several processes use at once: one maker each, whole or not there."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

_LOOK_AGAIN = 0.2


@contextlib.contextmanager
def only_maker(part: Path, waiting: Callable[[], None]) -> Iterator[BinaryIO]:
    """Yield the unfinished file `part`, open and locked, with what an earlier maker left in it.

    The kernel lets go of the lock when a process dies, however it dies. `waiting` is called once
    in a while until another maker has ended; what it raises ends the wait. Whoever finishes
    renames `part` inside of the block. Raises `OSError`, also where the file system has no locks.
    """
    part.parent.mkdir(parents=True, exist_ok=True)
    while True:
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        with os.fdopen(handle, "r+b", buffering=0) as file:
            _lock(file, waiting)
            # Its maker may have renamed it meanwhile: then this is a finished file's lock.
            if _is_still(file, part):
                yield file
                return


def finish(file: BinaryIO, part: Path, target: Path) -> None:
    """Give the unfinished file its name, with its bytes on the disk. Raises `OSError`."""
    os.fchmod(file.fileno(), 0o644)
    os.fsync(file.fileno())
    part.replace(target)


def _lock(file: BinaryIO, waiting: Callable[[], None]) -> None:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
                raise OSError(error.errno, "its file system has no file locks") from error
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            waiting()
            time.sleep(_LOOK_AGAIN)
        else:
            return


def _is_still(file: BinaryIO, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    here = os.fstat(file.fileno())
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

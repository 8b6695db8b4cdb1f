"""What nobody has used for a month goes from the cache: other versions of lakeload may share it.

A use is kept as the file's access time, which file systems keep for whoever sets it even where
reading alone does not move it. Modification times stay: they tell an archive whether it is whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Collection, Iterator
from pathlib import Path

DAYS = 30
"""Longer than any load runs."""

_SECONDS_A_DAY = 86_400


def mark_used(path: Path) -> None:
    """Remember that a file is used from now on, before looking whether it is there.

    Does nothing where it is not, or belongs to somebody else.
    """
    with _locked(path.parent, fcntl.LOCK_SH), contextlib.suppress(OSError):
        # By what it opened: another may take the name meanwhile, with a time of its own.
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.utime(file, ns=(time.time_ns(), os.fstat(file).st_mtime_ns))
        finally:
            os.close(file)


def remove_unused(folder: Path, *patterns: str, keep: Collection[str] = ()) -> tuple[Path, ...]:
    """Remove what matches a pattern, is not named in `keep`, and was not used for `DAYS`.

    Returns what was removed. Whoever marks a file at the same moment keeps it. Never fails: where
    locks are not to be had, or something cannot be removed, it stays.
    """
    oldest = time.time() - DAYS * _SECONDS_A_DAY
    removed = []
    with _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB) as alone:
        found = [path for pattern in patterns for path in folder.glob(pattern)] if alone else []
        for path in sorted(set(found)):
            with contextlib.suppress(OSError):
                if path.name not in keep and _last_used(path) < oldest:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                    removed.append(path)
    return tuple(removed)


def _last_used(path: Path) -> float:
    status = path.stat()
    return max(status.st_atime, status.st_mtime)


@contextlib.contextmanager
def _locked(folder: Path, how: int) -> Iterator[bool]:
    """Lock a folder of the cache for a moment; yield whether that could be done."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(handle, how)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)

"""The files that threads of a run read now, on disk: native code may end a process at a damaged
file, and whoever finds that wants to name the file."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = "LAKELOAD_FILES_IN_USE"
"""The variable with the folder of a run, which processes on its machine have. Without it nothing is
noted."""

_of_thread = threading.local()


@contextmanager
def in_use(path: str) -> Iterator[None]:
    """Note that this thread reads a file."""
    if (folder := os.environ.get(FOLDER)) is None:
        yield
        return
    note = _note(folder)
    os.ftruncate(note, 0)
    os.pwrite(note, os.fsencode(path), 0)
    try:
        yield
    finally:
        os.ftruncate(note, 0)


def _note(folder: str) -> int:
    """Return the open file of this thread; a forked process has threads, and files, of its own."""
    owner = (folder, os.getpid(), threading.get_ident())
    if getattr(_of_thread, "owner", None) != owner:
        name = f"{os.getpid()}-{threading.get_ident()}"
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        _of_thread.note = os.open(Path(folder) / name, flags, 0o600)
        _of_thread.owner = owner
    note: int = _of_thread.note
    return note


def take_left_in_use(folder: Path) -> tuple[str, ...]:
    """Return the files that processes were reading which have ended since, and forget them."""
    files: dict[str, None] = {}
    for note in sorted(folder.glob("*-*")):
        if _is_running(int(note.name.partition("-")[0])):
            continue
        if path := note.read_bytes():
            files[os.fsdecode(path)] = None
        note.unlink()
    return tuple(files)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

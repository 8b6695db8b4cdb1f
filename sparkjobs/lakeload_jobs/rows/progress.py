"""Progress of tasks while they run: the rows and bytes that they have handled so far. Spark itself
tells of a task when it has ended, which can be minutes later.

Tasks on the driver's machine append lines to a file of their table, and the driver adds them up. On
a cluster there is no such file, and progress is that of Spark's tasks.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.contract.usage import REQUESTS

_SECONDS = 0.5
"""So often a task says how far it is."""


def _folder(spec: JobSpec) -> Path:
    """Return the folder of the run's files, named by a table's place in the spec, a dot, and what
    tells one attempt to read or write it from another."""
    return Path(spec.result_path).parent / "progress"


def requests_file(folder: Path) -> Path:
    """Return the file of a run's folder in which tasks count their requests."""
    return folder / "requests.jsonl"


def new_progress_file(spec: JobSpec, table: TableSpec) -> str | None:
    """Return a new file of the table, in place of the one before; None where tasks run on other
    machines."""
    if not spec.runtime.tasks_share_driver:
        return None
    folder, number = _folder(spec), spec.tables.index(table)
    folder.mkdir(exist_ok=True)
    for before in folder.glob(f"{number}.*"):
        before.unlink(missing_ok=True)
    path = folder / f"{number}.{uuid.uuid4().hex}"
    path.touch()
    return str(path)


class TaskProgress:
    """What one task tells of itself; `path` None: nothing."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._told = (0, 0)
        self._next = time.monotonic() + _SECONDS

    def at(self, rows: int, size: int, *, last: bool = False) -> None:
        """Tell how many rows and bytes the task has handled by now, unless it has just done so.

        With `last` in any case: a task that fails takes back what it has told by two zeros.
        """
        now = time.monotonic()
        if last:
            self._tell_requests()
        if self._path is None or (now < self._next and not last):
            return
        self._next = now + _SECONDS
        line = b"%d %d\n" % (rows - self._told[0], size - self._told[1])
        self._told = (rows, size)
        _append(self._path, line, os.O_WRONLY | os.O_APPEND)

    def _tell_requests(self) -> None:
        """Tell the requests of this process: the task has ended, and others may follow."""
        if self._path is None or (counts := REQUESTS.take()) == {}:
            return
        path = requests_file(Path(self._path).parent.parent)
        _append(str(path), json.dumps(counts).encode() + b"\n", _NEW)


_NEW = os.O_WRONLY | os.O_APPEND | os.O_CREAT


def _append(path: str, line: bytes, flags: int) -> None:
    # Whatever is wrong with the disk, the load does not depend on this file.
    with contextlib.suppress(OSError):
        # One write of a short line at the end of a file is not torn by those of other tasks.
        file = os.open(path, flags, 0o600)
        try:
            os.write(file, line)
        finally:
            os.close(file)


class ProgressFiles:
    """The driver's view of all tables of a run."""

    def __init__(self, spec: JobSpec) -> None:
        self._folder = _folder(spec)
        self._tables = [table.source for table in spec.tables]
        self._read: dict[str, tuple[int, int, int]] = {}

    def changed(self) -> Mapping[str, tuple[int, int]]:
        """Return rows and bytes of the tables, by their names in the source, whose numbers are
        others than when they were last asked for."""
        found: dict[str, tuple[int, int]] = {}
        with contextlib.suppress(OSError):
            for path in self._folder.iterdir():
                before = self._read.get(path.name, (0, 0, 0))
                now = self._read[path.name] = _read_on(path, *before)
                if now[1:] != before[1:]:
                    found[self._tables[int(path.stem)]] = now[1:]
        return found


def _read_on(path: Path, offset: int, rows: int, size: int) -> tuple[int, int, int]:
    """Return the numbers with what was appended behind `offset`, and its end."""
    with path.open("rb") as file:
        file.seek(offset)
        lines = file.read()
    lines = lines[: lines.rfind(b"\n") + 1]
    for line in lines.splitlines():
        more = line.split(b" ")
        rows, size = rows + int(more[0]), size + int(more[1])
    return offset + len(lines), rows, size

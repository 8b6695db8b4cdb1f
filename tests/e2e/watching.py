"""Looks at a command from outside, as another user of the machine could: argv of every process,
modes of every file."""

from __future__ import annotations

import os
import stat
import threading
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self


class _Watcher(ABC):
    """Runs `_watch` in a thread while the block runs."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @abstractmethod
    def _watch(self) -> None:
        """Look until `_stop` is set."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()


class ArgvWatcher(_Watcher):
    """Collects the argv of every process that runs while the block does.

    A young process is looked at often: it may soon end, or become another program. The others are
    looked at twice in a second, as each look costs CPU.
    """

    def __init__(self, *, every: float = 0.02, young: float = 5, later: float = 0.5) -> None:
        super().__init__()
        self._every = every
        self._young = young
        self._later = later
        self.seen: set[bytes] = set()

    def _watch(self) -> None:
        # Those that run already are not the command's.
        first = dict.fromkeys(_processes(), 0.0)
        everybody = 0.0
        while not self._stop.wait(self._every):
            now = time.monotonic()
            found = _processes()
            first = {process: first.get(process, now) for process in found}
            if now - everybody >= self._later:
                everybody = now
            else:
                found = [process for process in found if now - first[process] < self._young]
            for process in found:
                self._look(process)

    def _look(self, process: str) -> None:
        try:
            self.seen.add(Path(f"/proc/{process}/cmdline").read_bytes())
        except OSError:  # it has ended
            return


class ModeWatcher(_Watcher):
    """Collects what is below folders while the block runs, and what of it others could read."""

    def __init__(self, *roots: Path, every: float = 0.05) -> None:
        super().__init__()
        self._roots = roots
        self._every = every
        self.seen: set[Path] = set()
        self.readable: dict[Path, str] = {}
        """Paths with their modes, of those that not only their owner can read."""
        self.properties = ""
        """Spark's properties, which are there for a moment only."""

    def _watch(self) -> None:
        while not self._stop.wait(self._every):
            self._look()
        self._look()

    def _look(self) -> None:
        for root in self._roots:
            for folder, folders, files in os.walk(root):
                for path in (Path(folder, name) for name in (*folders, *files)):
                    self.seen.add(path)
                    try:
                        mode = path.lstat().st_mode
                        if path.name == "spark.conf":
                            self.properties = path.read_text(encoding="utf-8") or self.properties
                    except OSError:  # it was removed
                        continue
                    # Spark lets everybody execute what it fetches, which is not reading.
                    others = 0o077 if stat.S_ISDIR(mode) else 0o066
                    if mode & others and not stat.S_ISLNK(mode):
                        self.readable[path] = stat.filemode(mode)


def _processes() -> list[str]:
    with os.scandir("/proc") as entries:
        return [entry.name for entry in entries if entry.name.isdecimal()]

"""Looks at a command from outside, as another user of the machine could: argv of every process."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self


class ArgvWatcher:
    """Collects the argv of every process that runs while the block does.

    A young process is looked at often: it may soon end, or become another program. The others are
    looked at twice in a second, as each look costs CPU.
    """

    def __init__(self, *, every: float = 0.02, young: float = 5, later: float = 0.5) -> None:
        self._every = every
        self._young = young
        self._later = later
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.seen: set[bytes] = set()

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


def _processes() -> list[str]:
    with os.scandir("/proc") as entries:
        return [entry.name for entry in entries if entry.name.isdecimal()]

"""Looks at a command from outside, as another user of the machine could: argv of every process."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType
from typing import Self

PROC = Path("/proc")


class ArgvWatcher:
    """Collects the argv of every process that runs while the block does."""

    def __init__(self, *, every: float = 0.02) -> None:
        self._every = every
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
        while not self._stop.wait(self._every):
            for entry in PROC.iterdir():
                if entry.name.isdecimal():
                    self._look(entry)

    def _look(self, process: Path) -> None:
        try:
            self.seen.add((process / "cmdline").read_bytes())
        except OSError:  # it has ended
            return

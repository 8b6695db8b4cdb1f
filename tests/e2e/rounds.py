"""The rounds of `lakeload sync --every`, one after the other."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.command import SECONDS, start
from tests.servers.ministack import Lake


@dataclass
class Rounds:
    """The rounds of a command, and those of them that failed."""

    process: subprocess.Popen[str]
    failed: list[dict[str, Any]] = field(default_factory=list)
    ended_at: float = 0.0
    """When the last one was shown, of the monotonic clock."""

    def next(self) -> dict[str, Any]:
        """Return the next round."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate(timeout=SECONDS)
        self.ended_at = time.monotonic()
        found: dict[str, Any] = json.loads(line)
        if found["exit_code"] != 0:
            self.failed.append(found)
        return found

    def loaded(self) -> int:
        """Return the rows of the next round that loads some."""
        while True:
            found = self.next()
            rows: int = sum(table["rows"] or 0 for table in found["tables"])
            if found["exit_code"] == 0 and rows:
                return rows
            assert len(self.failed) < 6, self.failed


@contextmanager
def rounds(lake: Lake, folder: Path, **variables: str | None) -> Iterator[Rounds]:
    """Run rounds each second, and stop them at the end of the block."""
    arguments = ("sync", "pipeline.yml", "--every", "1s", "--output", "json")
    process = start(lake, folder, *arguments, **variables)
    try:
        yield Rounds(process)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, err
    finally:
        process.kill()

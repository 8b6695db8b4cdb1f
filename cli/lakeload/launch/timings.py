"""Wall time of a sync, phase by phase, and of each of its tables.

The times of the phases always add up to the whole: each phase begins where the one before ended.
Tables are loaded at the same time, so theirs add up to more than the phase `tables`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lakeload_jobs.contract.events import Event

Phase = Literal[
    "start",
    "documents",
    "machine",
    "connection",
    "inspection",
    "preparation",
    "spark",
    "destination",
    "tables",
    "shutdown",
    "summary",
]

PHASES: Mapping[str, str] = {
    "start": "Python and the modules of the command",
    "documents": "configuration files, with what they import",
    "machine": "modules for AWS; Java and Spark are found",
    "connection": "STS and the bucket are checked",
    "inspection": "commit logs, bookmarks and input of the tables are read",
    "preparation": "conditional writes, jars, the job's files",
    "spark": "spark-submit, the JVM, the Spark session",
    "destination": "the job's AWS session and catalog",
    "tables": "the tables are loaded, several at once",
    "shutdown": "the job's result, the end of the JVM",
    "summary": "the outcome",
}
"""What each phase is, in their order."""


@dataclass(frozen=True)
class Share:
    """Seconds of one phase, or of one stage of a table."""

    name: str
    seconds: float


@dataclass(frozen=True)
class TableTime:
    """Seconds of one table in the Spark job: the sum of its stages."""

    table: str
    seconds: float
    stages: tuple[Share, ...]


@dataclass(frozen=True)
class WallTime:
    """Seconds of a sync: the sum of its phases."""

    seconds: float
    phases: tuple[Share, ...]
    tables: tuple[TableTime, ...]


NO_TIME = WallTime(0.0, (), ())


class Timings:
    """The times of one sync while it runs."""

    def __init__(self, started: float | None = None) -> None:
        """Begin with the phase `start`, at the time of the clock that is given, or now."""
        now = time.time() if started is None else started
        self._phases = _Shares("start", now)
        self._tables: dict[str, _Shares] = {}
        self._table_ended: float | None = None
        self._last = now

    def begin(self, phase: Phase, at: float | None = None) -> None:
        """End the present phase and begin another, at a time of the clock, or now."""
        self._phases.begin(phase, time.time() if at is None else at)

    def note(self, event: Event) -> None:
        """Take in an event of the Spark job."""
        at = self._last = event.at.timestamp()
        if event.kind == "opened":
            self.begin("destination", at)
        elif event.kind == "stage" and event.table and event.stage:
            if self._phases.running != "tables":
                self.begin("tables", at)
            if event.table in self._tables:
                self._tables[event.table].begin(event.stage, at)
            else:
                self._tables[event.table] = _Shares(event.stage, at)
        elif event.kind == "table" and event.table:
            self._table_ended = at
            if event.table in self._tables:
                self._tables[event.table].end(at)
        elif event.kind == "closed":
            self.begin("shutdown", self._table_ended or at)
            self._table_ended = None
            # One that another driver is to load has not ended.
            for shares in self._tables.values():
                shares.end(at)

    def finish(self) -> WallTime:
        """End the present phase, and return what there is."""
        now = time.time()
        self._phases.end(now)
        tables = []
        for name, shares in self._tables.items():
            # The job was killed while it worked on this table.
            shares.end(min(now, self._last))
            tables.append(TableTime(name, shares.total, shares.found))
        return WallTime(self._phases.total, self._phases.found, tuple(tables))


class _Shares:
    """Seconds by name, of which one is running. A clock that goes back makes none negative."""

    def __init__(self, name: str, at: float) -> None:
        self._seconds: dict[str, float] = {}
        self.running: str | None = name
        self._since = at

    def begin(self, name: str, at: float) -> None:
        self.end(at)
        self.running = name

    def end(self, at: float) -> None:
        at = max(at, self._since)
        if self.running is not None:
            before = self._seconds.get(self.running, 0.0)
            self._seconds[self.running] = before + at - self._since
        self.running, self._since = None, at

    @property
    def found(self) -> tuple[Share, ...]:
        return tuple(Share(name, round(seconds, 3)) for name, seconds in self._seconds.items())

    @property
    def total(self) -> float:
        return round(sum(share.seconds for share in self.found), 3)


def process_started(stat: Path = Path("/proc/self/stat")) -> float:
    """Return when this process was started, by the clock; where the system does not say it, now."""
    now = time.time()
    try:
        # The name in parentheses may hold anything; `starttime` is the 22nd field.
        ticks = int(stat.read_text(encoding="utf-8").rpartition(")")[2].split()[19])
        running = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    # macOS has no /proc.
    except (OSError, ValueError, IndexError, AttributeError):
        return now
    return now - max(running, 0.0)

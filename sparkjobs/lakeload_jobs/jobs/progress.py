"""Progress: Spark's tasks, done and total, at most twice a second."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from py4j.protocol import Py4JError
from pyspark import SparkContext

from lakeload_jobs.jobs.event_log import EventLog

_SECONDS = 0.5


class Progress:
    """A daemon thread that watches Spark's status tracker and emits `progress` events.

    Stages leave the tracker when they end, so those seen are remembered: `done` never falls.
    """

    def __init__(self, context: SparkContext, events: EventLog) -> None:
        self._tracker = context.statusTracker()
        self._events = events
        self._stages: dict[int, tuple[int, int]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)

    def __enter__(self) -> Self:
        """Start watching."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop watching and say the last numbers."""
        self._stop.set()
        self._thread.join(timeout=2)

    def _watch(self) -> None:
        told = (0, 0)
        stopped = False
        while not stopped:
            stopped = self._stop.wait(_SECONDS)
            try:
                numbers = self._read()
            except (Py4JError, OSError):
                # The JVM is gone; whoever waits for a job learns it and says so.
                return
            if numbers != told:
                told = numbers
                self._events.emit("progress", done=numbers[0], total=numbers[1])

    def _read(self) -> tuple[int, int]:
        active = set(self._tracker.getActiveStageIds())
        for stage in self._stages.keys() - active:
            total = self._stages[stage][1]
            self._stages[stage] = (total, total)
        for stage in active:
            # Spark's documentation: information of a stage may be gone already.
            if (info := self._tracker.getStageInfo(stage)) is not None:
                self._stages[stage] = (info.numCompletedTasks, info.numTasks)
        done = sum(numbers[0] for numbers in self._stages.values())
        return done, sum(numbers[1] for numbers in self._stages.values())

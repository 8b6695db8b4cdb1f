"""Progress of a running job, by Spark's status tracker and the files of its tasks."""

from __future__ import annotations

import json
import threading
import time
from typing import Any, Self

from py4j.protocol import Py4JError
from pyspark import SparkContext

from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.rows.progress import ProgressFiles

_SECONDS = 0.5
_LAST_LOOKS = 5
_LAST_PAUSE = 0.1


class Progress:
    """A daemon thread that emits `progress` events: of Spark's status tracker, and of the rows and
    bytes of tables, where `files` are given.

    Jobs leave the tracker some time after they end, so stages are remembered: `done` never falls.
    """

    def __init__(
        self, context: SparkContext, events: EventLog, files: ProgressFiles | None = None
    ) -> None:
        self._files = files
        self._context = context
        self._tracker = context.statusTracker()
        self._events = events
        self._stages: dict[int, tuple[int, int]] = {}
        self._told = (0, 0)
        self._running = False
        # What ran before us is not ours to tell.
        self._ended_jobs = self._jobs()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)

    def __enter__(self) -> Self:
        """Start watching."""
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop watching and say the last numbers."""
        self._stop.set()
        self._thread.join(timeout=2)

    def _watch(self) -> None:
        try:
            while not self._stop.wait(_SECONDS):
                self._tell()
            self._tell()
            # The tracker lags a little behind the jobs it tells of.
            for _ in range(_LAST_LOOKS):
                if self._stages and not self._running:
                    break
                time.sleep(_LAST_PAUSE)
                self._tell()
        except (Py4JError, OSError):
            # The JVM is gone; whoever waits for a job learns it and says so.
            return

    def _tell(self) -> None:
        for table, (rows, size) in self._files.changed().items() if self._files else ():
            self._events.emit("progress", table=table, rows=rows, bytes=size)
        numbers = self._read()
        if numbers != self._told:
            self._told = numbers
            self._events.emit("progress", done=numbers[0], total=numbers[1])

    def _read(self) -> tuple[int, int]:
        """Return how many tasks are done, and how many there are in all stages so far."""
        # Through the jobs, finished ones too: a short one comes and goes between two looks.
        self._running = False
        for job in self._jobs() - self._ended_jobs:
            # Spark's documentation: information of a job or stage may be gone already.
            if (info := self._tracker.getJobInfo(job)) is None:
                continue
            ended = info.status != "RUNNING"
            for stage in info.stageIds:
                self._look_at(stage, ended=ended)
            if ended:
                self._ended_jobs.add(job)
            else:
                self._running = True
        done = sum(numbers[0] for numbers in self._stages.values())
        return done, sum(numbers[1] for numbers in self._stages.values())

    def _jobs(self) -> set[int]:
        """Return the jobs that Spark remembers, up to a thousand.

        As one text: `getJobIdsForGroup` of PySpark asks the JVM twice for each.
        """
        jvm: Any = self._context._jvm
        found = self._tracker._jtracker.getJobIdsForGroup(None)
        return set(json.loads(jvm.java.util.Arrays.toString(found)))

    def _look_at(self, stage: int, *, ended: bool) -> None:
        info = self._tracker.getStageInfo(stage)
        # A stage that is waiting, or was skipped, has begun no task: it counts for nothing.
        if info is None or not info.numActiveTasks + info.numCompletedTasks + info.numFailedTasks:
            return
        done = info.numTasks if ended else info.numCompletedTasks
        self._stages[stage] = (done, info.numTasks)

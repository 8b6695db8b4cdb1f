"""Runs spark-submit: started in a session of its own, watched, stopped in order."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from lakeload.launch.command import Submission
from lakeload.launch.event_tail import EventTail
from lakeload.launch.log_file import open_log, trim
from lakeload.launch.outcome import Ending, Observed
from lakeload.launch.process_group import kill_session, members, signal_group
from lakeload.launch.run_folder import RunFolder
from lakeload.launch.stop import StopRequests
from lakeload_jobs.contract.errors import MachineLacks
from lakeload_jobs.contract.events import Event

POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Patience:
    """Seconds to wait for an orderly end before the next, harder measure."""

    term: float = 10.0
    """After SIGTERM, for the driver to abort its uploads; then SIGKILL."""
    survivors: float = 10.0
    """After spark-submit died, for the Python driver to notice and write its result."""
    stragglers: float = 2.0
    """After spark-submit ended well, for whatever it left behind."""


PATIENCE = Patience()


class Running:
    """A started spark-submit. Leaving the `with` block always leaves no process behind."""

    def __init__(
        self,
        submission: Submission,
        folder: RunFolder,
        stop: StopRequests,
        patience: Patience = PATIENCE,
    ) -> None:
        self._submission = submission
        self._folder = folder
        self._stop = stop
        self._patience = patience
        self._tail = EventTail(folder.events)
        self._killed = False
        self.observed = Observed()

    def __enter__(self) -> Self:
        """Start it. Raises `MachineLacks` when the operating system refuses."""
        self._stop.hold()
        log = open_log(self._folder.log)
        try:
            # The arguments are ours: no shell, no user text that could become an option.
            self._process = subprocess.Popen(  # noqa: S603
                self._submission.argv,
                env=self._submission.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            self._folder.forget_properties()
            raise MachineLacks(
                f"starting `{self._submission.argv[0]}` failed: {error.strerror}",
                hint="reinstall pyspark, or unset SPARK_HOME",
            ) from error
        finally:
            os.close(log)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if members(self._process.pid):
            kill_session(self._process.pid)
        self._process.wait()
        self._folder.forget_properties()
        self._tail.close()

    def events(self) -> Iterator[Event]:
        """Yield what the driver says until nothing of it lives; then `ending` is known."""
        while self._process.poll() is None and self._stop.requested is None:
            yield from self._look()
            time.sleep(POLL_SECONDS)
        if self._stop.requested is not None:
            signal_group(self._process.pid, signal.SIGTERM)
            yield self._stopping(self._stop.requested)
            yield from self._wait_for_end(self._patience.term)
        else:
            ended_well = self._process.returncode == 0
            patience = self._patience.stragglers if ended_well else self._patience.survivors
            yield from self._wait_for_end(patience)
        for event in self._tail.drain():
            yield self._seen(event)
        trim(self._folder.log)

    @property
    def pid(self) -> int:
        """The id of spark-submit's process, which is also that of its session and group."""
        return self._process.pid

    @property
    def unreadable_events(self) -> int:
        """Lines among the events that were none."""
        return self._tail.unreadable

    @property
    def ending(self) -> Ending:
        """How spark-submit ended; meaningful after `events` is exhausted."""
        return Ending(self._process.wait(), self._stop.requested, self._killed)

    def _wait_for_end(self, seconds: float) -> Iterator[Event]:
        until = time.monotonic() + seconds
        while (self._process.poll() is None) or members(self._process.pid):
            if time.monotonic() > until or self._stop.impatient:
                self._killed = self._process.poll() is None
                kill_session(self._process.pid)
                self._process.wait()
                return
            yield from self._look()
            time.sleep(POLL_SECONDS)

    def _stopping(self, number: signal.Signals) -> Event:
        message = f"stopping after {number.name}: the job aborts its uploads; again to kill it"
        return Event("note", datetime.now(UTC), level="info", message=message)

    def _look(self) -> Iterator[Event]:
        trim(self._folder.log)
        for event in self._tail.read():
            yield self._seen(event)

    def _seen(self, event: Event) -> Event:
        if event.kind == "opened":
            self._folder.forget_properties()
        self.observed.note(event)
        return event

"""A Spark driver that stays: it is started for the first job and given one after another."""

from __future__ import annotations

import logging
import os
import resource
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from lakeload.launch.outcome import Cause, Ending, Observed
from lakeload.launch.process import POLL_SECONDS, EventTail, Running, members, signal_group
from lakeload.launch.run import Ended, Launcher, ended_driver, jvm_bytes, prepare_driver, write_spec
from lakeload.launch.run_folder import RunFolder, create_run_folder, is_gone
from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.contract.events import Event
from lakeload_jobs.contract.rounds import DRAIN, FORGET
from lakeload_jobs.contract.spec import JobSpec
from lakeload_jobs.core.job_ids import new_attempt_id

logger = logging.getLogger(__name__)

OLDEST_SECONDS = 12 * 3600.0
"""A driver is restarted after this long, between two jobs."""
SPARE_BYTES = 2 << 30
"""Memory of a driver, its JVM and its workers beyond the heap, above which it is restarted."""
KEPT_FOLDERS = 5
"""Folders of drivers that stay, for their logs."""
_PREFIX = "driver-"
_NO_CAUSE = Cause("the job ended", None, ExitCode.TABLE_FAILED)


class _Driver(Running):
    """A driver that takes jobs from a pipe. Leaving the `with` block leaves no process behind."""

    started: float

    def __enter__(self) -> Self:
        pipe = self._folder.jobs
        os.mkfifo(pipe, 0o600)
        # Also for reading, or this would wait for the driver; closed with this process.
        self._pipe = os.open(pipe, os.O_RDWR | os.O_CLOEXEC)
        self.started = time.monotonic()
        try:
            return super().__enter__()
        except BaseException:
            os.close(self._pipe)
            raise

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        os.close(self._pipe)

    @property
    def alive(self) -> bool:
        """Whether it can take another job."""
        return self._process.poll() is None

    @property
    def memory(self) -> int:
        """The bytes of memory that its processes have; 0 where the system does not tell."""
        pages = 0
        for process in members(self._process.pid):
            try:
                pages += int(Path(f"/proc/{process}/statm").read_text("ascii").split()[1])
            except (OSError, ValueError, IndexError):
                continue
        return pages * resource.getpagesize()

    @property
    def ending(self) -> Ending:
        """How it ended; a driver that lives has ended its job well."""
        return Ending(0) if self.alive else super().ending

    def follow(
        self, folder: RunFolder, stop_within: float, on_look: Callable[[], None]
    ) -> Iterator[Event]:
        """Give it the job of a folder and yield its events until the job has ended. `on_look` is
        called ten times a second.

        After a stop signal no further table begins. What is under way after `stop_within` seconds,
        or when a second signal comes, is stopped as any job is.
        """
        self._tail.close()
        self._tail, self.observed = EventTail(folder.events), Observed()
        self._stop.hold()
        self._give(str(folder.spec))
        until: float | None = None
        while self.alive:
            on_look()
            for event in self._look():
                yield event
                if event.kind == "closed":
                    return
            if self._stop.requested is not None:
                if until is None:
                    until = time.monotonic() + stop_within
                    self._give(DRAIN)
                    yield self._draining(stop_within)
                elif self._stop.impatient or time.monotonic() > until:
                    signal_group(self._process.pid, signal.SIGTERM)
                    yield from self._wait_for_end(self._patience.term)
                    break
            time.sleep(POLL_SECONDS)
        else:
            yield from self._wait_for_end(self._patience.survivors)
        for event in self._tail.drain():
            yield self._seen(event)

    def forget(self) -> None:
        """Let the next job connect again."""
        self._give(FORGET)

    def _give(self, line: str) -> None:
        os.write(self._pipe, f"{line}\n".encode())

    def _draining(self, seconds: float) -> Event:
        message = (
            f"stopping: no further table begins, and those under way have {seconds:.0f} s to "
            "commit; press Ctrl-C again to stop them now"
        )
        return Event("note", datetime.now(UTC), level="info", message=message)


class Resident:
    """Runs one job after another in one driver. It is restarted where it has ended, has become
    old or takes too much memory. Leaving the `with` block ends it."""

    def __init__(self, stop_within: float, on_look: Callable[[], None]) -> None:
        """`stop_within` and `on_look` are those of `_Driver.follow`."""
        self._stop_within = stop_within
        self._on_look = on_look
        self._driver: _Driver | None = None
        self._folder: RunFolder | None = None
        self._launcher: Launcher | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def end(self) -> None:
        """End the driver, if there is one."""
        if self._driver is not None:
            self._driver.__exit__()
            self._driver = None

    def forget(self) -> None:
        """Let the driver, if there is one, forget its connection: the credentials that it has kept
        may be why a load failed."""
        if self._driver is not None and self._driver.alive:
            self._driver.forget()

    def run_job(self, spec: JobSpec, folder: RunFolder, launcher: Launcher) -> Ended:
        """Run the job of `spec` in the driver, as `run.run_job` runs it in one of its own."""
        write_spec(spec, folder, launcher)
        driver, home = self._ready(spec, folder, launcher)
        folder.log.symlink_to(home.log)
        for event in driver.follow(folder, self._stop_within, self._on_look):
            launcher.show(event)
        if driver.alive:
            return Ended(driver.ending, driver.observed, _NO_CAUSE)
        ended = ended_driver(driver, home, launcher)
        self.end()
        return ended

    def _ready(
        self, spec: JobSpec, folder: RunFolder, launcher: Launcher
    ) -> tuple[_Driver, RunFolder]:
        """Return the driver, and its folder."""
        if self._driver is not None and self._outlived(self._driver, launcher):
            self.end()
        if self._driver is None or self._folder is None:
            runs = folder.path.parent
            _prune(runs)
            home = create_run_folder(runs, spec.synced, f"{_PREFIX}{new_attempt_id()}")
            # Sizes change from job to job; that no row passes through the JVM does not.
            size = 0 if jvm_bytes(spec) == 0 else None
            started = prepare_driver(spec, home, launcher, size, home.jobs)
            self._driver = _Driver(started, home, launcher.stop, launcher.patience).__enter__()
            self._folder, self._launcher = home, launcher
        return self._driver, self._folder

    def _outlived(self, driver: _Driver, launcher: Launcher) -> bool:
        """Return whether a driver has ended, has other settings, is old or too large."""
        if self._launcher is None or not driver.alive:
            return True
        # The archive speeds up a start, and another table may add jars.
        before = replace(self._launcher.settings, archive=None)
        if before != replace(launcher.settings, archive=None):
            return True
        old = time.monotonic() - driver.started > OLDEST_SECONDS
        heap = int(launcher.settings.memory.removesuffix("m")) << 20
        large = driver.memory > heap + SPARE_BYTES
        if old or large:
            logger.info("the Spark driver is restarted: %s", "age" if old else "memory")
        return old or large


def _prune(runs: Path) -> None:
    """Remove the oldest folders of drivers that have ended."""
    homes = sorted(runs.glob(f"*-{_PREFIX}*"))
    for home in homes[: max(0, len(homes) - KEPT_FOLDERS)]:
        if is_gone(RunFolder(home).log):
            shutil.rmtree(home, ignore_errors=True)

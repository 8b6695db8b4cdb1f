"""Loads at an interval: each round is a job of its own, in one Spark driver that stays."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import hashlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType

from lakeload.commands.liveness import Liveness
from lakeload.commands.reports import Reports
from lakeload.commands.spark_job import Context
from lakeload.commands.sync_once import Kept, LoadJob, Synced, sync_once
from lakeload.config.document import quoted
from lakeload.documents.durations import format_duration
from lakeload.documents.rounds import refuse_appending
from lakeload.launch.outcome import Outcome
from lakeload.launch.resident import Resident
from lakeload.launch.run_folder import lake_of, runs_directory
from lakeload.launch.spec import new_attempt
from lakeload.launch.timings import Timings, WallTime
from lakeload_jobs.contract.codec import format_instant, parse_instant, to_json
from lakeload_jobs.contract.errors import (
    ExitCode,
    LakeloadError,
    MachineNotReady,
    Refused,
)

RETRIES = 5
"""Retries of a failed round under its own job id."""
_FIRST_PAUSE = 5.0
_LOOK_SECONDS = 0.2
_FATAL = (ExitCode.INVALID, ExitCode.MACHINE, ExitCode.BUG)
"""Exit codes that a retry cannot change: they end the command in the first round."""


@dataclass(frozen=True)
class Schedule:
    """When rounds begin, and which is the last."""

    interval: timedelta | None
    """None: one after the other, until all that is new is loaded."""
    max_rounds: int | None = None
    until_idle: bool = False
    health_file: Path | None = None
    stop_within: float = 25.0
    """Seconds that tables under way have to commit after a stop signal."""
    on_alive: Callable[[], None] = lambda: None
    """Called with each sign of life."""

    @property
    def seconds(self) -> float:
        """The interval, 0 where there is none."""
        return self.interval.total_seconds() if self.interval else 0.0

    def due(self, now: float) -> float:
        """Return when the next round begins after one that began at `now`: rounds are aligned to
        the interval. Seconds since 1970."""
        seconds = self.seconds
        return (now // seconds + 1) * seconds

    def pause(self, failures: int) -> float:
        """Return the seconds before a round that has failed so often is tried again."""
        first = min(_FIRST_PAUSE, self.seconds)
        return float(first * 2 ** (failures - 1))


@dataclass(frozen=True)
class Round:
    """One round: its number from 1 on, its job and its outcome."""

    number: int
    job: LoadJob
    synced: Synced
    seconds: float
    reports: Reports
    wall_time: WallTime

    @property
    def outcome(self) -> Outcome:
        """The outcome of its job."""
        return self.synced.outcome

    @property
    def idle(self) -> bool:
        """Whether there was nothing to load."""
        tables = self.outcome.tables
        return self.outcome.error is None and all(table.status == "NO_OP" for table in tables)

    @property
    def to_retry(self) -> bool:
        """Whether the same job may end better."""
        if self.outcome.exit_code in (ExitCode.OK, ExitCode.INTERRUPTED, *_FATAL):
            return False
        errors = [table.error for table in self.outcome.tables if table.error]
        errors += [self.outcome.error] if self.outcome.error else []
        refused = self.outcome.exit_code in (ExitCode.REFUSED, ExitCode.FOLLOW_UP_FAILED)
        return refused or any(error.retryable for error in errors)

    @property
    def unfinished(self) -> frozenset[str]:
        """The tables that `round_limit` has left new files or rows of."""
        return frozenset(table.table for table in self.outcome.tables if table.more)

    @property
    def cut_off(self) -> bool:
        """Whether a stop ended a table that had begun."""
        tables = (table for table in self.outcome.tables if table.status == "INTERRUPTED")
        return any(table.error is None or table.error.stage is not None for table in tables)


class Rounds:
    """The rounds of one command. `read` returns the job of the configuration as it is now, under a
    new id; `look` returns a job with the tables that its globs find now; `show` shows a round that
    has ended."""

    def __init__(
        self,
        read: Callable[[], LoadJob],
        look: Callable[[LoadJob], LoadJob],
        show: Callable[[Round], None],
        schedule: Schedule,
        context: Context,
    ) -> None:
        self._read = read
        self._look = look
        self._show = show
        self._schedule = schedule
        self._context = context
        self._liveness = Liveness(context.environment, schedule.health_file, schedule.on_alive)
        self._failures = 0
        self._reread = False
        self._late = False
        self._waiting: frozenset[str] = frozenset()
        self._looked_in_vain: str | None = None

    def run(self, job: LoadJob) -> ExitCode:
        """Run rounds, `job` the first, until the schedule or a stop signal ends them.

        Returns the exit code of the command: that of the last round, and 0 after a stop that has
        cut nothing off. Raises `Refused` where a process of this machine does the same already, and
        `InvalidInput` for a table that would append all of its rows in each round.
        """
        if self._schedule.interval is None:
            return self._run_until_loaded(job)
        refuse_appending(job.tables, job.destination.table_format)
        with (
            _only_one(job, runs_directory(self._context.environment)),
            Resident(self._schedule.stop_within, self._liveness.alive) as driver,
            self._rereads(),
        ):
            kept, number = Kept(driver.run_job, driver.forget), 0
            while True:
                number += 1
                began = time.time()
                last = self._schedule.until_idle or number == self._schedule.max_rounds
                kept.may_wait = not last
                done = self._round(number, job, kept)
                if self._context.stop.requested is not None:
                    return ExitCode.INTERRUPTED if done.cut_off else ExitCode.OK
                if self._is_last(done):
                    return done.outcome.exit_code
                until = self._next(done, began)
                if not self._wait(until):
                    return ExitCode.OK
                job = self._following(done, kept)

    def _run_until_loaded(self, job: LoadJob) -> ExitCode:
        """Run rounds one after the other, each for the tables of which the one before has left new
        files or rows. A table that fails is in no further round."""
        code = ExitCode.OK
        with Resident(self._schedule.stop_within, self._liveness.alive) as driver:
            kept, number = Kept(driver.run_job, driver.forget), 0
            while True:
                number += 1
                done = self._round(number, job, kept)
                code = code or done.outcome.exit_code
                tables = tuple(table for table in job.tables if table.source in done.unfinished)
                if not tables or done.outcome.error is not None:
                    return code
                if self._context.stop.requested is not None:
                    return ExitCode.INTERRUPTED
                job = replace(job, tables=tables, attempt=new_attempt(None))

    def _round(self, number: int, job: LoadJob, kept: Kept) -> Round:
        started = time.monotonic()
        only_news = self._schedule.interval is not None
        reports = Reports(job, self._context.environment, only_news=only_news)
        context = replace(self._context, timings=Timings(), on_event=reports.on_event)
        synced = sync_once(job, context, kept)
        self._context.stop.hold()
        self._context.phases.stop()
        seconds = time.monotonic() - started
        done = Round(number, job, synced, seconds, reports, context.timings.finish())
        if done.outcome.exit_code != ExitCode.OK:
            kept.forget()
        self._note_waiting(done)
        self._show(done)
        if number == 1:
            _collect_garbage()
        if number == 1 and done.outcome.exit_code not in _FATAL:
            self._liveness.ready()
        return done

    def _note_waiting(self, done: Round) -> None:
        """Say once of each table that its new data waits, where the round itself is not shown."""
        waiting = {table.table: table for table in done.outcome.tables if table.waiting is not None}
        for name, table in waiting.items():
            if name not in self._waiting and done.idle and done.number > 1:
                self._context.note(f"{table.target}: {table.notes[0]}")
        self._waiting = frozenset(waiting)

    def _is_last(self, done: Round) -> bool:
        schedule = self._schedule
        if done.number == 1 and done.outcome.exit_code in _FATAL:
            return True
        if schedule.max_rounds is not None and done.number >= schedule.max_rounds:
            return True
        return schedule.until_idle and done.idle

    def _next(self, done: Round, began: float) -> float:
        """Return when the next round begins, in seconds since 1970."""
        now = time.time()
        self._failures = self._failures + 1 if done.to_retry else 0
        if 0 < self._failures <= RETRIES:
            return now + self._schedule.pause(self._failures)
        self._failures = 0
        if done.unfinished:
            return now
        due = self._schedule.due(began)
        late, self._late = self._late, now > due
        if self._late and not late:
            interval = format_duration(timedelta(seconds=self._schedule.seconds))
            self._context.note(
                f"the round took {now - began:.0f} s, longer than the interval of {interval}: "
                "the next one begins at once"
            )
        return due

    def _wait(self, until: float) -> bool:
        """Wait for a time; return False where a stop signal came."""
        context = self._context
        at = datetime.fromtimestamp(until, UTC)
        # In a log, a line twice a minute would say nothing.
        if context.err.is_terminal:
            context.phases.begin(f"waiting for the next round at {at:%H:%M:%S} UTC")
        self._liveness.alive(f"waiting until {at:%H:%M:%S} UTC")
        try:
            while context.stop.requested is None and time.time() < until and not self._reread:
                self._liveness.alive()
                time.sleep(_LOOK_SECONDS)
        finally:
            context.phases.stop()
        return context.stop.requested is None

    def _following(self, done: Round, kept: Kept) -> LoadJob:
        """Return the job of the next round: the same one where it is tried again."""
        if self._reread:
            self._reread, self._failures = False, 0
            kept.forget()
            try:
                job = self._read()
                refuse_appending(job.tables, job.destination.table_format)
            except LakeloadError as error:
                self._context.note(f"the configuration stays as it was: {error.message}")
            else:
                self._context.note("the configuration was read again")
                return job
        if self._failures:
            return replace(done.job, attempt=new_attempt(done.job.attempt.job_id))
        return replace(self._with_found_tables(done.job), attempt=new_attempt(None))

    def _with_found_tables(self, job: LoadJob) -> LoadJob:
        """Return the job with the tables that its globs find now. Where the source cannot be asked
        the tables stay, and the round itself fails."""
        if not job.document.has_globs:
            return job
        try:
            found = self._look(job)
            refuse_appending(found.tables, found.destination.table_format)
        except LakeloadError as error:
            if error.message != self._looked_in_vain:
                self._context.note(f"the tables stay as they were: {error.message}")
            self._looked_in_vain = error.message
            return job
        self._looked_in_vain = None
        before, now = ([table.source for table in one.tables] for one in (job, found))
        if added := [name for name in now if name not in {*before}]:
            self._context.note(f"new in the source: {quoted(added, 10)}")
        if gone := [name for name in before if name not in {*now}]:
            self._context.note(f"no longer in the source: {quoted(gone, 10)}")
        return found

    @contextmanager
    def _rereads(self) -> Iterator[None]:
        """Read the configuration again after SIGHUP. At a terminal that signal says that it was
        closed, and stops the rounds."""

        def note(number: int, frame: FrameType | None) -> None:
            self._reread = True

        before = None
        if not os.isatty(0) and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            before = signal.signal(signal.SIGHUP, note)
        try:
            yield
        finally:
            self._liveness.stopping()
            if before is not None:
                signal.signal(signal.SIGHUP, before)


def _collect_garbage() -> None:
    """Collect what rounds leave as often as Python does by itself: the command was started as one
    that ends soon. What the first round has imported stays, and is not looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(700, 10, 10)


@contextmanager
def _only_one(job: LoadJob, runs: Path) -> Iterator[None]:
    """Hold the lock of a pipeline's rounds into one lake on this machine; the system takes it from
    a process that ends. Raises `Refused` where another process has it."""
    name = job.document.model.name
    place = f"{name}\n{json.dumps(lake_of(to_json(job.destination)))}"
    path = runs / f"rounds-{hashlib.sha256(place.encode()).hexdigest()[:16]}.lock"
    try:
        runs.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise MachineNotReady(
            f"opening `{path}` failed: {error.strerror}",
            hint="set LAKELOAD_RUN_DIR to a writable folder",
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(
                f"pipeline `{name}` is loaded in rounds by {_holder(path)} already",
                hint="stop that process first; a load without `--every` may run beside it",
            ) from None
        file.truncate(0)
        now = format_instant(datetime.now(UTC))
        file.write(json.dumps({"pid": os.getpid(), "started_at": now}))
        file.flush()
        yield


def _holder(path: Path) -> str:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        held = json.loads(path.read_bytes())
        started = parse_instant(held["started_at"])
        return f"process {int(held['pid'])} of this machine since {started:%Y-%m-%d %H:%M:%S} UTC"
    return "another process of this machine"

"""The tables of one run: several at once, each with its own end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Literal

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from lakeload_jobs.contract.errors import Interrupted, JavaNeeded, LakeloadError
from lakeload_jobs.contract.events import Stage
from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.contract.traits import format_of
from lakeload_jobs.formats.base import FormatSession, Reporter
from lakeload_jobs.formats.load_table import TableLoad, load_table
from lakeload_jobs.jobs import stop_signals
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.failures import JAVA_GONE, describe
from lakeload_jobs.sources.registry import Sources

logger = logging.getLogger(__name__)

_STOP_SECONDS = 8.0
"""How long tables may tidy up after a stop signal; the command line waits a little longer."""


@dataclass(frozen=True)
class _TableReporter(Reporter):
    """The reports of one table."""

    table: TableSpec
    enter: Callable[[TableSpec, Stage, int | None], None]
    note: Callable[[TableSpec, str], None]
    go_on: Callable[[], None]

    def on_stage(self, stage: Stage, rows: int | None = None) -> None:
        """Note the step. Raises `Interrupted` when the run is to stop."""
        self.enter(self.table, stage, rows)

    def on_message(self, text: str) -> None:
        """Note what takes long."""
        self.note(self.table, text)

    def check(self) -> None:
        """Raise `Interrupted` when the run is to stop."""
        self.go_on()


class Scheduler:
    """The tables of one run, `concurrency` at a time."""

    def __init__(
        self,
        spark: SparkSession,
        spec: JobSpec,
        session: FormatSession,
        sources: Sources,
        events: EventLog,
    ) -> None:
        self._spark = spark
        self._spec = spec
        self._session = session
        self._sources = sources
        self._events = events
        self._stopping = threading.Event()
        self._stages: dict[str, Stage] = {}
        self._waiting = list(spec.tables)
        self._lock = threading.Lock()
        self._results: dict[str, TableResult] = {}
        self.needs_java: dict[str, str] = {}
        """The tables for which Spark has to be started again, each with the reason."""

    def load_all(self) -> tuple[TableResult, ...]:
        """Return one result for each table, in the order of the spec.

        From the first table on, a stop signal is told in the results and raises nothing.
        """
        stop_signals.hold()
        count = min(self._spec.concurrency, len(self._spec.tables))
        pool = ThreadPoolExecutor(count, thread_name_prefix="table")
        # One thread takes the small tables, so that none of them waits for all of the large ones.
        workers = [pool.submit(self._work, smallest=number == 0) for number in range(count)]
        try:
            stop_signals.release()
            wait(workers)
            stop_signals.hold()
        except Interrupted:
            self._stop(pool, workers)
        else:
            pool.shutdown()
            for worker in workers:
                worker.result()
        return tuple(
            self._results.get(table.source) or self._interrupted(table)
            for table in self._spec.tables
        )

    def _work(self, *, smallest: bool) -> None:
        """Load tables until none is left: the smallest first, or the largest, and of equal ones the
        first."""
        while not self._stopping.is_set() and not stop_signals.draining():
            with self._lock:
                if not self._waiting:
                    return
                choose = min if smallest else max
                table = choose(self._waiting, key=lambda table: table.input_bytes or 0)
                self._waiting.remove(table)
            self._results[table.source] = result = self._load(table)
            try:
                self._report(table, result)
            except Exception:
                # The result tells the same: what keeps events from being written ends no table.
                logger.warning("the events of %s are not written", table.source, exc_info=True)

    def _load(self, table: TableSpec) -> TableResult:
        started = time.monotonic()
        try:
            # Tables in pools of their own share the executors fairly.
            self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", table.target)
            reporter = _TableReporter(table, self._enter, self._note, self._check)
            source = self._sources.of(table)
            return load_table(TableLoad(self._session, self._spec, table, source, reporter))
        except Exception as error:
            if isinstance(error, JavaNeeded) and not self._stopping.is_set():
                told = describe(error, self._stages.get(table.source))
                self.needs_java[table.source] = error.reason
                return TableResult(table.source, table.target, "SKIPPED", error=told)
            logger.warning("table %s failed", table.source, exc_info=True)
            return self._ended(table, error, round(time.monotonic() - started, 3))

    def _report(self, table: TableSpec, result: TableResult) -> None:
        if result.status == "SKIPPED":
            # It has not ended: Spark is started again for it.
            return
        message = result.error.message if result.error else None
        for warning in result.warnings:
            self._note(table, warning, "warning")
        self._events.emit("table", table=table.source, name=result.status, message=message)

    def _ended(self, table: TableSpec, error: Exception, seconds: float) -> TableResult:
        """Return the result of a table that is not in, or not known to be."""
        stage = self._stages.get(table.source)
        stopped = self._stopping.is_set()
        if stopped and stage != "commit":
            # Spark's complaints about its cancelled jobs say nothing the user does not know.
            error = Interrupted("stopped before the commit: nothing of this table is visible")
        elif stopped and not isinstance(error, LakeloadError):
            error = Interrupted("stopped during the commit: " + self._finishing())
        told = describe(error, stage)
        if stage == "commit" and told.type == JAVA_GONE:
            ended = f"Spark's Java process ended during the commit: {self._finishing()}"
            told = replace(told, message=ended)
        return TableResult(
            table=table.source,
            target=table.target,
            status="INTERRUPTED" if stopped else "FAILED",
            seconds=seconds,
            error=told,
        )

    def _check(self) -> None:
        if self._stopping.is_set():
            raise Interrupted("stopped before the commit: nothing of this table is visible")

    def _enter(self, table: TableSpec, stage: Stage, rows: int | None) -> None:
        self._check()
        self._stages[table.source] = stage
        self._events.emit("stage", table=table.source, stage=stage, rows=rows)

    def _note(
        self, table: TableSpec, message: str, level: Literal["info", "warning"] = "info"
    ) -> None:
        self._events.emit("note", table=table.source, level=level, message=message)

    def _stop(self, pool: ThreadPoolExecutor, workers: Iterable[Future[None]]) -> None:
        """End Spark's jobs; each table then aborts its uploads, unless it has committed."""
        self._stopping.set()
        pool.shutdown(wait=False, cancel_futures=True)
        try:
            self._spark.sparkContext.cancelAllJobs()
        except (Py4JError, OSError):
            # The signal reached the JVM as well; its jobs have ended with it.
            logger.warning("Spark ended before its jobs were cancelled")
        wait(workers, timeout=_STOP_SECONDS)

    def _interrupted(self, table: TableSpec) -> TableResult:
        """Return the result of a table when the time to tidy up is over."""
        stage = self._stages.get(table.source)
        if stage is None:
            message = "stopped before this table began"
        elif stage == "commit":
            message = "stopped during the commit: " + self._finishing()
        else:
            message = "stopped before the commit: nothing is visible, open uploads may be left"
        return TableResult(
            table=table.source,
            target=table.target,
            status="INTERRUPTED",
            error=describe(Interrupted(message), stage),
        )

    def _finishing(self) -> str:
        """Say how to learn, or bring about, the end of a commit that was cut off."""
        cut_off = format_of(self._spec.destination).cut_off
        return cut_off.format(job_id=self._spec.job_id)

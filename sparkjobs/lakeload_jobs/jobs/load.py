"""One `sync`: every table of the spec, several at once, one failing without harm to the rest."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Literal, NoReturn

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from lakeload_jobs.contract.codec import CodecError, from_json, to_json
from lakeload_jobs.contract.errors import ExitCode, Interrupted, InvalidInput, LakeloadError
from lakeload_jobs.contract.result import ErrorInfo, RunResult, TableResult
from lakeload_jobs.contract.spec import CONTRACT_VERSION, JobSpec, TableSpec
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.failures import describe
from lakeload_jobs.jobs.progress import Progress
from lakeload_jobs.lake.aws import AwsSession
from lakeload_jobs.lake.objects import Objects
from lakeload_jobs.parquet.write import TableLoad, load_table
from lakeload_jobs.session import build_session

logger = logging.getLogger(__name__)

_STOP_SECONDS = 8.0
"""How long tables may tidy up after a stop signal; the command line waits a little longer."""
_GOOD = ("LOADED", "NO_OP", "LOADED_CATALOG_STALE")


def main(spec_path: str) -> int:
    """Run the job of a spec file and return the process's exit status.

    Raises `InvalidInput` for a spec it cannot read; every other failure is in the result.
    """
    spec = read_spec(spec_path)
    started_at = datetime.now(UTC)
    with EventLog(spec.events_path) as events:
        try:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, _raise_interrupted)
            spark = build_session(spec)
            events.emit("opened", message=spark.version, pid=os.getpid())
            result = run(spark, spec, events)
        except Exception as error:
            logger.warning("the job failed", exc_info=True)
            result = _failed_run(spec, started_at, describe(error, "session"))
        write_result(Path(spec.result_path), result)
        events.emit("closed", name=result.status)
    return exit_status(result)


def run(spark: SparkSession, spec: JobSpec, events: EventLog) -> RunResult:
    """Load every table of the spec and return what became of each.

    Never raises for what happens to a table. An interruption ends the tables that have not
    committed and is told in their results.
    """
    started_at = datetime.now(UTC)
    destination = spec.destination
    session = AwsSession(destination, label=spec.attempt_id)
    try:
        # Once, before any table: a refused role is one message, not one for each table.
        _ = session.s3
    except LakeloadError as error:
        return _failed_run(spec, started_at, describe(error, "session"))
    tables = _Tables(spark, spec, Objects(session, destination), events)
    with Progress(spark.sparkContext, events):
        results = tables.load_all()
    good = all(result.status in _GOOD for result in results)
    return RunResult(
        contract=CONTRACT_VERSION,
        job_id=spec.job_id,
        attempt_id=spec.attempt_id,
        status="SUCCEEDED" if good else "FAILED",
        started_at=started_at,
        finished_at=datetime.now(UTC),
        tables=results,
    )


class _Tables:
    """The tables of one run, `concurrency` at a time."""

    def __init__(
        self, spark: SparkSession, spec: JobSpec, objects: Objects, events: EventLog
    ) -> None:
        self._spark = spark
        self._spec = spec
        self._objects = objects
        self._events = events
        self._stopping = threading.Event()
        self._stages: dict[str, str] = {}

    def load_all(self) -> tuple[TableResult, ...]:
        """Return one result for each table, in the order of the spec."""
        pool = ThreadPoolExecutor(self._spec.concurrency, thread_name_prefix="table")
        futures = [pool.submit(self._load, table) for table in self._spec.tables]
        try:
            wait(futures)
        except Interrupted as error:
            self._stop(pool, futures)
            return tuple(
                self._interrupted(table, future, error)
                for table, future in zip(self._spec.tables, futures, strict=True)
            )
        pool.shutdown()
        return tuple(future.result() for future in futures)

    def _load(self, table: TableSpec) -> TableResult:
        started = time.monotonic()
        try:
            # Tables in pools of their own share the executors fairly.
            self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", table.target)
            result = load_table(
                TableLoad(
                    self._spark,
                    self._spec,
                    table,
                    self._objects,
                    enter=lambda stage: self._enter(table, stage),
                    notify=lambda text: self._note(table, "info", text),
                )
            )
        except Exception as error:
            logger.warning("table %s failed", table.source, exc_info=True)
            result = TableResult(
                table=table.source,
                target=table.target,
                status="INTERRUPTED" if self._stopping.is_set() else "FAILED",
                seconds=round(time.monotonic() - started, 3),
                error=describe(error, self._stages.get(table.source)),
            )
        message = result.error.message if result.error else None
        for warning in result.warnings:
            self._note(table, "warning", warning)
        self._events.emit("table", table=table.source, name=result.status, message=message)
        return result

    def _enter(self, table: TableSpec, stage: str) -> None:
        if self._stopping.is_set():
            raise Interrupted("stopped before the commit; nothing of this table was written")
        self._stages[table.source] = stage
        self._events.emit("stage", table=table.source, name=stage)

    def _note(self, table: TableSpec, level: Literal["info", "warning"], message: str) -> None:
        self._events.emit("note", table=table.source, level=level, message=message)

    def _stop(self, pool: ThreadPoolExecutor, futures: Iterable[Future[TableResult]]) -> None:
        """End Spark's jobs; each table then aborts its uploads, unless it has committed."""
        self._stopping.set()
        pool.shutdown(wait=False, cancel_futures=True)
        try:
            self._spark.sparkContext.cancelAllJobs()
        except (Py4JError, OSError):
            # The signal reached the JVM as well; its jobs have ended with it.
            logger.warning("Spark had ended before its jobs were cancelled")
        deadline = time.monotonic() + _STOP_SECONDS
        pending = {future for future in futures if not future.cancelled()}
        while pending and (left := deadline - time.monotonic()) > 0:
            _, pending = wait(pending, timeout=left, return_when=FIRST_COMPLETED)

    def _interrupted(
        self, table: TableSpec, future: Future[TableResult], error: Interrupted
    ) -> TableResult:
        if future.done() and not future.cancelled():
            return future.result()
        stage = self._stages.get(table.source)
        if future.cancelled() or stage is None:
            message = "stopped before this table began"
        elif stage == "commit":
            message = "stopped while it was committed: the next sync finishes it"
        else:
            message = "stopped; its uploads may be left and are cleaned up by a later run"
        return TableResult(
            table=table.source,
            target=table.target,
            status="INTERRUPTED",
            error=describe(Interrupted(message), stage),
        )


def read_spec(path: str) -> JobSpec:
    """Read spec.json. Raises `InvalidInput` for a file of another contract version or shape."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        if data.get("contract") != CONTRACT_VERSION:
            raise InvalidInput(
                f"`{path}` follows contract {data.get('contract')}; this job knows "
                f"{CONTRACT_VERSION}",
                hint="install the same version of lakeload on both sides",
            )
        return from_json(JobSpec, data)
    except (OSError, ValueError, CodecError) as error:
        raise InvalidInput(f"`{path}` is no spec of this job: {error}") from error


def write_result(path: Path, result: RunResult) -> None:
    """Write the result at once: a reader sees all of it or nothing."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(to_json(result), indent=1), encoding="utf-8")
    temporary.replace(path)


def exit_status(result: RunResult) -> int:
    """Return the process's status: that of the run's error, or the one all failed tables share
    when nothing is in, else 1."""
    if result.status == "SUCCEEDED":
        return int(ExitCode.OK)
    if result.error is not None:
        return result.error.exit_code
    if any(table.status == "INTERRUPTED" for table in result.tables):
        return int(ExitCode.INTERRUPTED)
    codes = {table.error.exit_code for table in result.tables if table.error}
    nothing_in = not any(table.status in _GOOD for table in result.tables)
    return codes.pop() if nothing_in and len(codes) == 1 else int(ExitCode.TABLE_FAILED)


def _failed_run(spec: JobSpec, started_at: datetime, error: ErrorInfo) -> RunResult:
    return RunResult(
        contract=CONTRACT_VERSION,
        job_id=spec.job_id,
        attempt_id=spec.attempt_id,
        status="FAILED",
        started_at=started_at,
        finished_at=datetime.now(UTC),
        tables=tuple(
            TableResult(table=table.source, target=table.target, status="SKIPPED")
            for table in spec.tables
        ),
        error=error,
    )


def _raise_interrupted(number: int, frame: FrameType | None) -> NoReturn:
    # A second signal must not interrupt the tidying up that the first one started.
    for stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop, lambda *_: None)
    raise Interrupted(f"stopped by {signal.Signals(number).name}")

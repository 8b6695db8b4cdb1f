"""Jobs one after another in one Spark session. Each has a spec, a result and events of its own.

The command line writes to a pipe: the path of a spec is a job, `DRAIN` asks to begin no further
table, `FORGET` to connect again for the next job. Its end, however it comes, closes the pipe: then
the job under way is the last.
"""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue

from pyspark.sql import SparkSession

from lakeload_jobs.contract.errors import Interrupted, LakeloadError
from lakeload_jobs.contract.result import RunResult
from lakeload_jobs.contract.rounds import DRAIN, FORGET
from lakeload_jobs.contract.spec import DestinationSpec, JobSpec
from lakeload_jobs.jobs import stop_signals
from lakeload_jobs.jobs.attempt import attempt
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.failures import describe
from lakeload_jobs.jobs.load import Connection, connect, failed_run, load_tables
from lakeload_jobs.session import build_session
from lakeload_jobs.sources.files.spark import s3a

logger = logging.getLogger(__name__)


def main(pipe: str) -> int:
    """Run the jobs whose specs arrive through a pipe, until it is closed or a signal says stop.

    Each job writes its result as a job of its own does: the exit status is 0.
    """
    jobs: SimpleQueue[str | None] = SimpleQueue()
    stop_signals.install()
    kept = _Kept()
    s3a.keep_profiles(Path(pipe).parent / "source")
    try:
        threading.Thread(target=_read, args=(pipe, jobs), name="jobs", daemon=True).start()
        while (line := jobs.get()) is not None:
            if line == FORGET:
                kept.close()
                continue
            attempt(line, kept.run, failed_run, kept.session)
            kept.collect_garbage()
            # Raises for a signal that came while the job wrote its result.
            stop_signals.release()
    except Interrupted:
        logger.info("stopped between two jobs")
    finally:
        kept.close()
    return 0


def _read(pipe: str, jobs: SimpleQueue[str | None]) -> None:
    """Put the jobs of a pipe into the queue, and None when no other will come."""
    with Path(pipe).open(encoding="utf-8") as lines:
        _take(lines, jobs)
    jobs.put(None)


def _take(lines: Iterable[str], jobs: SimpleQueue[str | None]) -> None:
    for line in lines:
        if line.strip() == DRAIN:
            stop_signals.drain()
            return
        jobs.put(line.strip())


class _Kept:
    """What one job leaves for the next: Spark's session, and the connection to the destination.

    A job that failed leaves no connection: its credentials or its catalog may be the reason. So it
    is with one that the command line has not given to the driver: it says `FORGET`.
    """

    def __init__(self) -> None:
        self._spark: SparkSession | None = None
        self._connection: Connection | None = None
        self._destination: DestinationSpec | None = None
        self._frozen = False

    def session(self, spec: JobSpec) -> SparkSession:
        """Return Spark's session, which the first job starts."""
        if self._spark is None:
            self._spark = build_session(spec)
        return self._spark

    def run(self, spark: SparkSession, spec: JobSpec, events: EventLog) -> RunResult:
        """Load every table of the spec and return what became of each."""
        started_at = datetime.now(UTC)
        try:
            connection = self._connect(spark, spec)
        except LakeloadError as error:
            return failed_run(spec, started_at, describe(error, "session"))
        result = load_tables(spark, spec, events, connection, started_at)
        if result.status != "SUCCEEDED":
            self.close()
        return result

    def collect_garbage(self) -> None:
        """Let go of the Java objects of the job that has ended.

        Python's own collector comes after a hundred rounds, and each of them holds the metadata of
        a table with all its snapshots in Java's heap. What the first job has imported stays.
        """
        gc.collect()
        if not self._frozen:
            gc.freeze()
            self._frozen = True

    def close(self) -> None:
        """Close the connection, and let Spark fetch its credentials for sources again."""
        s3a.forget()
        if self._connection is not None:
            self._connection.close(jvm_stays=True)
            self._connection = None

    def _connect(self, spark: SparkSession, spec: JobSpec) -> Connection:
        if self._destination != spec.destination:
            self.close()
        if self._connection is None:
            self._connection, self._destination = connect(spark, spec), spec.destination
        session = self._connection.session.of_job(spec)
        return Connection(self._connection.aws, session)

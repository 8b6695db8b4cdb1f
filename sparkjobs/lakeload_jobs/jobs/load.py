"""One `sync`: every table of the spec, several at once, one failing without harm to the rest."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import ExitCode, LakeloadError, shared_exit
from lakeload_jobs.contract.result import ErrorInfo, RunResult, TableResult
from lakeload_jobs.contract.spec import JobSpec
from lakeload_jobs.formats.base import FormatSession
from lakeload_jobs.formats.registry import FORMATS
from lakeload_jobs.jobs.attempt import attempt, result_of
from lakeload_jobs.jobs.event_log import EventLog, Progress
from lakeload_jobs.jobs.failures import describe
from lakeload_jobs.jobs.scheduler import GOOD, Scheduler
from lakeload_jobs.rows.progress import ProgressFiles
from lakeload_jobs.sources.registry import Sources

logger = logging.getLogger(__name__)


def main(spec_path: str) -> int:
    """Run the job of a spec file and return the process's exit status.

    Raises `InvalidInput` for a spec it cannot read; every other failure is in the result.
    """
    return exit_status(attempt(spec_path, run, _failed_run))


def run(spark: SparkSession, spec: JobSpec, events: EventLog) -> RunResult:
    """Load every table of the spec and return what became of each.

    Never raises for what happens to a table. An interruption ends the tables that have not
    committed and is told in their results.
    """
    started_at = datetime.now(UTC)
    kind = FORMATS[spec.destination.table_format]
    aws = AwsSession(spec.destination, label=spec.label)
    try:
        # Once, before any table: a refused role is one message, not one for each table.
        if kind.uses_own_identity(spec.destination):
            _ = aws.s3
        session = kind.connect(spark, spec, aws)
    except LakeloadError as error:
        return _failed_run(spec, started_at, describe(error, "session"))
    with _closed(session), Progress(spark.sparkContext, events, ProgressFiles(spec)):
        results = Scheduler(spark, spec, session, Sources(spec, aws), events).load_all()
    good = all(result.status in GOOD for result in results)
    return result_of(RunResult, spec, started_at, results, good=good)


@contextmanager
def _closed(session: FormatSession) -> Iterator[None]:
    """Close the session at the end; what fails of that changes no result."""
    try:
        yield
    finally:
        try:
            session.close()
        except Exception:
            logger.warning("closing the session failed", exc_info=True)


def exit_status(result: RunResult) -> int:
    """Return the process's status: that of the run's error, or the one all failed tables share
    when nothing is in, else 1."""
    if result.status == "SUCCEEDED":
        return int(ExitCode.OK)
    if result.error is not None:
        return result.error.exit_code
    if any(table.status == "INTERRUPTED" for table in result.tables):
        return int(ExitCode.INTERRUPTED)
    if any(table.status in GOOD for table in result.tables):
        return int(ExitCode.TABLE_FAILED)
    return int(shared_exit(table.error.exit_code for table in result.tables if table.error))


def _failed_run(spec: JobSpec, started_at: datetime, error: ErrorInfo) -> RunResult:
    skipped = [TableResult(table.source, table.target, "SKIPPED") for table in spec.tables]
    return result_of(RunResult, spec, started_at, skipped, error)

"""One `sync`: every table of the spec, several at once, one failing without harm to the rest."""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import ExitCode, LakeloadError, shared_exit
from lakeload_jobs.contract.result import GOOD, ErrorInfo, RunResult, TableResult
from lakeload_jobs.contract.spec import JobSpec
from lakeload_jobs.formats.base import FormatSession
from lakeload_jobs.formats.registry import FORMATS
from lakeload_jobs.jobs.attempt import attempt, result_of
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.failures import describe
from lakeload_jobs.jobs.progress import Progress
from lakeload_jobs.jobs.scheduler import Scheduler
from lakeload_jobs.rows.progress import ProgressFiles
from lakeload_jobs.sources.registry import Sources

logger = logging.getLogger(__name__)


def main(spec_path: str) -> int:
    """Run the job of a spec file and return the process's exit status.

    Raises `InvalidInput` for a spec it cannot read; every other failure is in the result.
    """
    return exit_status(attempt(spec_path, run, failed_run))


def run(spark: SparkSession, spec: JobSpec, events: EventLog) -> RunResult:
    """Load every table of the spec and return what became of each.

    Never raises for what happens to a table. An interruption ends the tables that have not
    committed and is told in their results.
    """
    started_at = datetime.now(UTC)
    try:
        connection = connect(spark, spec)
    except LakeloadError as error:
        return failed_run(spec, started_at, describe(error, "session"))
    with closing(connection):
        return load_tables(spark, spec, events, connection, started_at)


@dataclass(frozen=True)
class Connection:
    """The destination of a job: its AWS identity, and the tables that are there."""

    aws: AwsSession
    session: FormatSession

    def close(self, *, jvm_stays: bool = False) -> None:
        """Close the session; what fails of that changes no result."""
        try:
            self.session.close(jvm_stays=jvm_stays)
        except Exception:
            logger.warning("closing the session failed", exc_info=True)


def connect(spark: SparkSession, spec: JobSpec) -> Connection:
    """Connect to the destination of a job, once for all of its tables. Raises `LakeloadError`."""
    kind = FORMATS[spec.destination.table_format]
    aws = AwsSession(spec.destination, label=spec.label)
    # Before any table: a refused role is one message, not one for each table.
    if kind.uses_own_identity(spec.destination):
        _ = aws.s3
    return Connection(aws, kind.connect(spark, spec, aws))


def load_tables(
    spark: SparkSession,
    spec: JobSpec,
    events: EventLog,
    connection: Connection,
    started_at: datetime,
) -> RunResult:
    """Load every table of the spec into its destination, as `run` does."""
    sources = Sources(spec, connection.aws)
    with Progress(spark.sparkContext, events, ProgressFiles(spec)):
        scheduler = Scheduler(spark, spec, connection.session, sources, events)
        results = scheduler.load_all()
    good = all(result.status in GOOD for result in results)
    result = result_of(RunResult, spec, started_at, tables=results, good=good)
    return replace(result, needs_java=scheduler.needs_java or None)


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


def failed_run(spec: JobSpec, started_at: datetime, error: ErrorInfo) -> RunResult:
    """Return the result of a run that ended with `error` before any table began."""
    skipped = [TableResult(table.source, table.target, "SKIPPED") for table in spec.tables]
    return result_of(RunResult, spec, started_at, error, tables=skipped)

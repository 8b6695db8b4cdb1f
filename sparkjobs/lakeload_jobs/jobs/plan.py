"""One `plan`: open the source of every table exactly as a load would, and tell its columns.

Nothing is written, and no row is read beyond what finding the types takes.
"""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import ExitCode, Interrupted, JavaNeeded, LakeloadError
from lakeload_jobs.contract.plan import PlanResult, TableColumns
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.formats.base import FormatSession
from lakeload_jobs.formats.read_rows import prepare_rows
from lakeload_jobs.formats.registry import FORMATS
from lakeload_jobs.jobs.attempt import attempt, result_of
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.failures import describe
from lakeload_jobs.jobs.progress import Progress
from lakeload_jobs.sources.base import Source
from lakeload_jobs.sources.registry import Sources

logger = logging.getLogger(__name__)


def main(spec_path: str) -> int:
    """Run the job of a spec file and return the process's exit status.

    Raises `InvalidInput` for a spec it cannot read; every other failure is in the result.
    """
    result = attempt(spec_path, _work, partial(result_of, PlanResult))
    return int(ExitCode.OK if result.error is None else result.error.exit_code)


def _work(spark: SparkSession, spec: JobSpec, events: EventLog) -> PlanResult:
    started_at = datetime.now(UTC)
    aws = AwsSession(spec.destination, label=spec.label)
    session = FORMATS[spec.destination.table_format].connect(spark, spec, aws)
    with closing(session), Progress(spark.sparkContext, events):
        tables = look(session, Sources(spec, aws), spec, events)
    return result_of(PlanResult, spec, started_at, tables=tables)


def look(
    session: FormatSession, sources: Sources, spec: JobSpec, events: EventLog
) -> tuple[TableColumns, ...]:
    """Return the columns of each table; one that cannot be read leaves the others alone."""
    found = []
    for table in spec.tables:
        events.emit("stage", table=table.source, stage="open")
        try:
            with closing(sources.of(table)) as source:
                found.append(_columns(session, source, spec, table))
        except Interrupted:
            raise
        except (LakeloadError, PySparkException, Py4JError) as error:
            logger.warning("table %s cannot be read", table.source, exc_info=True)
            info = describe(error, "open")
            java = error.reason if isinstance(error, JavaNeeded) else None
            found.append(TableColumns(table.source, table.target, error=info, needs_java=java))
        status = "FAILED" if found[-1].error else "DONE"
        events.emit("table", table=table.source, name=status)
    return tuple(found)


def _columns(
    session: FormatSession, source: Source, spec: JobSpec, table: TableSpec
) -> TableColumns:
    view = session.inspect(table)
    found = source.slice(view.bookmark)
    expected = view.expected()
    rows = found.open(view.spark, expected.known)
    prepared = prepare_rows(spec, table, rows, expected, may_read=rows.repeatable)
    told = view.describe(prepared)
    mapping = prepared.mapping
    warnings = (*rows.warnings, *mapping.warnings, *mapping.notes, *told.warnings)
    return replace(told, warnings=warnings)

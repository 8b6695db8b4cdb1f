"""One `plan`: open the source of every table exactly as a load would, and tell its columns.

Nothing is written, and no row is read beyond what finding the types takes.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import ExitCode, Interrupted, LakeloadError
from lakeload_jobs.contract.plan import ExistingColumns, PlanResult, TableColumns
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.contract.spec import CONTRACT_VERSION, JobSpec, TableSpec
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.iceberg.rules.admission import is_empty
from lakeload_jobs.formats.iceberg.rules.facts import TableFacts, state_of
from lakeload_jobs.formats.parquet.log.admission import table_settings
from lakeload_jobs.formats.parquet.log.table_log import TableLog
from lakeload_jobs.jobs.attempt import attempt
from lakeload_jobs.jobs.event_log import EventLog, Progress
from lakeload_jobs.jobs.failures import describe
from lakeload_jobs.sources.registry import source_of
from lakeload_jobs.storage.objects import Objects

logger = logging.getLogger(__name__)


def main(spec_path: str) -> int:
    """Run the job of a spec file and return the process's exit status.

    Raises `InvalidInput` for a spec it cannot read; every other failure is in the result.
    """
    result = attempt(spec_path, _work, _failed)
    return int(ExitCode.OK if result.error is None else result.error.exit_code)


def _work(spark: SparkSession, spec: JobSpec, events: EventLog) -> PlanResult:
    started_at = datetime.now(UTC)
    session = AwsSession(spec.destination, label=spec.attempt_id)
    if spec.destination.table_format == "ICEBERG":
        from lakeload_jobs.formats.iceberg.load.catalog_settings import connect

        connect(spark, spec.destination, session)
    with Progress(spark.sparkContext, events):
        tables = look(spark, spec, Objects(session, spec.destination), events)
    return _result(spec, started_at, tables)


def look(
    spark: SparkSession, spec: JobSpec, objects: Objects, events: EventLog
) -> tuple[TableColumns, ...]:
    """Return the columns of each table; one that cannot be read leaves the others alone."""
    columns = _iceberg if spec.destination.table_format == "ICEBERG" else _parquet
    found = []
    for table in spec.tables:
        events.emit("stage", table=table.source, stage="open")
        try:
            found.append(columns(spark, spec, table, objects))
        except Interrupted:
            raise
        except (LakeloadError, PySparkException, Py4JError) as error:
            logger.warning("table %s cannot be read", table.source, exc_info=True)
            info = describe(error, "open")
            found.append(TableColumns(table.source, table.target, error=info))
        status = "FAILED" if found[-1].error else "DONE"
        events.emit("table", table=table.source, name=status)
    return tuple(found)


def _parquet(
    spark: SparkSession, spec: JobSpec, table: TableSpec, objects: Objects
) -> TableColumns:
    from lakeload_jobs.formats.parquet.load.prepare import prepare
    from lakeload_jobs.formats.parquet.log.bookmark import bookmark_of

    location = TableLocation(spec.destination.prefix, table.schema, table.table)
    opened = TableLog(objects, location).inspect(
        spec.pipeline,
        spec.job_id,
        table.fingerprint,
        table.source,
        spec.options.table_handling,
        table_settings(spec.destination, location),
    )
    bookmark = bookmark_of(
        objects, location, pipeline=spec.pipeline, source=table.source, opened=opened
    )
    found = source_of(spec, table).slice(bookmark)
    prepared = prepare(spark, spec, table, opened, found)
    before = {column.name: column.type for column in opened.columns}
    return TableColumns(
        table.source,
        table.target,
        prepared.columns,
        prepared.mapping.key,
        existing=ExistingColumns(before) if before else None,
        reader=prepared.reader,
        why_jvm=prepared.why_jvm,
    )


def _iceberg(
    spark: SparkSession, spec: JobSpec, table: TableSpec, objects: Objects
) -> TableColumns:
    from lakeload_jobs.formats.iceberg.bookmark import bookmark_of
    from lakeload_jobs.formats.iceberg.load.creation import definition
    from lakeload_jobs.formats.iceberg.load.prepare import prepare
    from lakeload_jobs.formats.iceberg.load.tables import load, read_facts, schema_columns

    java_table = load(spark, table.schema, table.table)
    facts = None if java_table is None else read_facts(java_table)
    state = state_of(facts, spec.pipeline) if facts else None
    bookmark = bookmark_of(objects, state, full_refresh=spec.options.full_refresh)
    prepared = prepare(
        spark,
        spec,
        table,
        facts=facts,
        recorded=state.columns if state else {},
        found=source_of(spec, table).slice(bookmark),
    )
    found = TableColumns(table.source, table.target, keys=prepared.key)
    if not prepared.columns.fields:
        return found
    partition_by = prepared.partition_by or ()
    made = definition(spark, spec, table, prepared.columns, prepared.key, partition_by)
    return replace(
        found,
        columns=schema_columns(spark, made.schema),
        required=made.key,
        partition_by=prepared.partition_by,
        existing=_existing(facts, spec.destination.iceberg.branch) if facts else None,
        warnings=made.notes,
    )


def _existing(facts: TableFacts, branch: str) -> ExistingColumns:
    return ExistingColumns(
        dict(facts.columns),
        tuple(sorted(facts.required)),
        facts.identifiers,
        is_empty(facts, branch),
        facts.partitions,
    )


def _result(
    spec: JobSpec,
    started_at: datetime,
    tables: tuple[TableColumns, ...],
    error: ErrorInfo | None = None,
) -> PlanResult:
    return PlanResult(
        contract=CONTRACT_VERSION,
        job_id=spec.job_id,
        attempt_id=spec.attempt_id,
        status="FAILED" if error else "SUCCEEDED",
        started_at=started_at,
        finished_at=datetime.now(UTC),
        tables=tables,
        error=error,
    )


def _failed(spec: JobSpec, started_at: datetime, error: ErrorInfo) -> PlanResult:
    return _result(spec, started_at, (), error)

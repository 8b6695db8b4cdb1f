"""One `sync`: every table of the spec, several at once, one failing without harm to the rest."""

from __future__ import annotations

import json
import logging
import os
import signal
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import NoReturn

from pyspark.sql import SparkSession

from lakeload_jobs.contract.codec import CodecError, from_json, to_json
from lakeload_jobs.contract.errors import ExitCode, Interrupted, InvalidInput, LakeloadError
from lakeload_jobs.contract.maintain import MaintainResult
from lakeload_jobs.contract.plan import PlanResult
from lakeload_jobs.contract.result import ErrorInfo, RunResult, TableResult
from lakeload_jobs.contract.spec import CONTRACT_VERSION, JobSpec
from lakeload_jobs.iceberg.catalog_settings import connect
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.failures import describe
from lakeload_jobs.jobs.progress import Progress
from lakeload_jobs.jobs.tables import GOOD, Tables
from lakeload_jobs.lake.aws import AwsSession
from lakeload_jobs.lake.glue import GlueCatalog
from lakeload_jobs.lake.objects import Objects
from lakeload_jobs.rules.catalog_uris import vends
from lakeload_jobs.session import build_session

logger = logging.getLogger(__name__)


def main(spec_path: str) -> int:
    """Run the job of a spec file and return the process's exit status.

    Raises `InvalidInput` for a spec it cannot read; every other failure is in the result.
    """
    spec = read_spec(spec_path)
    started_at = datetime.now(UTC)
    with EventLog(spec.events_path) as events:
        try:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, raise_interrupted)
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
        if destination.table_format == "PARQUET" or not vends(destination.iceberg.catalog):
            _ = session.s3
        if destination.table_format == "ICEBERG":
            connect(spark, destination, session)
    except LakeloadError as error:
        return _failed_run(spec, started_at, describe(error, "session"))
    catalog = GlueCatalog(session, destination)
    tables = Tables(spark, spec, Objects(session, destination), catalog, events, session)
    with Progress(spark.sparkContext, events):
        results = tables.load_all()
    good = all(result.status in GOOD for result in results)
    return RunResult(
        contract=CONTRACT_VERSION,
        job_id=spec.job_id,
        attempt_id=spec.attempt_id,
        status="SUCCEEDED" if good else "FAILED",
        started_at=started_at,
        finished_at=datetime.now(UTC),
        tables=results,
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


def write_result(path: Path, result: RunResult | MaintainResult | PlanResult) -> None:
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
    nothing_in = not any(table.status in GOOD for table in result.tables)
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


def raise_interrupted(number: int, frame: FrameType | None) -> NoReturn:
    """Raise `Interrupted` where the job is at; the handler of its signals."""
    # A second signal must not interrupt the tidying up that the first one started.
    for stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop, lambda *_: None)
    raise Interrupted(f"stopped by {signal.Signals(number).name}")

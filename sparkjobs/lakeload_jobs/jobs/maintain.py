"""One `maintain`: every table of the spec, one after another, one failing without harm to the
rest."""

from __future__ import annotations

import logging
import time
from contextlib import closing
from datetime import UTC, datetime
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import (
    CommitConflict,
    ExitCode,
    Interrupted,
    InvalidInput,
    LakeloadError,
)
from lakeload_jobs.contract.maintain import (
    MaintainResult,
    MaintainSpec,
    StepResult,
    TableMaintenance,
)
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.formats.base import FormatSession, MaintenanceStep
from lakeload_jobs.formats.registry import FORMATS
from lakeload_jobs.jobs import stop_signals
from lakeload_jobs.jobs.attempt import attempt, result_of
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.failures import describe
from lakeload_jobs.jobs.progress import Progress

logger = logging.getLogger(__name__)


def main(spec_path: str) -> int:
    """Run the job of a spec file and return the process's exit status.

    Raises `InvalidInput` for a spec it cannot read; every other failure is in the result.
    """
    return exit_status(attempt(spec_path, run, partial(result_of, MaintainResult)))


def run(spark: SparkSession, spec: JobSpec, events: EventLog) -> MaintainResult:
    """Take the steps of the spec with each table and return what became of them.

    Raises what the connection raises, and never for what happens to a table; an interruption ends
    the work and is the run's error.
    """
    started_at = datetime.now(UTC)
    wanted = spec.maintain
    if wanted is None:
        raise InvalidInput(
            "the job spec has no maintenance steps",
            hint="install the same version of lakeload on both sides",
        )
    done: list[TableMaintenance] = []
    error = None
    aws = AwsSession(spec.destination, label=spec.label)
    session = FORMATS[spec.destination.table_format].connect(spark, spec, aws)
    with closing(session), Progress(spark.sparkContext, events):
        try:
            for table in spec.tables:
                done.append(_maintain(session, wanted, table, events))
            stop_signals.hold()
        except Interrupted as stop:
            error = describe(stop, None)
    good = not any(
        table.error or any(step.status == "FAILED" for step in table.steps) for table in done
    )
    return result_of(MaintainResult, spec, started_at, error, tables=done, good=good)


def exit_status(result: MaintainResult) -> int:
    """Return the process's status: that of the run's error, or 1 where a step failed."""
    if result.error is not None:
        return result.error.exit_code
    return int(ExitCode.OK if result.status == "SUCCEEDED" else ExitCode.TABLE_FAILED)


def _maintain(
    session: FormatSession, wanted: MaintainSpec, table: TableSpec, events: EventLog
) -> TableMaintenance:
    started = time.monotonic()
    steps: list[StepResult] = []
    error = None
    try:
        for step in session.maintenance(table, wanted):
            events.emit("stage", table=table.source, stage=step.name)
            steps.append(_step(step, table))
    except (LakeloadError, PySparkException, Py4JError) as failure:
        if isinstance(failure, Interrupted):
            raise
        error = describe(failure, "open")
    failed = error is not None or any(step.status == "FAILED" for step in steps)
    events.emit("table", table=table.source, name="FAILED" if failed else "DONE")
    return TableMaintenance(
        table.source, table.target, tuple(steps), round(time.monotonic() - started, 3), error
    )


def _step(step: MaintenanceStep, table: TableSpec) -> StepResult:
    """Take one step; one that fails does not keep the next from being taken."""
    try:
        return step.act()
    except Interrupted:
        raise
    except CommitConflict as race:
        return StepResult(step.name, "CONFLICT", error=describe(race, step.name))
    except (LakeloadError, PySparkException, Py4JError) as failure:
        logger.warning("%s of %s failed", step.name, table.target, exc_info=True)
        return StepResult(step.name, "FAILED", error=describe(failure, step.name))

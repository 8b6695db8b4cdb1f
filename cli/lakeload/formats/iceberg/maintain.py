"""Maintenance of Iceberg tables by steps that need no Spark."""

from __future__ import annotations

import logging
import time
from functools import partial

from lakeload.checks import in_background
from lakeload.connections import Connections
from lakeload.formats.tables import MaintenanceRequest
from lakeload.launch.run import Maintained, maintained
from lakeload.probes.connection import preflight
from lakeload_jobs.contract.errors import CommitConflict, Interrupted, LakeloadError
from lakeload_jobs.contract.events import Step
from lakeload_jobs.contract.maintain import StepResult, TableMaintenance
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.contract.traits import format_of
from lakeload_jobs.formats.iceberg.load.catalog_tables import CatalogTables
from lakeload_jobs.formats.iceberg.maintenance import STEPS, Work
from lakeload_jobs.formats.iceberg.rules.facts import SUMMARY_PIPELINE

logger = logging.getLogger(__name__)


def maintain(request: MaintenanceRequest) -> Maintained | None:
    """Take the steps, or say what they would do; None where one of them is Spark's.

    A table is maintained after the other, as the Spark job does.
    """
    destination = request.destination
    if not format_of(destination).steps_with_jars.isdisjoint(request.wanted.steps):
        return None
    connections = Connections(destination, "maintain")
    preflight(connections)
    tables = CatalogTables.of(destination, connections.patient)
    tables.store.open()
    summary = {SUMMARY_PIPELINE: request.pipeline}
    done: list[TableMaintenance] = []
    try:
        for table in request.with_sides:
            work = partial(_maintained, Work(tables, table, request.wanted, summary))
            done.append(in_background(work, "maintain").result())
    except Interrupted as stopped:
        return Maintained(stopped.exit_code, tuple(done), ErrorInfo.of(stopped))
    return maintained(done)


def _maintained(work: Work) -> TableMaintenance:
    started = time.monotonic()
    table, steps, error = work.of, [], None
    try:
        if work.tables.read(table.schema, table.table) is not None:
            steps = [_step(work, step) for step in work.spec.steps]
    except LakeloadError as failure:
        error = ErrorInfo.of(failure, "open")
    seconds = round(time.monotonic() - started, 3)
    return TableMaintenance(table.source, table.target, tuple(steps), seconds, error)


def _step(work: Work, step: Step) -> StepResult:
    """Take one step; one that fails does not keep the next from being taken."""
    try:
        return STEPS[step](work)
    except CommitConflict as race:
        return StepResult(step, "CONFLICT", error=ErrorInfo.of(race, step))
    except LakeloadError as failure:
        logger.warning("%s of %s failed", step, work.target, exc_info=True)
        return StepResult(step, "FAILED", error=ErrorInfo.of(failure, step))

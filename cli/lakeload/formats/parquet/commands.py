"""Parquet's implementation of the command line's table operations."""

from __future__ import annotations

import time
from datetime import timedelta

from lakeload.formats.parquet.inspect import inspect
from lakeload.formats.parquet.plan import judge, plan
from lakeload.formats.parquet.recover import recover, resolve
from lakeload.formats.parquet.reset import reset
from lakeload.formats.parquet.runs import runs
from lakeload.formats.tables import (
    MaintenanceRequest,
    TableRef,
    for_each,
    of_pipeline,
    open_session,
)
from lakeload.launch.run import Maintained, maintained
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.maintain import (
    LISTED,
    MaintainSpec,
    StepResult,
    StepStatus,
    TableMaintenance,
)
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.formats.parquet.log.commit_log import CommitLog
from lakeload_jobs.formats.parquet.log.stale_uploads import StaleUploads
from lakeload_jobs.storage.objects import Objects

# What the module defines too: as a `FormatCommands` it has only these.
__all__ = [
    "inspect",
    "judge",
    "maintain",
    "needs_java",
    "plan",
    "recover",
    "reset",
    "resolve",
    "runs",
]


def needs_java(_spec: JobSpec, _table: TableSpec) -> str:
    """Return '': the format has no jars."""
    return ""


def maintain(request: MaintenanceRequest) -> Maintained:
    """Abort the uploads that are old and that no record names, or name them.

    Several tables at a time; one that fails leaves the others alone.
    """
    destination, wanted = request.destination, request.wanted
    objects = Objects(open_session(destination, "maintain"), destination)
    parallelism = destination.parquet.upload_parallelism

    def work(table: TableRef) -> TableMaintenance:
        started = time.monotonic()
        stale = StaleUploads(objects, CommitLog(objects, table.location), parallelism=parallelism)
        steps = (_step(stale, wanted),) if "uploads" in wanted.steps else ()
        return TableMaintenance(table.target, table.target, steps, time.monotonic() - started)

    return maintained(for_each(of_pipeline(destination, request.tables), work))


def _step(stale: StaleUploads, spec: MaintainSpec) -> StepResult:
    age = timedelta(seconds=spec.abort_older_than)
    try:
        found = stale.remove(age) if spec.apply else stale.find(age)
    except LakeloadError as error:
        return StepResult("uploads", "FAILED", error=ErrorInfo.of(error, "uploads"))
    if not found:
        return StepResult("uploads", "NOTHING_TO_DO")
    keys = tuple(upload.key for upload in found)
    # What parts an upload has, a list of uploads does not tell.
    status: StepStatus = "DONE" if spec.apply else "WOULD_DO"
    return StepResult("uploads", status, files=len(keys), bytes=None, items=keys[:LISTED])

"""Spec and result of table maintenance."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from lakeload_jobs.contract.events import Step
from lakeload_jobs.contract.result import ErrorInfo, JobResult

StepStatus = Literal["DONE", "WOULD_DO", "NOTHING_TO_DO", "UNSUPPORTED", "CONFLICT", "FAILED"]

SECONDS_A_DAY = 86_400

DEAD_AFTER = timedelta(hours=24)
"""Age from which an attempt that has not ended is taken for dead, unless told otherwise."""

LISTED = 1000
"""Names of files, branches and uploads that a step's result holds at most."""


@dataclass(frozen=True)
class MaintainSpec:
    """What is done with each table. Times in seconds, sizes in bytes."""

    steps: tuple[Step, ...]
    apply: bool = False
    """False: nothing is written, the result says what would be done."""
    where: str | None = None
    """Compaction: Spark SQL over the columns of the target; files that cannot match stay."""
    max_bytes: int | None = None
    """Compaction: rewrite at most so many bytes of a table."""
    older_than: int | None = None
    """Expiry: age of snapshots; None is what the table's own properties say."""
    retain_last: int | None = None
    """Expiry: snapshots kept of each branch; None is what the table's own properties say."""
    orphans_older_than: int = int(DEAD_AFTER.total_seconds())
    abort_older_than: int = int(DEAD_AFTER.total_seconds())
    """Age from which an attempt that has not ended is taken for dead: branches, uploads."""


@dataclass(frozen=True)
class StepResult:
    """What one step did to a table, or would do. Which numbers count depends on the step.

    branches   items (names)
    compact    files and bytes rewritten, into `files_after`; delete files removed with them
    deletes    delete files and their bytes rewritten, into `files_after`
    manifests  manifests and their bytes rewritten, into `files_after`
    expire     snapshots; files removed and their bytes
    orphans    files removed and their bytes; items (locations)
    uploads    items (keys)
    optimizers items (`compaction: created`)

    `bytes` is None where it is not known. `items` holds the first `LISTED`, `files` counts all.
    """

    step: Step
    status: StepStatus
    files: int = 0
    files_after: int = 0
    delete_files: int = 0
    bytes: int | None = 0
    snapshots: int = 0
    items: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    error: ErrorInfo | None = None


@dataclass(frozen=True)
class TableMaintenance:
    """What became of one table. `error`: it could not be read at all, so no step was taken."""

    table: str
    target: str
    steps: tuple[StepResult, ...] = ()
    seconds: float = 0.0
    error: ErrorInfo | None = None


@dataclass(frozen=True)
class MaintainResult(JobResult):
    """Maintenance. `error` is set when it failed outside any table."""

    tables: tuple[TableMaintenance, ...] = ()
    error: ErrorInfo | None = None

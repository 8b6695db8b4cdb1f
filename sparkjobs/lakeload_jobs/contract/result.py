"""Result: written once by the driver, atomically, last. The outcome needs it and exit status 0."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

TableStatus = Literal["LOADED", "NO_OP", "LOADED_CATALOG_STALE", "FAILED", "SKIPPED", "INTERRUPTED"]
IndexKind = Literal["dense", "sparse"]
RunStatus = Literal["SUCCEEDED", "FAILED"]


@dataclass(frozen=True)
class ErrorInfo:
    """A failure as data. `type` is the class, `stage` the step it happened in."""

    type: str
    message: str
    exit_code: int
    hint: str | None = None
    stage: str | None = None
    retryable: bool = False


@dataclass(frozen=True)
class FileResult:
    """One visible object: its full key, rows and bytes."""

    key: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class RowChanges:
    """What an UPSERT did to the rows of its table."""

    inserted: int
    updated: int
    deleted: int


@dataclass(frozen=True)
class TableResult:
    """What became of one table. `reader` is jvm or direct; `seconds` is wall time in the driver."""

    table: str
    target: str
    status: TableStatus
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    files: tuple[FileResult, ...] = ()
    reader: str | None = None
    index: IndexKind | None = None
    snapshot_id: int | None = None
    """The Iceberg snapshot that this job published."""
    changes: RowChanges | None = None
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    error: ErrorInfo | None = None


@dataclass(frozen=True)
class RunResult:
    """The whole attempt. `error` is set when the job failed outside any table."""

    contract: int
    job_id: str
    attempt_id: str
    status: RunStatus
    started_at: datetime
    finished_at: datetime
    tables: tuple[TableResult, ...] = ()
    error: ErrorInfo | None = None

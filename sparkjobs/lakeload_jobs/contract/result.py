"""Result: written once by the driver, atomically, last. The outcome needs it and exit status 0."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Self

from lakeload_jobs.contract.errors import LakeloadError, docs_link
from lakeload_jobs.contract.events import Stage
from lakeload_jobs.contract.usage import Usage

TableStatus = Literal[
    "LOADED", "NO_OP", "LOADED_CATALOG_OUT_OF_DATE", "FAILED", "SKIPPED", "INTERRUPTED"
]
GOOD: tuple[TableStatus, ...] = ("LOADED", "NO_OP", "LOADED_CATALOG_OUT_OF_DATE")
"""Statuses of tables whose rows are loaded."""
IndexKind = Literal["dense", "sparse"]
RunStatus = Literal["SUCCEEDED", "FAILED"]


@dataclass(frozen=True)
class ErrorInfo:
    """A failure as data. `type` is the class, `stage` where it happened, `docs` a link from the
    root of the documentation site."""

    type: str
    message: str
    exit_code: int
    hint: str | None = None
    stage: Stage | None = None
    retryable: bool = False
    docs: str = ""

    def __post_init__(self) -> None:
        if not self.docs:
            object.__setattr__(self, "docs", docs_link(self.type))

    @classmethod
    def of(cls, error: LakeloadError, stage: Stage | None = None) -> Self:
        """Return an expected failure as data."""
        return cls(
            type(error).__name__,
            error.message,
            int(error.exit_code),
            error.hint,
            stage,
            error.retryable,
        )


@dataclass(frozen=True)
class FileResult:
    """One visible object: its full key, rows and bytes."""

    key: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class RowChanges:
    """What an UPSERT did to the rows of its table.

    `unchanged` rows are equal to those of the table, `ignored` ones have a lower `cursor`; neither
    is written. None where an earlier attempt brought the job in: only that one has counted them.
    """

    inserted: int
    updated: int
    deleted: int
    unchanged: int | None = None
    ignored: int | None = None

    @property
    def rows(self) -> int:
        """The rows of the table that were written, changed or removed."""
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True)
class SameKey:
    """Rows of an UPSERT that later rows of the same load replaced, because they have the same
    `primary_key`: how many, and the key of one of them."""

    rows: int
    example: str


@dataclass(frozen=True)
class ColumnResult:
    """A column of the rows that were loaded: its name in the source, in the table, and the type
    that was written, as Spark names it. `source` None: a tracking column."""

    source: str | None
    name: str
    type: str


@dataclass(frozen=True)
class NewData:
    """New data of a table that waits (`commit_at`): since when, and how many bytes of files. None:
    not known before they are read."""

    since: datetime
    bytes: int | None = None


@dataclass(frozen=True)
class TableResult:
    """What became of one table. `seconds` is wall time in the driver."""

    table: str
    target: str
    status: TableStatus
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    files: tuple[FileResult, ...] = ()
    reader: str | None = None
    """Who read the rows: direct (lakeload or Arrow) or jvm (Spark)."""
    writer: str | None = None
    """Who wrote the data files: direct (lakeload's own tasks) or spark."""
    index: IndexKind | None = None
    snapshot_id: int | None = None
    """The Iceberg snapshot that this job published."""
    changes: RowChanges | None = None
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    error: ErrorInfo | None = None
    rejected: int = 0
    """Records that were set aside in the side table (`on_bad_value: QUARANTINE`)."""
    deleted: int = 0
    """Rows that the source no longer has: removed, marked, or appended as deleted."""
    same_key: SameKey | None = None
    """None: no two rows had the same key, or nothing was merged."""
    file_count: int = 0
    """How many files there are, also where they are too many for `files` to name them."""
    already: bool = False
    """Whether an earlier attempt of the job had committed it: the numbers are those of that one."""
    more: bool = False
    """Whether `round_limit` left new files or rows for a later job."""
    waiting: NewData | None = None
    """What `commit_at` leaves for a later round; None: nothing."""
    position: datetime | None = None
    """Up to when the source is loaded: the time of the newest file, or the greatest value of a
    `cursor` of dates or timestamps. None where neither tells a time."""
    location: str | None = None
    """The URL of the table's folder; None where the table was not opened."""
    columns: tuple[ColumnResult, ...] = ()
    """Those of the rows that were loaded, in the order of the source."""


@dataclass(frozen=True)
class JobResult:
    """What the result of every job begins with."""

    contract: int
    job_id: str
    attempt_id: str
    status: RunStatus
    started_at: datetime
    finished_at: datetime


@dataclass(frozen=True)
class RunResult(JobResult):
    """A load. `error` is set when it failed outside any table."""

    tables: tuple[TableResult, ...] = ()
    error: ErrorInfo | None = None
    usage: Usage | None = None
    """What the driver, its JVM and its workers on this machine have used."""
    needs_java: dict[str, str] | None = None
    """Tables, by their names in the source, for which Spark has to be started again with the jars
    of their format, each with the reason as a clause. Their status is SKIPPED."""

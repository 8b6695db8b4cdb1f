"""Reports of table operations, the same for every format, shown as text or JSON.

A format fills in the sentences, and what its JSON documents alone hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from lakeload.formats.tables import TableRef
from lakeload_jobs.contract.errors import ExitCode, LakeloadError, worst_exit
from lakeload_jobs.core.authors import named_author, split_author
from lakeload_jobs.formats.data_files.uploads import StagedFile
from lakeload_jobs.formats.parquet.log.commit_log import Outcome


@dataclass(frozen=True)
class TableError:
    """A table with which an operation failed."""

    target: str
    error: LakeloadError


@dataclass(frozen=True)
class TableRun:
    """One job in one table.

    `committed_at` is the lake's clock, `created_at` the author's. `mode` None: the format has one
    alone. `remarks` say what is still to be done; `about` are lines for who asks for more, and
    `more` is what its JSON holds beside what every format has.
    """

    target: str
    pipeline: str
    job_id: str
    attempt_id: str | None
    author: str
    committed_at: datetime
    created_at: datetime
    synced: datetime | str | None
    rows: int
    files: int
    bytes: int
    rejected: int
    """Records that were set aside in the side table."""
    deleted: int
    """Rows that the source no longer has."""
    read: str | None
    """The rows of the source that it read, in words."""
    retried: str | None
    """The job whose rejected records it read."""
    state: str
    about: tuple[str, ...]
    more: Mapping[str, Any]
    mode: str | None = None
    remarks: tuple[str, ...] = ()
    number: int = 0

    @property
    def document(self) -> dict[str, Any]:
        """Its JSON."""
        user, pid = split_author(self.author)
        own = {name: getattr(self, name) for name in _IN_JSON}
        return {**own, "author": user or None, "pid": pid, **self.more}

    @property
    def details(self) -> tuple[str, ...]:
        """Lines for who asks for more."""
        return (
            *self.about,
            *((f"  {self.read}",) if self.read else ()),
            *((f"  rejected records of job {self.retried}",) if self.retried else ()),
        )

    @property
    def order(self) -> tuple[datetime, datetime]:
        """What sorts runs: the lake's clock, and their author's within one second of it."""
        return self.committed_at, self.created_at


_IN_JSON = (
    *("target", "pipeline", "job_id", "attempt_id", "committed_at", "synced", "rows"),
    *("deleted", "rejected", "retried", "read", "bytes", "state"),
)


@dataclass(frozen=True)
class JobRuns:
    """The tables that one job of one pipeline has loaded, as far as they are among the newest."""

    pipeline: str
    job_id: str
    tables: tuple[TableRun, ...]

    @property
    def order(self) -> tuple[datetime, datetime]:
        """What sorts jobs: when the newest table was committed."""
        return max(table.order for table in self.tables)

    @property
    def committed_at(self) -> datetime:
        """When its newest table was committed."""
        return self.order[0]


@dataclass(frozen=True)
class RunsReport:
    """The newest runs of all tables together, newest first.

    `document` is what its JSON holds beside runs and errors. `fences` are records of logs that are
    no job, `remarks` what is known of the tables beside their runs.
    """

    runs: tuple[TableRun, ...]
    errors: tuple[TableError, ...]
    document: Mapping[str, Any] = field(default_factory=dict)
    fences: tuple[tuple[datetime, str], ...] = ()
    remarks: tuple[str, ...] = ()

    def since(self, start: datetime) -> RunsReport:
        """Return it without the runs that were committed before an instant."""
        runs = tuple(run for run in self.runs if run.committed_at >= start)
        return replace(self, runs=runs)

    @property
    def exit_code(self) -> ExitCode:
        """OK, or REFUSED when AWS or the catalog refused a table, or TABLE_FAILED for a damaged
        one."""
        return worst_exit(failed.error.exit_code for failed in self.errors)


def by_author(author: str) -> str:
    """Return ` by user@host, process 4711`; '' where it is not known."""
    return f" by {named_author(author)}" if author else ""


def by_job(runs: Sequence[TableRun]) -> tuple[JobRuns, ...]:
    """Group runs into jobs, newest first; the tables of a job by name."""
    grouped: dict[tuple[str, str], list[TableRun]] = {}
    for run in runs:
        grouped.setdefault((run.pipeline, run.job_id), []).append(run)
    found = [
        JobRuns(*names, tuple(sorted(tables, key=lambda run: (run.target, run.number))))
        for names, tables in grouped.items()
    ]
    return tuple(sorted(found, key=lambda job: job.order, reverse=True))


RecoveryStatus = Literal[
    "UP_TO_DATE", "RECOVERED", "UNFINISHED", "CATALOG_OUT_OF_DATE", "DAMAGED", "FAILED"
]


@dataclass(frozen=True)
class DamagedJob:
    """A committed job of which a part is lost: a person has to decide."""

    job_id: str
    message: str
    lost_keys: tuple[str, ...]


@dataclass(frozen=True)
class RecoveredTable:
    """One table after its recovery, or in a dry run before it.

    `actions` say what was done, or would be; `remarks` are shown below the tables. In a dry run the
    status UNFINISHED stands for RECOVERED. `errors`: the worst first.
    """

    target: str
    status: RecoveryStatus
    exit_code: ExitCode
    actions: tuple[str, ...]
    document: Mapping[str, Any]
    remarks: tuple[str, ...] = ()
    damaged: tuple[DamagedJob, ...] = ()
    errors: tuple[LakeloadError, ...] = ()
    warnings: tuple[LakeloadError, ...] = ()
    """What a role may not do that published policies lack: nothing committed depends on it."""


@dataclass(frozen=True)
class RecoveryReport:
    """All tables of one `recover`. `note` says what holds for each table of the format."""

    tables: tuple[RecoveredTable, ...]
    dry_run: bool = False
    note: str = ""

    @property
    def exit_code(self) -> ExitCode:
        """OK, or what the worst of the tables asks for."""
        return worst_exit(table.exit_code for table in self.tables)


Decision = Literal["void", "accept"]


@dataclass(frozen=True)
class Resolution:
    """A person's decision on one job in one table: what of it is lost, what is left, and what
    became of it."""

    table: TableRef
    number: int
    pipeline: str
    job_id: str
    lost: tuple[StagedFile, ...]
    left: tuple[StagedFile, ...]
    outcome: Outcome | None = None
    error: LakeloadError | None = None

    @property
    def lost_rows(self) -> int:
        """Rows that nobody can bring back."""
        return sum(file.rows for file in self.lost)

    @property
    def left_rows(self) -> int:
        """Rows that are visible, or can still be made so."""
        return sum(file.rows for file in self.left)


@dataclass(frozen=True)
class ResolutionReport:
    """All tables of one `recover --void` or `--accept`. `done` False: nothing was written."""

    decision: Decision
    tables: tuple[Resolution, ...]
    done: bool

    @property
    def exit_code(self) -> ExitCode:
        """OK, or what the worst of the tables asks for."""
        return exit_code_of(table.error for table in self.tables)


@dataclass(frozen=True)
class ResetTable:
    """One table: what a reset removes or would remove (`lines`), and what stays (`kept`).

    `pending`: there is something to remove.
    """

    target: str
    lines: tuple[str, ...]
    document: Mapping[str, Any]
    kept: tuple[str, ...] = ()
    pending: bool = False
    error: LakeloadError | None = None


@dataclass(frozen=True)
class ResetReport:
    """All tables of one `reset`. `done` False: nothing was removed, and nothing was to be."""

    tables: tuple[ResetTable, ...]
    done: bool

    @property
    def exit_code(self) -> ExitCode:
        """OK, or what the worst of the tables asks for."""
        return exit_code_of(table.error for table in self.tables)


def exit_code_of(errors: Iterable[LakeloadError | None]) -> ExitCode:
    """Return the exit code of tables of which some ended with an error, None for the others."""
    known = (ExitCode.REFUSED, ExitCode.FOLLOW_UP_FAILED)
    codes = [error.exit_code for error in errors if error]
    return worst_exit(code if code in known else ExitCode.TABLE_FAILED for code in codes)

"""State of tables before Spark starts, as a load would see it. Reads only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TypeVar

from lakeload.launch.outcome import Outcome, exit_code_of
from lakeload.launch.spec import Attempt
from lakeload.sources.kept_connections import connections_kept
from lakeload.sources.registry import source_of
from lakeload.sources.report import NOTHING_KNOWN, SourceReport
from lakeload_jobs.contract.errors import ExitCode, LakeloadError
from lakeload_jobs.contract.result import ErrorInfo, NewData, TableResult
from lakeload_jobs.contract.spec import (
    DestinationSpec,
    JobSpec,
    ReaderChoice,
    RunOptions,
    TableSpec,
)
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.sources.readers import SourceReaders

AT_ONCE = 8
"""Tables that are inspected at once."""

OnTable = Callable[[int, int], None]
"""Called with the number of tables that are done, and of all."""


def _ignore(done: int, total: int) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class InspectionRequest:
    """What all tables of one inspection have in common."""

    destination: DestinationSpec
    pipeline: str
    attempt: Attempt
    options: RunOptions
    loads: bool = False
    """A load follows: what only a commit can tell is asked too."""
    spec: JobSpec | None = None
    """The spec of the job; None: not known."""
    finds_columns: bool = False
    """The columns are to be found that the job would load."""
    reader: ReaderChoice = "AUTO"
    """Who is to read."""
    interval: timedelta | None = None
    """How often it is loaded; None: once."""
    append_again: frozenset[str] = frozenset()
    """The tables with `on_append_again: ALLOW`."""
    on_table: OnTable = _ignore
    """Called with each table that was inspected."""


@dataclass(frozen=True)
class TableState(ABC):
    """One table: what the job would find on opening it, or why it could not load it."""

    table: TableSpec
    error: LakeloadError | None = field(default=None, kw_only=True)
    report: SourceReport = field(default=NOTHING_KNOWN, kw_only=True)
    """What the source knows of the rows that the job would load."""
    caveat: str = field(default="", kw_only=True)
    """What could not be found out, and matters should the table be loaded."""
    location: str | None = field(default=None, kw_only=True)
    """The URL of the table's folder, where it is known."""
    waiting: NewData | None = field(default=None, kw_only=True)
    """What is new and left for a later round."""
    waiting_note: str = field(default="", kw_only=True)
    """That it waits, and for what."""

    @property
    @abstractmethod
    def idle(self) -> bool:
        """Whether Spark has nothing to do for this table."""

    @property
    def nothing_new(self) -> bool:
        """Whether the source has nothing new. Deleted rows are found by the job."""
        return self.report.idle and self.table.max_deleted is None

    @property
    def unfinished(self) -> bool:
        """Whether the job would first finish what an earlier one left."""
        return False

    @property
    def has_work(self) -> bool:
        """Whether Spark has something to do for this table now."""
        return self.unfinished or not (self.idle or self.waiting is not None)

    @property
    def inspected(self) -> object:
        """What the load of this table is given to read no more, as the format's job takes it."""
        return None

    def needs_java(self, spec: JobSpec) -> str:
        """Return why a load of this table needs the jars of its format, as a clause; '' where it
        does without, as far as is known. `spec` has what holds for every table."""
        return ""

    @property
    @abstractmethod
    def first_run(self) -> bool:
        """Whether the pipeline has never loaded the table."""

    @property
    @abstractmethod
    def warnings(self) -> tuple[str, ...]:
        """What a load would warn of."""

    @abstractmethod
    def loaded(self, result: TableResult) -> TableResult:
        """Return the result with what this very job has loaded before."""

    @property
    def result(self) -> TableResult:
        """The result of a table that cannot be loaded, is in already or has no new files."""
        result = TableResult(self.table.source, self.table.target, "NO_OP", location=self.location)
        if self.error is not None:
            return replace(result, status="FAILED", error=ErrorInfo.of(self.error, "open"))
        if self.waiting is not None:
            notes, position = (self.waiting_note,), self.report.position
            return replace(result, notes=notes, waiting=self.waiting, position=position)
        if self.report.sentence is not None:
            return replace(
                result,
                notes=(self.report.sentence,),
                warnings=self.report.warnings,
                position=self.report.position,
            )
        return self.loaded(result)


S = TypeVar("S", bound=TableState)
R = TypeVar("R")


def inspect_each(
    tables: Sequence[TableSpec],
    inspect: Callable[[TableSpec], S],
    failed: Callable[[TableSpec, LakeloadError], S],
    on_table: OnTable = _ignore,
) -> tuple[S, ...]:
    """Inspect every table, several at a time; a refusal belongs to its table."""

    def work(table: TableSpec) -> S:
        try:
            return inspect(table)
        except LakeloadError as error:
            return failed(table, error)

    with connections_kept(), ThreadPoolExecutor(AT_ONCE, thread_name_prefix="inspect") as pool:
        return counted_results(pool.map(work, tables), len(tables), on_table)


def counted_results(results: Iterable[R], total: int, on_table: OnTable) -> tuple[R, ...]:
    """Return the results of tables, and report each."""
    on_table(0, total)
    found = []
    for result in results:
        found.append(result)
        on_table(len(found), total)
    return tuple(found)


def with_input(
    state: S,
    readers: SourceReaders,
    options: RunOptions,
    *,
    known: bool,
    bookmark: Callable[[], Bookmark] | None,
) -> S:
    """Return the state with the report of the source."""
    read = state.table.input
    report = source_of(read).inspect(
        read, readers, options, table=state.table, known=known, bookmark=bookmark
    )
    return replace(state, report=report)


def outcome_without_spark(states: Sequence[TableState]) -> Outcome | None:
    """Return the outcome when no table is left to load, else None: Spark has work to do.

    A table that is already in under this job id, or has no new files, needs no Spark, unless
    something in it has to be finished first. A table that cannot be loaded fails the same way in
    the job; but as long as one can, the job reports on all of them.
    """
    if any(not table.error and table.has_work for table in states):
        return None
    results = tuple(table.result for table in states)
    refused = all(table.error and table.error.exit_code == ExitCode.REFUSED for table in results)
    # No table has started: what AWS refuses to all of them is a refusal of the run.
    code = ExitCode.REFUSED if results and refused else exit_code_of(results)
    return Outcome("LOADED" if code == 0 else "FAILED", code, results)

"""Costs of loads at an interval in a day, as far as they are known before the first one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from lakeload.documents.durations import format_duration
from lakeload.formats.inspection import TableState
from lakeload.sources.registry import source_of
from lakeload_jobs.contract.spec import TableFormat, TableSpec
from lakeload_jobs.contract.traits import FORMATS
from lakeload_jobs.core.sizes import counted, format_size

LARGE = 10 << 30
"""Bytes a day above which reading a table again and again is warned of."""
SHORT = timedelta(minutes=5)
"""An interval below which the files of a table that is not compacted are warned of."""
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class RoundsPlan:
    """What rounds of one table cost.

    `read_bytes` are those of the table where each round reads all of it, None where it reads what
    is new; `leaves_files` says whether each round that loads leaves a file that is never compacted.
    """

    seconds: float
    """The time between two loads: the interval, or what `commit_at` makes of it."""
    loads_a_day: int
    """At most so many: a round without anything new loads nothing."""
    read_bytes: int | None = None
    leaves_files: bool = False
    why: str = ""
    """What makes it read all of the table, as a clause."""

    @property
    def bytes_a_day(self) -> int:
        """The bytes that are read."""
        return (self.read_bytes or 0) * self.loads_a_day

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is likely to cost more than its owner thinks."""
        found = []
        if self.read_bytes is not None and self.bytes_a_day >= LARGE:
            found.append(
                f"{self.why} reads the whole table in each round: {format_size(self.read_bytes)}, "
                f"{counted(self.loads_a_day, 'time')} a day, are {format_size(self.bytes_a_day)} a "
                "day; a longer interval costs less"
            )
        if self.leaves_files and self.seconds < SHORT.total_seconds():
            found.append(
                f"{self._files_a_day}, which are not compacted: readers slow down; an interval of "
                f"{format_duration(SHORT)} or more, or `commit_at`, leaves fewer, and Iceberg "
                "tables are compacted by `lakeload maintain`"
            )
        return tuple(found)

    @property
    def notes(self) -> tuple[str, ...]:
        """What else is good to know."""
        if not self.leaves_files or self.seconds < SHORT.total_seconds():
            return ()
        return (f"{self._files_a_day}, which are not compacted",)

    @property
    def _files_a_day(self) -> str:
        number = f"{self.loads_a_day:,}"
        return f"rounds may leave {number} data files and {number} commit records a day"


def plan_rounds(
    state: TableState, interval: timedelta | None, table_format: TableFormat
) -> RoundsPlan | None:
    """Return what loads of a table at an interval cost; None without an interval, and for a table
    that cannot be loaded."""
    if interval is None or state.error is not None:
        return None
    table = state.table
    why = _reads_all(table)
    # Data that waits for nothing but its age is not loaded more often.
    waits = table.commit_at if table.commit_at and table.commit_at.bytes is None else None
    seconds = max(interval.total_seconds(), (waits and waits.age) or 0.0)
    return RoundsPlan(
        seconds,
        loads_a_day=int(_DAY.total_seconds() / seconds),
        read_bytes=_size(state) if why else None,
        leaves_files="compact" not in FORMATS[table_format].maintenance_steps,
        why=why,
    )


def _reads_all(table: TableSpec) -> str:
    """Return why each round reads all of a table; '' where it reads what is new."""
    if not table.input.incremental:
        new = "`cursor`" if source_of(table.input).cursor_reads else "`incremental: true`"
        return f"`mode: {table.mode}` without {new}"
    return "`detect_deletes`" if table.max_deleted is not None else ""


def _size(state: TableState) -> int | None:
    """Return the bytes of all of a table, None where nothing tells them."""
    report = state.report
    for known in (report.all_bytes, report.bytes):
        if known is not None:
            return known or None
    return source_of(state.table.input).count_files(state.table.input).size

"""Report of a source on one table: what a load would read, known before it starts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from lakeload_jobs.contract.result import NewData

if TYPE_CHECKING:
    from lakeload_jobs.sources.paths.file_state import FileState


@dataclass(frozen=True)
class IncrementalPlan:
    """What an incremental table would load: new files, their bytes, and how many are known.

    `loaded` counts the versions of files ever loaded, `changed` new versions among the new files,
    `skipped` those that would be remembered and not loaded, `state_bytes` the JSON of the state
    that the record would carry.
    """

    new_files: int
    new_bytes: int
    known_files: int
    loaded: int
    changed: int
    state_bytes: int
    reload: bool
    skipped: int = 0
    later_files: int = 0
    """New files that `round_limit` leaves for later jobs."""
    later_bytes: int = 0


@dataclass(frozen=True)
class CursorPlan:
    """Which rows of a table of a database a load would read: those from `last`, the greatest value
    of `column` in earlier loads, to `to`, the greatest now. `last` None: all rows; `to` None: up to
    the greatest value, which is not known yet."""

    column: str
    last: str | None = None
    to: str | None = None


@dataclass(frozen=True)
class SourceReport:
    """What is known of what a load would read. By default nothing: it is left to the job."""

    sentence: str | None = None
    """What is new, for people; None where all is read each time, or the job alone can tell."""
    idle: bool = False
    """Whether there is nothing new to read."""
    records_anyway: bool = False
    """Whether a commit without rows is worth it: it makes the next run quicker."""
    warnings: tuple[str, ...] = ()
    """What may not be meant."""
    position: datetime | None = None
    """Up to when earlier loads have read the source."""
    rows: int | None = None
    """About how many a load would read."""
    bytes: int | None = None
    """About how many bytes a load would read; None where only the job can tell. 0 stands for
    nothing new, and for views and queries, whose size no database knows."""
    all_rows: int | None = None
    """About how many there are, new or not."""
    all_bytes: int | None = None
    """About how many bytes those are, as `bytes`."""
    tells_age: bool = False
    """Whether `new` tells since when there is new data: else that is not known before a round sees
    it."""
    new: NewData | None = None
    listed: tuple[FileState, ...] | None = None
    """The files that are there; None where they are not listed, or are none."""
    files: tuple[FileState, ...] | None = None
    """Those of them that a load would read."""
    unknown_job: str = ""
    """The job whose rejected records were to be read again, where it has not loaded the table."""
    incremental: IncrementalPlan | None = None
    """What a plan shows of new files."""
    cursor: CursorPlan | None = None
    """What a plan shows of new rows."""


NOTHING_KNOWN = SourceReport()

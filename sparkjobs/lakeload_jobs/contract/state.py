"""Source state that a table's format stores with each commit and returns to the next load.

All of it is JSON that belongs to the source: formats store it and never look inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lakeload_jobs.contract.errors import NewerFormat


def check_format(data: Any, newest: int, what: str, name: str = "format") -> None:
    """Raise `NewerFormat` for JSON whose format is higher than `newest`; without one it is 1."""
    found = data.get(name) if isinstance(data, dict) else None
    if isinstance(found, int) and found > newest:
        raise NewerFormat(what, found, newest)


@dataclass(frozen=True)
class StateChange:
    """The pipeline's state before and after the job: any JSON. None before the first."""

    before: Any
    after: Any


@dataclass(frozen=True)
class Evidence:
    """What one load noted of what it read, where a state alone would not do.

    `inputs` are what this load read; `known` repeats those of earlier loads, so that nobody has to
    read theirs again.
    """

    inputs: tuple[Any, ...] = ()
    known: tuple[Any, ...] = ()


@dataclass(frozen=True)
class RejectedRecords:
    """What a table keeps of the records that one job has rejected.

    UNKNOWN: the job has not loaded the table, NONE: it has rejected no record, FILES: it has set
    whole files aside and no record, TAKEN: the job `taken_by` has read them again, THERE: `read`
    returns them as an Arrow table with the columns of the side table.
    """

    status: Literal["UNKNOWN", "NONE", "FILES", "TAKEN", "THERE"]
    taken_by: str = ""
    read: Callable[[], Any] | None = None

    def sentence(self, job: str) -> str:
        """Return what is there to be read again of `job`, for people."""
        match self.status:
            case "UNKNOWN":
                return f"job `{job}` has not loaded this table"
            case "NONE":
                return f"job `{job}` has rejected no record of this table"
            case "FILES":
                return (
                    f"job `{job}` has set whole files of this table aside and no record: replace "
                    "them, and the next load reads them"
                )
            case "TAKEN":
                return f"job `{self.taken_by}` has read the rejected records of job `{job}` already"
        return f"the rejected records of job `{job}`"


UNKNOWN_JOB = RejectedRecords("UNKNOWN")


@dataclass(frozen=True)
class Bookmark:
    """What a table keeps of one pipeline's loads, whichever its format.

    `state` is that of the newest load. `evidence` returns that of the loads from number `since` on,
    the oldest first, and `next_number` is that of the load to come. `rejected` returns what is kept
    of the rejected records of a job.
    """

    state: Any
    first_run: bool
    next_number: int
    evidence: Callable[[int], Sequence[Evidence]]
    rejected: Callable[[str], RejectedRecords] = lambda _: UNKNOWN_JOB

"""Tables whose new data waits at an interval, until there is enough or it is old (`commit_at`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from lakeload.documents.durations import format_duration
from lakeload.formats.inspection import TableState
from lakeload_jobs.contract.result import NewData, TableResult
from lakeload_jobs.contract.spec import CommitAt
from lakeload_jobs.core.sizes import format_size

S = TypeVar("S", bound=TableState)


class Waiting:
    """Decides in each round which tables wait. Files tell how old they are; that rows are new is
    known from the round on that finds them, so the first round of a process loads them."""

    def __init__(self) -> None:
        self._seen: dict[str, datetime] = {}
        self._began = False

    def with_waiting(self, states: Sequence[S], now: datetime) -> tuple[S, ...]:
        """Return the states, those with new data that waits with what it is."""
        found = tuple(self._with_waiting(state, now) for state in states)
        self._began = True
        return found

    def note_loaded(self, tables: Iterable[TableResult]) -> None:
        """Forget since when there is new data in tables that are loaded."""
        for table in tables:
            cut_off = table.status in ("FAILED", "SKIPPED", "INTERRUPTED")
            if not cut_off and not table.more and table.waiting is None:
                self._seen.pop(table.table, None)

    def _with_waiting(self, state: S, now: datetime) -> S:
        limit = state.table.commit_at
        if limit is None or state.error is not None or state.unfinished or state.idle:
            return state
        new = self._new_data(state, now)
        if new is None or is_due(limit, new, now):
            return state
        return replace(state, waiting=new, waiting_note=sentence(limit, new, now))

    def _new_data(self, state: TableState, now: datetime) -> NewData | None:
        """Return what is new; None where it is not to wait."""
        if state.report.tells_age:
            new = state.report.new
            return None if new is None else replace(new, since=min(now, new.since))
        if not self._began and state.table.source not in self._seen:
            return None
        return NewData(self._seen.setdefault(state.table.source, now))


def is_due(limit: CommitAt, new: NewData, now: datetime) -> bool:
    """Return whether there is enough new data, or it has waited long enough. What has no known
    size waits for its age alone."""
    if new.bytes is None and limit.age is None:
        return True
    enough = limit.bytes is not None and new.bytes is not None and new.bytes >= limit.bytes
    return enough or (limit.age is not None and _seconds(new, now) >= limit.age)


def sentence(limit: CommitAt, new: NewData, now: datetime) -> str:
    """Return what waits and for what, for people."""
    parts = []
    if new.bytes is not None:
        of = f" of {format_size(limit.bytes)}" if limit.bytes is not None else ""
        parts.append(f"{format_size(new.bytes)}{of}")
    of = f" of {_duration(limit.age)}" if limit.age is not None else ""
    parts.append(f"oldest {_duration(_seconds(new, now))}{of}")
    return f"waiting: {', '.join(parts)}"


def _seconds(new: NewData, now: datetime) -> float:
    return (now - new.since).total_seconds()


def _duration(seconds: float) -> str:
    return format_duration(timedelta(seconds=seconds))

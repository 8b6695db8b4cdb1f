"""The status of tables: fresh, stale or failing, by the state after the last job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from glob import has_magic
from typing import TYPE_CHECKING, Literal

from lakeload.documents.chosen_tables import choose_tables
from lakeload.history.day import HistoryDay, TableHealth

if TYPE_CHECKING:
    from lakeload.documents.pipeline import Pipeline
    from lakeload_jobs.contract.spec import TableSpec

StatusWord = Literal["FRESH", "NOT_LOADED", "STALE", "FAILED"]


@dataclass(frozen=True)
class TableStatus:
    """A table at one moment. `last` None: no job is known that was about it."""

    target: str
    status: StatusWord
    freshness: timedelta | None
    last: TableHealth | None
    lag: timedelta | None
    """The age of its position, else of when it was last up to date."""
    stale: bool = False
    """Whether it was last up to date longer ago than `freshness`, also where its status is FAILED:
    that comes first."""

    @property
    def bad(self) -> bool:
        """Whether a monitor should know."""
        return self.status in ("STALE", "FAILED")


def freshness_of(specs: Sequence[TableSpec], model: Pipeline) -> dict[str, timedelta | None]:
    """Return how old the tables of a pipeline may be, by their targets. Patterns that are not
    replaced by the tables they find are no names of tables."""
    return {
        spec.target: table.freshness or model.freshness
        for spec, table in zip(specs, model.tables, strict=True)
        if not has_magic(spec.source)
    }


def statuses(
    day: HistoryDay | None,
    expected: Mapping[str, timedelta | None],
    others: timedelta | None,
    now: datetime,
    *,
    all_tables: bool,
) -> tuple[TableStatus, ...]:
    """Return the status of the `expected` tables, each with its freshness, and with `all_tables`
    of those that jobs have loaded beside them, with the freshness of `others`."""
    known = {state.target: state for state in day.tables} if day else {}
    names = [*expected, *(name for name in known if all_tables and name not in expected)]
    return tuple(_status(name, known.get(name), expected.get(name, others), now) for name in names)


def matching(
    tables: Sequence[TableStatus], globs: Sequence[str], sources: Mapping[str, str]
) -> tuple[TableStatus, ...]:
    """Return the tables whose names match one of the globs: that in the lake, with its schema or
    without, or that in the source, which `sources` has by the name in the lake. Raises
    `InvalidInput` for a glob without a match."""

    def names(one: TableStatus) -> list[str]:
        return [one.target, one.target.rpartition(".")[2], sources.get(one.target, one.target)]

    return choose_tables(tables, globs, names)


def _status(
    target: str, last: TableHealth | None, freshness: timedelta | None, now: datetime
) -> TableStatus:
    good = last.up_to_date_at if last else None
    stale = freshness is not None and (good is None or now - good > freshness)
    status: StatusWord = "FRESH"
    if last is not None and last.failures:
        status = "FAILED"
    elif stale:
        status = "STALE"
    elif last is None or last.succeeded_at is None:
        status = "NOT_LOADED"
    since = (last.position or good) if last else None
    return TableStatus(target, status, freshness, last, now - since if since else None, stale)

"""Roll forward: complete committed records, and update the catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, Protocol

from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.core.comments import Comments
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.core.nested_types import with_new_fields
from lakeload_jobs.formats.parquet.log.commit_log import (
    Checkpoint,
    CommitLog,
    Ending,
    History,
    LogEntry,
    LogView,
    Outcome,
)
from lakeload_jobs.formats.parquet.log.publish import Notify, Publisher, tell_nobody
from lakeload_jobs.formats.parquet.log.records import Column, FenceRecord, GlueTarget, LoadRecord
from lakeload_jobs.storage.objects import Objects


@dataclass(frozen=True)
class NewColumn(Column):
    """A column that no file has yet, and its name in the source."""

    source: str


class ParquetCatalog(Protocol):
    """A catalog that knows tables by their files. Thread-safe: one serves all tables of a run."""

    def check(self, target: GlueTarget, columns: Sequence[Column]) -> None:
        """Say whether the catalog could take this table: before a load, and in `plan`.

        `columns` are the table's columns and those of the load; none before they are known. Those
        that no file has yet are a `NewColumn`. Only reads.
        Raises `LakeloadError` that names both sides: a table that is not ours, a database or table
        at another location, a column of another type.
        """

    def describe(self, target: GlueTarget, comments: Comments) -> None:
        """Keep the comments of a table for `bring_into_step`, which fills empty ones with them."""

    def bring_into_step(self, records: Sequence[LoadRecord], columns: Sequence[Column]) -> None:
        """Make the catalog show the files of done records; doing it again changes nothing.

        The records, one at least, have the same `glue`; several cost hardly more requests than one.
        `columns` is the union of the columns of all done records: a late call never takes any away.
        Raises `LakeloadError`; the data stays in, and what was done stays done.
        """


@dataclass(frozen=True)
class Cataloged:
    """What step 6 achieved: the records that have their `.cat` now, and what stopped the rest."""

    numbers: frozenset[int] = frozenset()
    error: LakeloadError | None = None


class CatalogStep:
    """Step 6 of one table. Without a catalog, jobs with Glue wait for a run that has one."""

    def __init__(self, log: CommitLog, catalog: ParquetCatalog | None) -> None:
        self._log = log
        self._catalog = catalog

    def bring_into_step(
        self, records: Mapping[int, LoadRecord], columns: Sequence[Column]
    ) -> Cataloged:
        """Catalogue done records that have no `.cat` yet, and write it; never raises for them.

        `columns` is the union of the columns of all done records: a late step must not take any
        away. A catalog that fails holds up nothing but the checkpoint.
        """
        # A run without Glue leaves these records to a run with it.
        if self._catalog is None:
            return Cataloged()
        done: set[int] = set()
        failed: dict[GlueTarget, LakeloadError] = {}
        for target, numbers in _same_table(records).items():
            try:
                loaded = [records[number] for number in numbers]
                # Catalog first, marker second: a crash in between repeats an idempotent update.
                self._catalog.bring_into_step(loaded, columns)
                if aside := [side for one in loaded if (side := one.of_side_table())]:
                    self._catalog.bring_into_step(aside, union(*(one.columns for one in aside)))
                for number in numbers:
                    self._log.mark_cataloged(number)
                    done.add(number)
            # The rows are committed and visible: a catalog that fails must not fail the load.
            except LakeloadError as error:
                failed[target] = error
        return Cataloged(frozenset(done), next(iter(failed.values()), None))


def _same_table(records: Mapping[int, LoadRecord]) -> dict[GlueTarget, list[int]]:
    """Group the numbers of records by the table they belong to in the catalog, in order."""
    groups: dict[GlueTarget, list[int]] = {}
    for number in sorted(records):
        record = records[number]
        if record.glue is not None:
            groups.setdefault(record.glue, []).append(number)
    return groups


def union(*columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return all columns in order of appearance: the first type of each name, and in its structs
    the fields that came later."""
    found: dict[str, str] = {}
    for column in (column for group in columns for column in group):
        before = found.get(column.name, column.type)
        found[column.name] = with_new_fields(before, column.type) or before
    return tuple(Column(name, kind) for name, kind in found.items())


PendingAction = Literal["publish", "clean", "catalog", "void"]
"""What an unfinished job needs, or got: its files published; what is left of a void one removed;
the catalog brought into step; declared void because nothing of it is left."""

Stopped = Callable[[int, LoadRecord, LakeloadError], None]
"""Told of a record that could not be settled."""


@dataclass(frozen=True)
class Pending:
    """A job that its author left unfinished, and what it needs."""

    number: int
    pipeline: str
    job_id: str
    rows: int
    files: int
    action: PendingAction


@dataclass(frozen=True)
class Settled:
    """The log after step 0. `covered` is the part that a checkpoint may cover."""

    history: History
    covered: History
    pending: tuple[Pending, ...]
    catalog_error: LakeloadError | None = None
    """Why the catalog still lags behind some job that is done. Blocks nothing."""


@dataclass(frozen=True)
class _Seen:
    """One record of the log and what became of it. `outcome` None: a fence, or not settled."""

    entry: LogEntry
    record: LoadRecord | None
    outcome: Outcome | None
    finished: bool
    """Nothing is left to do, the catalog apart."""
    resets: str = ""
    """The pipeline that a fence resets."""
    was_reset: bool = False
    """A later fence resets its pipeline: its files go, and the catalog must not show them."""

    @property
    def uncataloged(self) -> bool:
        """Whether step 6 is still to be done."""
        needs = self.record is not None and self.record.glue is not None and not self.was_reset
        return needs and self.outcome in ("done", "partial") and not self.entry.cataloged


class Settler:
    """Settles one table's log, with its parts: `log` reads and appends, `publisher` finishes
    records, `catalog_step` updates the catalog. `known` takes the place of the checkpoint."""

    def __init__(
        self,
        objects: Objects,
        location: TableLocation,
        *,
        catalog: ParquetCatalog | None = None,
        parallelism: int = 1,
        notify: Notify = tell_nobody,
        known: Checkpoint | None = None,
    ) -> None:
        self.log = CommitLog(objects, location, known)
        self.publisher = Publisher(objects, self.log, parallelism=parallelism, notify=notify)
        self.catalog_step = CatalogStep(self.log, catalog)
        self._waits = objects.waits
        self.notify = notify

    def settle(self, view: LogView, stopped: Stopped | None = None) -> Settled:
        """Finish every unfinished record, then bring the catalog into step.

        Raises what `Publisher.finish` raises; with `stopped`, that is told instead and the walk
        goes on: records are finished independently of each other.
        """
        pending: list[Pending] = []
        # Rows before the catalog: it must never list files that are not visible.
        seen = self._walk(view, pending, act=True, stopped=stopped)
        history = _history(view, seen)
        stale = {
            one.entry.number: one.record
            for one in seen
            if one.uncataloged and one.record is not None
        }
        cataloged = self.catalog_step.bring_into_step(stale, history.columns)
        pending += [_pending(n, stale[n], "catalog") for n in sorted(cataloged.numbers)]
        covered = _covered(view, seen, cataloged)
        return Settled(history, covered, tuple(pending), cataloged.error)

    def foresee(self, view: LogView) -> Settled:
        """Say what `settle` would do, and take it for done. Writes nothing, waits for nobody."""
        pending: list[Pending] = []
        seen = self._walk(view, pending, act=False)
        for one in seen:
            if one.uncataloged and one.record is not None:
                pending.append(_pending(one.entry.number, one.record, "catalog"))
        covered = History(view.checkpoint) if pending else _covered(view, seen, Cataloged())
        return Settled(_history(view, seen), covered, tuple(pending))

    def settle_record(self, number: int, record: LoadRecord, written: datetime) -> Outcome:
        """Finish one record, after its author had the time to do so. `written` is its age."""
        ending = self.wait_for_author(number, written)
        # Its author, or another process, has finished it during the wait.
        if ending != "open":
            return self.publisher.after_end(number, record, ending)
        self.notify(
            f"finishing job `{record.job_id}` of pipeline `{record.pipeline}` (record {number}, "
            f"{len(record.uploads)} files), which its process did not finish"
        )
        return self.publisher.finish(number, record)

    def wait_for_author(self, number: int, written: datetime) -> Ending:
        """Return how a record has ended, once its author had 10 s from writing it."""
        age = (self._waits.now() - written).total_seconds()
        # Clocks may differ: whatever they say, the wait is neither negative nor longer than agreed.
        left = min(max(self._waits.live_author - age, 0), self._waits.live_author)
        for _ in self._waits.attempts(left):
            if (ending := self.log.ending(number)) != "open":
                return ending
        return "open"

    def _walk(
        self,
        view: LogView,
        pending: list[Pending],
        *,
        act: bool,
        stopped: Stopped | None = None,
    ) -> list[_Seen]:
        seen: list[_Seen] = []
        for entry, record in self.log.records(view.entries):
            # A fence has no files; only a reset leaves work, for the command `reset`.
            if isinstance(record, FenceRecord):
                finished = not record.resets or entry.clean
                seen.append(_Seen(entry, None, None, finished, record.resets))
                continue
            ending = self.log.ending_of(entry)
            action = _action(entry, ending)
            if action is not None:
                pending.append(_pending(entry.number, record, action))
            try:
                one = self._settle_entry(entry, record, ending, action if act else None)
            except LakeloadError as error:
                # A load fails here: the table accepts no new job before this one is resolved.
                if stopped is None:
                    raise
                # `recover` reports it and continues: records do not depend on each other.
                pending.pop()
                stopped(entry.number, record, error)
                one = _Seen(entry, record, None, finished=False)
            # All its uploads were gone, so publishing has discarded it.
            if action == "publish" and one.outcome == "void":
                pending[-1] = replace(pending[-1], action="void")
            seen.append(one)
        # A job before a reset of its pipeline is removed: it must not return to the catalog.
        resets = {one.resets: one.entry.number for one in seen if one.resets}
        return [
            replace(one, was_reset=True)
            if one.record and one.entry.number < resets.get(one.record.pipeline, 0)
            else one
            for one in seen
        ]

    def _settle_entry(
        self, entry: LogEntry, record: LoadRecord, ending: Ending, action: PendingAction | None
    ) -> _Seen:
        if action == "publish":
            outcome = self.settle_record(entry.number, record, entry.modified)
            # Whether a void is clean is known when its marker is seen.
            return _Seen(entry, record, outcome, finished=outcome != "void")
        clean = action != "clean" or self.publisher.clean(entry.number, record)
        return _Seen(entry, record, "done" if ending == "open" else ending, finished=clean)


def _history(view: LogView, seen: Sequence[_Seen]) -> History:
    history = History(view.checkpoint)
    for one in seen:
        _take_in(history, one)
    return history


def _covered(view: LogView, seen: Sequence[_Seen], cataloged: Cataloged) -> History:
    """Return the log up to the first record that still needs somebody."""
    covered = History(view.checkpoint)
    for one in seen:
        lags = one.uncataloged and one.entry.number not in cataloged.numbers
        # The checkpoint replaces the records it covers, so it must not pass one that needs work.
        if not one.finished or lags:
            break
        _take_in(covered, one)
    return covered


def _take_in(history: History, one: _Seen) -> None:
    if one.resets:
        history.add_reset(one.entry.number, one.resets, finished=one.finished)
    elif one.record is None or one.outcome is None:
        history.pass_by(one.entry.number)
    else:
        history.add(one.entry.number, one.record, one.outcome)


def _action(entry: LogEntry, ending: Ending) -> PendingAction | None:
    if ending == "open":
        return "publish"
    if ending == "void" and not entry.clean:
        return "clean"
    return None


def _pending(number: int, record: LoadRecord, action: PendingAction) -> Pending:
    return Pending(
        number, record.pipeline, record.job_id, record.all_rows, len(record.uploads), action
    )

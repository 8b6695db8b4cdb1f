"""Step 0 of DESIGN section 5: bring every record of the log to its end, in order, or foresee it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from lakeload_jobs.lake.commit_log import CommitLog, Ending, Entry, LogView
from lakeload_jobs.lake.history import History, Outcome
from lakeload_jobs.lake.publish import Notify, Publisher
from lakeload_jobs.lake.records import FenceRecord, LoadRecord
from lakeload_jobs.lake.waits import Waits


@dataclass(frozen=True)
class Pending:
    """A job that its author left unfinished: its files must be published, or cleaned away."""

    number: int
    pipeline: str
    job_id: str
    rows: int
    files: int
    action: Literal["publish", "clean"]


@dataclass(frozen=True)
class Settled:
    """The log after step 0. `covered` is the part that a checkpoint may cover."""

    history: History
    covered: History
    pending: tuple[Pending, ...]


class Settler:
    """Settles one table's log."""

    def __init__(self, log: CommitLog, publisher: Publisher, waits: Waits, notify: Notify) -> None:
        self._log = log
        self._publisher = publisher
        self._waits = waits
        self._notify = notify

    def settle(self, view: LogView) -> Settled:
        """Finish every unfinished record. Raises what `Publisher.finish` raises."""
        return self._walk(view, act=True)

    def foresee(self, view: LogView) -> Settled:
        """Say what `settle` would do, and take it for done. Writes nothing, waits for nobody."""
        return self._walk(view, act=False)

    def settle_record(self, number: int, record: LoadRecord, written: datetime) -> Outcome:
        """Finish one record, after its author had the time to do so. `written` is its age."""
        ending = self._wait_for_author(number, written)
        if ending != "open":
            return self._publisher.after_end(number, record, ending)
        self._notify(
            f"finishing job `{record.job_id}` of pipeline `{record.pipeline}` (record {number}, "
            f"{len(record.files)} files), which its process left unfinished"
        )
        return self._publisher.finish(number, record)

    def _walk(self, view: LogView, *, act: bool) -> Settled:
        self._log.load_records(entry.number for entry in view.entries)
        history, covered = History(view.checkpoint), History(view.checkpoint)
        pending: list[Pending] = []
        for entry in view.entries:
            record = self._log.record(entry.number)
            # A checkpoint ends before the first record that still needs somebody (P11).
            follows = covered.number == entry.number - 1
            if isinstance(record, FenceRecord):
                history.add_fence(entry.number)
                if follows:
                    covered.add_fence(entry.number)
                continue
            ending = self._log.ending_of_size(entry.number, entry.end_size)
            action = _action(entry, ending)
            if action is not None:
                pending.append(_pending(entry.number, record, action))
            outcome = self._outcome(entry, record, ending, action if act else None)
            history.add(entry.number, record, outcome)
            if follows and act and (outcome == "void" or record.glue is None or entry.cataloged):
                covered.add(entry.number, record, outcome)
        return Settled(history, covered, tuple(pending))

    def _outcome(
        self,
        entry: Entry,
        record: LoadRecord,
        ending: Ending,
        action: Literal["publish", "clean"] | None,
    ) -> Outcome:
        if action == "publish":
            return self.settle_record(entry.number, record, entry.modified)
        if action == "clean":
            self._publisher.clean(entry.number, record)
        return "done" if ending == "open" else ending

    def _wait_for_author(self, number: int, written: datetime) -> Ending:
        age = (self._waits.now() - written).total_seconds()
        # Clocks may differ: whatever they say, the wait is neither negative nor longer than agreed.
        left = min(max(self._waits.live_author - age, 0), self._waits.live_author)
        for _ in self._waits.attempts(left):
            if (ending := self._log.ending(number)) != "open":
                return ending
        return "open"


def _action(entry: Entry, ending: Ending) -> Literal["publish", "clean"] | None:
    if ending == "open":
        return "publish"
    if ending == "void" and not entry.clean:
        return "clean"
    return None


def _pending(number: int, record: LoadRecord, action: Literal["publish", "clean"]) -> Pending:
    return Pending(number, record.pipeline, record.job_id, record.rows, len(record.files), action)

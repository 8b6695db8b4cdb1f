"""The objects of one table's commit log: read in order, each written once (DESIGN section 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeVar

from lakeload_jobs.aws import AwsError
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.history import Checkpoint
from lakeload_jobs.formats.parquet.log.log_codec import (
    LogDamaged,
    NewerFormat,
    decode,
    decode_record,
    encode,
    tool_version,
)
from lakeload_jobs.formats.parquet.log.records import CatMarker, CleanMarker, EndMarker, Record
from lakeload_jobs.storage.objects import Objects

T = TypeVar("T")
R = TypeVar("R")

Ending = Literal["open", "done", "partial", "void"]


@dataclass(frozen=True)
class Entry:
    """One record and the markers beside it, as one LIST showed them."""

    number: int
    modified: datetime
    end_size: int | None
    """None: no `.end`; 0: done; else its body says void or partial."""
    clean: bool
    cataloged: bool


@dataclass(frozen=True)
class LogView:
    """The log at one moment: what the checkpoint covers, and every record after it."""

    checkpoint: Checkpoint | None
    entries: tuple[Entry, ...]

    @property
    def next_number(self) -> int:
        """The number a new record gets if nobody is faster."""
        if self.entries:
            return self.entries[-1].number + 1
        return (self.checkpoint.number if self.checkpoint else 0) + 1


class CommitLog:
    """Reads and writes one table's log. Every method may raise `AwsError`."""

    def __init__(self, objects: Objects, location: TableLocation) -> None:
        self._objects = objects
        self._location = location
        self._records: dict[int, Record] = {}

    @property
    def location(self) -> TableLocation:
        """The table."""
        return self._location

    def read(self, *, before: int = 0) -> LogView:
        """GET the checkpoint, LIST what comes after it. Raises `LogDamaged` for a gap.

        `before` begins the LIST so many records earlier, for whoever wants to see old ones.
        """
        checkpoint = self._checkpoint()
        covered = max(checkpoint.number - before, 0) if checkpoint else 0
        return LogView(checkpoint, self.entries_after(covered))

    def entries_after(self, number: int) -> tuple[Entry, ...]:
        """LIST the records after that number. Raises `LogDamaged` for a gap."""
        after = self._location.record_key(number) if number else None
        found: dict[int, dict[str, tuple[int, datetime]]] = {}
        for entry in self._objects.list(self._location.log_path, start_after=after):
            if parsed := self._location.parse_log_key(entry.key):
                listed, kind = parsed
                found.setdefault(listed, {})[kind] = (entry.size, entry.modified)
        return self._entries(found, number)

    def _entries(
        self, found: dict[int, dict[str, tuple[int, datetime]]], covered: int
    ) -> tuple[Entry, ...]:
        entries = []
        for expected, number in enumerate(sorted(found), covered + 1):
            kinds = found[number]
            if number != expected or "record" not in kinds:
                raise LogDamaged(
                    f"the log of `{self._location.data_path}` has no record {expected}: "
                    f"`{self._objects.url(self._location.record_key(expected))}` is missing",
                    hint="restore it from the bucket's versions, and remove any lifecycle rule "
                    "that expires objects under `_lakeload/`",
                )
            entries.append(
                Entry(
                    number,
                    kinds["record"][1],
                    kinds["end"][0] if "end" in kinds else None,
                    "clean" in kinds,
                    "cat" in kinds,
                )
            )
        return tuple(entries)

    def _checkpoint(self) -> Checkpoint | None:
        key = self._location.checkpoint_key
        data = self._objects.get(key, denied_is_missing=True)
        if data is None:
            return None
        try:
            return decode(Checkpoint, data, self._objects.url(key))
        except (LogDamaged, NewerFormat):
            # Only a cache: the records themselves say the same, at more requests.
            return None

    def record(self, number: int) -> Record:
        """Return record `number`, which LIST or a 412 has shown. Records never change."""
        if number not in self._records:
            key = self._location.record_key(number)
            data = self._objects.get(key)
            if data is None:
                raise LogDamaged(
                    f"`{self._objects.url(key)}` was there and is gone",
                    hint="restore it from the bucket's versions; log records are never deleted",
                )
            self._records[number] = decode_record(data, self._objects.url(key))
        return self._records[number]

    def load_records(self, numbers: Iterable[int]) -> None:
        """Read several records at once, for `record` to return."""
        run_all(self.record, [n for n in numbers if n not in self._records], 8)

    def ending(self, number: int) -> Ending:
        """Return how record `number` has ended by now."""
        key = self._location.end_key(number)
        entry = self._objects.find(key)
        return "open" if entry is None else self.ending_of_size(number, entry.size)

    def ending_of_size(self, number: int, size: int | None) -> Ending:
        """The same for a marker that a LIST has shown; only void and partial are read."""
        if size is None:
            return "open"
        if size == 0:
            return "done"
        key = self._location.end_key(number)
        data = self._objects.get(key) or b""
        return decode(EndMarker, data, self._objects.url(key)).outcome

    def ended_at(self, number: int) -> datetime | None:
        """Return when record `number` ended, by S3's clock; None when it has not."""
        entry = self._objects.find(self._location.end_key(number))
        return None if entry is None else entry.modified

    def put_record(self, number: int, body: bytes) -> bool:
        """Commit: False when the number is taken, perhaps by an earlier try of ours."""
        return self._objects.put_if_absent(self._location.record_key(number), body)

    def end_done(self, number: int) -> bool:
        """Mark the job done; False when it has ended already, either way."""
        return self._objects.put_if_absent(self._location.end_key(number), b"")

    def end_otherwise(self, number: int, marker: EndMarker) -> bool:
        """Mark the job void or partial; False when it has ended already, either way."""
        return self._objects.put_if_absent(self._location.end_key(number), encode(marker))

    def mark_clean(self, number: int, deleted: tuple[str, ...]) -> None:
        """Say that nothing is left of a void record."""
        marker = CleanMarker(tool_version(), self._objects.waits.now(), deleted)
        self._objects.put_if_absent(self._location.clean_key(number), encode(marker))

    def mark_cataloged(self, number: int) -> None:
        """Say that the catalog has what record `number` needs."""
        marker = CatMarker(tool_version(), self._objects.waits.now())
        self._objects.put_if_absent(self._location.cat_key(number), encode(marker))

    def write_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Overwrite the cache; a failure is no failure of the load."""
        try:
            self._objects.put(self._location.checkpoint_key, encode(checkpoint))
        except AwsError:
            return


def run_all(function: Callable[[T], R], items: Iterable[T], parallelism: int) -> list[R]:
    """Call `function` for each item, several at a time; results in order.

    After the first error nothing new is begun, and that error is raised.
    """
    with ThreadPoolExecutor(max_workers=parallelism) as pool:
        futures = [pool.submit(function, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise

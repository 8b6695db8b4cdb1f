"""The commit log of one table: reading, listing and appending records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar, Literal, TypeVar

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.errors import NewerFormat
from lakeload_jobs.contract.spec import PartitionStrategy
from lakeload_jobs.core.layout import TableLocation, log_root
from lakeload_jobs.core.nested_types import with_new_fields
from lakeload_jobs.formats.parquet.log.records import (
    CatMarker,
    CleanMarker,
    Column,
    EndMarker,
    FenceRecord,
    GlueTarget,
    LoadRecord,
    LogDamaged,
    Record,
    Target,
    decode,
    decode_record,
    encode,
    tool_version,
)
from lakeload_jobs.storage.objects import Objects

JOBS_REMEMBERED = 10_000
"""Job ids a checkpoint keeps, the latest of all pipelines together."""

Outcome = Literal["done", "partial", "void"]


@dataclass(frozen=True)
class PipelineHistory:
    """What the log says of one pipeline. Numbers are those of records."""

    source: str
    latest: int | None = None
    """Its newest record that is not void."""
    column_map: dict[str, str] = field(default_factory=dict)
    done: dict[str, int] = field(default_factory=dict)
    void: dict[str, int] = field(default_factory=dict)
    state: Any = None
    state_number: int | None = None
    glue: GlueTarget | None = None
    """The Glue table of its newest record; None without Glue."""
    partition_strategy: PartitionStrategy | None = None
    """That of its newest record; None where an older lakeload did not keep it."""


@dataclass(frozen=True)
class Checkpoint:
    """A cache of the log's settled beginning, records 1 to `number`.

    It covers no record that is undone, uncatalogued or uncleaned, and may lag behind the log by
    any distance: records stay, so an old checkpoint only makes the LIST longer.
    """

    KIND: ClassVar[str] = "CHECKPOINT"

    tool: str
    number: int
    pipelines: dict[str, PipelineHistory]
    columns: tuple[Column, ...]
    digest: str | None = None
    """Of its key and of all the rest; None in a checkpoint of before there was one."""

    def digest_at(self, key: str) -> str:
        """Return the digest of a checkpoint that is stored under this key."""
        text = json.dumps([key, to_json(replace(self, digest=None))], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def is_usable(self, key: str) -> bool:
        """Whether its digest is right, and each number is that of a record that it covers."""
        numbers = [
            number
            for known in self.pipelines.values()
            for number in (*known.done.values(), *known.void.values(), known.latest)
            if number is not None
        ]
        covered = all(0 < number <= self.number for number in numbers)
        return 0 <= self.number < 10**20 and covered and self.digest in (None, self.digest_at(key))


@dataclass(frozen=True)
class EarlierJob:
    """A job id that the log knows."""

    pipeline: str
    number: int
    void: bool


class History:
    """Grows record by record, in the log's order, from a checkpoint or from nothing."""

    def __init__(self, checkpoint: Checkpoint | None = None) -> None:
        self.number = checkpoint.number if checkpoint else 0
        known = checkpoint.pipelines if checkpoint else {}
        self.pipelines = {
            name: replace(pipeline, done=dict(pipeline.done), void=dict(pipeline.void))
            for name, pipeline in known.items()
        }
        self._columns = {c.name: c.type for c in checkpoint.columns} if checkpoint else {}
        self.resetting: dict[str, int] = {}
        """Pipelines whose reset is not finished, with its record: no checkpoint covers that."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The union of the columns of all records that are not void, in order of appearance, and
        of the fields of their structs."""
        return tuple(Column(name, kind) for name, kind in self._columns.items())

    def pass_by(self, number: int) -> None:
        """Pass a record that says nothing of any pipeline: a fence, or one not settled yet."""
        self._advance(number)

    def add(self, number: int, record: LoadRecord, outcome: Outcome) -> None:
        """Take in a settled record."""
        self._advance(number)
        known = self.pipelines.setdefault(record.pipeline, PipelineHistory(record.source))
        if outcome == "void":
            known.void[record.job_id] = number
            return
        known.done[record.job_id] = number
        for column in record.columns:
            before = self._columns.get(column.name, column.type)
            self._columns[column.name] = with_new_fields(before, column.type) or before
        changed = replace(
            known,
            source=record.source,
            latest=number,
            column_map=record.column_map,
            glue=record.glue,
            partition_strategy=record.partition_strategy,
        )
        if record.state is not None:
            changed = replace(changed, state=record.state.after, state_number=number)
        self.pipelines[record.pipeline] = changed

    def add_reset(self, number: int, pipeline: str, *, finished: bool) -> None:
        """Forget what a pipeline has loaded. The ids of its jobs stay spent: a reset that comes
        late must not find its keys in use again."""
        self._advance(number)
        self.resetting.pop(pipeline, None)
        if not finished:
            self.resetting[pipeline] = number
        if known := self.pipelines.get(pipeline):
            spent = {**known.void, **known.done}
            self.pipelines[pipeline] = PipelineHistory(known.source, void=spent)
        if all(other.latest is None for other in self.pipelines.values()):
            self._columns.clear()

    def find_job(self, job_id: str) -> EarlierJob | None:
        """Return the job of this id, whatever its pipeline."""
        for name, pipeline in self.pipelines.items():
            if job_id in pipeline.done:
                return EarlierJob(name, pipeline.done[job_id], void=False)
            if job_id in pipeline.void:
                return EarlierJob(name, pipeline.void[job_id], void=True)
        return None

    def checkpoint(self) -> Checkpoint:
        """Return what has been taken in, with the latest `JOBS_REMEMBERED` job ids."""
        numbers = sorted(self._job_numbers(), reverse=True)[:JOBS_REMEMBERED]
        oldest = numbers[-1] if numbers else 0
        kept = {
            name: replace(
                pipeline,
                done={job: n for job, n in pipeline.done.items() if n >= oldest},
                void={job: n for job, n in pipeline.void.items() if n >= oldest},
            )
            for name, pipeline in self.pipelines.items()
        }
        return Checkpoint(tool_version(), self.number, kept, self.columns)

    def _job_numbers(self) -> Iterator[int]:
        for pipeline in self.pipelines.values():
            yield from pipeline.done.values()
            yield from pipeline.void.values()

    def _advance(self, number: int) -> None:
        if number != self.number + 1:
            raise ValueError(f"record {number} does not follow record {self.number}")
        self.number = number


T = TypeVar("T")
R = TypeVar("R")

Ending = Literal["open", "done", "partial", "void"]


@dataclass(frozen=True)
class LogEntry:
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
    entries: tuple[LogEntry, ...]

    @property
    def next_number(self) -> int:
        """The number a new record gets if nobody is faster."""
        if self.entries:
            return self.entries[-1].number + 1
        return (self.checkpoint.number if self.checkpoint else 0) + 1


class CommitLog:
    """Reads and writes one table's log. Every method may raise `AwsError`."""

    def __init__(
        self, objects: Objects, location: TableLocation, known: Checkpoint | None = None
    ) -> None:
        """`known` takes the place of the stored checkpoint, which is then not read."""
        self._objects = objects
        self._location = location
        self._known = known
        self._records: dict[int, Record] = {}

    @property
    def location(self) -> TableLocation:
        """The table."""
        return self._location

    def read(self, *, before: int = 0) -> LogView:
        """GET the checkpoint, unless one is known, and LIST what comes after it.

        Raises `LogDamaged` for a gap.

        `before` begins the LIST so many records earlier, for whoever wants to see old ones.
        """
        checkpoint = self._checkpoint()
        covered = max(checkpoint.number - before, 0) if checkpoint else 0
        return LogView(checkpoint, self.entries_after(covered))

    def entries_after(self, number: int) -> tuple[LogEntry, ...]:
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
    ) -> tuple[LogEntry, ...]:
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
                LogEntry(
                    number,
                    kinds["record"][1],
                    kinds["end"][0] if "end" in kinds else None,
                    "clean" in kinds,
                    "cat" in kinds,
                )
            )
        return tuple(entries)

    def _checkpoint(self) -> Checkpoint | None:
        if self._known is not None:
            return self._known
        key = self._location.checkpoint_key
        data = self._objects.get(key, denied_is_missing=True)
        if data is None:
            return None
        try:
            stored = decode(Checkpoint, data, self._objects.url(key))
        except (LogDamaged, NewerFormat):
            # Only a cache: the records themselves say the same, at more requests.
            return None
        return stored if stored.is_usable(key) else None

    def record(self, number: int) -> Record:
        """Return record `number`, which LIST or a 412 has shown. Records never change."""
        if number not in self._records:
            key = self._location.record_key(number)
            data = self._objects.get(key)
            if data is None:
                raise LogDamaged(
                    f"`{self._objects.url(key)}` was deleted while lakeload was running",
                    hint="restore it from the bucket's versions; log records are never deleted",
                )
            record = decode_record(data, self._objects.url(key))
            check_place(record, self._location, self._objects.url(key))
            self._records[number] = record
        return self._records[number]

    def records(self, entries: Sequence[LogEntry]) -> Iterator[tuple[LogEntry, Record]]:
        """Yield the records of entries, which are read several at once."""
        numbers = [entry.number for entry in entries]
        run_all(self.record, [n for n in numbers if n not in self._records], 8)
        return ((entry, self.record(entry.number)) for entry in entries)

    def jobs(self, entries: Sequence[LogEntry], pipeline: str) -> list[LoadRecord]:
        """Return the jobs of a pipeline that count: void ones do not, nor those before a reset of
        it. One that is not finished counts."""
        jobs: list[LoadRecord] = []
        for entry, record in self.records(entries):
            if isinstance(record, FenceRecord):
                if record.resets == pipeline:
                    jobs.clear()
            elif record.pipeline == pipeline and self.ending_of(entry) != "void":
                jobs.append(record)
        return jobs

    def ending(self, number: int) -> Ending:
        """Return how record `number` has ended by now."""
        entry = self._objects.find(self._location.end_key(number))
        return self._ending(number, None if entry is None else entry.size)

    def ending_of(self, entry: LogEntry) -> Ending:
        """Return how a record had ended when it was listed; only void and partial are read."""
        return self._ending(entry.number, entry.end_size)

    def _ending(self, number: int, size: int | None) -> Ending:
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
        key = self._location.checkpoint_key
        try:
            self._objects.put(key, encode(replace(checkpoint, digest=checkpoint.digest_at(key))))
        except AwsError:
            return


def check_place(record: Record, location: TableLocation, url: str) -> None:
    """Raise `LogDamaged` for a record of another table: a log that was copied. Whoever resolved it
    would delete files of the original."""
    if not isinstance(record, LoadRecord):
        return
    target = record.target
    what = None
    if target != Target(location.prefix, location.schema, location.table):
        place = "/".join(filter(None, (target.prefix, target.schema, target.table)))
        what = f"is a record of the table `{place}`"
    elif key := next(_keys_elsewhere(record, location), None):
        what = f"names the file `{key}`"
    if what is not None:
        raise LogDamaged(
            f"`{url}` {what}, and this is the log of `{location.data_path}`",
            hint="if the log was copied here, remove the copy; else restore the object as it was "
            "(bucket versioning keeps it)",
        )


def _keys_elsewhere(record: LoadRecord, location: TableLocation) -> Iterator[str]:
    yield from (f.key for f in record.files if not f.key.startswith(location.data_path))
    if record.rejected is not None:
        side = location.side_table.data_path
        yield from (f.key for f in record.rejected.files if not f.key.startswith(side))


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


AT_ONCE = 8

_LOG = "log"


def find_tables(objects: Objects, prefix: str) -> tuple[TableLocation, ...]:
    """Return every table below `prefix` that has a log, in order of schema and name.

    Folders are listed with a delimiter, so that commits are not. Raises `AwsError`.
    """
    root = log_root(prefix)
    folders = list(objects.list_folders(root))
    below = run_all(lambda name: list(objects.list_folders(f"{root}{name}/")), folders, AT_ONCE)
    candidates = [
        location
        for folder, names in zip(folders, below, strict=True)
        for location in _candidates(prefix, folder, names)
    ]
    begun = run_all(lambda location: _has_records(objects, location), candidates, AT_ONCE)
    found = [location for location, there in zip(candidates, begun, strict=True) if there]
    return tuple(sorted(found, key=lambda location: (location.schema, location.table)))


def _candidates(prefix: str, folder: str, names: list[str]) -> list[TableLocation]:
    """Return what `folder` may be: a table without a schema, a schema of tables, or both.

    The log of table `log` in schema `a` and that of table `a` without a schema share a folder.
    """
    pairs = [(folder, name) for name in names]
    if _LOG in names:
        pairs.append(("", folder))
    found = []
    for schema, table in pairs:
        try:
            found.append(TableLocation(prefix, schema, table))
        except ValueError:
            # Not a name that lakeload makes: something else lies in this folder.
            continue
    return found


def _has_records(objects: Objects, location: TableLocation) -> bool:
    # Record numbers have 20 digits: all of them begin with 0, and nothing else does.
    return not objects.is_empty(location.log_path + "0")

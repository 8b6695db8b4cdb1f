"""Reset: plan and remove the data that a table's log lists."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Protocol

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.data_files.uploads import ATTEMPT_METADATA, StagedFile
from lakeload_jobs.formats.parquet.log.commit_log import (
    CommitLog,
    Ending,
    LogEntry,
    LogView,
    run_all,
)
from lakeload_jobs.formats.parquet.log.publish import Notify, RecordDamaged
from lakeload_jobs.formats.parquet.log.records import (
    FenceRecord,
    GlueTarget,
    LoadRecord,
    encode,
    tool_version,
)
from lakeload_jobs.formats.parquet.log.roll_forward import Settler
from lakeload_jobs.formats.parquet.log.target_claims import Bindings
from lakeload_jobs.storage.objects import ObjectEntry, Objects

HEADS_AT_ONCE = 8

WHOLE_LOG = 10**9
"""More records than any log has."""


class TableCatalog(Protocol):
    """What a reset asks of a catalog. Every method may raise `LakeloadError`."""

    def owns(self, target: GlueTarget, location: TableLocation) -> bool:
        """Return whether lakeload made the table, at this location."""

    def drop_table(self, target: GlueTarget, location: TableLocation) -> bool:
        """Delete the table if lakeload made it at this location; return whether it did."""


@dataclass(frozen=True)
class OwnRecord:
    """One job of the pipeline that no earlier reset has removed."""

    entry: LogEntry
    record: LoadRecord
    ending: Ending

    @property
    def number(self) -> int:
        """The record's number."""
        return self.entry.number


@dataclass(frozen=True)
class OwnObject:
    """A visible object of one of these jobs: its metadata names the record's attempt."""

    key: str
    etag: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class ResetPlan:
    """Everything that goes, and what stays."""

    location: TableLocation
    pipeline: str
    begun: int | None
    """The record of a reset that has begun and not removed everything yet."""
    records: tuple[OwnRecord, ...]
    objects: tuple[OwnObject, ...]
    glue: tuple[GlueTarget, ...]
    """Tables in the catalog that lakeload made and that nobody else loads into."""
    others: tuple[str, ...]
    """Other pipelines that have loaded into the table: their rows stay, and the Glue table."""
    strangers: tuple[str, ...]
    """Keys below the table's path that no record names, or that carry another attempt."""
    log_objects: int

    @property
    def rows(self) -> int:
        """Rows in the objects that go."""
        return sum(item.rows for item in self.objects)

    @property
    def bytes(self) -> int:
        """Bytes of the objects that go."""
        return sum(item.bytes for item in self.objects)

    @property
    def loaded(self) -> tuple[OwnRecord, ...]:
        """Jobs that are not void."""
        return tuple(own for own in self.records if own.ending != "void")

    @property
    def unfinished(self) -> tuple[OwnRecord, ...]:
        """Jobs to bring to an end first: publishing must not go on behind the reset."""
        return tuple(own for own in self.records if own.ending == "open")

    @property
    def nothing_to_do(self) -> bool:
        """Whether the pipeline has nothing in this table."""
        return self.begun is None and not self.records


def own_records(
    log: CommitLog, view: LogView, pipeline: str
) -> tuple[tuple[OwnRecord, ...], int | None]:
    """Return the pipeline's jobs since its last finished reset, and the reset that has begun."""
    records: list[OwnRecord] = []
    begun: int | None = None
    for entry, record in log.records(view.entries):
        if isinstance(record, FenceRecord):
            if record.resets != pipeline:
                continue
            begun = None if entry.clean else entry.number
            if entry.clean:
                records.clear()
        elif record.pipeline == pipeline:
            records.append(OwnRecord(entry, record, log.ending_of(entry)))
    return tuple(records), begun


def files_of_other_pipelines(
    log: CommitLog, view: LogView, pipeline: str
) -> Mapping[str, list[StagedFile]]:
    """Return what other pipelines have in the table: name → files, of jobs that are not void."""
    found: dict[str, list[StagedFile]] = {}
    for entry, record in log.records(view.entries):
        if isinstance(record, FenceRecord):
            found.pop(record.resets, None)
        elif record.pipeline != pipeline and log.ending_of(entry) != "void":
            found.setdefault(record.pipeline, []).extend(record.uploads)
    return found


def _own_objects(
    objects: Objects, records: tuple[OwnRecord, ...], there: Mapping[str, ObjectEntry]
) -> tuple[OwnObject, ...]:
    """HEAD each visible key of the records: only its metadata says whose an object is."""
    named = [(own.record, file) for own in records for file in own.record.uploads]
    visible = [(record, file) for record, file in named if file.key in there]
    found = run_all(partial(_own_object, objects), visible, HEADS_AT_ONCE)
    return tuple(item for item in found if item is not None)


def _own_object(objects: Objects, named: tuple[LoadRecord, StagedFile]) -> OwnObject | None:
    record, file = named
    head = objects.head(file.key)
    if head is None or head.metadata.get(ATTEMPT_METADATA) != record.attempt_id:
        return None
    return OwnObject(file.key, head.etag, file.rows, head.size)


@dataclass(frozen=True)
class RemovedObjects:
    """What a reset has removed. `number` is that of its record, None when there was nothing."""

    number: int | None
    objects: int = 0
    rows: int = 0
    bytes: int = 0
    glue: tuple[GlueTarget, ...] = ()
    left: tuple[str, ...] = ()
    """Keys that are somebody else's by now."""


class Resetter:
    """Resets one pipeline in one table. All methods may raise `AwsError` and `LogDamaged`."""

    def __init__(
        self,
        objects: Objects,
        location: TableLocation,
        pipeline: str,
        *,
        catalog: TableCatalog | None,
        parallelism: int,
        notify: Notify,
    ) -> None:
        self._objects = objects
        self._pipeline = pipeline
        self._catalog = catalog
        self._parallelism = parallelism
        self._settler = Settler(objects, location, parallelism=parallelism, notify=notify)
        self._log, self._publisher = self._settler.log, self._settler.publisher

    def plan(self) -> ResetPlan:
        """Say what `run` would remove, by every record and object. Reads only."""
        objects, log, pipeline, catalog = self._objects, self._log, self._pipeline, self._catalog
        location = log.location
        view = log.read(before=WHOLE_LOG)
        records, begun = own_records(log, view, pipeline)
        shared = files_of_other_pipelines(log, view, pipeline)
        rejects = any(own.record.rejected for own in records)
        paths = [one.data_path for one in (location.with_side_table if rejects else (location,))]
        there = {entry.key: entry for path in paths for entry in objects.list(path)}
        found = _own_objects(objects, records, there)
        elsewhere = {file.key for files in shared.values() for file in files}
        ours = {item.key for item in found}
        aside = (own.record.of_side_table() for own in records)
        jobs = (*(own.record for own in records), *(one for one in aside if one))
        targets = {job.glue: job.location for job in jobs if job.glue}
        dropped = () if shared or catalog is None else tuple(targets)
        return ResetPlan(
            location=location,
            pipeline=pipeline,
            begun=begun,
            records=records,
            objects=found,
            glue=tuple(one for one in dropped if catalog and catalog.owns(one, targets[one])),
            others=tuple(sorted(shared)),
            strangers=tuple(key for key in there if key not in ours and key not in elsewhere),
            log_objects=sum(1 for _ in objects.list(location.log_path)),
        )

    def run(self, reason: str) -> RemovedObjects:
        """Remove it. `reason` stands in the log, for people.

        Raises `LoadFailed` where a job of the pipeline cannot be brought to an end.
        """
        number = self._begin(reason)
        if number is None:
            return RemovedObjects(None)
        plan = self.plan()
        deleted = run_all(self._delete, plan.objects, self._parallelism)
        gone = [item for item, done in zip(plan.objects, deleted, strict=True) if done]
        dropped = tuple(target for target in plan.glue if self._drop(target))
        self._log.mark_clean(number, tuple(item.key for item in gone))
        self._release({own.record.source for own in plan.records})
        return RemovedObjects(
            number,
            objects=len(gone),
            rows=sum(item.rows for item in gone),
            bytes=sum(item.bytes for item in gone),
            glue=dropped,
            left=tuple(i.key for i, done in zip(plan.objects, deleted, strict=True) if not done),
        )

    def seal(self, reason: str) -> None:
        """Make a finished reset of this pipeline the last record, as removing the log needs it."""
        while True:
            view = self._log.read(before=WHOLE_LOG)
            last = self._log.record(view.next_number - 1)
            if isinstance(last, FenceRecord) and last.resets == self._pipeline:
                return
            if self._log.put_record(view.next_number, encode(self._fence(reason))):
                self._log.mark_clean(view.next_number, ())

    def _fence(self, reason: str) -> FenceRecord:
        now = self._objects.waits.now()
        return FenceRecord(tool_version(), now, (), reason, resets=self._pipeline)

    def _begin(self, reason: str) -> int | None:
        """Bring the pipeline's jobs to an end, then lock it out; return the fence's number."""
        fence = self._fence(reason)
        body = encode(fence)
        while True:
            view = self._log.read(before=WHOLE_LOG)
            records, begun = own_records(self._log, view, self._pipeline)
            if begun is not None or not records:
                return begun
            self._ask_to_delete()
            for own in records:
                self._end(own)
            # Taken by whoever was faster: perhaps a job of this pipeline, so look again.
            if self._log.put_record(view.next_number, body):
                return view.next_number
            if self._log.record(view.next_number) == fence:
                return view.next_number

    def _ask_to_delete(self) -> None:
        """Raise `AwsError` where objects of the table may not be deleted, while nothing is begun.

        The key is nobody's: IAM answers before S3 looks for it.
        """
        self._objects.delete(f"{self._log.location.data_path}_{uuid.uuid4()}", '"no-etag"')

    def _end(self, own: OwnRecord) -> None:
        """Publish or void an unfinished job: nothing of it may appear behind the reset."""
        if own.ending == "void" and not own.entry.clean:
            self._publisher.clean(own.number, own.record)
        if own.ending != "open":
            return
        try:
            self._settler.settle_record(own.number, own.record, own.entry.modified)
        except RecordDamaged:
            self._publisher.void(own.number, own.record, "the pipeline is being reset")

    def _release(self, sources: Iterable[str]) -> None:
        """Give up the claims on this table. One that stays has no load behind it: no matter."""
        bindings = Bindings(self._objects, self._log.location.prefix)
        with contextlib.suppress(AwsError):
            for source in sources:
                bindings.release(self._pipeline, source, self._log.location)

    def _delete(self, item: OwnObject) -> bool:
        return self._objects.delete(item.key, item.etag)

    def _drop(self, target: GlueTarget) -> bool:
        own = self._log.location
        place = TableLocation(own.prefix, own.schema, target.table)
        return self._catalog is not None and self._catalog.drop_table(target, place)


class LogInUse(LoadFailed):
    """The log cannot go: somebody needs it, or may be about to."""


def half_removed(objects: Objects, location: TableLocation, pipeline: str) -> bool:
    """Return whether an earlier removal stopped half-way: running it again finishes it."""
    parsed = (location.parse_log_key(entry.key) for entry in objects.list(location.log_path))
    numbers = sorted(found[0] for found in parsed if found is not None and found[1] == "record")
    if not numbers or numbers[0] == 1:
        return False
    last = CommitLog(objects, location).record(numbers[-1])
    return isinstance(last, FenceRecord) and last.resets == pipeline


def check_removable(objects: Objects, location: TableLocation, pipeline: str) -> None:
    """Raise `LogInUse` when another pipeline has rows in the table or somebody uploads to it."""
    log = CommitLog(objects, location)
    view = log.read(before=WHOLE_LOG)
    if found := sorted(files_of_other_pipelines(log, view, pipeline)):
        raise LogInUse(
            f"the log of `{location.data_path}` cannot be removed: pipeline `{found[0]}` "
            "has rows in this table, and lakeload needs the log to load them exactly once",
            hint="leave `--with-log` out: the reset keeps the rows of other pipelines",
        )
    # What S3 was still completing when a job became void may yet appear.
    if any(log.ending_of(entry) == "void" and not entry.clean for entry in view.entries):
        raise LogInUse(
            f"the log of `{location.data_path}` cannot be removed yet: a job was discarded "
            "so recently that S3 may still complete one of its uploads",
            hint="run it again in half an hour",
        )
    # A side table has no log, and a table of its name with one is not ours.
    paths = [
        one.data_path
        for one in location.with_side_table
        if one == location or objects.is_empty(one.log_path)
    ]
    if upload := next(chain.from_iterable(map(objects.list_uploads, paths)), None):
        raise LogInUse(
            f"the log of `{location.data_path}` cannot be removed: `{upload.key}` is being "
            f"uploaded since {upload.initiated:%Y-%m-%d %H:%M} UTC, so a load may be running",
            hint="wait for that load, or remove the uploads of an abandoned one: "
            "`lakeload recover FILE --abort-older-than 0`",
        )


def remove_log(objects: Objects, location: TableLocation, pipeline: str, parallelism: int) -> int:
    """Delete the log of a table after the reset of its only pipeline; return how many objects.

    The checkpoint and record 1 go first, the reset's fence last: from the first deletion to the
    last, the gap at the beginning stops every load, and `half_removed` recognises it. Raises
    `LogInUse`, `AwsError`.
    """
    if not half_removed(objects, location, pipeline):
        check_removable(objects, location, pipeline)
    entries = list(objects.list(location.log_path))
    parse = location.parse_log_key
    numbers = _numbers(location, entries)
    if not numbers:
        return 0
    cache = [entry for entry in entries if entry.key == location.checkpoint_key]
    numbered = [(found[0], entry) for entry in entries if (found := parse(entry.key))]
    # The record before its markers: without its `.end` it would look unfinished.
    first = [entry for number, entry in numbered if number == numbers[0] != numbers[-1]][::-1]
    between = [entry for number, entry in numbered if numbers[0] < number < numbers[-1]]
    last = [entry for number, entry in numbered if number == numbers[-1]]
    delete = partial(_delete, objects)
    for group, at_once in ((cache, 1), (first, 1), (between, parallelism), (last, 1)):
        run_all(delete, group, at_once)
    return len(cache) + len(first) + len(between) + len(last)


def _delete(objects: Objects, entry: ObjectEntry) -> None:
    objects.delete(entry.key, entry.etag)


def _numbers(location: TableLocation, entries: list[ObjectEntry]) -> list[int]:
    parsed = (location.parse_log_key(entry.key) for entry in entries)
    return sorted({found[0] for found in parsed if found is not None})

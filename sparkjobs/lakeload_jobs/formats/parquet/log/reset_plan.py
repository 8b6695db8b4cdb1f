"""What a reset of one pipeline's table would remove: by the records of its log, never by prefix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.commit_log import CommitLog, Ending, Entry, LogView, run_all
from lakeload_jobs.formats.parquet.log.records import (
    ATTEMPT_METADATA,
    FenceRecord,
    GlueTarget,
    LoadRecord,
    StagedFile,
)
from lakeload_jobs.storage.objects import Objects
from lakeload_jobs.storage.responses import ObjectEntry

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

    entry: Entry
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


def plan_reset(
    objects: Objects,
    log: CommitLog,
    pipeline: str,
    catalog: TableCatalog | None,
) -> ResetPlan:
    """Look at every record and object. Reads only. Raises `AwsError`, `LogDamaged`."""
    location = log.location
    view = log.read(before=WHOLE_LOG)
    log.load_records(entry.number for entry in view.entries)
    records, begun = own_records(log, view, pipeline)
    shared = others(log, view, pipeline)
    there = {entry.key: entry for entry in objects.list(location.data_path)}
    found = _own_objects(objects, records, there)
    elsewhere = {file.key for files in shared.values() for file in files}
    ours = {item.key for item in found}
    targets = dict.fromkeys(own.record.glue for own in records if own.record.glue)
    dropped = () if shared or catalog is None else tuple(targets)
    return ResetPlan(
        location=location,
        pipeline=pipeline,
        begun=begun,
        records=records,
        objects=found,
        glue=tuple(target for target in dropped if catalog and catalog.owns(target, location)),
        others=tuple(sorted(shared)),
        strangers=tuple(key for key in there if key not in ours and key not in elsewhere),
        log_objects=sum(1 for _ in objects.list(location.log_path)),
    )


def own_records(
    log: CommitLog, view: LogView, pipeline: str
) -> tuple[tuple[OwnRecord, ...], int | None]:
    """Return the pipeline's jobs since its last finished reset, and the reset that has begun."""
    records: list[OwnRecord] = []
    begun: int | None = None
    for entry in view.entries:
        record = log.record(entry.number)
        if isinstance(record, FenceRecord):
            if record.resets != pipeline:
                continue
            begun = None if entry.clean else entry.number
            if entry.clean:
                records.clear()
        elif record.pipeline == pipeline:
            ending = log.ending_of_size(entry.number, entry.end_size)
            records.append(OwnRecord(entry, record, ending))
    return tuple(records), begun


def others(log: CommitLog, view: LogView, pipeline: str) -> Mapping[str, list[StagedFile]]:
    """Return what other pipelines have in the table: name → files, of jobs that are not void."""
    found: dict[str, list[StagedFile]] = {}
    for entry in view.entries:
        record = log.record(entry.number)
        if isinstance(record, FenceRecord):
            found.pop(record.resets, None)
            continue
        ending = log.ending_of_size(entry.number, entry.end_size)
        if record.pipeline != pipeline and ending != "void":
            found.setdefault(record.pipeline, []).extend(record.files)
    return found


def _own_objects(
    objects: Objects, records: tuple[OwnRecord, ...], there: Mapping[str, ObjectEntry]
) -> tuple[OwnObject, ...]:
    """HEAD each visible key of the records: only its metadata says whose an object is."""
    named = [(own.record, file) for own in records for file in own.record.files]
    visible = [(record, file) for record, file in named if file.key in there]
    found = run_all(partial(_own_object, objects), visible, HEADS_AT_ONCE)
    return tuple(item for item in found if item is not None)


def _own_object(objects: Objects, named: tuple[LoadRecord, StagedFile]) -> OwnObject | None:
    record, file = named
    head = objects.head(file.key)
    if head is None or head.metadata.get(ATTEMPT_METADATA) != record.attempt_id:
        return None
    return OwnObject(file.key, head.etag, file.rows, head.size)

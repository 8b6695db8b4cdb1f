"""A table's log as people read it: its newest records and how each stands. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from lakeload_jobs.aws import AwsError
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.data_files.uploads import ATTEMPT_METADATA, StagedFile
from lakeload_jobs.formats.parquet.log.commit_log import CommitLog, Ending, LogEntry
from lakeload_jobs.formats.parquet.log.publish import look
from lakeload_jobs.formats.parquet.log.records import (
    FenceRecord,
    LoadRecord,
)
from lakeload_jobs.formats.parquet.log.stale_uploads import open_uploads
from lakeload_jobs.storage.objects import Objects

RunState = Literal["done", "partial", "void", "reset", "unfinished", "damaged"]
"""`reset`: its rows were removed again. `unfinished`: committed, and the next sync or `recover`
goes on with it. `damaged`: committed, with some of its uploads gone and the rest visible or still
open: a person has to decide."""

CatalogState = Literal["up to date", "out of date"]


@dataclass(frozen=True)
class Run:
    """One job in one table. `committed_at` is S3's clock; `clean` is False for a void to clean."""

    number: int
    committed_at: datetime
    record: LoadRecord
    state: RunState
    clean: bool = True
    catalog: CatalogState | None = None
    """None: the job has no catalog, or is not done."""
    lost: tuple[StagedFile, ...] = ()
    """The files of a damaged job that are gone."""


@dataclass(frozen=True)
class Fence:
    """A record that is no job: attempts that were locked out."""

    number: int
    committed_at: datetime
    record: FenceRecord


@dataclass(frozen=True)
class Recent:
    """The end of one table's log as a LIST shows it; no record has been read."""

    log: CommitLog
    entries: tuple[LogEntry, ...]


def recent(objects: Objects, location: TableLocation, limit: int) -> Recent:
    """Return the newest `limit` entries of a table, for a GET and a LIST.

    Raises `AwsError`, `LogDamaged`.
    """
    log = CommitLog(objects, location)
    return Recent(log, log.read(before=limit).entries[-limit:])


def read_runs(
    objects: Objects, found: Recent, since: datetime
) -> tuple[tuple[Run, ...], tuple[Fence, ...]]:
    """Return the jobs and fences among entries written at `since` or later, newest first.

    Costs a GET for each; unfinished jobs cost a look at their files. Raises `AwsError`,
    `LogDamaged`, `NewerFormat`.
    """
    log = found.log
    entries = [entry for entry in found.entries if entry.modified >= since]
    runs, fences = [], []
    reset: set[str] = set()
    for entry, record in reversed(list(log.records(entries))):
        if isinstance(record, FenceRecord):
            fences.append(Fence(entry.number, entry.modified, record))
            reset.add(record.resets)
        elif record.pipeline in reset:
            runs.append(_reset_run(log, entry, record))
        else:
            runs.append(_run(objects, log, entry, record))
    return tuple(runs), tuple(fences)


def _run(objects: Objects, log: CommitLog, entry: LogEntry, record: LoadRecord) -> Run:
    ending = log.ending_of(entry)
    lost = lost_files(objects, record) if ending == "open" else ()
    catalog: CatalogState | None = None
    if record.glue is not None and ending in ("done", "partial"):
        catalog = "up to date" if entry.cataloged else "out of date"
    return Run(
        number=entry.number,
        committed_at=entry.modified,
        record=record,
        state=_state(ending, lost, record),
        clean=ending != "void" or entry.clean,
        catalog=catalog,
        lost=lost,
    )


def _reset_run(log: CommitLog, entry: LogEntry, record: LoadRecord) -> Run:
    void = log.ending_of(entry) == "void"
    return Run(entry.number, entry.modified, record, "void" if void else "reset")


def _state(ending: Ending, lost: tuple[StagedFile, ...], record: LoadRecord) -> RunState:
    if ending != "open":
        return ending
    # A job that lost all of its uploads becomes void without anybody's decision.
    return "damaged" if 0 < len(lost) < len(record.uploads) else "unfinished"


def lost_files(objects: Objects, record: LoadRecord) -> tuple[StagedFile, ...]:
    """Return the files of an unfinished job that are neither visible nor still being uploaded.

    None where the uploads may not be listed: then nothing can be said.
    """
    if not record.uploads:
        return ()
    try:
        open_ids = open_uploads(objects, record.location, (file.key for file in record.uploads))
    except AwsError as error:
        if error.denied:
            return ()
        raise
    return tuple(
        file
        for file in record.uploads
        if file.upload_id not in open_ids and not _visible(objects, record, file)
    )


def _visible(objects: Objects, record: LoadRecord, file: StagedFile) -> bool:
    head = look(objects, file.key)
    return head is not None and head.metadata.get(ATTEMPT_METADATA) == record.attempt_id

"""What the log of a Parquet table keeps of one pipeline's loads."""

from __future__ import annotations

from lakeload_jobs.contract.state import Bookmark, Evidence
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.commit_log import CommitLog
from lakeload_jobs.formats.parquet.log.records import FenceRecord, LoadRecord
from lakeload_jobs.formats.parquet.log.table_log import OpenedLog
from lakeload_jobs.storage.objects import Objects


def bookmark_of(
    objects: Objects, location: TableLocation, *, pipeline: str, source: str, opened: OpenedLog
) -> Bookmark:
    """Return the bookmark of a log as it was opened; records are read only when asked for."""
    return Bookmark(
        opened.state,
        opened.first_run,
        opened.next_number,
        lambda since: read_evidence(
            objects,
            location,
            pipeline=pipeline,
            source=source,
            since=since,
            before=opened.next_number,
        ),
    )


def read_evidence(
    objects: Objects,
    location: TableLocation,
    *,
    pipeline: str,
    source: str,
    since: int,
    before: int,
) -> tuple[Evidence, ...]:
    """Read records `since` up to `before`, without the latter: a LIST and a GET for each.

    Void records and those before a reset of the pipeline count for nothing; an unfinished one is
    taken for finished, as `inspect` does. Raises `AwsError`, and `LogDamaged` for a missing record.
    """
    log = CommitLog(objects, location)
    entries = [entry for entry in log.entries_after(since - 1) if entry.number < before]
    log.load_records(entry.number for entry in entries)
    found: list[Evidence] = []
    for entry in entries:
        record = log.record(entry.number)
        if isinstance(record, FenceRecord) and record.resets == pipeline:
            found = []
        if not isinstance(record, LoadRecord) or not (record.inputs or record.known):
            continue
        if (record.pipeline, record.source) != (pipeline, source):
            continue
        if log.ending_of_size(entry.number, entry.end_size) == "void":
            continue
        found.append(Evidence(record.inputs, record.known))
    return tuple(found)

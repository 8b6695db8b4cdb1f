"""Bookmark of a pipeline in the log of a Parquet table."""

from __future__ import annotations

from typing import Any

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.state import UNKNOWN_JOB, Bookmark, Evidence, RejectedRecords
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.commit_log import CommitLog
from lakeload_jobs.formats.parquet.log.records import LoadRecord, Rejects
from lakeload_jobs.formats.parquet.log.table_log import OpenedLog
from lakeload_jobs.storage.objects import ObjectEntry, Objects


def bookmark_of(
    objects: Objects, location: TableLocation, *, pipeline: str, source: str, opened: OpenedLog
) -> Bookmark:
    """Return the bookmark of a log as it was opened; records are read only when asked for."""
    before = opened.next_number

    def evidence(since: int) -> tuple[Evidence, ...]:
        """Read records `since` up to `before`, without the latter: a LIST and a GET for each."""
        log = CommitLog(objects, location)
        entries = [entry for entry in log.entries_after(since - 1) if entry.number < before]
        return tuple(
            Evidence(job.inputs, job.known)
            for job in log.jobs(entries, pipeline)
            if job.source == source and (job.inputs or job.known)
        )

    def rejected(job: str) -> RejectedRecords:
        return _rejected(objects, location, pipeline, job)

    return Bookmark(opened.state, opened.first_run, before, evidence, rejected)


def _rejected(
    objects: Objects, location: TableLocation, pipeline: str, job: str
) -> RejectedRecords:
    """Return what the log says of the rejected records of a job: a GET for each record since.

    Raises `AwsError`, and `LogDamaged` for a missing record.
    """
    log = CommitLog(objects, location)
    view = log.read()
    known = view.checkpoint.pipelines.get(pipeline) if view.checkpoint else None
    number = known.done.get(job) if known else None
    entries = view.entries if number is None else log.entries_after(number - 1)
    loaded: LoadRecord | None = None
    taken_by = ""
    for record in log.jobs(entries, pipeline):
        if record.job_id == job:
            loaded, taken_by = record, ""
        elif record.retried == job:
            taken_by = record.job_id
    if loaded is None:
        return UNKNOWN_JOB
    rejects = loaded.rejected
    if rejects is None:
        return RejectedRecords("NONE")
    if taken_by:
        return RejectedRecords("TAKEN", taken_by)
    return RejectedRecords("THERE", read=lambda: _read_files(objects, rejects))


def _read_files(objects: Objects, rejects: Rejects) -> Any:
    """Return the rows of a job's files in the side table as an Arrow table."""
    # With Arrow, which the command line alone does without.
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = []
    for file in rejects.files:
        data = objects.get(file.key)
        if data is None:
            raise LoadFailed(
                f"`{objects.url(file.key)}`, which has rejected records, was deleted",
                hint="restore it from the bucket's versions",
            )
        found.append(pq.read_table(pa.BufferReader(data)))
    return pa.concat_tables(found, promote_options="default")


def loaded_files(
    objects: Objects, location: TableLocation, *, pipeline: str, source: str, before: int
) -> tuple[ObjectEntry, ...]:
    """Return the files of all jobs of a pipeline up to record `before`, without it, that are there:
    a LIST of the log and one of the data, and a GET for each record.

    Raises `AwsError`, and `LogDamaged` for a missing record.
    """
    log = CommitLog(objects, location)
    entries = [entry for entry in log.entries_after(0) if entry.number < before]
    jobs = log.jobs(entries, pipeline)
    keys = {file.key for job in jobs if job.source == source for file in job.files}
    if not keys:
        return ()
    return tuple(entry for entry in objects.list(location.data_path) if entry.key in keys)

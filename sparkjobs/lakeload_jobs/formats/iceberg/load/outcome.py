"""Result of a loaded Iceberg table."""

from __future__ import annotations

import logging
from dataclasses import replace
from urllib.parse import urlsplit

from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.result import FileResult, IndexKind, RowChanges, TableResult
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.formats.iceberg.commits.errors import Unsupported
from lakeload_jobs.formats.iceberg.commits.manifests import MetadataFiles
from lakeload_jobs.formats.iceberg.commits.metadata import Json
from lakeload_jobs.formats.iceberg.commits.snapshots import files_of
from lakeload_jobs.formats.iceberg.rules.facts import (
    SUMMARY_DELETED,
    SUMMARY_REJECTED,
    TableFacts,
    source_state_of,
)
from lakeload_jobs.formats.iceberg.rules.summaries import changes, loaded_rows, number_in
from lakeload_jobs.sources.position import position_of

logger = logging.getLogger(__name__)

MOST_FILES = 200
"""Beyond so many files a result counts their bytes and does not name them."""


def loaded(
    spec: JobSpec,
    table: TableSpec,
    location: str,
    metadata_files: MetadataFiles,
    snapshot: Json,
    *,
    index: IndexKind,
    merged: RowChanges | None,
    files: tuple[FileResult, ...] | None = None,
) -> TableResult:
    """Return the result of a table at `location` whose snapshot is in, read from that snapshot.

    `merged` is what a MERGE did. `files` are those of the snapshot, None where only it tells: by
    the `metadata_files` of the table.
    """
    summary = snapshot["summary"]
    replaced = changes(summary)
    return TableResult(
        table=table.source,
        target=table.target,
        status="LOADED",
        rows=loaded_rows(summary),
        bytes=number_in(summary, "added-files-size"),
        files=_named(files) if files is not None else _files(metadata_files, snapshot),
        file_count=number_in(summary, "added-data-files"),
        location=location,
        rejected=number_in(summary, SUMMARY_REJECTED),
        deleted=number_in(summary, SUMMARY_DELETED),
        index=index if "_supa_index" in spec.tracking_columns else None,
        snapshot_id=snapshot["snapshot-id"],
        changes=merged or (replaced and replace(replaced, unchanged=0, ignored=0)),
    )


def already(
    table: TableSpec, facts: TableFacts, snapshot: int | None, pipeline: str
) -> TableResult:
    """Return the result of a job that an earlier attempt brought in."""
    known = facts.snapshots.get(snapshot) if snapshot is not None else None
    summary = dict(known.summary) if known is not None else {}
    return TableResult(
        table=table.source,
        target=table.target,
        status="NO_OP",
        already=True,
        position=position_of(source_state_of(facts, pipeline)),
        location=facts.location,
        rows=loaded_rows(summary),
        bytes=number_in(summary, "added-files-size"),
        file_count=number_in(summary, "added-data-files"),
        rejected=number_in(summary, SUMMARY_REJECTED),
        deleted=number_in(summary, SUMMARY_DELETED),
        snapshot_id=snapshot,
        changes=changes(summary),
    )


def _named(files: tuple[FileResult, ...]) -> tuple[FileResult, ...]:
    return files if len(files) <= MOST_FILES else ()


def _files(metadata_files: MetadataFiles, snapshot: Json) -> tuple[FileResult, ...]:
    if number_in(snapshot["summary"], "added-data-files") > MOST_FILES:
        return ()
    try:
        added = list(files_of(metadata_files, snapshot))
    except (LakeloadError, Unsupported):
        # The job is loaded: what fails now must not say that it is not.
        logger.warning("the files of the load are not named", exc_info=True)
        return ()
    return tuple(
        FileResult(
            key=urlsplit(file.location, allow_fragments=False).path.removeprefix("/"),
            rows=file.rows,
            bytes=file.size,
        )
        for file in added
    )

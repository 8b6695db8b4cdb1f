"""Result of a loaded Iceberg table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from lakeload_jobs.contract.result import FileResult, IndexKind, RowChanges, TableResult
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.formats.iceberg.load.tables import Java, added_files
from lakeload_jobs.formats.iceberg.rules.facts import (
    SUMMARY_DELETED,
    SUMMARY_MODE,
    SUMMARY_REJECTED,
    SUMMARY_ROWS,
    TableFacts,
)

MOST_FILES = 200
"""Beyond so many files a result counts their bytes and does not name them."""

_MERGED = "spark.merge-into.num-target-rows-"


def loaded(
    spark: SparkSession,
    spec: JobSpec,
    table: TableSpec,
    java_table: Java,
    snapshot: int,
    *,
    index: IndexKind,
    merged: RowChanges | None,
    files: tuple[FileResult, ...] | None = None,
) -> TableResult:
    """Return the result of a table whose snapshot is in, read from that snapshot.

    `merged` is what a MERGE did. `files` are those of the snapshot,
    None where only it tells.
    """
    found = java_table.snapshot(snapshot)
    summary = {str(name): str(value) for name, value in dict(found.summary()).items()}
    replaced = changes(summary)
    return TableResult(
        table=table.source,
        target=table.target,
        status="LOADED",
        rows=_rows(summary),
        bytes=_number(summary, "added-files-size"),
        files=_named(files) if files is not None else _files(spark, java_table, found, summary),
        file_count=_number(summary, "added-data-files"),
        rejected=_number(summary, SUMMARY_REJECTED),
        deleted=_number(summary, SUMMARY_DELETED),
        index=index if "_supa_index" in spec.tracking_columns else None,
        snapshot_id=snapshot,
        changes=merged or (replaced and replace(replaced, unchanged=0, ignored=0)),
    )


def already(table: TableSpec, facts: TableFacts, snapshot: int | None) -> TableResult:
    """Return the result of a job that an earlier attempt brought in."""
    known = facts.snapshots.get(snapshot) if snapshot is not None else None
    summary = dict(known.summary) if known is not None else {}
    return TableResult(
        table=table.source,
        target=table.target,
        status="NO_OP",
        rows=_rows(summary),
        bytes=_number(summary, "added-files-size"),
        file_count=_number(summary, "added-data-files"),
        rejected=_number(summary, SUMMARY_REJECTED),
        deleted=_number(summary, SUMMARY_DELETED),
        snapshot_id=snapshot,
        changes=changes(summary),
    )


def changes(summary: Mapping[str, str]) -> RowChanges | None:
    """Return what an UPSERT did; None for what is none, and where its numbers are false."""
    if summary.get(SUMMARY_MODE) != "UPSERT":
        return None
    if not any(name.startswith(_MERGED) for name in summary):
        # Every row was replaced, or none had to be written.
        return RowChanges(_number(summary, "added-records"), 0, 0)
    return merged_rows(summary)


def merged_rows(summary: Mapping[str, str]) -> RowChanges | None:
    """Return what a MERGE did; None where its numbers are not those of its files. Spark counts some
    rows twice, such as those of a sorted table, of which it takes a sample first."""
    found = RowChanges(*(_number(summary, f"{_MERGED}{what}") for what in _ACTIONS))
    copied = _number(summary, f"{_MERGED}copied")
    in_files = found.inserted + found.updated + copied
    return found if in_files == _number(summary, "added-records") else None


_ACTIONS = ("inserted", "updated", "deleted")


def beyond(done: RowChanges, summary: Mapping[str, str], *, copies: bool) -> int:
    """Return how many rows the snapshot of a MERGE has more in its files than it did.

    Where files were rewritten, their other rows are in them again; deletes that had been beside
    them are not told apart, and nothing is compared.
    """
    added = _number(summary, "added-records")
    if not copies:
        return added - done.inserted - done.updated
    beside = ("total-position-deletes", "removed-position-deletes", "total-equality-deletes")
    if any(_number(summary, name) for name in beside):
        return 0
    return added - _number(summary, "deleted-records") - (done.inserted - done.deleted)


def _rows(summary: Mapping[str, str]) -> int:
    """Return the rows of the load as they were counted, else those that the snapshot brought."""
    if SUMMARY_ROWS in summary:
        return _number(summary, SUMMARY_ROWS)
    merged = changes(summary)
    rows = _number(summary, "added-records") if merged is None else merged.rows
    return max(rows - _number(summary, SUMMARY_DELETED), 0)


def _number(summary: Mapping[str, str], name: str) -> int:
    text = summary.get(name, "0")
    return int(text) if text.isdigit() else 0


def _named(files: tuple[FileResult, ...]) -> tuple[FileResult, ...]:
    return files if len(files) <= MOST_FILES else ()


def _files(
    spark: SparkSession, java_table: Java, snapshot: Java, summary: Mapping[str, str]
) -> tuple[FileResult, ...]:
    if _number(summary, "added-data-files") > MOST_FILES:
        return ()
    return tuple(
        FileResult(
            key=urlsplit(str(file.location()), allow_fragments=False).path.removeprefix("/"),
            rows=int(file.recordCount()),
            bytes=int(file.fileSizeInBytes()),
        )
        for file in added_files(spark, java_table, snapshot)
    )

"""The history of Iceberg tables, newest first, from the summaries of their snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from lakeload.formats.iceberg.tables import pipeline_of
from lakeload.formats.reports import RunsReport, TableError, TableRun, by_author
from lakeload.formats.tables import TableRef, TablesRequest, for_each, open_pipeline
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.core.sizes import counted, minute
from lakeload_jobs.formats.iceberg.catalogs.reading import facts_of, read_table
from lakeload_jobs.formats.iceberg.catalogs.table_stores import TableStore
from lakeload_jobs.formats.iceberg.catalogs.tables import open_tables
from lakeload_jobs.formats.iceberg.rules.branches import StagingBranch, staging_branches
from lakeload_jobs.formats.iceberg.rules.facts import (
    SUMMARY_ATTEMPT,
    SUMMARY_AUTHOR,
    SUMMARY_DELETED,
    SUMMARY_JOB,
    SUMMARY_MODE,
    SUMMARY_PIPELINE,
    SUMMARY_READ,
    SUMMARY_REJECTED,
    SUMMARY_RETRIED,
    SUMMARY_SYNCED,
    Snapshot,
    TableFacts,
    job_key,
    lineage,
    remembered_jobs,
)
from lakeload_jobs.formats.iceberg.rules.summaries import loaded_rows, number_in

SnapshotState = Literal["done", "rolled back"]
"""`rolled back`: published, and somebody has taken the branch back to before it."""


@dataclass(frozen=True)
class SnapshotTable:
    """One table: what it remembers beyond its runs.

    `expired` counts jobs it knows to be in although their snapshots have expired; `left` are the
    branches of attempts that have not published.
    """

    target: str
    exists: bool = True
    expired: int = 0
    left: tuple[StagingBranch, ...] = ()
    error: LakeloadError | None = None

    @property
    def lines(self) -> list[str]:
        """What is known of the table beside its runs."""
        lines = []
        if self.expired:
            jobs = counted(self.expired, "earlier job")
            lines.append(f"{self.target}: {jobs} whose snapshots have expired")
        for left in self.left:
            lines.append(
                f"{self.target}: a load that is running or was abandoned, since "
                f"{minute(left.created_at)}"
            )
            lines.append(f"  branch {left.name}")
        return lines


def runs(request: TablesRequest, limit: int) -> RunsReport:
    """Return the newest `limit` jobs of the tables."""
    destination, session, tables = open_pipeline(pipeline_of(request), request)
    catalog = open_tables(destination, session)
    catalog.open()
    return read_snapshots(catalog, tables, destination.iceberg.branch, limit)


def read_snapshots(
    catalog: TableStore, tables: Sequence[TableRef], branch: str, limit: int
) -> RunsReport:
    """Return the newest `limit` jobs; one table's failure leaves the others alone.

    A table costs what opening it costs: its metadata holds all that is shown.
    """
    runs: list[TableRun] = []

    def read(table: TableRef) -> SnapshotTable:
        place = table.location
        try:
            found = read_table(catalog, place.schema, place.table)
            if found is None:
                return SnapshotTable(table.target, exists=False)
            facts = facts_of(found)
            loads = set(remembered_jobs(facts).values())
            expired = sum(number not in facts.snapshots for number in loads)
            new = published(facts, branch, table.target)
        except LakeloadError as error:
            return SnapshotTable(table.target, error=error)
        runs.extend(new)
        return SnapshotTable(table.target, True, expired, staging_branches(facts.refs))

    known = for_each(tables, read)
    runs.sort(key=lambda run: (run.committed_at, run.target), reverse=True)
    return report(runs[:limit], known)


def report(runs: Sequence[TableRun], tables: Sequence[SnapshotTable]) -> RunsReport:
    """Return runs, and what each table remembers beyond them."""
    return RunsReport(
        tuple(runs),
        tuple(TableError(table.target, table.error) for table in tables if table.error),
        {"tables": [_document(table) for table in tables]},
        remarks=tuple(line for table in tables for line in table.lines),
    )


def published(facts: TableFacts, branch: str, target: str) -> tuple[TableRun, ...]:
    """Return the jobs that the table's snapshots tell of. Raises `LoadFailed` for properties that
    lakeload did not write.

    A snapshot outside of the branch was rolled back if the table remembers it as published; else
    it was staged alone, by an attempt that died or whose rows were published in a copy.
    """
    inside = set(lineage(facts, branch).ids)
    known = {number: key for key, number in remembered_jobs(facts).items()}
    found = []
    for snapshot in facts.snapshots.values():
        summary = snapshot.summary
        pipeline = summary.get(SUMMARY_PIPELINE)
        job_id = summary.get(SUMMARY_JOB)
        if pipeline is None or job_id is None:
            continue
        if snapshot.id in inside:
            found.append(_run(snapshot, target, pipeline, job_id, "done"))
        elif known.get(snapshot.id) == job_key(pipeline, job_id):
            found.append(_run(snapshot, target, pipeline, job_id, "rolled back"))
    return tuple(found)


def _run(
    snapshot: Snapshot, target: str, pipeline: str, job_id: str, state: SnapshotState
) -> TableRun:
    summary = snapshot.summary
    attempt, mode = summary.get(SUMMARY_ATTEMPT), summary.get(SUMMARY_MODE)
    author = summary.get(SUMMARY_AUTHOR, "")
    files = number_in(summary, "added-data-files")
    committed_at = datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC)
    return TableRun(
        target=target,
        pipeline=pipeline,
        job_id=job_id,
        attempt_id=attempt or None,
        author=author,
        committed_at=committed_at,
        created_at=committed_at,
        synced=summary.get(SUMMARY_SYNCED) or None,
        rows=loaded_rows(summary),
        files=files,
        bytes=number_in(summary, "added-files-size"),
        rejected=number_in(summary, SUMMARY_REJECTED),
        deleted=number_in(summary, SUMMARY_DELETED),
        read=summary.get(SUMMARY_READ),
        retried=summary.get(SUMMARY_RETRIED),
        state=state,
        about=(
            f"{target}: snapshot {snapshot.id}",
            f"  attempt {attempt or ''}{by_author(author)}",
        ),
        more={"snapshot_id": snapshot.id, "mode": mode or None, "added_files": files},
        mode=mode or "",
    )


def _document(table: SnapshotTable) -> dict[str, Any]:
    return {
        "target": table.target,
        "exists": table.exists,
        "expired_jobs": table.expired,
        "branches": table.left,
    }

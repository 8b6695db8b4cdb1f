"""The history of Iceberg tables, newest first, from the summaries of their snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from lakeload.formats.tables import UpkeepTable, for_each
from lakeload_jobs.contract.errors import ExitCode, LakeloadError, worst_exit
from lakeload_jobs.formats.iceberg.catalogs.catalog import IcebergCatalog, read_facts
from lakeload_jobs.formats.iceberg.orphan_branches import LeftBranch, left_branches
from lakeload_jobs.formats.iceberg.rules import facts as facts_of
from lakeload_jobs.formats.iceberg.rules.facts import Snapshot, TableFacts

SnapshotState = Literal["done", "rolled back"]
"""`rolled back`: published, and somebody has taken the branch back to before it."""


@dataclass(frozen=True)
class SnapshotRun:
    """One job in one Iceberg table: the snapshot that it published."""

    target: str
    snapshot_id: int
    pipeline: str
    job_id: str
    attempt_id: str
    mode: str
    rows: int
    committed_at: datetime
    synced: str
    """`_supa_synced` of its rows, as the snapshot tells it."""
    state: SnapshotState
    files: int
    bytes: int
    """Data files that the snapshot added, and their bytes."""


@dataclass(frozen=True)
class SnapshotTable:
    """One table: what it remembers beyond its runs.

    `expired` counts jobs it knows to be in although their snapshots have expired; `left` are the
    branches of attempts that have not published.
    """

    target: str
    exists: bool = True
    expired: int = 0
    left: tuple[LeftBranch, ...] = ()
    error: LakeloadError | None = None


@dataclass(frozen=True)
class SnapshotHistory:
    """The newest runs of all tables together, newest first, and the tables."""

    runs: tuple[SnapshotRun, ...]
    tables: tuple[SnapshotTable, ...]

    @property
    def exit_code(self) -> ExitCode:
        """OK, or TABLE_FAILED when a table's properties are damaged, or REFUSED."""
        return worst_exit(table.error.exit_code for table in self.tables if table.error)


def read_snapshots(
    catalog: IcebergCatalog, tables: Sequence[UpkeepTable], branch: str, limit: int
) -> SnapshotHistory:
    """Return the newest `limit` jobs; one table's trouble leaves the others alone.

    A table costs what opening it costs: its metadata holds all that is shown.
    """
    runs: list[SnapshotRun] = []

    def look(table: UpkeepTable) -> SnapshotTable:
        place = table.location
        try:
            facts = read_facts(catalog, place.schema, place.table)
            if facts is None:
                return SnapshotTable(table.target, exists=False)
            expired = sum(
                number not in facts.snapshots for number in facts_of.remembered_jobs(facts).values()
            )
            found = published(facts, branch, table.target)
        except LakeloadError as error:
            return SnapshotTable(table.target, error=error)
        runs.extend(found)
        return SnapshotTable(table.target, True, expired, left_branches(facts))

    looked = for_each(tables, look)
    runs.sort(key=lambda run: (run.committed_at, run.target), reverse=True)
    return SnapshotHistory(tuple(runs[:limit]), tuple(looked))


def published(facts: TableFacts, branch: str, target: str) -> tuple[SnapshotRun, ...]:
    """Return the jobs that the table's snapshots tell of. Raises `LoadFailed` for properties that
    lakeload did not write.

    A snapshot outside of the branch was rolled back if the table remembers it as published; else
    it was staged alone, by an attempt that died or whose rows were published in a copy.
    """
    inside = set(facts_of.lineage(facts, branch).ids)
    known = {number: key for key, number in facts_of.remembered_jobs(facts).items()}
    found = []
    for snapshot in facts.snapshots.values():
        summary = snapshot.summary
        pipeline = summary.get(facts_of.SUMMARY_PIPELINE)
        job_id = summary.get(facts_of.SUMMARY_JOB)
        if pipeline is None or job_id is None:
            continue
        if snapshot.id in inside:
            found.append(_run(snapshot, target, pipeline, job_id, "done"))
        elif known.get(snapshot.id) == facts_of.job_key(pipeline, job_id):
            found.append(_run(snapshot, target, pipeline, job_id, "rolled back"))
    return tuple(found)


def _run(
    snapshot: Snapshot, target: str, pipeline: str, job_id: str, state: SnapshotState
) -> SnapshotRun:
    summary = snapshot.summary
    return SnapshotRun(
        target=target,
        snapshot_id=snapshot.id,
        pipeline=pipeline,
        job_id=job_id,
        attempt_id=summary.get(facts_of.SUMMARY_ATTEMPT, ""),
        mode=summary.get(facts_of.SUMMARY_MODE, ""),
        rows=_number(summary, facts_of.SUMMARY_ROWS),
        committed_at=datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC),
        synced=summary.get(facts_of.SUMMARY_SYNCED, ""),
        state=state,
        files=_number(summary, "added-data-files"),
        bytes=_number(summary, "added-files-size"),
    )


def _number(summary: Mapping[str, str], key: str) -> int:
    """Return a number of a summary, which any writer of the table may have left out."""
    text = summary.get(key, "")
    return int(text) if text.isascii() and text.isdecimal() else 0

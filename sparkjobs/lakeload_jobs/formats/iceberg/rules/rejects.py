"""Rejected records of an Iceberg table: when those of an attempt count.

They lie in a side table, and are in it before the attempt's rows are published. Until that is
known, the side table remembers the attempt in a property.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal

from lakeload_jobs.contract.maintain import DEAD_AFTER
from lakeload_jobs.contract.state import UNKNOWN_JOB, RejectedRecords, check_format
from lakeload_jobs.formats.iceberg.rules.admission import (
    JobFound,
    find_job,
    find_retry,
    has_retry,
)
from lakeload_jobs.formats.iceberg.rules.branches import parse_staging_branch, staging_branches
from lakeload_jobs.formats.iceberg.rules.facts import (
    JOBS_REMEMBERED,
    SUMMARY_BRANCH,
    SUMMARY_JOB,
    SUMMARY_REJECTED,
    TableFacts,
    damaged,
    job_key,
    lineage,
    remembered_jobs,
)

REJECTED_OF = "lakeload.rejected-of"
"""Property of a side table: the table whose rejected records it takes."""

ROUND_COLUMN = "staging_branch"
"""Column of a side table, which is its partition: the round that has brought a record."""

PENDING_PREFIX = "lakeload.pending."

Fate = Literal["COUNTS", "WAITS", "GONE"]
"""What becomes of an attempt's rejected records: they stay, nobody knows yet, or they go."""


@dataclass(frozen=True)
class PendingRejects:
    """A round of an attempt whose rejected records may be in the side table; `branch`, which no
    other round has, is where its rows wait in the table."""

    branch: str
    attempt: str
    pipeline: str
    job: str

    @property
    def name(self) -> str:
        """The property that remembers it."""
        return PENDING_PREFIX + self.branch

    def to_property(self) -> str:
        """Return what the property holds."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class SettledRejects:
    """The rejected records of an attempt that ended before it could say what becomes of them."""

    branch: str
    attempt_id: str
    job_id: str
    stay: bool
    """Its load is in."""


def pending_rejects(side: TableFacts) -> Iterator[PendingRejects]:
    """Yield the rounds that a side table remembers. Raises `NewerFormat`, and `LoadFailed` for what
    lakeload did not write."""
    for name, text in sorted(side.properties.items()):
        if not name.startswith(PENDING_PREFIX):
            continue
        try:
            data = json.loads(text)
            check_format(data, 1, f"the table property `{name}`")
            pending = PendingRejects(**data)
            if pending.name != name:
                raise ValueError("it names another round, whose records would be removed")
            yield pending
        except (ValueError, TypeError) as error:
            raise damaged(name, text) from error


def fate_of(table: TableFacts | None, pending: PendingRejects) -> Fate:
    """Return what becomes of rejected records, given the table as it is now.

    They count if the snapshot of their round is in the lineage of a branch that readers know:
    pipelines that load others than ours have their records in the same side table. While the
    staging branch is there it may still be published; without it, it cannot (I7). A job whose
    snapshot has expired is in, and which round brought it in nobody can tell: nothing is removed in
    doubt.
    """
    if table is None:
        return "GONE"
    staged = {one.name for one in staging_branches(table.refs)}
    if any(
        table.snapshots[number].summary.get(SUMMARY_BRANCH) == pending.branch
        for name in table.refs.keys() - staged
        for number in lineage(table, name).ids
    ):
        return "COUNTS"
    if pending.branch in table.refs:
        return "WAITS"
    snapshot = remembered_jobs(table).get(job_key(pending.pipeline, pending.job))
    if snapshot is not None and snapshot not in table.snapshots:
        return "COUNTS"
    return "GONE"


def find_rejected(
    table: TableFacts | None, branch: str, pipeline: str, job: str
) -> tuple[RejectedRecords, str | None]:
    """Return what the table says of the rejected records of a job, and the branch of the round
    that has brought them; None where its snapshot has expired."""
    if table is None:
        return UNKNOWN_JOB, None
    loaded = find_job(table, branch, pipeline, job)
    if loaded.found is JobFound.NOT_IN or loaded.snapshot is None:
        return UNKNOWN_JOB, None
    remembered = remembered_jobs(table)
    if len(remembered) >= JOBS_REMEMBERED and job_key(pipeline, job) not in remembered:
        # What has read them again may be forgotten, too.
        return UNKNOWN_JOB, None
    if has_retry(table, branch, pipeline, job):
        retry = find_retry(table, branch, pipeline, job).snapshot
        known = table.snapshots.get(retry or 0)
        by = known.summary.get(SUMMARY_JOB, "") if known else ""
        return RejectedRecords("TAKEN", by or "a later job"), None
    snapshot = table.snapshots.get(loaded.snapshot)
    if snapshot is None:
        return RejectedRecords("THERE"), None
    if snapshot.summary.get(SUMMARY_REJECTED, "0") == "0":
        return RejectedRecords("NONE"), None
    return RejectedRecords("THERE"), snapshot.summary.get(SUMMARY_BRANCH)


def is_forgotten(pending: PendingRejects, own: str | None, now: datetime) -> bool:
    """Return whether a round whose records are gone need not be remembered any more: it is `own`,
    or so old that nobody can be about to add records under its name."""
    begun = parse_staging_branch(pending.branch)
    return pending.branch == own or begun is None or now - begun[0] >= DEAD_AFTER

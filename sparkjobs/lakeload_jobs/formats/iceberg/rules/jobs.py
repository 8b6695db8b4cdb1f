"""Which jobs an Iceberg table has, and what a publish writes down of its own (I4, I6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from lakeload_jobs.formats.iceberg.rules.facts import (
    JOBS,
    JOBS_REMEMBERED,
    SEQ,
    STATE_PREFIX,
    SUMMARY_JOB,
    SUMMARY_PIPELINE,
    PipelineState,
    TableFacts,
    belongs,
    job_key,
    lineage,
    publish_count,
    remembered_jobs,
    state_of,
)

_SOURCE_SNAPSHOT = "source-snapshot-id"
"""Iceberg's own: the snapshot of which a cherry-picked one is a copy."""


class JobFound(Enum):
    """Whether a job's rows are in a branch."""

    IN = "IN"
    NOT_IN = "NOT_IN"
    ASK_THE_DATA = "ASK_THE_DATA"
    """The metadata cannot tell: the job is in exactly if the branch has rows of its
    `_supa_job_id`. A table without that column cannot be asked: `without_the_data` decides."""


@dataclass(frozen=True)
class JobAnswer:
    """What the metadata says of one job, and the snapshot it says it of."""

    found: JobFound
    snapshot: int | None = None

    def without_the_data(self) -> JobFound:
        """Return the answer for a table that cannot be asked: the properties are believed."""
        if self.found is not JobFound.ASK_THE_DATA:
            return self.found
        return JobFound.NOT_IN if self.snapshot is None else JobFound.IN


def find_job(facts: TableFacts, branch: str, pipeline: str, job_id: str) -> JobAnswer:
    """Say whether a branch has a pipeline's job.

    I4: a remembered job counts only while its snapshot is in the branch's lineage: after a rollback
    by hand its rows are gone, and it may be loaded again. I6: the list keeps the latest
    `JOBS_REMEMBERED`; when it is full, a job that is not in it may have been forgotten.
    """
    if (seen := _in_summaries(facts, branch, pipeline, job_id)) is not None:
        return JobAnswer(JobFound.IN, seen)
    jobs = remembered_jobs(facts)
    snapshot = jobs.get(job_key(pipeline, job_id))
    if snapshot is None:
        full = len(jobs) >= JOBS_REMEMBERED
        return JobAnswer(JobFound.ASK_THE_DATA if full else JobFound.NOT_IN)
    if (copy := _copy_of(facts, branch, snapshot)) is not None:
        return JobAnswer(JobFound.IN, copy)
    there = belongs(facts, branch, snapshot)
    if there is None:
        return JobAnswer(JobFound.ASK_THE_DATA, snapshot)
    return JobAnswer(JobFound.IN if there else JobFound.NOT_IN, snapshot)


def next_properties(
    facts: TableFacts,
    pipeline: str,
    job_id: str,
    snapshot: int,
    state: PipelineState,
    *,
    sets_state: bool = True,
) -> dict[str, str]:
    """Return the properties that a publish sets, from the metadata its transaction is based on.

    A job that does not set the pipeline's state (`sets_state` false) leaves one that is there as
    it is, with the snapshot it belongs to: moved to a newer snapshot it would outlive the rollback
    of its own rows, and taken from the job's start it would go back (I1, I2, I8).
    """
    own = job_key(pipeline, job_id)
    jobs = {key: known for key, known in remembered_jobs(facts).items() if key != own}
    latest = [*jobs.items(), (own, snapshot)][-JOBS_REMEMBERED:]
    kept = None if sets_state else state_of(facts, pipeline)
    if kept is not None and kept.state is not None:
        state = replace(kept, columns=state.columns)
    return {
        JOBS: ",".join(f"{key}:{number}" for key, number in latest),
        SEQ: str(publish_count(facts) + 1),
        STATE_PREFIX + pipeline: state.to_property(),
    }


def jobs_in_summaries(facts: TableFacts, branch: str) -> Mapping[tuple[str, str], int]:
    """Return (pipeline, job id) → snapshot for the snapshots of a branch that lakeload made."""
    found: dict[tuple[str, str], int] = {}
    for number in lineage(facts, branch).ids:
        summary = facts.snapshots[number].summary
        pipeline, job = summary.get(SUMMARY_PIPELINE), summary.get(SUMMARY_JOB)
        if pipeline is not None and job is not None:
            found.setdefault((pipeline, job), number)
    return found


def _in_summaries(facts: TableFacts, branch: str, pipeline: str, job_id: str) -> int | None:
    return jobs_in_summaries(facts, branch).get((pipeline, job_id))


def _copy_of(facts: TableFacts, branch: str, snapshot: int) -> int | None:
    """Return the snapshot of the branch that somebody cherry-picked from one rolled back."""
    for number in lineage(facts, branch).ids:
        if facts.snapshots[number].summary.get(_SOURCE_SNAPSHOT) == str(snapshot):
            return number
    return None

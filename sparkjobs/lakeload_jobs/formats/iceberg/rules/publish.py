"""The publish: asked on the very metadata that its transaction is based on, before it commits.

Each check closes a history that lost or doubled rows (docs/protocol-iceberg.md names them I1 to
I15); tests/model drives these functions through every order of steps.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Literal

from lakeload_jobs.contract.errors import LakeloadError, LoadFailed
from lakeload_jobs.core.authors import started_by
from lakeload_jobs.formats.iceberg.rules.admission import (
    JobFound,
    Start,
    check_first_run,
    check_owner,
    check_same_load,
    find_job,
    has_retry,
)
from lakeload_jobs.formats.iceberg.rules.branches import STAGING_PREFIX
from lakeload_jobs.formats.iceberg.rules.facts import (
    JOBS_REMEMBERED,
    SUMMARY_AUTHOR,
    SUMMARY_JOB,
    SUMMARY_SYNCED,
    TableAttempt,
    TableFacts,
    belongs,
    job_key,
    lineage,
    publish_count,
    remembered_jobs,
    state_of,
)

Staged = Literal["append", "replace"]
"""How a publish brings the staged snapshot into the branch: an append is cherry-picked onto its
head, also when that has moved; an overwrite or MERGE replaces rows it has seen, and can only be
fast-forwarded to."""


class Decision(Enum):
    """What becomes of a publish."""

    GO = "GO"
    LANDED = "LANDED"
    """The commit whose answer was lost is in: the load has succeeded."""
    NO_OP = "NO_OP"
    """Another attempt has published this job: drop the branch and report that one."""
    RUN_AGAIN = "RUN_AGAIN"
    """Drop the branch and start again, reading metadata and source anew; a bounded number of
    times, then `LoadFailed` with the reason."""
    FAIL = "FAIL"
    """Drop the branch and raise the error."""


@dataclass(frozen=True)
class Verdict:
    """A decision, and what it rests on: a snapshot, a reason for people, or an error."""

    decision: Decision
    snapshot: int | None = None
    reason: str = ""
    error: LakeloadError | None = None


GO = Verdict(Decision.GO)


def may_publish(
    facts: TableFacts,
    branch: str,
    start: Start,
    job: TableAttempt,
    *,
    mode: Staged,
    base: int | None,
    staging_branch: str,
    sets_state: bool,
    staged: int | None = None,
    unknown: int | None = None,
) -> Verdict:
    """Decide on a publish, from the metadata that the transaction will be compared with.

    `base` is the head of `branch` that the staging branch was made from, `staged` the snapshot
    it must hold. `unknown` is the snapshot that an earlier try would have published, when that try
    had no answer. `sets_state` is true of incremental loads and of those that start a state anew.
    """
    if unknown is not None and has_landed(facts, branch, job, unknown):
        return Verdict(Decision.LANDED, snapshot=unknown)
    if start.uuid is not None and facts.uuid != start.uuid:
        return _fail(job, "the table was dropped and another one created under its name")
    if (other := _other_attempt(facts, branch, start, job)) is not None:
        return other
    if job.retries is not None and has_retry(facts, branch, job.pipeline, job.retries):
        taken = f"another load has read the rejected records of job `{job.retries}`"
        return Verdict(Decision.RUN_AGAIN, reason=taken)
    try:
        _check_again(facts, branch, start, job)
    except LakeloadError as error:
        return Verdict(Decision.FAIL, error=error)
    if (reason := _moved(facts, branch, start, job, sets_state)) is not None:
        return Verdict(Decision.RUN_AGAIN, reason=reason)
    if facts.refs.get(staging_branch) is None:
        return _branch_gone(job, staging_branch, unknown)
    if staged is not None and facts.refs[staging_branch] != staged:
        return _fail(job, f"another writer has written to its staging branch `{staging_branch}`")
    if mode == "replace" and facts.refs.get(branch) != base:
        return Verdict(
            Decision.RUN_AGAIN,
            reason=f"branch `{branch}` of `{job.target}` has moved since the rows were staged"
            f"{_by_job(facts, facts.refs.get(branch))}",
        )
    return GO


def has_landed(facts: TableFacts, branch: str, job: TableAttempt, snapshot: int) -> bool:
    """Return whether our own publish of `snapshot` has come in (I9).

    The list of jobs is written by a publish alone, so its entry tells also when the snapshot has
    been rolled back or expired since; a list that has forgotten it leaves the lineage.
    """
    if lineage(facts, branch).has(snapshot):
        return True
    return remembered_jobs(facts).get(job_key(job.pipeline, job.job_id)) == snapshot


def after_drop(*, dropped: bool, unknown: bool) -> Literal["NOTHING_COMMITTED", "UNKNOWN"]:
    """Say what may be told after giving up, once `has_landed` said no on a fresh read (I9).

    Dropping a branch that was there fences off a commit that is still under way: it is compared
    with metadata, or asserts a branch, that are gone. A branch that somebody else has dropped
    proves nothing about a commit that had no answer.
    """
    return "UNKNOWN" if unknown and not dropped else "NOTHING_COMMITTED"


def unknown_outcome(job: TableAttempt) -> LoadFailed:
    """Return the error of a commit of which nobody can say whether it came in."""
    return LoadFailed(
        f"commit state unknown for job `{job.job_id}`: the catalog did not confirm the "
        f"commit to `{job.target}`",
        hint=f"run again with `--job-id {job.job_id}`, which does not load rows twice",
        retryable=True,
    )


def check_replaceable(facts: TableFacts, own_branch: str, job: TableAttempt) -> None:
    """Raise `LoadFailed` while other loads of the table are under way (I12).

    Replacing a table's definition is not compared with what others publish meanwhile.
    """
    others = sorted(
        name for name in facts.refs if name.startswith(STAGING_PREFIX) and name != own_branch
    )
    if others:
        raise LoadFailed(
            f"the definition of `{job.target}` cannot be replaced while another load of it "
            f"is running or was abandoned: branch `{others[0]}`",
            hint=(
                "wait for that load, or drop the branch of an abandoned one with `lakeload recover`"
            ),
            retryable=True,
        )


def _other_attempt(
    facts: TableFacts, branch: str, start: Start, job: TableAttempt
) -> Verdict | None:
    """Look for this job, published since the start by another attempt (I4, I6)."""
    answer = find_job(facts, branch, job.pipeline, job.job_id)
    if answer.found is JobFound.IN:
        return Verdict(Decision.NO_OP, snapshot=answer.snapshot)
    if publish_count(facts) - start.seq >= JOBS_REMEMBERED:
        return Verdict(
            Decision.RUN_AGAIN,
            reason=f"{JOBS_REMEMBERED} jobs were published into `{job.target}` since the load "
            "began: its list of jobs may no longer contain this one",
        )
    new = answer.snapshot is not None and answer.snapshot != start.listed
    if new and answer.found is JobFound.ASK_THE_DATA:
        return Verdict(
            Decision.RUN_AGAIN,
            reason=(
                f"another attempt at job `{job.job_id}` has published snapshot "
                f"{answer.snapshot}, which has expired since"
            ),
        )
    return None


def _check_again(facts: TableFacts, branch: str, start: Start, job: TableAttempt) -> None:
    """What a start asks of the table holds of everything that was published since."""
    check_same_load(facts, branch, job)
    state = state_of(facts, job.pipeline)
    check_owner(state, job)
    if state is None and start.first_run and job.table_handling == "FAIL":
        check_first_run(facts, branch, job)


def _moved(
    facts: TableFacts, branch: str, start: Start, job: TableAttempt, sets_state: bool
) -> str | None:
    if publish_count(facts) < start.seq:
        return f"the properties of `{job.target}` were changed by hand"
    if start.head is not None and not belongs(facts, branch, start.head):
        # I2, I3: on top of a rollback the load would leave a gap, or bring back what was undone.
        return (
            f"branch `{branch}` of `{job.target}` no longer has snapshot {start.head}, with which "
            "the load began: it was rolled back, or its snapshots expired during the load"
        )
    # I1 for rows that may be appended once.
    once = job.append_again is not None and job.append_again.policy == "FAIL"
    if not sets_state and not once:
        return None
    now = state_of(facts, job.pipeline)
    before = start.state
    if (now and (now.snapshot, now.state)) != (before and (before.snapshot, before.state)):
        # I1: both loads would bring the same rows.
        theirs = f"job `{now.job}`{_starter(facts, now.snapshot)}" if now else "job `?`"
        return (
            f"{theirs} of the same pipeline has advanced the state of `{job.target}` since the "
            "load began"
        )
    return None


def _starter(facts: TableFacts, snapshot: int | None) -> str:
    """Return who started the job that made a snapshot, and when, as far as the snapshot says so."""
    if snapshot is None or snapshot not in facts.snapshots:
        return ""
    summary = facts.snapshots[snapshot].summary
    started = None
    # Another engine that copies a snapshot copies what it likes of it.
    with suppress(ValueError):
        started = datetime.fromisoformat(summary.get(SUMMARY_SYNCED, "")).astimezone(UTC)
    return started_by(summary.get(SUMMARY_AUTHOR, ""), started)


def _by_job(facts: TableFacts, snapshot: int | None) -> str:
    """Return which job has made a snapshot; '' for one of another engine."""
    if snapshot is None or snapshot not in facts.snapshots:
        return ""
    job = facts.snapshots[snapshot].summary.get(SUMMARY_JOB)
    return "" if job is None else f", by job `{job}`{_starter(facts, snapshot)}"


def _branch_gone(job: TableAttempt, staging_branch: str, unknown: int | None) -> Verdict:
    if unknown is not None:
        return Verdict(Decision.FAIL, error=unknown_outcome(job))
    return Verdict(
        Decision.RUN_AGAIN,
        reason=f"another writer has dropped the staging branch `{staging_branch}` of the load",
    )


def _fail(job: TableAttempt, why: str) -> Verdict:
    error = LoadFailed(
        f"job `{job.job_id}` was not published into `{job.target}`: {why}",
        hint="run again: nothing was committed",
        retryable=True,
    )
    return Verdict(Decision.FAIL, error=error)

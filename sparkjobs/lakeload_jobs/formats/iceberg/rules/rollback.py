"""What a load is told when the state of its pipeline was rolled back by hand (I2, I5)."""

from __future__ import annotations

from datetime import UTC, datetime

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.formats.iceberg.rules.facts import Job, PipelineState, TableFacts


def rolled_back(facts: TableFacts, branch: str, job: Job, state: PipelineState) -> LoadFailed:
    """Return the error of a state whose snapshot the branch no longer has."""
    head = facts.refs.get(branch)
    now = f"is at snapshot {_named(facts, head)}" if head is not None else "is empty"
    return LoadFailed(
        f"pipeline `{job.pipeline}` has loaded `{job.target}` up to its job `{state.job}`, "
        f"snapshot {_named(facts, state.snapshot)}, and branch `{branch}` {now}, without that "
        "snapshot: it was rolled back, and reading on from the state would leave out what is gone",
        hint=f"{_bring_back(facts, branch, job, state)}{_load_anew(job)}",
    )


def _bring_back(facts: TableFacts, branch: str, job: Job, state: PipelineState) -> str:
    """Say how to undo the rollback, where that takes away nothing published since."""
    head = facts.refs.get(branch)
    at: int | None = state.snapshot
    while at is not None and at != head and at in facts.snapshots:
        at = facts.snapshots[at].parent
    if state.snapshot not in facts.snapshots or at != head:
        return ""
    table = f"lake.{job.target}"
    if branch == "main":
        call = f"CALL lake.system.set_current_snapshot('{job.target}', {state.snapshot})"
    else:
        call = f"ALTER TABLE {table} REPLACE BRANCH `{branch}` AS OF VERSION {state.snapshot}"
    return f"to undo the rollback, run `{call}` in Spark; to keep it, "


def _load_anew(job: Job) -> str:
    if job.mode == "APPEND":
        return (
            f"remove what is left with `lakeload reset` for `{job.target}` and load everything "
            "again; `--reload` also loads everything, beside the rows that are left"
        )
    return "load everything again with `--full-refresh`, which replaces the table in one snapshot"


def _named(facts: TableFacts, number: int | None) -> str:
    snapshot = facts.snapshots.get(number) if number is not None else None
    if snapshot is None:
        return f"{number} (expired)"
    made = datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC)
    return f"{number} of {made:%Y-%m-%d %H:%M:%S} UTC"

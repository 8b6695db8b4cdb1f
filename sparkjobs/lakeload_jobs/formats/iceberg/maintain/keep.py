"""Snapshots that no expiry takes away, because a load or the next start compares with them. Pure.

An expired snapshot is no error: what it would have told, the data is asked for (I5, I6). It costs a
scan, and a rollback by hand is then seen by the rows that are missing alone.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from lakeload_jobs.formats.iceberg.rules.branches import staging_branches
from lakeload_jobs.formats.iceberg.rules.facts import TableFacts, lineage, pipelines_of, state_of

STATES_KEPT = timedelta(days=30)
"""A pipeline that has not loaded for longer does not keep a table's history."""


def kept_snapshots(facts: TableFacts, branch: str, now: datetime) -> frozenset[int]:
    """Return the snapshots of `branch` that have to stay: all from its head back to the oldest of

    - the snapshot of each pipeline's state, unless it is older than `STATES_KEPT`;
    - the one that each staging branch was made from: its load publishes only while the head it
      began with is still an ancestor (I2).

    Without those in between, an old snapshot could not be told from one that was rolled back.
    """
    own = lineage(facts, branch).ids
    oldest_kept = (now - STATES_KEPT).timestamp() * 1000
    needed = {
        state.snapshot
        for name in pipelines_of(facts)
        if (state := state_of(facts, name)) is not None
        and state.snapshot in facts.snapshots
        and facts.snapshots[state.snapshot].timestamp_ms >= oldest_kept
    }
    for name in staging_branches(facts.refs):
        base = next((number for number in lineage(facts, name).ids if number in own), None)
        if base is not None:
            needed.add(base)
    depth = max((own.index(number) for number in needed if number in own), default=-1)
    return frozenset(own[: depth + 1])

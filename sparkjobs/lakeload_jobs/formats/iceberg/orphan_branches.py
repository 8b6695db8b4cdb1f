"""The staging branches that an Iceberg table has: of attempts that work, and of dead ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakeload_jobs.formats.iceberg.rules.branches import parse_staging_branch
from lakeload_jobs.formats.iceberg.rules.facts import TableFacts


@dataclass(frozen=True)
class LeftBranch:
    """One staging branch, the attempt that made it, and the snapshot it is at."""

    name: str
    attempt: str
    created_at: datetime
    snapshot_id: int


def left_branches(facts: TableFacts) -> tuple[LeftBranch, ...]:
    """Return every branch that an attempt has staged rows on and not published, oldest first."""
    found = []
    for name, snapshot in facts.refs.items():
        if (parsed := parse_staging_branch(name)) is not None:
            created_at, attempt = parsed
            found.append(LeftBranch(name, attempt, created_at, snapshot))
    return tuple(sorted(found, key=lambda branch: (branch.created_at, branch.name)))

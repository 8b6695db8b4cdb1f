"""Staging branches of attempts that died: dropped by age (docs/protocol-iceberg.md, I7)."""

from __future__ import annotations

from datetime import timedelta

from lakeload_jobs.contract.maintain import StepResult
from lakeload_jobs.formats.iceberg.maintain.races import until_won
from lakeload_jobs.formats.iceberg.maintain.work import Work, nothing, shown
from lakeload_jobs.formats.iceberg.rules.branches import left_branches


def drop_branches(work: Work) -> StepResult:
    """Drop the staging branches that are older than `abort_older_than`, or say which."""
    found = _left(work)
    if not found:
        return nothing("branches")
    if not work.spec.apply:
        return StepResult("branches", "WOULD_DO", items=shown(found))
    dropped = until_won(work, lambda: _drop(work))
    return StepResult("branches", "DONE", items=shown(dropped)) if dropped else nothing("branches")


def _left(work: Work) -> list[str]:
    age = timedelta(seconds=work.spec.abort_older_than)
    return list(left_branches(work.facts().refs, work.now(), age))


def _drop(work: Work) -> list[str]:
    # Found anew each time: a slow load may have published and removed its branch meanwhile.
    found = _left(work)
    if found:
        change = work.table.manageSnapshots()
        for name in found:
            change = change.removeBranch(name)
        change.commit()
    return found

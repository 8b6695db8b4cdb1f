"""What each job loads, and what a table holds after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Mode = Literal["APPEND", "OVERWRITE", "UPSERT"]
MODES: tuple[Mode, ...] = ("APPEND", "OVERWRITE", "UPSERT")

FIRST, JOB, NEXT = "first", "troubled", "next"
"""The job ids, in the order in which they load. Each reads a file of its own."""
NOTHING = ""
"""In place of a job id: no load comes next."""
_ROWS: Mapping[str, tuple[range, int, range]] = {
    FIRST: (range(40), 1, range(0)),
    JOB: (range(20, 60), 2, range(20, 25)),
    NEXT: (range(50, 80), 3, range(50, 52)),
}
"""Ids, version, and the ids among them that are deleted."""

RETRY = "retry"
"""The job that reads the rejected records of FIRST again."""
_REJECTED: Mapping[str, tuple[range, int]] = {
    FIRST: (range(9_001, 9_003), 1),
    JOB: (range(10_001, 10_004), 2),
    NEXT: (range(11_001, 11_002), 3),
}
"""Ids and version of records whose ids are written with a mark."""

MARK = "'"
"""The thousands mark that makes numbers of them."""

Row = tuple[str, int, int]
"""Job, id, version."""


def rows_of(job: str) -> list[tuple[int, int, bool]]:
    """Return the source rows of a job: id, version, deleted. `{name}-{number}` has its own ids."""
    if job == RETRY:
        ids, version = _REJECTED[FIRST]
        return [(one, version, False) for one in ids]
    if job in _ROWS:
        ids, version, gone = _ROWS[job]
    else:
        number = int(job.rpartition("-")[2]) + 1
        ids, version, gone = range(number * 1000, number * 1000 + 20), 1, range(0)
    return [(one, version, one in gone) for one in ids]


def rejected_of(job: str) -> list[str]:
    """Return the records of a job that are rejected, as they are written."""
    ids, version = _REJECTED.get(job, (range(0), 0))
    return [f"{one // 1000}{MARK}{one % 1000:03},{version},false" for one in ids]


def loaded(rows: list[Row], mode: Mode, job: str) -> list[Row]:
    """Return what a table holds after a job, from what it held before."""
    source = rows_of(job)
    new = [(job, one, version) for one, version, gone in source if not gone or mode != "UPSERT"]
    if mode == "APPEND":
        return rows + new
    if mode == "OVERWRITE":
        return new
    before = {one: version for _, one, version in rows}
    late = {one for one, version, _ in source if version < before.get(one, 0)}
    touched = {one for one, _, _ in source} - late
    return [row for row in rows if row[1] not in touched] + [
        row for row in new if row[1] not in late
    ]

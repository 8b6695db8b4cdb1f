"""Staging branches: a load writes to one of its own, and only a publish shows it to readers."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

STAGING_PREFIX = "lakeload_"

ORPHAN_AGE = timedelta(hours=24)
"""Files younger than this are never orphans: Iceberg's own procedure refuses less, too."""

# In lower case: Spark asks for a branch as for a table first, and SeaweedFS calls a name with upper
# case malformed in place of missing.
_NAME = re.compile(r"lakeload_([0-9]{8}t[0-9]{6}z)_([0-9a-f]{32})")
_TIME = "%Y%m%dt%H%M%Sz"
_DATA_FILE = re.compile(r"(lakeload_[0-9a-z]+_[0-9a-f]{32})-[0-9]{5,}-[0-9a-f]{32}\.parquet")


@dataclass(frozen=True)
class StagingBranch:
    """One staging branch, the attempt that made it, and the snapshot it is at."""

    name: str
    attempt_id: str
    created_at: datetime
    snapshot_id: int


def staging_branch(now: datetime, attempt: str, rounds_left: int = 0) -> str:
    """Return the branch of an attempt (a UUID): its age and attempt are read from the name.

    It is dated a second earlier for each round that the attempt may still make: each has a name of
    its own, also those of one second, as a late commit of an earlier round must not find its branch
    there (I7). None is dated after its files (I10).
    """
    begun = now.astimezone(UTC) - timedelta(seconds=rounds_left)
    return f"{STAGING_PREFIX}{begun.strftime(_TIME)}_{uuid.UUID(attempt).hex}"


def parse_staging_branch(name: str) -> tuple[datetime, str] | None:
    """Return when and by which attempt a branch was made; None for branches of others."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        made = datetime.strptime(match[1], _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None
    return made, str(uuid.UUID(match[2]))


def data_file_name(branch: str, seq: int, unique: uuid.UUID) -> str:
    """Return the name of a data file that is staged on a branch: it tells whose upload it is."""
    return f"{branch}-{seq:05d}-{unique.hex}.parquet"


def branch_of_data_file(name: str) -> str | None:
    """Return the branch that a data file was staged on; None for files that have other names."""
    match = _DATA_FILE.fullmatch(name)
    if match is None or parse_staging_branch(match[1]) is None:
        return None
    return match[1]


def staging_branches(refs: Mapping[str, int]) -> tuple[StagingBranch, ...]:
    """Return every branch that an attempt has staged rows on and not published, oldest first."""
    found = []
    for name, snapshot in refs.items():
        if (parsed := parse_staging_branch(name)) is not None:
            created_at, attempt = parsed
            found.append(StagingBranch(name, attempt, created_at, snapshot))
    return tuple(sorted(found, key=lambda branch: (branch.created_at, branch.name)))


def left_branches(refs: Mapping[str, int], now: datetime, age: timedelta) -> tuple[str, ...]:
    """Return the staging branches older than `age`.

    Anyone may drop any of them at any time (I7): its load then fails or runs again, and no row is
    lost, because a publish asserts its own branch.
    """
    return tuple(left.name for left in staging_branches(refs) if now - left.created_at > age)


def orphans_before(refs: Mapping[str, int], now: datetime, age: timedelta = ORPHAN_AGE) -> datetime:
    """Return the instant before which a file that no snapshot names is an orphan (I10).

    `age` ago, and never later than the oldest staging branch was made: the files of a load that
    runs for longer are in no snapshot yet.
    """
    return min([now - age, *(branch.created_at for branch in staging_branches(refs))])


def left_by(
    refs: Mapping[str, int], now: datetime, age: timedelta, dropped: Collection[str] = ()
) -> Callable[[str, datetime], bool]:
    """Return what tells of a data file, by its name and its time, whether no load will commit it.

    The branch in its name is gone, or among `dropped`: it was there before the file, and nothing is
    published without it (I7, I10). It is older than `age` and than every other staging branch.
    """
    there = {name: head for name, head in refs.items() if name not in dropped}
    before = orphans_before(there, now, age)

    def is_left(name: str, written: datetime) -> bool:
        branch = branch_of_data_file(name)
        return branch is not None and branch not in there and written < before

    return is_left

"""Staging branches and the files of loads that are under way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from lakeload_jobs.core.job_ids import new_attempt_id
from lakeload_jobs.formats.iceberg.rules.branches import (
    left_branches,
    orphans_before,
    parse_staging_branch,
    staging_branch,
    staging_branches,
)

_NOW = datetime(2026, 11, 21, 12, 30, 5, tzinfo=UTC)
_ATTEMPT = "0d9e2b7c-6c1f-4a70-9f5e-2b8f6f7f0a11"


def _branch(hours: float) -> str:
    return staging_branch(_NOW - timedelta(hours=hours), new_attempt_id())


def test_rounds_of_one_second_have_branches_of_their_own() -> None:
    names = [staging_branch(_NOW, _ATTEMPT, left) for left in (3, 2, 1, 0)]
    assert names == sorted(set(names))
    assert {name.rpartition("_")[2] for name in names} == {_ATTEMPT.replace("-", "")}
    # A branch is as old as its files at least.
    made = [parsed[0] for name in names if (parsed := parse_staging_branch(name))]
    assert made[-1] == max(made) == _NOW


def test_staging_branch_name_has_age_and_attempt() -> None:
    name = staging_branch(_NOW.astimezone(timezone(timedelta(hours=5))), _ATTEMPT)
    assert name == "lakeload_20261121t123005z_0d9e2b7c6c1f4a709f5e2b8f6f7f0a11"
    assert parse_staging_branch(name) == (_NOW, _ATTEMPT)


@pytest.mark.parametrize(
    "name",
    [
        "main",
        "lakeload_",
        "lakeload_audit",
        "lakeload_20261121t123005z_short",
        "lakeload_20261341t123005z_0d9e2b7c6c1f4a709f5e2b8f6f7f0a11",
        "lakeload_20261121t123005z_0d9e2b7c6c1f4a709f5e2b8f6f7f0a11_x",
    ],
)
def test_branches_of_other_writers_are_ignored(name: str) -> None:
    assert parse_staging_branch(name) is None
    assert left_branches({name: 1}, _NOW, timedelta(0)) == ()


def test_old_branches_are_named_the_oldest_first() -> None:
    young, old, oldest = _branch(0.5), _branch(3), _branch(30)
    refs = dict.fromkeys(["main", young, oldest, old], 1)
    assert left_branches(refs, _NOW, timedelta(hours=1)) == (oldest, old)
    assert [branch.name for branch in staging_branches(refs)] == [oldest, old, young]


def test_no_file_is_an_orphan_that_a_load_under_way_may_have_written() -> None:
    day = timedelta(hours=24)
    assert orphans_before({"main": 1}, _NOW) == _NOW - day
    assert orphans_before({"main": 1, _branch(2): 2}, _NOW) == _NOW - day
    assert orphans_before({_branch(2): 2, _branch(30): 3}, _NOW) == _NOW - timedelta(hours=30)

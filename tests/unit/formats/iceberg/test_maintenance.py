"""Maintenance without Spark: limits, and the snapshots that loads need."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lakeload_jobs.formats.iceberg.maintenance import files_within, kept_snapshots, manifests_after
from lakeload_jobs.formats.iceberg.rules.branches import staging_branch
from lakeload_jobs.formats.iceberg.rules.facts import PipelineState, Snapshot, TableFacts

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ATTEMPT = "0b6f3c1e-7d7b-4c7e-9d0f-1f2e3d4c5b6a"


def table(
    days_old: list[float],
    *,
    states: dict[str, int] | None = None,
    branches: dict[str, tuple[int, int]] | None = None,
) -> TableFacts:
    """Return a table whose `main` is snapshots 1, 2, 3… of these ages.

    `branches`: name → (its snapshot, the one it was made from).
    """
    ages = dict(enumerate(days_old, start=1))
    parents = {number: number - 1 if number > 1 else None for number in ages}
    for number, base in (branches or {}).values():
        ages[number], parents[number] = 0, base
    snapshots = {
        number: Snapshot(number, parents[number], _ms(NOW - timedelta(days=age)), {})
        for number, age in ages.items()
    }
    properties = {
        f"lakeload.state.{name}": PipelineState("orders", "job", number, "", {}).to_property()
        for name, number in (states or {}).items()
    }
    refs = {name: number for name, (number, _) in (branches or {}).items()}
    refs["main"] = len(days_old)
    return TableFacts("s3://lake/t", "u", properties, refs, snapshots, {}, frozenset(), (), 2, None)


def _ms(instant: datetime) -> int:
    return int(instant.timestamp() * 1000)


@pytest.mark.parametrize(
    ("sizes", "limit", "files"),
    [
        ([5, 1, 3], 9, 3),
        ([5, 1, 3], 8, 2),  # any two of them are no more than 5 + 3
        ([5, 1, 3], 7, 1),
        ([5, 1, 3], 4, 0),
        ([], 4, 0),
    ],
)
def test_compaction_limit_holds_for_any_chosen_files(
    sizes: list[int], limit: int, files: int
) -> None:
    assert files_within(sizes, limit) == files


def test_manifests_of_a_kind_are_rewritten_into_whole_ones() -> None:
    assert [manifests_after(sizes, 8) for sizes in ([], [1], [4, 4], [4, 4, 1])] == [0, 1, 1, 2]


def test_expiry_keeps_the_snapshots_to_the_latest_load_of_each_pipeline() -> None:
    facts = table([20, 15, 10, 8, 2], states={"shop": 4, "web": 3})
    assert kept_snapshots(facts, "main", NOW) == {3, 4, 5}


def test_expiry_keeps_no_snapshot_of_an_idle_pipeline() -> None:
    facts = table([90, 40, 10, 2], states={"old": 2, "shop": 4})
    assert kept_snapshots(facts, "main", NOW) == {4}
    assert kept_snapshots(table([90, 40]), "main", NOW) == frozenset()


def test_a_running_load_keeps_the_snapshot_it_began_with() -> None:
    branch = staging_branch(NOW - timedelta(hours=1), ATTEMPT)
    facts = table([20, 15, 10, 8], branches={branch: (9, 2)})
    assert kept_snapshots(facts, "main", NOW) == {2, 3, 4}
    mine = table([20, 15, 10, 8], branches={"somebodys": (9, 2)})
    assert kept_snapshots(mine, "main", NOW) == frozenset()


def test_a_state_that_was_rolled_back_or_expired_keeps_nothing() -> None:
    rolled_back = table([20, 8], states={"shop": 7}, branches={"other": (7, 1)})
    assert kept_snapshots(rolled_back, "main", NOW) == frozenset()
    assert kept_snapshots(table([20, 8], states={"shop": 99}), "main", NOW) == frozenset()

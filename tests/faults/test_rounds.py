"""What the campaign of rounds counts with, and the clock by which its rounds are due."""

from __future__ import annotations

import time

import pytest

from tests.faults.rounds.fast_clock import FastClock
from tests.faults.rounds.lake import compared, kind_of

TABLE = "lake/shop/t0"


@pytest.mark.parametrize(
    ("found", "lost", "doubled"),
    [
        ([(0, 50), (1, 51)], 0, 0),
        ([(0, 50)], 1, 0),
        ([(0, 50), (1, 51), (1, 51)], 0, 1),
        # A key with an older version than the latest, and one with both.
        ([(0, 0), (1, 51)], 1, 1),
        ([(0, 0), (0, 50), (1, 51)], 0, 1),
    ],
)
def test_compared_finds_each_key_that_has_not_its_latest_row_once(
    found: list[tuple[int, int]], lost: int, doubled: int
) -> None:
    findings = compared([*found], [(0, 50), (1, 51)])
    assert (findings.lost, findings.doubled) == (lost, doubled)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("data/00000-1-7f-00001.parquet", "data"),
        ("data/00000-1-7f-00001-deletes.parquet", "deletes"),
        ("data/00000-1-7f-00002-deletes.puffin", "deletes"),
        ("metadata/snap-123-1-4a.avro", "manifest lists"),
        ("metadata/4a-m0.avro", "manifests"),
        ("_lakeload/shop/t0/log/00000000000000000001", "others"),
    ],
)
def test_kind_of_an_object_is_that_of_its_name(name: str, kind: str) -> None:
    assert kind_of(f"{TABLE}/{name}") == kind


def test_fast_clock_passes_faster_and_sleeps_shorter() -> None:
    clock, began = FastClock(100.0, time.time()), time.monotonic()
    first = clock.time()
    clock.sleep(2.0)
    assert time.monotonic() - began < 1
    assert clock.time() - first >= 2

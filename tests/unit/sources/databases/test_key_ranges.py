"""Bounds of ranges, and the conditions that divide rows among them."""

from __future__ import annotations

import bisect
import sqlite3
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest

from lakeload_jobs.sources.databases.engines.mysql.types import PLACES as MYSQL_PLACES
from lakeload_jobs.sources.databases.engines.postgres.types import PLACES
from lakeload_jobs.sources.databases.key_ranges import (
    Places,
    conditions,
    find_bounds,
    with_nulls,
)

_INT8 = PLACES["int8"]
_KEYS: dict[str, Sequence[int]] = {
    "ids": range(1, 3_000_001),
    "far apart": [-(2**63), *range(5, 2000), 2**62, 2**63 - 1],
    "one value": [7] * 1000,
    "two values": [7] * 500 + [9] * 500,
    "with a sentinel": [*range(1000), *[2**63 - 1] * 3],
}


def counted(keys: Sequence[int], calls: list[int]) -> Callable[[int], int]:
    """Return what counts the keys below a place, and notes the places."""

    def rows_below(place: int) -> int:
        calls.append(place)
        return bisect.bisect_left(keys, place)

    return rows_below


@pytest.mark.parametrize("name", _KEYS)
@pytest.mark.parametrize("count", [2, 3, 16])
def test_rows_are_divided_into_parts_of_one_size_by_few_questions(name: str, count: int) -> None:
    keys, calls = _KEYS[name], list[int]()

    bounds = find_bounds(_INT8, count, len(keys), counted(keys, calls))

    assert bounds == tuple(sorted(set(bounds)))
    places = [0, *(bisect.bisect_left(keys, bound) for bound in bounds), len(keys)]
    sizes = [high - low for low, high in pairwise(places)]
    most_equal = max(keys.count(key) for key in set(keys)) if len(keys) < 5000 else 1
    assert max(sizes) <= 1.15 * len(keys) / count + most_equal
    assert len(calls) <= 64 + 6 * count or name in ("one value", "two values")
    assert len(calls) == len(set(calls)) <= 64 * 4


def test_estimates_that_are_wrong_make_no_wrong_ranges() -> None:
    for rows_below in (lambda _: 0, lambda _: 333, lambda place: hash(place) % 1000):
        bounds = find_bounds(_INT8, 4, 1000, rows_below)

        assert 1 <= len(bounds) <= 3
        assert list(bounds) == sorted(set(bounds))


def test_each_row_meets_one_condition() -> None:
    extremes = [-(2**63), -1, 0, 1, 4, 5, 6, 2**62, 2**63 - 1]
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE t (k)")
        database.executemany("INSERT INTO t VALUES (?)", [(key,) for key in (*extremes, None)])
        for bounds in ((5,), (-(2**63), 5), (0, 5, 2**63 - 1)):
            ranges = conditions("k", tuple(map(str, bounds)))
            ranges = (with_nulls("k", ranges[0]), *ranges[1:])
            met = " + ".join(f"({condition} IS TRUE)" for condition in ranges)
            found = database.execute(f"SELECT k, {met} FROM t").fetchall()
            assert {times for _, times in found} == {1}, found
    assert conditions("k", ()) == ()


@pytest.mark.parametrize("places", [*PLACES.values(), *MYSQL_PLACES.values()])
def test_every_place_is_written(places: Places) -> None:
    for place in (places.least, (places.least + places.greatest) // 2, places.greatest):
        assert places.text(place)

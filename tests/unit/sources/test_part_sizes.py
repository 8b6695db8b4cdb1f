"""How input is shared out to tasks, replayed for 2 to 64 of them."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator, Sequence

import pytest

from lakeload_jobs.sources.files.text.splits import TextPart, cut_files, put_together, weight
from lakeload_jobs.sources.part_sizes import PART_BYTES, Parallelism
from lakeload_jobs.sources.paths.file_state import FileState
from tests.environments import many

MIB = 1 << 20
TASKS = (2, 3, 4, 8, 12, 16, 32, 64)
Sizes = Callable[[random.Random], list[int]]

SHAPES: dict[str, Sizes] = {
    "one unit": lambda chance: [chance.randint(1, 4000) * MIB],
    "units of one size": lambda chance: [16 * MIB] * chance.randint(2, 300),
    "row groups of 128 MiB": lambda chance: [chance.randint(120, 136) * MIB] * 1000,
    "many small units": lambda chance: [chance.randint(1, MIB) for _ in range(6000)],
    "a large unit at the end": lambda chance: (
        [8 * MIB] * chance.randint(300, 900) + [chance.randint(200, 1500) * MIB]
    ),
    "a large unit at the beginning": lambda chance: (
        [chance.randint(200, 1500) * MIB] + [8 * MIB] * chance.randint(300, 900)
    ),
    "sizes of a long tail": lambda chance: [
        int(chance.paretovariate(1.2) * MIB) for _ in range(2000)
    ],
    "nothing": lambda _: [],
    "units without a byte": lambda _: [0] * 5,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_tasks_end_at_about_the_same_time(shape: str) -> None:
    for sizes in _examples(SHAPES[shape]):
        for tasks in TASKS:
            parts = Parallelism(tasks).parts(sizes)

            assert [place for part in parts for place in part] == list(range(len(sizes)))
            assert _time([sum(sizes[place] for place in part) for part in parts], tasks) <= (
                1.10 * _least_time(sizes, tasks)
            )
            assert len(parts) <= max(1, sum(sizes) // (4 * MIB))


def test_few_units_of_any_size_take_no_longer_than_the_largest_more_than_an_even_share() -> None:
    """Rows keep their order, so that a part has units that follow each other."""
    for seed in range(many(60)):
        chance = random.Random(seed)  # noqa: S311
        sizes = [chance.randint(1, 900) * MIB for _ in range(chance.randint(1, 150))]
        for tasks in TASKS:
            parts = Parallelism(tasks).parts(sizes)

            time = _time([sum(sizes[place] for place in part) for part in parts], tasks)
            assert time <= sum(sizes) / tasks + max(sizes)


def test_parts_of_large_tables_are_no_larger_than_they_need_to_be() -> None:
    sizes = [4 * MIB] * 10_000
    for tasks in TASKS:
        parts = Parallelism(tasks).parts(sizes)

        assert max(sum(sizes[place] for place in part) for part in parts) <= PART_BYTES
        assert len(parts) <= -(-sum(sizes) // (PART_BYTES * tasks)) * tasks


FILES: dict[str, Sizes] = {
    "one file": lambda chance: [chance.randint(9, 4000) * MIB],
    "two files": lambda chance: [chance.randint(50, 300) * MIB for _ in range(2)],
    "few files": lambda chance: [chance.randint(5, 900) * MIB for _ in range(7)],
    "40 files of one size": lambda _: [120 * MIB] * 40,
    "many small files": lambda chance: [chance.randint(1, 64 << 10) for _ in range(3000)],
    "sizes of a long tail": lambda chance: [
        int(chance.paretovariate(1.2) * MIB) for _ in range(300)
    ],
}


@pytest.mark.parametrize("suffix", ["gz", "gzip", "GZ", "bz2", "xz", "zst", "zip", "deflate"])
def test_packed_text_weighs_more_than_its_bytes(suffix: str) -> None:
    plain, packed = (FileState(f"/a.csv{end}", 9 * MIB, 0) for end in ("", f".{suffix}"))

    assert weight(TextPart(plain)) == 9 * MIB
    assert weight(TextPart(packed)) == 8 * 9 * MIB


@pytest.mark.parametrize("shape", FILES)
def test_text_is_cut_where_parts_end(shape: str) -> None:
    for sizes in _examples(FILES[shape]):
        files = [FileState(f"/{place}.csv", size, 0) for place, size in enumerate(sizes)]
        for tasks in TASKS:
            parallelism = Parallelism(tasks)
            pieces = cut_files(files, lambda _: True, parallelism)

            assert sum(weight(piece) for piece in pieces) == sum(sizes)
            assert all(weight(piece) >= 4 * MIB for piece in pieces if piece.guess)
            costs = [
                sum(weight(piece) + 4 * MIB for piece in part)
                for part in put_together(pieces, parallelism)
            ]
            best = sum(sizes) + 4 * MIB * len(sizes)
            assert _time(costs, tasks) <= 1.10 * max(best / tasks, 8 * MIB) + 4 * MIB


def test_packed_files_are_not_cut() -> None:
    files = [FileState("/a.csv", 900 * MIB, 0), FileState("/b.csv.gz", 900 * MIB, 0)]

    pieces = cut_files(files, lambda file: file.path == "/a.csv", Parallelism(4))

    assert [piece.file.path for piece in pieces].count("/b.csv.gz") == 1
    assert [piece.file.path for piece in pieces].count("/a.csv") > 1


def _examples(sizes: Sizes) -> Iterator[list[int]]:
    for seed in range(many(3)):
        yield sizes(random.Random(seed))  # noqa: S311


def _time(parts: Sequence[int], tasks: int) -> int:
    """Return when the last of the tasks ends that begin parts in their order."""
    ends = [0] * tasks
    for size in parts:
        heapq.heapreplace(ends, ends[0] + size)
    return max(ends)


def _least_time(sizes: Sequence[int], tasks: int) -> float:
    """Return a time below which no plan ends: units are whole, so of n x tasks + 1 units one task
    has n + 1."""
    ordered = sorted(sizes, reverse=True)
    bounds = [sum(ordered) / tasks, *ordered[:1]]
    for most in range(tasks, len(ordered), tasks):
        each = most // tasks
        bounds.append(sum(ordered[most - each : most + 1]))
    return max(bounds)

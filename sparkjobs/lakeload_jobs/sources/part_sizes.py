"""Parts of about the same size, of which as many are read at once as there are tasks."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

PART_BYTES = 128 << 20
_LEAST_BYTES = 4 << 20
"""Spark's own measures: parts no larger than the one, and no smaller than the other."""
_FEW_WAVES = 4
_ENOUGH = 1.05
"""How much longer the tasks of smaller parts may take than those of the best parts."""
_CLOSE = 1.01


@dataclass(frozen=True)
class Parallelism:
    """How many tasks run at once, and about how many bytes each of them reads."""

    tasks: int = 1
    part_bytes: int = PART_BYTES
    least_bytes: int = _LEAST_BYTES
    """Of a part: it takes as long to open a file as to read so many, about."""

    def count(self, total: int) -> int:
        """Return how many parts `total` bytes have: as many as tasks run at once, or a multiple of
        it, so that all tasks end at about the same time."""
        return max(1, min(self._waves(total) * self.tasks, total // self.least_bytes))

    def parts(self, sizes: Sequence[int]) -> list[range]:
        """Return which units are a part, of units of `sizes` bytes in their order.

        Where single units are so large that tasks would wait for the last of them, parts are
        larger.
        """
        if not sizes:
            return []
        ends = list(accumulate(sizes))
        needed, most = self._waves(ends[-1]), self.count(ends[-1])
        waves = {needed, *range(1, min(needed, _FEW_WAVES) + 1)}
        plans = [
            _evenly(ends, min(most, wave * self.tasks)) for wave in sorted(waves, reverse=True)
        ]
        times = [_time(ends, plan, self.tasks) for plan in plans]
        good = _ENOUGH * min(times)
        return next(plan for plan, time in zip(plans, times, strict=True) if time <= good)

    def _waves(self, total: int) -> int:
        return max(1, math.ceil(total / (self.part_bytes * self.tasks)))


ONE_TASK = Parallelism()


def _evenly(ends: Sequence[int], most: int) -> list[range]:
    """Return at most `most` parts of units that end at the bytes `ends`. The largest part is as
    small as it can be, to within a hundredth."""
    low, high = max(ends[-1] // most, 1), max(ends[-1], 1)
    best = [range(len(ends))]
    while high > low * _CLOSE:
        middle = (low + high) // 2
        parts = _filled(ends, middle)
        if len(parts) <= most:
            best, high = parts, middle
        else:
            low = middle + 1
    return best


def _filled(ends: Sequence[int], limit: int) -> list[range]:
    """Return parts that each take units until the next would make them larger than `limit`."""
    parts: list[range] = []
    start = 0
    while start < len(ends):
        stop = bisect_right(ends, _begin(ends, start) + limit)
        parts.append(range(start, max(stop, start + 1)))
        start = parts[-1].stop
    return parts


def _time(ends: Sequence[int], parts: Sequence[range], tasks: int) -> int:
    """Return when the last task ends, in bytes that one task reads: Spark begins parts in their
    order, each as soon as a task ends."""
    busy = [0] * tasks
    for part in parts:
        heapq.heapreplace(busy, busy[0] + _size(ends, part))
    return max(busy)


def _size(ends: Sequence[int], part: range) -> int:
    return ends[part.stop - 1] - _begin(ends, part.start)


def _begin(ends: Sequence[int], place: int) -> int:
    return ends[place - 1] if place else 0

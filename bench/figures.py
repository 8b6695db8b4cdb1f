"""Medians, ranges and ratios of measured runs, as both reports show them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from bench.measure import Measurement

MEBIBYTE = 2**20


class Measured(Protocol):
    """A run of a named contestant."""

    @property
    def name(self) -> str:
        """Who ran."""
        ...

    @property
    def cost(self) -> Measurement:
        """What it cost."""
        ...


OneRun = TypeVar("OneRun", bound=Measured)


def cpu(run: Measured) -> float:
    """CPU seconds of the process tree."""
    return run.cost.cpu


def wall(run: Measured) -> float:
    """Seconds from start to end."""
    return run.cost.wall


def peak(run: Measured) -> float:
    """Peak memory of the process tree in MiB."""
    return run.cost.peak / MEBIBYTE


def names(runs: Sequence[Measured]) -> list[str]:
    """The contestants, in the order of their first runs."""
    return list(dict.fromkeys(run.name for run in runs))


def median(runs: Sequence[OneRun], name: str, value: Callable[[OneRun], float]) -> float:
    """The median of one contestant's runs."""
    return statistics.median(value(run) for run in runs if run.name == name)


def with_range(runs: Sequence[OneRun], name: str, value: Callable[[OneRun], float]) -> str:
    """Median and range as a cell of a Markdown table."""
    values = [value(run) for run in runs if run.name == name]
    return f"**{statistics.median(values):.1f}** ({min(values):.1f}–{max(values):.1f})"


def comparisons(runs: Sequence[Measured]) -> list[str]:
    """lakeload against each peer, in both directions: what was slower is said too."""
    if "lakeload" not in names(runs):
        return []
    lines = []
    for peer in names(runs):
        if peer == "lakeload":
            continue
        ratios = [
            (what, median(runs, "lakeload", value) / median(runs, peer, value))
            for what, value in (("CPU", cpu), ("wall", wall), ("peak memory", peak))
        ]
        worse = [f"{what} ({ratio:.2f} ×)" for what, ratio in ratios if ratio > 1]
        said = ", ".join(f"{what} {ratio:.2f} ×" for what, ratio in ratios)
        verdict = f"worse in {', '.join(worse)}" if worse else "worse in nothing measured here"
        lines.append(f"- lakeload / {peer}: {said}: {verdict}.")
    return lines

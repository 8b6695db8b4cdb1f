"""What a layer finds wrong, and the table it ends with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

HEAD = f"{'class':<28}{'times':>7}{'rows lost':>11}{'rows doubled':>14}{'left behind':>14}"


@dataclass
class Findings:
    """What is wrong after a case. `left` counts uploads or branches; `problems` are sentences."""

    lost: int = 0
    doubled: int = 0
    left: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, other: Findings) -> None:
        """Take in what is wrong elsewhere."""
        self.lost += other.lost
        self.doubled += other.doubled
        self.left += other.left
        self.problems += other.problems

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.lost or self.doubled or self.left or self.problems)


def line(kind: str, times: int, findings: Iterable[Findings]) -> str:
    """Return the row of a class below `HEAD`. `python -m tests.faults` reads it again."""
    total = Findings()
    for one in findings:
        total.add(one)
    return f"{kind:<28}{times:>7}{total.lost:>11}{total.doubled:>14}{total.left:>14}"

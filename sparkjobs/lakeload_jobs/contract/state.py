"""What a table's format keeps for a source, and gives back to it before the next load.

All of it is JSON that belongs to the source: formats store it and never look inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StateChange:
    """The pipeline's state before and after the job: any JSON. None before the first."""

    before: Any
    after: Any


@dataclass(frozen=True)
class Evidence:
    """What one load noted of what it read, where a state alone would not do.

    `inputs` are what this load read; `known` repeats those of earlier loads, so that nobody has to
    read theirs again.
    """

    inputs: tuple[Any, ...] = ()
    known: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Bookmark:
    """What a table keeps of one pipeline's loads, whichever its format.

    `state` is that of the newest load. `evidence` returns that of the loads from number `since` on,
    the oldest first, and `next_number` is that of the load to come.
    """

    state: Any
    first_run: bool
    next_number: int
    evidence: Callable[[int], Sequence[Evidence]]

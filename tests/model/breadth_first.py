"""Breadth first through every order of steps and faults: the first trace found is a shortest."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

W = TypeVar("W", bound=Hashable)
Next = tuple[str, W, str | None]
"""A step that may follow: its label, the world after it, and what it has broken."""


@dataclass
class Found:
    """What a search saw. `violations` maps each to its shortest trace."""

    states: int = 0
    complete: bool = True
    violations: dict[str, list[str]] = field(default_factory=dict)

    def __str__(self) -> str:
        """The traces, one step to a line."""
        return "\n".join(
            f"{what}\n" + "\n".join(f"  {i}. {step}" for i, step in enumerate(trace, 1))
            for what, trace in self.violations.items()
        )


@dataclass(frozen=True)
class Model(Generic[W]):
    """What a search asks of a model."""

    following: Callable[[W], Iterable[Next[W]]]
    always: Callable[[W], Iterable[str]]
    """What is broken in a world, by nothing but its `checked`."""
    checked: Callable[[W], Hashable]
    """What of a world `always` looks at. Most steps leave it as it is."""
    quiet: Callable[[W], bool]
    when_quiet: Callable[[W], Iterable[str]]


def explore(model: Model[W], initial: W, *, limit: int, until: str | None = None) -> Found:
    """Explore at most `limit` states; stop early at a violation that begins with `until`."""
    parents: dict[W, tuple[W | None, str]] = {initial: (None, "")}
    seen: set[Hashable] = set()
    todo = deque([initial])
    found = Found()
    with _without_collections():
        while todo:
            world = todo.popleft()
            found.states += 1
            for label, after, broken in model.following(world):
                known = len(parents)
                parents.setdefault(after, (world, label))
                if len(parents) > known:
                    todo.append(after)
                    # The first world that has it has the shortest trace to what it breaks.
                    if (part := model.checked(after)) not in seen:
                        seen.add(part)
                        _note(found, parents, after, model.always(after))
                if broken and broken not in found.violations:
                    found.violations[broken] = [*_trace(parents, world), label]
            if model.quiet(world):
                _note(found, parents, world, model.when_quiet(world))
            if until and any(what.startswith(until) for what in found.violations):
                return found
            if len(parents) > limit:
                found.complete = False
                return found
    return found


@contextmanager
def _without_collections() -> Iterator[None]:
    """Let Python look for no circles: worlds are tuples without any, and there are many."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _note(
    found: Found, parents: dict[W, tuple[W | None, str]], world: W, broken: Iterable[str]
) -> None:
    for what in broken:
        if what not in found.violations:
            found.violations[what] = _trace(parents, world)


def _trace(parents: dict[W, tuple[W | None, str]], world: W) -> list[str]:
    steps = []
    at: W | None = world
    while at is not None:
        at, label = parents[at]
        steps.append(label)
    return [step for step in reversed(steps) if step]

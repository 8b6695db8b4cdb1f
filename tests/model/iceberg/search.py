"""Breadth first through every order of steps and faults: the first trace found is a shortest."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.model.iceberg.environment import environment
from tests.model.iceberg.invariants import alone, always, when_quiet
from tests.model.iceberg.run import Run, rules_of
from tests.model.iceberg.world import Actor, Scenario, World
from tests.model.iceberg.writer import Next, step

_Parents = dict[World, tuple[World | None, str]]


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


def search(scenario: Scenario, *, limit: int, until: str | None = None) -> Found:
    """Explore at most `limit` states; stop early at a violation that begins with `until`."""
    with rules_of(scenario):
        return _search(Run(scenario), limit, until)


def _search(run: Run, limit: int, until: str | None) -> Found:
    initial = _begun(run)
    parents: _Parents = {initial: (None, "")}
    todo = deque([initial])
    found = Found()
    while todo:
        world = todo.popleft()
        found.states += 1
        for label, after, broken in _following(run, world):
            if after not in parents:
                parents[after] = (world, label)
                todo.append(after)
                _note(found, parents, after, always(run, after))
            if broken and broken not in found.violations:
                found.violations[broken] = [*_trace(parents, world), label]
        if _quiet(run, world):
            _note(found, parents, world, when_quiet(run, world))
        if until and any(what.startswith(until) for what in found.violations):
            return found
        if len(parents) > limit:
            found.complete = False
            return found
    return found


def _begun(run: Run) -> World:
    """Return the world in which the search begins: the table is there, and its history."""
    scenario = run.scenario
    world = World(-1, tuple(Actor() for _ in run.everybody))
    for index in range(scenario.history):
        world, _, _ = alone(run, world, index)
        world = world._replace(source=world.source + run.everybody[index].goes_on)
    return world._replace(
        kills=scenario.kills,
        lost=scenario.lost,
        delays=scenario.delays,
        rollbacks=scenario.rollbacks,
        foreign=scenario.foreign,
        expiries=scenario.expiries,
        drops=scenario.drops,
        orphans=scenario.orphans,
    )


def _following(run: Run, world: World) -> Iterator[Next]:
    for index, process in enumerate(run.scenario.processes):
        actor = world.actors[index]
        if actor.step in ("end", "dead"):
            continue
        for label, after, broken in step(run, world, index):
            yield f"{process.name}: {label}", after, broken
        if world.kills and actor != Actor():
            actors = (*world.actors[:index], Actor("dead"), *world.actors[index + 1 :])
            yield (
                f"{process.name}: killed",
                world._replace(actors=actors, kills=world.kills - 1),
                None,
            )
    yield from environment(run, world)


def _quiet(run: Run, world: World) -> bool:
    own = world.actors[: len(run.scenario.processes)]
    return not world.late and all(actor.step in ("end", "dead") for actor in own)


def _note(found: Found, parents: _Parents, world: World, broken: Iterator[str]) -> None:
    for what in broken:
        if what not in found.violations:
            found.violations[what] = _trace(parents, world)


def _trace(parents: _Parents, world: World) -> list[str]:
    steps = []
    at: World | None = world
    while at is not None:
        at, label = parents[at]
        steps.append(label)
    return [step for step in reversed(steps) if step]

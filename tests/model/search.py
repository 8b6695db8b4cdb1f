"""Breadth first through every order of steps and faults: the first trace found is a shortest."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.model.actors import successors
from tests.model.finish import Next
from tests.model.invariants import IDLE_STEPS, always, finish_slow, when_quiet
from tests.model.world import (
    ABORTED,
    OPEN,
    STRANGER,
    Actor,
    Scenario,
    World,
    exists,
    with_actor,
    with_object,
    with_upload,
)
from tests.model.writer import interrupt, place_record


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
    initial = scenario.initial()
    parents: dict[World, tuple[World | None, str]] = {initial: (None, "")}
    todo = deque([initial])
    found = Found()
    while todo:
        world = todo.popleft()
        found.states += 1
        for label, after in _following(scenario, world):
            if after in parents:
                continue
            parents[after] = (world, label)
            todo.append(after)
            _note(found, parents, after, always(scenario, after))
        if _quiet(scenario, world):
            _note(found, parents, world, when_quiet(scenario, world))
        if until and any(what.startswith(until) for what in found.violations):
            return found
        if len(parents) > limit:
            found.complete = False
            return found
    return found


def _note(
    found: Found,
    parents: dict[World, tuple[World | None, str]],
    world: World,
    broken: Iterator[str],
) -> None:
    for what in broken:
        if what not in found.violations:
            found.violations[what] = _trace(parents, world)


def _trace(parents: dict[World, tuple[World | None, str]], world: World) -> list[str]:
    steps = []
    at: World | None = world
    while at is not None:
        at, label = parents[at]
        steps.append(label)
    return [step for step in reversed(steps) if step]


def _quiet(scenario: Scenario, world: World) -> bool:
    under_way = any(put is not None for put in world.in_flight)
    return not under_way and all(actor.step in IDLE_STEPS for actor in world.actors)


def _following(scenario: Scenario, world: World) -> Iterator[Next]:
    for index, process in enumerate(scenario.processes):
        actor = world.actors[index]
        if actor.step in ("end", "dead"):
            continue
        for label, after in successors(scenario, world, index):
            yield f"{process.name}: {label}", after
        if world.kills and actor.step != "open":
            killed = with_actor(world, index, Actor("dead"))
            yield f"{process.name}: killed", killed._replace(kills=world.kills - 1)
        stopped = interrupt(scenario, world, index) if scenario.interrupts else None
        if stopped:
            yield f"{process.name}: {stopped[0]}", stopped[1]
    yield from _environment(scenario, world)


def _environment(scenario: Scenario, world: World) -> Iterator[Next]:
    yield from finish_slow(scenario, world)
    if world.source < scenario.source_rows:
        yield "the source gets a row", world._replace(source=world.source + 1)
    for attempt, put in enumerate(world.in_flight):
        if put is not None:
            arrived = world._replace(
                in_flight=(*world.in_flight[:attempt], None, *world.in_flight[attempt + 1 :])
            )
            if not exists(world, put.number):
                arrived = place_record(scenario, arrived, attempt, put)
            yield f"the PUT of record {put.number} by attempt {attempt} arrives", arrived
    if world.lifecycle:
        for attempt, files in enumerate(world.uploads):
            for file, state in enumerate(files):
                if state == OPEN:
                    after = with_upload(world, attempt, file, ABORTED)
                    label = f"a lifecycle rule aborts upload {file + 1} of attempt {attempt}"
                    yield label, after._replace(lifecycle=world.lifecycle - 1)
    if world.strangers:
        for file, owner in enumerate(world.objects[0]):
            if owner is None:
                after = with_object(world, 0, file, STRANGER)
                after = after._replace(stranger=(0, file), strangers=0)
                yield f"a stranger writes to the key of file {file + 1}", after

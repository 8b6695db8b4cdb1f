"""Every order of steps and faults of Parquet's protocol."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tests.model.actors import successors
from tests.model.breadth_first import Found, Model, explore
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


def search(scenario: Scenario, *, limit: int, until: str | None = None) -> Found:
    """Explore at most `limit` states; stop early at a violation that begins with `until`."""
    model = Model(
        following=lambda world: ((*one, None) for one in _following(scenario, world)),
        always=partial(always, scenario),
        checked=lambda world: (world.log, world.objects, world.committed, world.stranger),
        quiet=_quiet,
        when_quiet=partial(when_quiet, scenario),
    )
    return explore(model, scenario.initial(), limit=limit, until=until)


def _quiet(world: World) -> bool:
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

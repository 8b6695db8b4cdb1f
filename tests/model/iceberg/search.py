"""Every order of steps and faults of Iceberg's protocol."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tests.model.breadth_first import Found, Model, explore
from tests.model.iceberg.environment import environment
from tests.model.iceberg.invariants import alone, always, when_quiet
from tests.model.iceberg.run import Run, rules_of
from tests.model.iceberg.world import Actor, Scenario, World
from tests.model.iceberg.writer import Next, step


def search(scenario: Scenario, *, limit: int, until: str | None = None) -> Found:
    """Explore at most `limit` states; stop early at a violation that begins with `until`."""
    with rules_of(scenario):
        run = Run(scenario)
        model = Model(
            following=partial(_following, run),
            always=partial(always, run),
            checked=lambda world: (
                *(world.table, world.truth, world.deleted),
                *(world.side, world.pending, world.landed),
            ),
            quiet=partial(_quiet, run),
            when_quiet=partial(when_quiet, run),
        )
        return explore(model, _begun(run), limit=limit, until=until)


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

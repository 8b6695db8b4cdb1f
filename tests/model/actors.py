"""Steps that open a table and roll its records forward, as `TableLog` and `Settler` do."""

from __future__ import annotations

from tests.model import finish, upkeep, writer
from tests.model.finish import Next, begin, stop
from tests.model.world import (
    STRANGER,
    Record,
    Scenario,
    World,
    change,
    exists,
    known,
    last,
    record,
    to_step,
    with_actor,
    with_record,
)


def successors(scenario: Scenario, world: World, index: int) -> list[Next]:
    """Return what one process may do next: the first without a fault."""
    step = world.actors[index].step
    if step in finish.STEPS and not exists(world, world.actors[index].number):
        return [("its record is gone", stop(world, index, "stopped"))]
    if step in finish.STEPS:
        return finish.STEPS[step](scenario, world, index, ended)
    if step in _STEPS:
        return _STEPS[step](scenario, world, index)
    return []


def ended(scenario: Scenario, world: World, index: int, outcome: str) -> World:
    """Go on after a record has ended."""
    actor = world.actors[index]
    if outcome == "void":
        return _settled(scenario, _void(world, index, actor.number), index)
    if scenario.glue and not record(world, actor.number).cat:
        return to_step(world, index, "bring_into_step")
    return _settled(scenario, world, index)


def _open(scenario: Scenario, world: World, index: int) -> list[Next]:
    """GET the checkpoint, LIST the log after it."""
    seen = last(world)
    numbers = range(world.checkpoint + 1, seen + 1)
    if any(not exists(world, n) for n in numbers):
        return [("open: a gap in the log", stop(world, index, "stopped"))]
    kind = scenario.everybody[index].kind
    label = f"open, {seen} records"
    actor = world.actors[index]._replace(
        seen=seen,
        queue=tuple(n for n in numbers if _unsettled(scenario, record(world, n))),
        void=frozenset(n for n in range(1, seen + 1) if known(world, n).end == "void"),
    )
    world = with_actor(world, index, actor)
    if kind == "cleaner":
        return [(label, upkeep.stale_uploads(scenario, world, index))]
    if kind == "compactor":
        return [(label, to_step(world, index, "write_checkpoint"))]
    if kind == "operator":
        return [(label, upkeep.decide(scenario, world, index))]
    return [(label, _settled(scenario, world, index, first=True))]


def _unsettled(scenario: Scenario, found: Record) -> bool:
    if found.attempt == STRANGER:
        return False
    if found.end == "void":
        return not found.clean and scenario.rules.clean_after_void
    return not found.end or (scenario.glue and not found.cat)


def _settled(scenario: Scenario, world: World, index: int, *, first: bool = False) -> World:
    """Take the next record of step 0, or go on to what the process came for."""
    actor = world.actors[index]
    if actor.own:
        return _tell(scenario, world, index)
    queue = actor.queue if first else actor.queue[1:]
    world = change(world, index, queue=queue)
    if not queue:
        if scenario.everybody[index].kind == "writer":
            return writer.admit(scenario, world, index)
        return stop(world, index, "done")
    if not exists(world, queue[0]):
        return stop(world, index, "stopped")
    found = record(world, queue[0])
    if found.end == "void":
        if found.clean:
            return _settled(scenario, _void(world, index, queue[0]), index)
        return change(world, index, step="abort", number=queue[0], file=0)
    if found.end:
        if scenario.glue and not found.cat:
            return change(world, index, step="bring_into_step", number=queue[0])
        return _settled(scenario, world, index)
    return begin(scenario, world, index, queue[0])


def _tell(scenario: Scenario, world: World, index: int) -> World:
    actor = world.actors[index]
    if scenario.everybody[index].kind == "operator":
        return stop(world, index, "done")
    if actor.number in actor.void:
        return stop(world, index, "void")
    return stop(world, index, "loaded" if actor.own == "mine" else "already")


def _bring_into_step(scenario: Scenario, world: World, index: int) -> list[Next]:
    """Update the catalog; while it is down the debt stays and later loads go on."""
    actor = world.actors[index]
    label = f"catalog of record {actor.number}"
    if world.outages:
        told = change(world, index, debt=True)
        if not scenario.rules.catalog_blocks_nothing:
            return [(f"{label}: refused", stop(told, index, "failed"))]
        if actor.own:
            return [(f"{label}: refused", stop(told, index, "stale"))]
        return [(f"{label}: refused", _settled(scenario, told, index))]
    attempt = record(world, actor.number).attempt
    updated = world._replace(catalog=world.catalog | {attempt})
    return [(label, to_step(updated, index, "mark_cat"))]


def _mark_cat(scenario: Scenario, world: World, index: int) -> list[Next]:
    number = world.actors[index].number
    marked = with_record(world, number, record(world, number)._replace(cat=True))
    return [(f"mark record {number} catalogued", _settled(scenario, marked, index))]


def _void(world: World, index: int, number: int) -> World:
    return change(world, index, void=world.actors[index].void | {number})


_STEPS = {
    "open": _open,
    "check_empty": writer.check_empty,
    "stage": writer.stage,
    "publish_early": writer.publish_early,
    "place": writer.place,
    "winner": writer.winner,
    "bring_into_step": _bring_into_step,
    "mark_cat": _mark_cat,
    "fence": upkeep.fence,
    "abort_stale": upkeep.abort_stale,
    "write_checkpoint": upkeep.write_checkpoint,
    "delete_records": upkeep.delete_records,
}

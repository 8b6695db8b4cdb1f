"""Who keeps the log in order: clean-ups behind fences, checkpoints, and the person who decides."""

from __future__ import annotations

from tests.model.finish import Next, begin, stop
from tests.model.world import (
    ABORTED,
    OPEN,
    STRANGER,
    Record,
    Scenario,
    World,
    abort_all,
    change,
    exists,
    known,
    record,
    to_step,
    with_actor,
    with_record,
)


def stale_uploads(scenario: Scenario, world: World, index: int) -> World:
    """Name the attempts that have uploads and no record."""
    seen = world.actors[index].seen
    recorded = {known(world, n).attempt for n in range(1, seen + 1)}
    names = tuple(
        attempt
        for attempt, files in enumerate(world.uploads)
        if OPEN in files and attempt not in recorded
    )
    if not names:
        return stop(world, index, "done")
    step = "fence" if scenario.rules.fence_before_abort else "abort_stale"
    return change(world, index, names=names, number=seen + 1, step=step)


def fence(scenario: Scenario, world: World, index: int) -> list[Next]:
    """PUT a fence under the next number; a writer that passes it and is named stops."""
    actor = world.actors[index]
    if exists(world, actor.number):
        again = with_actor(world, index, actor._replace(step="open", names=(), queue=()))
        return [(f"PUT fence {actor.number}: 412", again)]
    fenced = with_record(world, actor.number, Record(STRANGER, actor.names))
    return [(f"PUT fence {actor.number}", to_step(fenced, index, "abort_stale"))]


def abort_stale(scenario: Scenario, world: World, index: int) -> list[Next]:
    """Abort the uploads of the attempts that are fenced off."""
    for attempt in world.actors[index].names:
        world = abort_all(world, attempt)
    return [("abort stale uploads", stop(world, index, "done"))]


def write_checkpoint(scenario: Scenario, world: World, index: int) -> list[Next]:
    """Overwrite the cache with what is settled at the beginning of the log."""
    actor = world.actors[index]
    number = min(set(actor.queue) | {actor.seen + 1}) - 1
    if not scenario.rules.checkpoint_of_settled:
        number = actor.seen
    covered = tuple(known(world, n) for n in range(1, number + 1))
    world = world._replace(checkpoint=number, covered=covered)
    step = "end" if scenario.rules.records_kept else "delete_records"
    return [(f"checkpoint over {number}", change(world, index, step=step, number=number))]


def delete_records(scenario: Scenario, world: World, index: int) -> list[Next]:
    """Only without `records_kept`."""
    for number in range(1, world.actors[index].number + 1):
        world = with_record(world, number, None)
    return [("delete covered records", stop(world, index, "done"))]


def decide(scenario: Scenario, world: World, index: int) -> World:
    """A person voids or accepts the first record whose uploads are lost in part."""
    decision = scenario.everybody[index].decision
    for number in world.actors[index].queue:
        found = record(world, number)
        lost = [
            state == ABORTED and world.objects[scenario.key(found.attempt)][file] is None
            for file, state in enumerate(world.uploads[found.attempt])
        ]
        if not found.end and any(lost):
            chosen = change(world, index, queue=(), own="other", number=number)
            if decision == "partial":
                # What is still there is published first.
                return begin(scenario, chosen, index, number)
            return to_step(chosen, index, "end_void")
    return stop(world, index, "done")

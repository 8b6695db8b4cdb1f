"""Steps 4, 4v and 5 of one record, by whoever works on it: what `formats.parquet.log.publish` does.

Each function returns the successors of one process; the first is what happens without a fault.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.model.world import (
    ABORTED,
    COMPLETED,
    OPEN,
    SLOW,
    Actor,
    Scenario,
    World,
    change,
    record,
    with_actor,
    with_object,
    with_record,
    with_upload,
)

Next = tuple[str, World]
Ended = Callable[[Scenario, World, int, str], World]
"""Called with how the record ended: done, partial or void; returns where the process goes on."""


def begin(scenario: Scenario, world: World, index: int, number: int) -> World:
    """Start to publish a record."""
    actor = world.actors[index]._replace(step="complete", number=number, file=0, there=0, looked=0)
    if not scenario.rules.look_after_no_such_upload:
        attempt = _attempt(scenario, world, index, actor)
        found = world.objects[scenario.key(attempt)]
        bits = sum(1 << f for f, owner in enumerate(found) if owner is not None)
        actor = actor._replace(looked=bits)
    return with_actor(world, index, actor)


def complete(scenario: Scenario, world: World, index: int, ended: Ended) -> list[Next]:
    """CompleteMultipartUpload with If-None-Match, of one file."""
    actor = world.actors[index]
    attempt, file = _attempt(scenario, world, index, actor), actor.file
    key = scenario.key(attempt)
    label = f"complete file {file + 1} of record {actor.number}"
    if world.uploads[attempt][file] != OPEN:
        return [(f"{label}: NoSuchUpload", change(world, index, step="look"))]
    taken = world.objects[key][file] is not None
    if taken and scenario.rules.conditional_completion:
        return [(f"{label}: 412", change(world, index, step="look"))]
    visible = with_object(with_upload(world, attempt, file, COMPLETED), key, file, attempt)
    found = [(label, _next_file(scenario, visible, index, there=True))]
    if world.lost:
        found.append((f"{label}: no answer", visible._replace(lost=world.lost - 1)))
    if scenario.slow_completions:
        found.append((f"{label}: S3 goes on working", with_upload(world, attempt, file, SLOW)))
    return found


def look(scenario: Scenario, world: World, index: int, ended: Ended) -> list[Next]:
    """LIST the key after NoSuchUpload or 412."""
    actor = world.actors[index]
    attempt, file = _attempt(scenario, world, index, actor), actor.file
    label = f"look at file {file + 1} of record {actor.number}"
    if not scenario.rules.look_after_no_such_upload:
        there = bool(actor.looked >> file & 1)
        return [(f"{label}: as seen before", _next_file(scenario, world, index, there=there))]
    owner = world.objects[scenario.key(attempt)][file]
    if owner is None:
        if world.uploads[attempt][file] == OPEN:
            return [(f"{label}: not there", change(world, index, step="complete"))]
        return [(f"{label}: not there", _next_file(scenario, world, index, there=False))]
    if not scenario.ours(attempt, owner):
        return [(f"{label}: a stranger's", stop(world, index, "stopped"))]
    return [(f"{label}: there", _next_file(scenario, world, index, there=True))]


def look_again(scenario: Scenario, world: World, index: int, ended: Ended) -> list[Next]:
    """LIST what is missing, when no completion can be running any more."""
    actor = world.actors[index]
    attempt = _attempt(scenario, world, index, actor)
    if scenario.rules.wait_for_late_completion and SLOW in world.uploads[attempt]:
        return []
    label = f"look again at record {actor.number}"
    there = actor.there
    for file, owner in enumerate(world.objects[scenario.key(attempt)]):
        if owner is None or there >> file & 1:
            continue
        if not scenario.ours(attempt, owner):
            return [(f"{label}: a stranger's", stop(world, index, "stopped"))]
        if scenario.rules.look_after_no_such_upload:
            there |= 1 << file
    whole = there == (1 << _files(scenario, actor)) - 1
    step = "end_done" if whole else "ending"
    return [(label, change(world, index, step=step, there=there))]


def ending(scenario: Scenario, world: World, index: int, ended: Ended) -> list[Next]:
    """Read how the record has ended, before its loss is believed."""
    actor = world.actors[index]
    end = record(world, actor.number).end
    label = f"read the end of record {actor.number}: {end or 'open'}"
    if end:
        return [(label, after_end(scenario, world, index, ended))]
    if actor.there:
        if scenario.everybody[index].decision == "partial":
            return [(f"{label}; accepted", change(world, index, step="end_partial"))]
        return [(f"{label}; some files are lost", stop(world, index, "damaged"))]
    return [(label, change(world, index, step="end_void"))]


def end_void(scenario: Scenario, world: World, index: int, ended: Ended) -> list[Next]:
    """PUT `.end` = void, once."""
    return _put_end(scenario, world, index, ended, "void")


def end_done(scenario: Scenario, world: World, index: int, ended: Ended) -> list[Next]:
    """PUT `.end`, empty, once."""
    return _put_end(scenario, world, index, ended, "done")


def end_partial(scenario: Scenario, world: World, index: int, ended: Ended) -> list[Next]:
    """PUT `.end` = partial, once: a person accepts the loss."""
    return _put_end(scenario, world, index, ended, "partial")


def abort(scenario: Scenario, world: World, index: int, ended: Ended) -> list[Next]:
    """Abort every upload of a void record."""
    number = world.actors[index].number
    attempt = record(world, number).attempt
    for file, state in enumerate(world.uploads[attempt]):
        if state == OPEN:
            world = with_upload(world, attempt, file, ABORTED)
    return [(f"abort the uploads of record {number}", change(world, index, step="remove", file=0))]


def remove(scenario: Scenario, world: World, index: int, ended: Ended) -> list[Next]:
    """LIST one key and delete what carries the record's attempt."""
    actor = world.actors[index]
    attempt = record(world, actor.number).attempt
    key, file = scenario.key(attempt), actor.file
    owner = world.objects[key][file]
    step = "remove" if file + 1 < scenario.files else "mark_clean"
    if owner is not None and scenario.ours(attempt, owner):
        world = with_object(world, key, file, None)
    label = f"delete file {file + 1} of record {actor.number} if it is there"
    return [(label, change(world, index, step=step, file=file + 1))]


def mark_clean(scenario: Scenario, world: World, index: int, ended: Ended) -> list[Next]:
    """PUT `.clean`."""
    number = world.actors[index].number
    cleaned = with_record(world, number, record(world, number)._replace(clean=True))
    return [(f"mark record {number} clean", ended(scenario, cleaned, index, "void"))]


def after_end(scenario: Scenario, world: World, index: int, ended: Ended) -> World:
    """Do what an ending that is there asks for."""
    end = record(world, world.actors[index].number).end
    if end == "void" and scenario.rules.clean_after_void:
        return change(world, index, step="abort", file=0)
    return ended(scenario, world, index, end)


def stop(world: World, index: int, told: str) -> World:
    """End a process, with what its user is told."""
    return with_actor(world, index, Actor("end", told=told))


STEPS = {
    "complete": complete,
    "look": look,
    "look_again": look_again,
    "ending": ending,
    "end_void": end_void,
    "end_done": end_done,
    "end_partial": end_partial,
    "abort": abort,
    "remove": remove,
    "mark_clean": mark_clean,
}


def _put_end(
    scenario: Scenario, world: World, index: int, ended: Ended, outcome: str
) -> list[Next]:
    number = world.actors[index].number
    found = record(world, number)
    label = f"end record {number}: {outcome}"
    if found.end:
        return [(f"{label}: 412", after_end(scenario, world, index, ended))]
    written = with_record(world, number, found._replace(end=outcome))
    result = [(label, after_end(scenario, written, index, ended))]
    if world.lost:
        result.append((f"{label}: no answer", written._replace(lost=world.lost - 1)))
    return result


def _next_file(scenario: Scenario, world: World, index: int, *, there: bool) -> World:
    actor = world.actors[index]
    seen = actor.there | (there << actor.file)
    files = _files(scenario, actor)
    if actor.file + 1 < files:
        return change(world, index, step="complete", file=actor.file + 1, there=seen)
    whole = seen == (1 << files) - 1
    return change(world, index, step="end_done" if whole else "look_again", there=seen)


def _files(scenario: Scenario, actor: Actor) -> int:
    """How many files are published: those that the record names, or its author knows of."""
    if scenario.rules.rejects_in_record or actor.own == "mine":
        return scenario.files
    return scenario.files - 1


def _attempt(scenario: Scenario, world: World, index: int, actor: Actor) -> int:
    """Whose uploads are completed: those the record names, which an author has in memory."""
    if actor.own == "mine" or (actor.own and not scenario.rules.publish_from_record):
        return index
    return record(world, actor.number).attempt

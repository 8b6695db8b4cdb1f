"""Steps of a writer from admission to the commit record."""

from __future__ import annotations

from tests.model.finish import Next, begin, stop
from tests.model.world import (
    COMPLETED,
    OPEN,
    STRANGER,
    Put,
    Record,
    Scenario,
    World,
    abort_all,
    change,
    exists,
    known,
    last,
    record,
    to_step,
    with_object,
    with_record,
    with_upload,
)


def place_record(scenario: Scenario, world: World, attempt: int, put: Put) -> World:
    """Write a record, whether its answer arrives or not."""
    process = scenario.everybody[attempt]
    state = (put.before, put.after) if process.incremental else (0, 0)
    world = with_record(world, put.number, Record(attempt, (), *state))
    return world._replace(committed=world.committed | {attempt})


def admit(scenario: Scenario, world: World, index: int) -> World:
    """Ask the log whether this job may load: `formats.parquet.log.admission` at open."""
    actor, me = world.actors[index], scenario.everybody[index]
    mine = others = False
    for number in range(1, actor.seen + 1):
        attempt = known(world, number).attempt
        if attempt == STRANGER:
            continue
        other, void = scenario.everybody[attempt], number in actor.void
        if other.job == me.job and scenario.rules.job_check_at_open:
            if other.pipeline != me.pipeline or void:
                return stop(world, index, "refused")
            return stop(world, index, "already")
        if not void and me.retries and _same_records(scenario, index, attempt):
            return stop(world, index, "nothing")
        if not void:
            mine |= other.pipeline == me.pipeline
            others |= other.pipeline != me.pipeline
    before = _state(scenario, world, index)
    world = change(world, index, first=not mine, number=actor.seen + 1, before=before)
    if me.fail and not mine:
        return stop(world, index, "refused") if others else to_step(world, index, "check_empty")
    return to_step(world, index, "stage")


def check_empty(scenario: Scenario, world: World, index: int) -> list[Next]:
    """LIST the table's path; files may be those of a job that came after the log was read."""
    if all(owner is None for row in world.objects for owner in row):
        return [("the table is empty", to_step(world, index, "stage"))]
    if last(world) != world.actors[index].seen:
        return [("the table is not empty; others came", to_step(world, index, "stage"))]
    return [("the table is not empty", stop(world, index, "refused"))]


def stage(scenario: Scenario, world: World, index: int) -> list[Next]:
    """Upload the parts of every file; nothing is visible."""
    for file in range(scenario.files):
        world = with_upload(world, index, file, OPEN)
    early = not scenario.rules.record_before_completion
    world = change(world, index, after=world.source, step="publish_early" if early else "place")
    return [("stage", world)]


def publish_early(scenario: Scenario, world: World, index: int) -> list[Next]:
    """Complete before the commit: only without `record_before_completion`."""
    key = scenario.key(index)
    for file in range(scenario.files):
        if world.uploads[index][file] == OPEN:
            world = with_upload(world, index, file, COMPLETED)
            world = with_object(world, key, file, index)
    return [("complete its files", to_step(world, index, "place"))]


def place(scenario: Scenario, world: World, index: int) -> list[Next]:
    """PUT the record with If-None-Match: the commit point."""
    actor, rules = world.actors[index], scenario.rules
    put = Put(actor.number, actor.before, actor.after)
    label = f"PUT record {put.number}"
    sent = change(world, index, sent=True)
    found: list[Next] = []
    if exists(world, put.number) and rules.conditional_record:
        found.append((f"{label}: 412", to_step(sent, index, "winner")))
    else:
        there = change(place_record(scenario, sent, index, put), index, own="mine")
        found.append((label, begin(scenario, there, index, put.number)))
        if world.lost:
            unheard = place_record(scenario, sent, index, put)._replace(lost=world.lost - 1)
            found.append((f"{label}: no answer", unheard))
    if scenario.late_puts and world.in_flight[index] is None and world.lost:
        flying = (*sent.in_flight[:index], put, *sent.in_flight[index + 1 :])
        late = sent._replace(in_flight=flying, lost=world.lost - 1)
        if not rules.same_put_again:
            late = abandon(late, index, "failed")
        found.append((f"{label}: no answer, it is on its way", late))
    return found


def winner(scenario: Scenario, world: World, index: int) -> list[Next]:
    """Read the record that took our number, as the append and `check_passed` do."""
    actor, me, rules = world.actors[index], scenario.everybody[index], scenario.rules
    label = f"read record {actor.number}"
    if not exists(world, actor.number):
        return [(f"{label}: it is gone", stop(world, index, "stopped"))]
    found = record(world, actor.number)
    if found.attempt == STRANGER:
        if index in found.fenced:
            return [(f"{label}: fenced off", abandon(world, index, "failed"))]
        return [(f"{label}: a fence", _pass(world, index))]
    other = scenario.everybody[found.attempt]
    if scenario.ours(index, found.attempt):
        mine = change(world, index, own="mine")
        return [(f"{label}: ours", begin(scenario, mine, index, actor.number))]
    if scenario.same_job(index, found.attempt) and rules.job_check_while_passing:
        if not rules.success_after_end:
            return [(f"{label}: our job", abandon(world, index, "already"))]
        theirs = world if not rules.publish_from_record else abort_all(world, index)
        theirs = change(theirs, index, own="other")
        return [(f"{label}: our job", begin(scenario, theirs, index, actor.number))]
    if other.job == me.job and other.pipeline != me.pipeline:
        return [(f"{label}: our id", abandon(world, index, "refused"))]
    foreign = other.pipeline != me.pipeline
    if foreign and actor.first and me.fail and rules.first_run_check_while_passing:
        return [(f"{label}: not empty any more", abandon(world, index, "refused"))]
    moves = me.incremental and other.incremental and not foreign
    if moves and rules.one_writer_of_state:
        return [(f"{label}: it moved our state", abandon(world, index, "failed"))]
    if me.retries and _same_records(scenario, index, found.attempt) and rules.one_retry:
        return [(f"{label}: it has read our records", abandon(world, index, "failed"))]
    return [(f"{label}: passed", _pass(world, index))]


def _same_records(scenario: Scenario, index: int, attempt: int) -> bool:
    me, other = scenario.everybody[index], scenario.everybody[attempt]
    return (me.pipeline, me.retries) == (other.pipeline, other.retries)


def _pass(world: World, index: int) -> World:
    number = world.actors[index].number + 1
    return change(world, index, number=number, step="place")


def _state(scenario: Scenario, world: World, index: int) -> int:
    """The state of the pipeline: that of its newest record that has not turned out void."""
    actor, me, state = world.actors[index], scenario.everybody[index], 0
    for number in range(1, actor.seen + 1):
        found = known(world, number)
        if found.attempt == STRANGER or number in actor.void:
            continue
        other = scenario.everybody[found.attempt]
        theirs = other.pipeline != me.pipeline and scenario.rules.own_state_only
        if other.incremental and not theirs:
            state = found.after
    return state


def abandon(world: World, index: int, told: str) -> World:
    """Abort the uploads of an attempt whose record certainly never comes."""
    return stop(abort_all(world, index), index, told)


def interrupt(scenario: Scenario, world: World, index: int) -> Next | None:
    """Ctrl-C: abort what is certainly not committed, leave the rest to the next run."""
    actor = world.actors[index]
    if scenario.everybody[index].kind != "writer" or actor.step in ("open", "stage"):
        return None
    if actor.queue or actor.own == "other":
        return None
    if actor.sent and scenario.rules.leave_after_record:
        return ("Ctrl-C", stop(world, index, "unknown"))
    told = "unknown" if actor.sent else "failed"
    return ("Ctrl-C, aborts its uploads", abandon(world, index, told))

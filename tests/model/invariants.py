"""What must hold in every state, and what must hold when all is quiet."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.actors import successors
from tests.model.world import (
    ABORTED,
    COMPLETED,
    OPEN,
    SLOW,
    STRANGER,
    Actor,
    Record,
    Scenario,
    World,
    with_actor,
    with_object,
    with_upload,
)

IDLE_STEPS = ("open", "end", "dead", "later")


def always(scenario: Scenario, world: World) -> Iterator[str]:
    """Yield what is broken in this state."""
    yield from _objects(scenario, world)
    yield from _records(scenario, world)
    yield from _ranges(scenario, world)


def when_quiet(scenario: Scenario, world: World) -> Iterator[str]:
    """Let a recover, a clean-up and new runs go alone, and yield what is broken then."""
    before = world
    first = len(scenario.processes)
    world, _ = _alone(scenario, _calm(world), first)
    yield from always(scenario, world)
    yield from _published(scenario, world)
    yield from _truth(scenario, before, world)
    world, _ = _alone(scenario, world, first + 1)
    yield from _left_open(scenario, world)
    for index in range(first + 2, len(scenario.everybody)):
        world, told = _alone(scenario, world, index)
        if told not in ("loaded", "stale") and not _needs_a_person(scenario, world):
            yield f"STUCK: a new run alone was told `{told}`"
        yield from always(scenario, world)
        yield from _published(scenario, world)


def _objects(scenario: Scenario, world: World) -> Iterator[str]:
    for row in world.objects:
        for owner in row:
            if owner not in (None, STRANGER, *world.committed):
                yield "UNCOMMITTED: rows of an attempt without a record are visible"
    for found in _loads(world):
        if found.end == "void" and found.clean and _visible(scenario, world, found):
            yield "VOID VISIBLE: rows of a void and clean record are visible"
    if world.stranger is not None:
        key, file = world.stranger
        if world.objects[key][file] != STRANGER:
            yield "OVERWRITTEN: a stranger's object is gone"


def _records(scenario: Scenario, world: World) -> Iterator[str]:
    live = [found for found in _loads(world) if found.end != "void"]
    void = {found.attempt for found in _loads(world) if found.end == "void"}
    landed = [scenario.everybody[attempt] for attempt in world.committed - void]
    if len({(process.pipeline, process.job) for process in landed}) != len(landed):
        yield "TWICE: one job has landed twice"
    retries = [(process.pipeline, process.retries) for process in landed if process.retries]
    if len(set(retries)) != len(retries):
        yield "AGAIN: the rejected records of one job have landed twice"
    if world.committed - {found.attempt for found in _loads(world)}:
        yield "LOST: a committed record is gone"
    if any(found.end == "void" for found in _loads(world)) and not _may_void(scenario):
        yield "NEEDLESS VOID: nothing but lakeload touched the uploads"
    for position, found in enumerate(live):
        me = scenario.everybody[found.attempt]
        earlier = {scenario.everybody[other.attempt].pipeline for other in live[:position]}
        if me.fail and earlier and me.pipeline not in earlier:
            yield "FIRST RUN: `table_handling: FAIL` landed in another pipeline's table"


def _ranges(scenario: Scenario, world: World) -> Iterator[str]:
    for pipeline in dict.fromkeys(p.pipeline for p in scenario.everybody if p.incremental):
        reached = 0
        ranges = sorted(
            (found.before, found.after)
            for found in _loads(world)
            if found.end != "void"
            and scenario.everybody[found.attempt].incremental
            and scenario.everybody[found.attempt].pipeline == pipeline
        )
        for before, after in ranges:
            if before < reached:
                yield "REPEATED: source rows were loaded twice"
            if before > reached:
                yield "SKIPPED: the state is past source rows that were never loaded"
            reached = max(reached, after)


def _published(scenario: Scenario, world: World) -> Iterator[str]:
    stopped = False
    for found in _loads(world):
        # Records are settled in order: behind one that needs a person, others wait.
        stopped |= not found.end and _damaged(scenario, world, found)
        whole = _visible(scenario, world, found) == scenario.files
        if found.end in ("", "done") and not whole and not stopped:
            yield "UNPUBLISHED: not all rows of a committed job are visible"
        if found.end == "void" and _visible(scenario, world, found):
            yield "VOID VISIBLE: rows of a void record stay"
        if found.end in ("void", "done") and OPEN in world.uploads[found.attempt]:
            yield "PENDING: an upload of an ended record is open"
        catalogued = found.attempt in world.catalog or found.end in ("", "void")
        if scenario.glue and not world.outages and not catalogued and not stopped:
            yield "CATALOG: it does not know a finished job"


def _truth(scenario: Scenario, before: World, world: World) -> Iterator[str]:
    live = {found.attempt for found in _loads(world) if found.end != "void"}
    for index in range(len(scenario.processes)):
        told = before.actors[index].told
        job_is_in = any(scenario.same_job(index, attempt) for attempt in live)
        if told in ("loaded", "already", "stale") and not job_is_in:
            yield f"LIE: told `{told}`, and its rows are not there"
        if told in ("failed", "refused", "void") and index in live:
            yield f"LIE: told `{told}`, and its record counts"


def _left_open(scenario: Scenario, world: World) -> Iterator[str]:
    pending = {found.attempt for found in _loads(world) if not found.end}
    for attempt, files in enumerate(world.uploads):
        if OPEN in files and attempt not in pending:
            yield "PENDING: an upload is open after the clean-up"


def _needs_a_person(scenario: Scenario, world: World) -> bool:
    return any(
        not found.end and (_damaged(scenario, world, found) or world.stranger is not None)
        for found in _loads(world)
    )


def _damaged(scenario: Scenario, world: World, found: Record) -> bool:
    """Whether somebody outside took an upload away, or a key, and a person must decide."""
    objects = world.objects[scenario.key(found.attempt)]
    uploads = world.uploads[found.attempt]
    if not _may_void(scenario) and not scenario.strangers:
        return False
    taken = any(owner == STRANGER for owner in objects)
    lost = ABORTED in uploads and _visible(scenario, world, found) > 0
    return taken or lost


def _may_void(scenario: Scenario) -> bool:
    return bool(scenario.lifecycle) or any(p.kind == "operator" for p in scenario.processes)


def _visible(scenario: Scenario, world: World, found: Record) -> int:
    return sum(owner == found.attempt for owner in world.objects[scenario.key(found.attempt)])


def _loads(world: World) -> list[Record]:
    return [found for found in world.log if found is not None and found.attempt != STRANGER]


def _calm(world: World) -> World:
    """No more faults."""
    return world._replace(kills=0, lost=0, lifecycle=0, strangers=0)


def finish_slow(scenario: Scenario, world: World) -> Iterator[tuple[str, World]]:
    """S3 ends the completions it works on."""
    for attempt, files in enumerate(world.uploads):
        for file, state in enumerate(files):
            if state == SLOW:
                done = with_upload(world, attempt, file, COMPLETED)
                key = scenario.key(attempt)
                if world.objects[key][file] is None:
                    done = with_object(done, key, file, attempt)
                yield f"S3 ends completing file {file + 1} of attempt {attempt}", done


def _alone(scenario: Scenario, world: World, index: int) -> tuple[World, str]:
    world = with_actor(world, index, Actor())
    while world.actors[index].step != "end":
        slow = [after for _, after in finish_slow(scenario, world)]
        following = slow or [after for _, after in successors(scenario, world, index)]
        if not following:
            return world, "nothing: it hangs"
        world = following[0]
    return world, world.actors[index].told

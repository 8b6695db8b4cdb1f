"""What must hold in every state, and what must hold when all is quiet."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tests.model.iceberg.catalog import main_of, visible
from tests.model.iceberg.run import Run
from tests.model.iceberg.world import FOREIGN, Round, Snap, World
from tests.model.iceberg.writer import change, step


def always(run: Run, world: World) -> Iterator[str]:
    """Yield what is broken in this state."""
    found, seen = main_of(run, world), visible(run, world)
    ours = [run.everybody[snap.author] for snap in seen if snap.author != FOREIGN]
    if len({(me.pipeline, me.job_id) for me in ours}) != len(ours):
        yield "TWICE: the rows of one job are there twice"
    retries = [(me.pipeline, me.retries) for me in ours if me.retries is not None]
    if len(set(retries)) != len(retries):
        yield "AGAIN: the rejected records of one job are there twice"
    if any(snap.files in world.deleted for snap in found):
        yield "CORRUPT: main names files that are deleted"
    if any(newer.version < older.version for newer, older in pairwise(found)):
        yield "OLDER: an older version of a row has replaced a newer one"
    yield from _first_runs(run, found)
    yield from _ranges(run, seen)
    if run.scenario.rejects:
        yield from _rejects(world, {snap.round for snap in found if snap.author != FOREIGN})


def when_quiet(run: Run, world: World) -> Iterator[str]:
    """Yield what was told and is not so; then let later attempts go alone, and look again."""
    for index in range(len(run.scenario.processes)):
        told = world.actors[index].told
        if told == "failed" and index in world.landed:
            yield "LIE: told that nothing was committed, and it was"
        if told == "loaded" and index not in world.landed and run.rules.empty_snapshot:
            yield "LIE: told that it was loaded, and it never was"
    for index in range(len(run.scenario.processes), len(run.everybody)):
        before = len(world.truth)
        world, told, broken = alone(run, world, index)
        yield from broken
        rolled_back = world.rollbacks < run.scenario.rollbacks
        if told in ("failed", "unknown") or (told == "stopped" and not rolled_back):
            yield f"STUCK: a run alone was told `{told}`"
        if told == "refused" and not _occupied(run, world, index):
            yield "STUCK: a first run was refused a table that is its own"
        if told == "loaded" and len(world.truth) == before:
            yield "LIE: a run alone was told that it had loaded"
        yield from always(run, world)


def alone(run: Run, world: World, index: int) -> tuple[World, str, list[str]]:
    """Let one attempt run to its end, without faults."""
    world = change(world._replace(lost=0, delays=0), index, step="open")
    broken = []
    while world.actors[index].step != "end":
        _, world, what = step(run, world, index)[0]
        broken += [what] if what else []
    return world, world.actors[index].told, broken


def _first_runs(run: Run, found: tuple[Snap, ...]) -> Iterator[str]:
    present: set[str] = set()
    for snap in reversed(found):
        if snap.author == FOREIGN:
            present.add("another engine")
            continue
        me = run.everybody[snap.author]
        if me.fail and present and me.pipeline not in present:
            yield "FIRST RUN: `table_handling: FAIL` landed in a table of others"
        present.add(me.pipeline)


def _ranges(run: Run, found: tuple[Snap, ...]) -> Iterator[str]:
    """Rows of the source that an incremental pipeline brought, in the order of their snapshots."""
    reached: dict[str, int] = {}
    loaded: dict[str, int] = {}
    for snap in found:
        if snap.author == FOREIGN or not run.everybody[snap.author].goes_on:
            continue
        name = run.everybody[snap.author].pipeline
        if snap.rows and snap.before < loaded.get(name, 0):
            yield "REPEATED: source rows were loaded twice"
        if snap.before > reached.get(name, 0):
            yield "SKIPPED: source rows are missing before later ones, and nobody is told"
        reached[name] = max(reached.get(name, 0), snap.after)
        if snap.rows:
            loaded[name] = max(loaded.get(name, 0), snap.after)


def _rejects(world: World, rounds: set[Round]) -> Iterator[str]:
    """Rejected records of the rounds that are in main, and of those that are not."""
    for one in rounds:
        times = world.side.count(one)
        if times != 1:
            yield "REJECTS: those of a load that is in are " + ("lost" if not times else "doubled")
    known = {snap.round for snap in world.truth if snap.author in world.landed}
    if any(one not in known and one not in world.pending for one in world.side):
        yield "REJECTS: those of an attempt that is not in stay, and nobody knows of them"


def _occupied(run: Run, world: World, index: int) -> bool:
    """Whether a first run has to be refused: others are in the table, or have made it."""
    me = run.everybody[index]
    others = any(
        snap.author == FOREIGN or run.everybody[snap.author].pipeline != me.pipeline
        for snap in main_of(run, world)
    )
    made = dict(run.tables[world.table].properties).get("lakeload.created-by")
    return others or made != me.pipeline

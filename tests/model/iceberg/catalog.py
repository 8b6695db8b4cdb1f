"""What catalog and Iceberg do with a commit, and what a branch truly holds."""

from __future__ import annotations

from tests.model.iceberg.run import Run
from tests.model.iceberg.world import Actor, Process, Round, Snap, Table, World

_ENDED = Actor("end", told="loaded")


def lineage(world: World, head: int | None) -> tuple[Snap, ...]:
    """Return all snapshots of a branch, the newest first, also those that are expired."""
    known = {snap.id: snap for snap in world.truth}
    found = []
    while head is not None:
        found.append(known[head])
        head = known[head].parent
    return tuple(found)


def main_of(run: Run, world: World) -> tuple[Snap, ...]:
    """Return the lineage of `main`."""
    return lineage(world, run.tables[world.table].head) if world.table >= 0 else ()


def visible(run: Run, world: World) -> tuple[Snap, ...]:
    """Return the snapshots whose rows readers see, the oldest first."""
    found = []
    for snap in main_of(run, world):
        found.append(snap)
        if snap.replaces:
            break
    return tuple(reversed(found))


def in_main(run: Run, world: World, me: Process) -> bool:
    """Whether `main` has the job of an attempt."""
    return any(_is(run, snap, me.pipeline, me.job_id) for snap in main_of(run, world))


def has_rows(run: Run, world: World, pipeline: str, job_id: str) -> bool:
    """Whether readers see rows of a job: what a load asks the data."""
    return any(snap.rows and _is(run, snap, pipeline, job_id) for snap in visible(run, world))


def commit(
    run: Run, world: World, index: int, actor: Actor
) -> tuple[World, int, str | None] | None:
    """Commit a publish based on `actor.at`; None when it is refused.

    Returns the world after it, the snapshot it published, and what it broke.
    """
    base, now = run.tables[actor.at], run.tables[world.table]
    if run.rules.compare_and_set and not _same(run, base, now, (index, actor.round)):
        return None
    snap = _published(run, world, base, index, actor)
    if snap is None:
        return None
    if run.by_spark(index):
        if snap.id == actor.staged and snap not in now.held:
            return None
    elif snap.id in {one.id for one in now.held}:
        return None
    after = now.with_snap(snap).without_branch((index, actor.round))._replace(head=snap.id)
    properties = {**dict(now.properties), **run.properties(actor.at, index, snap)}
    after = after._replace(properties=tuple(sorted(properties.items())))
    landed = world._replace(
        table=run.number(after),
        truth=tuple(sorted({*world.truth, snap})),
        written=world.written - {snap.id},
        landed=world.landed | {index},
    )
    return landed, snap.id, _broken(world, landed, now, after)


def properties_only(run: Run, world: World, index: int) -> tuple[str, World, str | None]:
    """Set the state without a snapshot: nothing is compared, and it is put on top of whatever is
    there (only where the rule of the empty snapshot is taken away)."""
    me, actor = run.everybody[index], world.actors[index]
    now = run.tables[world.table]
    snap = Snap(now.head or 0, None, index, False, actor.before, actor.after)
    properties = {**dict(now.properties), **run.properties(actor.at, index, snap)}
    after = now.without_branch((index, actor.round))._replace(
        properties=tuple(sorted(properties.items()))
    )
    actors = (*world.actors[:index], _ENDED, *world.actors[index + 1 :])
    landed = world._replace(table=run.number(after), actors=actors)
    back = run.state(world.table, me) > actor.after
    broken = "REPEATED: the state goes back, and rows come twice" if back else None
    return "commit properties alone", landed, broken


def _same(run: Run, base: Table, now: Table, of: Round) -> bool:
    if not run.scenario.rest:
        return base == now
    if run.rules.branch_asserted and base.branch(of) != now.branch(of):
        return False
    return base.head == now.head


def _published(run: Run, world: World, base: Table, index: int, actor: Actor) -> Snap | None:
    """Return what the transaction makes the head: the staged snapshot, a copy of it, or a new one
    with the files of the load."""
    if not run.by_spark(index):
        return _added(run, world, base, index, actor)
    staged = next(snap for snap in world.truth if snap.id == actor.staged)
    if base.head == actor.base:
        return staged
    if staged.replaces:
        # Iceberg fast-forwards from any ancestor.
        fits = base.head in {snap.id for snap in lineage(world, staged.id)}
        return staged if fits else None
    merges = run.everybody[staged.author].kind == "merge"
    filled = any(snap.filled for snap in lineage(world, base.head)[:1])
    version = next((snap.version for snap in lineage(world, base.head)), 0)
    return staged._replace(
        id=staged.id + 1 + len(actor.sent),
        parent=base.head,
        copy_of=staged.id,
        filled=staged.rows or filled,
        version=staged.version if merges else version,
    )


def _added(run: Run, world: World, base: Table, index: int, actor: Actor) -> Snap:
    """Return the snapshot of files that are in none, on top of the head: the same in each try."""
    me = run.everybody[index]
    head = next((snap for snap in world.truth if snap.id == base.head), None)
    rows = me.kind != "empty"
    return Snap(
        actor.staged,
        base.head,
        index,
        rows,
        actor.before,
        actor.after,
        me.kind == "overwrite",
        filled=rows or (head is not None and head.filled),
        version=head.version if head is not None else 0,
    )


def _broken(before: World, after: World, now: Table, then: Table) -> str | None:
    old = {snap.id for snap in lineage(before, now.head)}
    new = {snap.id for snap in lineage(after, then.head)}
    if old - new:
        return "LOST: a snapshot of main disappears"
    if new - old - {then.head}:
        return "RESURRECTED: what was rolled back is in main again"
    return None


def _is(run: Run, snap: Snap, pipeline: str, job_id: str) -> bool:
    if snap.author < 0:
        return False
    author = run.everybody[snap.author]
    return (author.pipeline, author.job_id) == (pipeline, job_id)

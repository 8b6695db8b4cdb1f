"""What others do to a table: people, other engines, maintenance, other starts, a slow network."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.iceberg.catalog import commit, lineage, main_of
from tests.model.iceberg.run import Run
from tests.model.iceberg.world import FOREIGN, Snap, World
from tests.model.iceberg.writer import Next

_FIRST_FOREIGN = 1000


def environment(run: Run, world: World) -> Iterator[Next]:
    """Yield what may happen to the table and its source by itself."""
    moves = any(process.goes_on for process in run.everybody)
    if moves and world.source < run.scenario.source_rows:
        yield "the source gets a row", world._replace(source=world.source + 1), None
    for position, (index, actor) in enumerate(world.late):
        rest = world._replace(late=(*world.late[:position], *world.late[position + 1 :]))
        done = commit(run, rest, index, actor)
        name = run.everybody[index].name
        if done is None:
            yield f"the late commit of {name} arrives and is refused", rest, None
        else:
            yield f"the late commit of {name} arrives", done[0], done[2]
    if world.table >= 0:
        yield from _to_the_table(run, world)


def _to_the_table(run: Run, world: World) -> Iterator[Next]:
    table = run.tables[world.table]
    if world.rollbacks and (before := _before_head(run, world)) is not None:
        moved = run.number(table._replace(head=before))
        after = world._replace(table=moved, rollbacks=world.rollbacks - 1)
        yield "a person rolls main back by one snapshot", after, None
    if world.foreign:
        number = _FIRST_FOREIGN - world.foreign
        snap = Snap(number, table.head, FOREIGN)
        after = world._replace(
            table=run.number(table.with_snap(snap)._replace(head=number)),
            truth=tuple(sorted({*world.truth, snap})),
            foreign=world.foreign - 1,
        )
        yield "another engine commits to main", after, None
    if world.expiries:
        yield "maintenance expires all but the heads", _expired(run, world), None
    if world.drops:
        for one, _ in table.branches:
            dropped = run.number(table.without_branch(one))
            after = world._replace(table=dropped, drops=world.drops - 1)
            yield f"another start drops the branch of {run.everybody[one[0]].name}", after, None
    if world.orphans and world.written and run.orphaned(table):
        after = world._replace(deleted=world.deleted | world.written, orphans=world.orphans - 1)
        yield "maintenance removes orphans", after, None


def _before_head(run: Run, world: World) -> int | None:
    """Return the snapshot before the head of main, if the metadata still holds it."""
    found = main_of(run, world)
    held = {snap.id for snap in run.tables[world.table].held}
    return found[1].id if len(found) > 1 and found[1].id in held else None


def _expired(run: Run, world: World) -> World:
    """Keep the heads of main and of the branches; delete the files that nothing names any more."""
    table = run.tables[world.table]
    heads = {table.head, *(snapshot for _, snapshot in table.branches)}
    kept = tuple(snap for snap in table.held if snap.id in heads)
    named = {snap.files for head in heads if head for snap in lineage(world, head)}
    gone = {snap.files for snap in table.held} - named
    return world._replace(
        table=run.number(table._replace(held=kept)),
        deleted=world.deleted | gone,
        expiries=world.expiries - 1,
    )

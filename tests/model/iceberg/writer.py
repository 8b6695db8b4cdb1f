"""Steps of a load: `opening`, `branches`, `stage` and `publish` of the write path."""

from __future__ import annotations

from typing import TypeAlias

from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.formats.iceberg.rules.admission import JobFound
from lakeload_jobs.formats.iceberg.rules.facts import CREATED_BY
from lakeload_jobs.formats.iceberg.rules.publish import Decision, after_drop
from tests.model.iceberg.catalog import commit, has_rows, in_main, properties_only
from tests.model.iceberg.run import Run
from tests.model.iceberg.world import Actor, Round, Snap, Table, World

Next: TypeAlias = tuple[str, World, str | None]
"""A step's name, the world after it, and what it broke."""

_UNANSWERED = 2
"""Commits without an answer after which `publish` drops the branch and looks a last time."""


def step(run: Run, world: World, index: int) -> list[Next]:
    """Return every outcome of an attempt's next step."""
    return _STEPS[world.actors[index].step](run, world, index)


def change(world: World, index: int, **fields: object) -> World:
    """Return the world with another state of one attempt."""
    actor = world.actors[index]._replace(**fields)  # type: ignore[arg-type]
    return world._replace(actors=(*world.actors[:index], actor, *world.actors[index + 1 :]))


def end(world: World, index: int, told: str) -> World:
    """End an attempt; what it was told is all that is kept of it."""
    actors = (*world.actors[:index], Actor("end", told=told), *world.actors[index + 1 :])
    return world._replace(actors=actors)


def _open(run: Run, world: World, index: int) -> list[Next]:
    me, actor = run.everybody[index], world.actors[index]
    if world.table < 0:
        return [("open: no table", change(world, index, seen=-1, step="create"), None)]
    answer = run.find(world.table, me)
    found = answer.found
    if found is JobFound.ASK_THE_DATA:
        ask = run.rules.full_list_asks_the_data
        there = has_rows(run, world, me.pipeline, me.job_id) if ask else False
        found = JobFound.IN if there else JobFound.NOT_IN
    if found is JobFound.IN:
        lie = None if in_main(run, world, me) else "LIE: told `already loaded`, and it is not in"
        return [("open: the job is in", end(world, index, "already"), lie)]
    start = run.start(world.table, index)
    if isinstance(start, LakeloadError):
        told = "stopped" if "rolled back" in str(start) else "refused"
        return [(f"open: {told}", end(world, index, told), None)]
    asked = start.ask_rows_of if run.rules.expired_state_asks_the_data else None
    if asked and not has_rows(run, world, me.pipeline, asked):
        return [("open: the rows of the state are gone", end(world, index, "stopped"), None)]
    before = run.state(world.table, me) if me.goes_on else 0
    if me.goes_on and before == world.source:
        return [("open: nothing new", end(world, index, "nothing"), None)]
    if not run.is_there(world.table, me):
        return [("open: no records to be read again", end(world, index, "nothing"), None)]
    opened = Actor("branch", seen=world.table, round=actor.round, before=before)
    if run.scenario.rejects:
        opened = opened._replace(step="settle", then="branch")
    actors = (*world.actors[:index], opened, *world.actors[index + 1 :])
    return [(f"open: state {before}", world._replace(actors=actors), None)]


def _create(run: Run, world: World, index: int) -> list[Next]:
    if world.table >= 0:
        return [("create: it exists", change(world, index, step="open"), None)]
    table = run.number(Table(properties=((CREATED_BY, run.everybody[index].pipeline),)))
    return [("create", change(world._replace(table=table), index, step="open"), None)]


def _branch(run: Run, world: World, index: int) -> list[Next]:
    table = run.tables[world.table]
    made = run.number(table.with_branch(_round(world, index), table.head or 0))
    world = change(world._replace(table=made), index, step="write", base=table.head)
    return [("make the branch", world, None)]


def _write(run: Run, world: World, index: int) -> list[Next]:
    me = run.everybody[index]
    world = change(world, index, after=world.source if me.goes_on else 0, step="stage")
    if me.kind == "empty" and not run.rules.empty_snapshot:
        return [("no rows", change(world, index, step="properties", at=world.table), None)]
    world = world._replace(written=world.written | {_number(world, index)})
    if not run.by_spark(index):
        return [("write files", _staged(run, world, index), None)]
    return [("write files", world, None)]


def _stage(run: Run, world: World, index: int) -> list[Next]:
    table, actor, me = run.tables[world.table], world.actors[index], run.everybody[index]
    if table.branch(_round(world, index)) is None:
        return [("stage: the branch is gone", end(world, index, "failed"), None)]
    before = {snap.id: snap for snap in world.truth}.get(actor.base or 0)
    version = before.version if before is not None else 0
    late = me.kind == "merge" and me.version < version and run.rules.late_rows_are_ignored
    rows = me.kind != "empty" and not late
    replaces = me.kind == "overwrite"
    filled = rows or (before is not None and before.filled)
    snap = Snap(
        _number(world, index),
        actor.base,
        index,
        rows,
        actor.before,
        actor.after,
        replaces,
        filled=filled,
        version=me.version if me.kind == "merge" and rows else version,
    )
    staged = table.with_snap(snap).with_branch(_round(world, index), snap.id)
    world = world._replace(
        table=run.number(staged),
        truth=tuple(sorted({*world.truth, snap})),
        written=world.written - {snap.id},
    )
    return [("stage", _staged(run, world, index), None)]


def _staged(run: Run, world: World, index: int) -> World:
    aside = run.scenario.rejects and run.rules.rejects_before_publish
    step = "remember" if aside else "publish"
    return change(world, index, step=step, staged=_number(world, index))


def _number(world: World, index: int) -> int:
    """The snapshot that an attempt stages in this round, or publishes in each try of it; copies of
    one that is staged are numbered after it."""
    return 10 * index + 4 * world.actors[index].round + 1


def _properties(run: Run, world: World, index: int) -> list[Next]:
    return [properties_only(run, world, index)]


def _publish(run: Run, world: World, index: int) -> list[Next]:
    actor, me = world.actors[index], run.everybody[index]
    if len(actor.sent) >= _UNANSWERED:
        return [("publish: no answers", change(world, index, step="drop", why="look"), None)]
    verdict = run.verdict(world.table, index, actor)
    if verdict.decision is Decision.GO:
        after = change(world, index, step="commit", at=world.table)
        return [("publish: go", after, None)]
    if verdict.decision is Decision.LANDED:
        return [("publish: it has landed", _ended(run, world, index, "loaded"), None)]
    lie, why = None, "failed"
    if verdict.decision is Decision.NO_OP:
        why = "already"
        if not in_main(run, world, me):
            lie = "LIE: told `already loaded`, and it is not in"
    elif verdict.decision is Decision.RUN_AGAIN and actor.round < run.scenario.rounds:
        why = "again"
    label = f"publish: {verdict.decision.value} {verdict.reason or verdict.error or ''}"
    return [(label, change(world, index, step="drop", why=why), lie)]


def _commit(run: Run, world: World, index: int) -> list[Next]:
    actor = world.actors[index]
    outcomes: list[Next] = []
    done = commit(run, world, index, actor)
    if done is None:
        outcomes.append(("commit: refused", change(world, index, step="publish", at=-1), None))
    else:
        after, snapshot, broken = done
        outcomes.append(("commit", _ended(run, after, index, "loaded"), broken))
        if world.lost:
            unheard = change(after, index, step="publish", at=-1, sent=(*actor.sent, snapshot))
            lost = unheard._replace(lost=world.lost - 1)
            outcomes.append(("commit: in, and the answer is lost", lost, broken))
    if world.delays and done is not None:
        waits = change(world, index, step="publish", at=-1, sent=(*actor.sent, done[1]))
        late = tuple(sorted({*world.late, (index, actor)}))
        delayed = waits._replace(delays=world.delays - 1, late=late)
        outcomes.append(("commit: no answer, it is still under way", delayed, None))
    return outcomes


def _drop(run: Run, world: World, index: int) -> list[Next]:
    table, actor = run.tables[world.table], world.actors[index]
    own = _round(world, index)
    dropped = table.branch(own) is not None
    world = world._replace(table=run.number(table.without_branch(own)))
    label = "drop the branch" if dropped else "drop the branch: it is gone"
    if actor.why == "look":
        return [(label, change(world, index, step="look", why="gone" * (not dropped)), None)]
    if _unknown(run, actor, dropped=dropped):
        return [(label, _ended(run, world, index, "unknown"), None)]
    if actor.why == "again":
        again = change(world, index, step="settle", then="open", round=actor.round + 1)
        return [(label, again if run.scenario.rejects else _again(again, index), None)]
    return [(label, _ended(run, world, index, actor.why), None)]


def _look(run: Run, world: World, index: int) -> list[Next]:
    actor = world.actors[index]
    if run.rules.lost_answers_are_looked_into and run.landed(world.table, index, actor):
        return [("look: it has landed", _ended(run, world, index, "loaded"), None)]
    unknown = _unknown(run, actor, dropped=actor.why != "gone")
    told = "unknown" if unknown else "failed"
    return [("look: it is not in", _ended(run, world, index, told), None)]


def _unknown(run: Run, actor: Actor, *, dropped: bool) -> bool:
    if not run.rules.lost_answers_are_looked_into:
        return False
    return after_drop(dropped=dropped, unknown=bool(actor.sent)) == "UNKNOWN"


def _again(world: World, index: int) -> World:
    again = Actor("open", round=world.actors[index].round)
    return world._replace(actors=(*world.actors[:index], again, *world.actors[index + 1 :]))


def _ended(run: Run, world: World, index: int, told: str) -> World:
    """End an attempt that has made its branch; what it has set aside is settled first."""
    if not run.scenario.rejects:
        return end(world, index, told)
    late = told == "loaded" and not run.rules.rejects_before_publish
    return change(world, index, step="remember" if late else "settle", then=f"told {told}")


def _remember(run: Run, world: World, index: int) -> list[Next]:
    world = change(world, index, step="reject")
    if not run.rules.rejects_are_remembered:
        return [("rejects: nothing is remembered", world, None)]
    return [
        ("rejects: remember", world._replace(pending=world.pending | {_round(world, index)}), None)
    ]


def _reject(run: Run, world: World, index: int) -> list[Next]:
    then = "publish" if run.rules.rejects_before_publish else "settle"
    world = world._replace(side=tuple(sorted((*world.side, _round(world, index)))))
    return [("rejects: append", change(world, index, step=then), None)]


def _round(world: World, index: int) -> Round:
    return index, world.actors[index].round


def _settle(run: Run, world: World, index: int) -> list[Next]:
    if not world.pending:
        return [("settle: nothing", _go_on(world, index), None)]
    fates = tuple((one, "") for one in sorted(world.pending))
    return [("settle: read the side table", change(world, index, step="judge", fates=fates), None)]


def _judge(run: Run, world: World, index: int) -> list[Next]:
    known = world.actors[index].fates
    fates = tuple((one, run.fate(world.table, one)) for one, _ in known)
    return [("settle: read the table", change(world, index, step="remove", fates=fates), None)]


def _remove(run: Run, world: World, index: int) -> list[Next]:
    fates = dict(world.actors[index].fates)
    # The round that has just ended is its own; one of another may yet add its records.
    own = (index, world.actors[index].round - (world.actors[index].then == "open"))
    own = (index, -1) if world.actors[index].then == "branch" else own
    kept = {one for one, fate in fates.items() if fate == "GONE" and one != own}
    side = tuple(one for one in world.side if fates.get(one) != "GONE")
    known = {one for one in world.pending if fates.get(one, "WAITS") == "WAITS"}
    world = world._replace(side=side, pending=frozenset(known | (kept & world.pending)))
    return [("settle: remove", _go_on(world, index), None)]


def _go_on(world: World, index: int) -> World:
    actor = world.actors[index]
    if actor.then.startswith("told "):
        return end(world, index, actor.then.removeprefix("told "))
    if actor.then == "open":
        return _again(world, index)
    return change(world, index, step=actor.then, then="", fates=())


_STEPS = {
    "open": _open,
    "create": _create,
    "branch": _branch,
    "write": _write,
    "stage": _stage,
    "properties": _properties,
    "publish": _publish,
    "commit": _commit,
    "drop": _drop,
    "look": _look,
    "remember": _remember,
    "reject": _reject,
    "settle": _settle,
    "judge": _judge,
    "remove": _remove,
}

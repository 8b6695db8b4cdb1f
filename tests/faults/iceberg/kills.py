"""kill -9 at every step of a load, the inside of the MERGE included, before and after the server
acted; SIGTERM; and requests of the dead that arrive late."""

from __future__ import annotations

from collections.abc import Sequence

from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.contract.traits import FORMATS
from tests.faults.iceberg.case import Case, Note, modes, record, run_cases
from tests.faults.iceberg.rows import FIRST, JOB, MODES, NEXT, NOTHING, Mode
from tests.faults.iceberg.steps import COMMIT, CREATE, REJECTED, Point, points
from tests.faults.iceberg.traps import Traps
from tests.faults.iceberg.world import World, table_name
from tests.faults.product.syncs import Sync, run_sync

SIGTERM = "SIGTERM"
STAGING: tuple[Point, ...] = (
    Point("begin data", 1, after=True),
    Point("write data", 1, after=True),
    Point("complete data", 1, after=False),
    Point("complete data", 1, after=True),
    Point("write manifest", 1, after=True),
)
"""While uploads of data files are open, and when they are completed, and in a manifest too, and no
commit names them."""
WIDENING: tuple[Point, ...] = (
    Point("write manifest", 1, after=True),
    Point("write manifest list", 1, after=True),
    Point(COMMIT, 2, after=False),
    Point(COMMIT, 2, after=True),
)
"""In a load that changes columns, whose second commit is the publish: when its rows are written,
when its snapshot is, and on both sides of the publish."""
Places = dict[tuple[Mode, bool], list[Point]]
"""Mode, and whether the table was loaded before → where such a load can be held."""


def places(world: World, *, rejects: bool = False) -> Places:
    """Record one load of each kind and return the places where a kill makes a difference; with
    `rejects` each load has rejected records."""
    new = {(mode, later): table_name("recorded", mode, later) for mode in MODES for later in (0, 1)}
    name = "rejects" if rejects else "partitions" if world.partition_by else "recorded"
    world.rejecting.update(new.values() if rejects else ())
    seen = record(world, f"{name}-first", FIRST, {new[key]: key[0] for key in new})
    later = {new[key]: key[0] for key in new if key[1]}
    seen |= record(world, f"{name}-later", JOB, later)
    return {(mode, bool(was)): points(seen[new[mode, was]], _matters) for mode, was in new}


def _matters(kind: str) -> bool:
    """What changes something, and the reads inside a MERGE."""
    kind = kind.removeprefix(REJECTED)
    changes = kind.startswith(("begin ", "write ", "complete "))
    return changes or kind in (CREATE, COMMIT, "read data")


def step_kills(
    world: World, found: Places, count: int, note: Note, *, at_once: int, rejects: bool = False
) -> list[Case]:
    """Kill loads at `count` places, drawn evenly from every kind of load and every step. `found` is
    of loads with rejected records where `rejects` is true."""
    drawn = [(mode, later, point) for (mode, later), these in found.items() for point in these]
    world.random.shuffle(drawn)
    # The rarest kinds of steps first: a load writes many files and makes few commits.
    ranks = {one: _rank(one, drawn) for one in drawn}
    drawn.sort(key=lambda one: ranks[one])
    chosen = [drawn[number % len(drawn)] for number in range(count)]
    if rejects:
        return kill_at(world, (), note, at_once=at_once, rejecting=chosen)
    return kill_at(world, chosen, note, at_once=at_once)


def kill_at(
    world: World,
    places: Sequence[tuple[Mode, bool, Point]],
    note: Note,
    *,
    at_once: int,
    then: Sequence[str] = (JOB, NEXT),
    stopped: Sequence[tuple[Mode, bool, Point]] = (),
    widening: Sequence[tuple[Mode, bool, Point]] = (),
    rejecting: Sequence[tuple[Mode, bool, Point]] = (),
    name: str = "kills",
) -> list[Case]:
    """Kill one load at each place: mode, whether the table was loaded before, and where. The jobs
    of `then` take turns at coming next. Those of `stopped` share a sync that SIGTERM ends, those of
    `widening` change columns, and those of `rejecting` have rejected records. `name` begins the
    names of folders."""
    cases, chosen = [], {}
    killed = [*places, *widening, *rejecting]
    plain = len(places) + len(widening)
    for number, (mode, later, point) in enumerate([*killed, *stopped]):
        how = "kill -9" if number < len(killed) else SIGTERM
        table = table_name("kill", number)
        if len(places) <= number < plain:
            how += ", columns"
            world.widening.add(table)
        elif plain <= number < len(killed):
            how += ", rejects"
            world.rejecting.add(table)
        chosen[table] = point
        state = "later" if later else "first"
        told = f"{world.catalog} {mode} {state}, {how} {point}"
        after = then[number % len(then)]
        cases.append(Case(f"{how}, {world.catalog}", told, table, mode, later, after))

    def trouble(world: World, name: str, group: Sequence[Case]) -> None:
        for end, ended in ((_kill, "kill -9"), (_stop, SIGTERM)):
            these = [case for case in group if case.kind.startswith(ended)]
            where = {case.table: chosen[case.table] for case in these}
            if these:
                end(world, f"{name}-{end.__name__}", these, where)

    kinds = ["partitions"] * bool(world.partition_by) + ["rejects"] * bool(rejecting and not places)
    name = "-".join([*kinds, name])
    run_cases(world, name, cases, trouble, at_once=at_once, note=note)
    return cases


def staging_kills(world: World, name: str, note: Note, *, at_once: int) -> list[Case]:
    """Kill loads that leave open uploads or completed files. A load comes next, or none. `name`
    begins the names of folders."""
    modes: tuple[Mode, ...] = ("APPEND", "OVERWRITE")
    places = [(mode, later, point) for mode in modes for later in (0, 1) for point in STAGING]
    chosen = [(mode, bool(later), point) for mode, later, point in places]
    return kill_at(world, chosen, note, at_once=at_once, then=(NOTHING, JOB, NEXT), name=name)


def widening_kills(world: World, note: Note, *, at_once: int) -> list[Case]:
    """Kill loads that change columns. A load comes next, or none."""
    chosen = [(mode, True, point) for mode in MODES for point in WIDENING]
    then = (JOB, NOTHING, NEXT)
    return kill_at(world, (), note, at_once=at_once, then=then, widening=chosen, name="columns")


def _rank(
    one: tuple[Mode, bool, Point], drawn: Sequence[tuple[Mode, bool, Point]]
) -> tuple[int, int]:
    same = [other for other in drawn if _alike(one, other)]
    return same.index(one), drawn.index(one)


def _alike(one: tuple[Mode, bool, Point], other: tuple[Mode, bool, Point]) -> bool:
    return (*one[:2], one[2].kind, one[2].after) == (*other[:2], other[2].kind, other[2].after)


def _kill(world: World, name: str, group: Sequence[Case], where: dict[str, Point]) -> None:
    traps = Traps(where)
    folder = world.write(name, modes(group), JOB)
    with world.watching(traps.act):
        told = traps.spring(Sync(world, folder, JOB))
    for case in group:
        case.told.append(told)
        case.counted = case.table in traps.held
        if not case.counted:
            case.findings.problems.append(
                f"{case.name}: its request never came, {told.stderr[-500:]}"
            )


def _stop(world: World, name: str, group: Sequence[Case], where: dict[str, Point]) -> None:
    """End a sync in order. Its publishes that were on their way then arrive, and are taken."""
    late = [table for table, point in where.items() if point.kind == COMMIT and not point.after]
    traps = Traps(where, late=late)
    folder = world.write(name, modes(group), JOB)
    sync = Sync(world, folder, JOB, spark_home=world.warm_spark)
    with world.watching(traps.act):
        told = traps.spring(sync, Sync.terminate)
        left = sync.left
        traps.deliver()
    said = str(told.document.get("error"))
    for case in group:
        case.told.append(told)
        case.counted = case.table in traps.held
        if where[case.table].kind == COMMIT and FORMATS["ICEBERG"].commit_unknown not in said:
            case.findings.problems.append(f"{case.name}: nobody was told that it may be in: {said}")
        status = told.tables.get(case.table, {}).get("status")
        if (told.code, status, left) != (ExitCode.INTERRUPTED, "INTERRUPTED", []):
            case.findings.problems.append(
                f"{case.name}: ended {told.code}, {status}, processes {left}: {told.stderr[-1500:]}"
            )
        if case.table in late and traps.statuses.get(case.table) != 200:
            case.findings.problems.append(f"{case.name}: its late commit was not taken")


def late_commits(world: World, found: Places, note: Note) -> list[Case]:
    """Kill loads whose publishing commit is on its way, load another job, then let it arrive."""
    cases, chosen = [], {}
    for mode in MODES:
        for later in (False, True):
            last = [point for point in found[mode, later] if point.kind == COMMIT][-2:]
            point = next(one for one in last if not one.after)
            table = table_name("late", mode, later)
            chosen[table] = point
            name = f"{world.catalog} {mode} {'later' if later else 'first'}, late {point}"
            cases.append(Case(f"late commit, {world.catalog}", name, table, mode, later))

    def trouble(world: World, name: str, group: Sequence[Case]) -> None:
        tables = [case.table for case in group]
        traps = Traps({table: chosen[table] for table in tables}, late=tables)
        folder = world.write(name, modes(group), JOB)
        with world.watching(traps.act):
            killed = traps.spring(Sync(world, folder, JOB))
            told = run_sync(world, world.write(f"{name}-next", modes(group), NEXT), NEXT)
            traps.deliver()
        for case in group:
            case.told += [killed, told]
            status = traps.statuses.get(case.table)
            case.counted = status is not None
            if status is None or status < 400:
                case.findings.problems.append(f"{case.name}: it was answered {status}")

    run_cases(world, "late", cases, trouble, at_once=1, note=note)
    return cases

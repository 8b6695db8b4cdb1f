"""Answers that are lost or are errors, at every commit of a load, and at what it writes before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.iceberg.case import Case, Note, modes, run_cases
from tests.faults.iceberg.kills import Places
from tests.faults.iceberg.rows import FIRST, JOB, MARK, RETRY, Mode
from tests.faults.iceberg.steps import COMMIT, CREATE, LOAD, PUBLISH, REJECTED, Point, Step
from tests.faults.iceberg.world import World, table_name
from tests.faults.product.syncs import run_sync
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import Action, Drop, Forward, Response, answer, drop_request


def _acted(action: Action) -> Action:
    def act(request: Request, forward: Forward) -> Response:
        forward(request)
        return action(request, forward)

    return act


FAULTS: dict[str, Action] = {
    "answer lost": _acted(drop_request),
    "request lost": drop_request,
    "500 after acting": _acted(answer(500, "InternalServiceException")),
    "503 after acting": _acted(answer(503, "ServiceUnavailable")),
    "503 instead": answer(503, "ServiceUnavailable"),
}


@dataclass(frozen=True)
class Fault:
    """One fault at one request of a table. `silence`: nobody answers about the table after it."""

    name: str
    point: Point
    silence: bool = False


METADATA = ("write manifest", "write manifest list", "write metadata")
"""What a commit writes into the bucket before it is sent."""


def lost_answers(
    world: World,
    found: Places,
    count: int,
    note: Note,
    *,
    at_once: int,
    rejects: bool = False,
    of: Collection[str] = (CREATE, COMMIT),
) -> list[Case]:
    """Break `count` answers to requests `of` these kinds, the publishing commits first; each job
    must be in, unless the answer was about its rejected records. `found` is of loads that have some
    where `rejects` is true."""
    drawn = [
        (mode, later, Fault(name, point))
        for (mode, later), these in found.items()
        for point in these
        if point.kind.removeprefix(REJECTED) in of and not point.after
        for name in FAULTS
    ]
    world.random.shuffle(drawn)
    drawn.sort(
        key=lambda one: (
            one[2].point.kind != COMMIT or one[2].point.number != _publishing(found, one[0], one[1])
        )
    )
    cases, faults = [], {}
    what = "metadata" if COMMIT not in of else "answer"
    for number, (mode, later, fault) in enumerate(drawn[:count]):
        table = table_name(what, number)
        faults[table] = fault
        world.rejecting.update({table} if rejects else ())
        where = f"{'later' if later else 'first'}, {fault.point.kind} {fault.point.number}"
        name = f"{world.catalog} {mode} {where}, {fault.name}"
        kind = f"{what} broken{', rejects' * rejects}, {world.catalog}"
        cases.append(Case(kind, name, table, mode, later))

    def trouble(world: World, name: str, group: Sequence[Case]) -> None:
        struck = _break(world, name, group, faults)
        for case in group:
            status = case.told[-1].tables.get(case.table, {})
            case.counted = case.table in struck
            if not case.counted:
                case.findings.problems.append(f"{case.name}: its request never came")
            about_rejects = faults[case.table].point.kind.startswith(REJECTED)
            if status.get("status") != "LOADED" and not about_rejects:
                error = status.get("error") or case.told[-1].stderr[-1500:]
                case.findings.problems.append(f"{case.name}: {status.get('status')}: {error}")

    name = f"{'rejects-' * rejects}{what}s"
    run_cases(world, name, cases, trouble, at_once=at_once, note=note)
    return cases


def retries(world: World, note: Note) -> list[Case]:
    """Break the catalog's answer to the publish of a load that reads rejected records again: they
    are in once, and the next retry has nothing to read."""
    cases, broken = [], {}
    for fault in FAULTS:
        table = table_name("retry", fault)
        world.rejecting.add(table)
        broken[table] = Fault(fault, Point(COMMIT, PUBLISH, after=False))
        name = f"{world.catalog} APPEND retry, commit {PUBLISH}, {fault}"
        cases.append(Case(f"retry of rejects, {world.catalog}", name, table, "APPEND", later=True))

    def trouble(world: World, name: str, group: Sequence[Case]) -> None:
        folder = world.write(name, modes(group), FIRST, options={"thousands_mark": MARK})
        struck = _break_sync(world, folder, RETRY, group, broken, "--retry-rejected", FIRST)
        again = run_sync(world, folder, "once-more", "--retry-rejected", FIRST)
        for case in group:
            case.counted = case.table in struck
            if not case.counted:
                case.findings.problems.append(f"{case.name}: its request never came")
            first, second = (one.tables.get(case.table, {}) for one in (case.told[-1], again))
            if (first.get("status"), second.get("status")) != ("LOADED", "NO_OP"):
                said = first.get("error") or second.get("error") or again.stderr[-1500:]
                case.findings.problems.append(
                    f"{case.name}: {first.get('status')}, then {second.get('status')}: {said}"
                )

    run_cases(world, "retries", cases, trouble, at_once=1, note=note)
    return cases


def silences(world: World, found: Places, note: Note) -> list[Case]:
    """The publishing commit is in, its answer is lost, and nobody answers about the table any
    more: what is told then must not be wrong."""
    cases, faults = [], {}
    for (mode, later), these in found.items():
        if not later:
            continue
        number = _publishing(found, mode, later)
        point = next(p for p in these if p.kind == COMMIT and p.number == number)
        table = table_name("silence", mode)
        faults[table] = Fault("answer lost", point, silence=True)
        name = f"{world.catalog} {mode}, silence from {point.kind} {point.number} on"
        cases.append(Case(f"catalog falls silent, {world.catalog}", name, table, mode, later))

    def trouble(world: World, name: str, group: Sequence[Case]) -> None:
        struck = _break(world, name, group, faults)
        for case in group:
            case.counted = case.table in struck

    run_cases(world, "silences", cases, trouble, at_once=1, note=note)
    return cases


def _publishing(found: Places, mode: Mode, later: bool) -> int:
    """The number of a load's last commit."""
    return max(point.number for point in found[mode, later] if point.kind == COMMIT)


def _break(world: World, name: str, group: Sequence[Case], faults: dict[str, Fault]) -> set[str]:
    """Run a sync with one fault for each table; return the tables that it struck."""
    return _break_sync(world, world.write(name, modes(group), JOB), JOB, group, faults)


def _break_sync(
    world: World,
    folder: Path,
    job: str,
    group: Sequence[Case],
    faults: dict[str, Fault],
    *arguments: str,
) -> set[str]:
    counts: Counter[Step] = Counter()
    struck: set[str] = set()
    # Another sync that runs now has its own watcher, which sees these tables too.
    tables = {case.table for case in group}

    def act(step: Step, request: Request, forward: Forward) -> Response | None:
        if step.table not in tables:
            return None
        fault = faults[step.table]
        if step.table in struck:
            if fault.silence and step.kind in (COMMIT, CREATE, LOAD):
                raise Drop
            return None
        counts[step] += 1
        if step.kind != fault.point.kind or counts[step] != fault.point.number:
            return None
        struck.add(step.table)
        return FAULTS[fault.name](request, forward)

    with world.watching(act):
        told = run_sync(world, folder, job, *arguments)
    for case in group:
        case.told.append(told)
    return struck

"""A case is one table in trouble. Many of them share a sync: starting Spark costs the most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tests.faults.findings import Findings
from tests.faults.iceberg.oracle import Oracle
from tests.faults.iceberg.rows import FIRST, JOB, NEXT, Mode
from tests.faults.iceberg.steps import Step
from tests.faults.iceberg.world import World
from tests.faults.product.syncs import IN, Told, run_sync, run_untroubled
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import Forward

Note = Callable[[str], None]

IN_ONE_SYNC = 28
"""Tables that load at once."""


@dataclass
class Case:
    """One table. `later`: it was loaded once before the trouble. `then`: the job that comes next,
    the same again, another, or `NOTHING`."""

    kind: str
    name: str
    table: str
    mode: Mode
    later: bool
    then: str = JOB
    counted: bool = True
    """Whether the trouble struck where it was meant to."""
    told: list[Told] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)


def modes(cases: Sequence[Case]) -> dict[str, Mode]:
    """Return the tables of cases and their modes."""
    return {case.table: case.mode for case in cases}


def groups(cases: Sequence[Case]) -> list[Sequence[Case]]:
    """Divide cases into those of one sync each."""
    return [cases[n : n + IN_ONE_SYNC] for n in range(0, len(cases), IN_ONE_SYNC)]


def run_cases(
    world: World,
    name: str,
    cases: Sequence[Case],
    trouble: Callable[[World, str, Sequence[Case]], None],
    *,
    at_once: int,
    note: Note,
) -> None:
    """Load what is loaded before, make trouble group by group, load untroubled, and compare."""
    oracle = Oracle(world)
    untroubled(world, oracle, f"{name}-before", [case for case in cases if case.later], FIRST)
    named = [(f"{name}-{number}", group) for number, group in enumerate(groups(cases))]
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(lambda one: trouble(world, *one), named))
    for case in cases:
        for told in case.told:
            case.findings.problems += oracle.denies(case.table, told)
    note(f"{name}: {sum(case.counted for case in cases)} of {len(cases)} struck as meant")
    for job in (JOB, NEXT):
        chosen = [case for case in cases if case.then == job]
        untroubled(world, oracle, f"{name}-then-{job}", chosen, job)
    for case in cases:
        for told in case.told:
            case.findings.problems += by_spark(world, case.table, told)
        case.findings.add(oracle.check(case.table, case.told, settled=bool(case.then)))
        if not case.findings.good:
            note(f"VIOLATED {case.name}: {case.findings}")


def untroubled(world: World, oracle: Oracle, name: str, cases: Sequence[Case], job: str) -> None:
    """Run one sync of the cases' tables with nothing in the way; it must go through."""
    if not cases:
        return
    told = run_untroubled(world, world.write(name, modes(cases), job), job)
    for case in cases:
        case.told.append(told)
        status = told.tables.get(case.table, {})
        if status.get("status") not in IN:
            said = status.get("error") or told.stderr[-1500:]
            case.findings.problems.append(
                f"{case.table}: the untroubled {job} ended {status.get('status')}, "
                f"exit {told.code}: {said}"
            )
        case.findings.problems += oracle.denies(case.table, told)


def by_spark(world: World, table: str, told: Told) -> list[str]:
    """Return that Spark has written the data files of a load that lakeload has to write."""
    result = told.tables.get(table, {})
    if result.get("status") != "LOADED" or result["writer"] == "direct":
        return []
    if not world.written_by_lakeload(table):
        return []
    return [f"{table}: {told.job_id} was written by {result['writer']}"]


def record(world: World, name: str, job: str, tables: dict[str, Mode]) -> dict[str, list[str]]:
    """Run one sync untroubled and return the steps of each table in order."""
    seen: dict[str, list[str]] = {table: [] for table in tables}

    def act(step: Step, request: Request, forward: Forward) -> None:
        if step.table in seen:
            seen[step.table].append(step.kind)

    with world.watching(act):
        told = run_sync(world, world.write(name, tables, job), job)
    if told.code != 0:
        raise RuntimeError(f"an untroubled sync ended with {told.code}: {told.stderr[-3000:]}")
    if problems := [text for table in tables for text in by_spark(world, table, told)]:
        raise RuntimeError("; ".join(problems))
    return seen

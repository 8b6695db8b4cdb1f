"""A case: trouble for some tables, then an untroubled end, then the comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tests.faults.findings import Findings
from tests.faults.product.oracle import Snapshot, check_tables, check_truth
from tests.faults.product.syncs import IN, Told, run_command, untroubled
from tests.faults.product.world import World

JOB = "troubled"
"""The job id of a case that needs only one; it is run again afterwards."""


@dataclass
class Case:
    """One way to be disturbed. `times` is how many faults it holds."""

    kind: str
    name: str
    tables: tuple[str, ...]
    trouble: Callable[[World, Case], list[Told]]
    times: int = 1
    alone: bool = False
    """Whether it needs the machine for itself."""
    before: tuple[str, ...] = ()
    """Tables that have been loaded once before the trouble."""
    findings: Findings = field(default_factory=Findings)
    told: list[Told] = field(default_factory=list)


Note = Callable[[str], None]


def run_cases(
    world: World,
    cases: Sequence[Case],
    *,
    at_once: int,
    note: Note,
    then: Sequence[str] = (JOB, "next"),
) -> None:
    """Disturb every case, load the jobs of `then` untroubled into all tables, and compare; the
    findings are in the cases.

    The untroubled syncs take the tables of many cases together: starting Spark costs the most.
    """
    _load_before(world, cases)
    together = [case for case in cases if not case.alone]
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(lambda case: _disturb(world, case, note), together))
    for case in cases:
        if case.alone:
            _disturb(world, case, note)
    _settle(world, cases, then)
    snapshot = Snapshot(world, [table for case in cases for table in case.tables])
    for case in cases:
        told = {table: _told_in(case, table) for table in case.tables}
        case.findings.add(check_tables(world, snapshot, case.tables, told))
        if not case.findings.good:
            note(f"VIOLATED {case.name}: {case.findings}")


def _load_before(world: World, cases: Sequence[Case]) -> None:
    tables = [table for case in cases for table in case.before]
    if not tables:
        return
    for told in untroubled(world, f"before-{tables[0]}", tables, "first"):
        for case in cases:
            case.told.append(told)
        cases[0].findings.problems += check_truth(world, told, tables)


def _disturb(world: World, case: Case, note: Note) -> None:
    rules = list(world.proxy.rules)
    troubled = case.trouble(world, case)
    case.told += troubled
    # Rules of cases that run beside this one concern other tables.
    world.off(*(rule for rule in world.proxy.rules if _about(rule, case) and rule not in rules))
    for told in troubled:
        case.findings.problems += check_truth(world, told, case.tables)
    codes = [told.code for told in troubled]
    note(f"{case.name}: {len(case.tables)} tables, exit codes {codes}")


def _settle(world: World, cases: Sequence[Case], jobs: Sequence[str]) -> None:
    """Run each job, then recover; each must go through."""
    tables = [table for case in cases for table in case.tables]
    name = f"untroubled-{tables[0]}"
    for told in untroubled(world, name, tables, *jobs):
        for case in cases:
            case.told.append(told)
            case.findings.problems += [
                f"{table}: the untroubled {told.job_id} ended {told.tables.get(table)}, "
                f"exit {told.code}\n{told.stderr[-2000:]}"
                for table in case.tables
                if told.tables.get(table, {}).get("status") not in IN
            ]
        cases[0].findings.problems += check_truth(world, told, tables)
    command = ("recover", "pipeline.yml", "--abort-older-than", "0")
    code, stderr = run_command(world, world.folder / name, *command)
    if code != 0:
        cases[0].findings.problems.append(f"recover ended {code}: {stderr[-2000:]}")


def _about(rule: object, case: Case) -> bool:
    return bool(set(getattr(rule, "tables", ())) & set(case.tables))


def _told_in(case: Case, table: str) -> set[str]:
    """The jobs that were told to be in this table, by any sync."""
    return {told.job_id for told in case.told if told.tables.get(table, {}).get("status") in IN}

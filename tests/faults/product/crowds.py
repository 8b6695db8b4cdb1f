"""Eight syncs of one table at once: with eight ids, with one, and with each id twice."""

from __future__ import annotations

from tests.faults.product.case import JOB, Case
from tests.faults.product.syncs import Sync, Told
from tests.faults.product.world import World

CROWD = 8

_ROUNDS = (
    ("different", [f"crowd-{number}" for number in range(CROWD)]),
    ("same", [JOB] * CROWD),
    ("twice", [f"crowd-{number // 2}" for number in range(CROWD)]),
)


def crowds(world: World, rounds: int) -> list[Case]:
    """Return so many rounds of eight syncs at once."""
    return [_round(number) for number in range(rounds)]


def _round(number: int) -> Case:
    kind, jobs = _ROUNDS[number % len(_ROUNDS)]
    name = f"crowd-{number}-{kind}"

    def trouble(world: World, case: Case) -> list[Told]:
        folders = [world.write(f"{case.name}-{n}", case.tables) for n in range(CROWD)]
        started = [Sync(world, folder, job) for folder, job in zip(folders, jobs, strict=True)]
        told = [sync.end() for sync in started]
        for table in case.tables:
            loaded = sum(
                told_one.tables.get(table, {}).get("status") == "LOADED" for told_one in told
            )
            if loaded != len(set(jobs)):
                case.findings.problems.append(f"{table}: LOADED was told {loaded} times of {jobs}")
        return told

    tables = (f"crowd_{number}_a", f"crowd_{number}_b")
    return Case("8 syncs at once", name, tables, trouble, alone=True)

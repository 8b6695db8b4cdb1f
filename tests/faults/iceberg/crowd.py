"""Many writers of one table at once: drivers of their own, each running whole load jobs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.command import environment
from tests.faults.iceberg.case import Case, Note, untroubled
from tests.faults.iceberg.oracle import Oracle
from tests.faults.iceberg.rows import FIRST, Mode
from tests.faults.iceberg.world import World, table_name
from tests.faults.product.syncs import IN

SECONDS = 1800.0


@dataclass(frozen=True)
class Writer:
    """One process: its pipeline, and the jobs that it runs one after the other."""

    name: str
    table: str
    mode: Mode
    jobs: tuple[str, ...]


def appenders(world: World, writers: int, jobs: int, note: Note) -> list[Case]:
    """So many appenders with so many jobs each: every job is in once."""
    table = table_name("appenders")
    crew = [_writer(table, "APPEND", n, jobs) for n in range(writers)]
    name = f"{world.catalog}: {writers} appenders of {jobs} jobs"
    case = Case("writers at once", name, table, "APPEND", later=True)
    return [_together(world, case, crew, note)]


def appenders_and_merge(world: World, writers: int, jobs: int, note: Note) -> list[Case]:
    """Appenders against a MERGE of the same table: all land in the end."""
    table = table_name("against")
    crew = [_writer(table, "APPEND", n, jobs) for n in range(writers)]
    crew.append(_writer(table, "UPSERT", writers, max(jobs // 2, 1)))
    name = f"{world.catalog}: {writers} appenders of {jobs} jobs against MERGE"
    # Loaded by a MERGE before, so that the table has a key.
    case = Case("writers at once", name, table, "UPSERT", later=True)
    return [_together(world, case, crew, note)]


def _writer(table: str, mode: Mode, number: int, jobs: int) -> Writer:
    ids = tuple(f"w{number}-{number * 100 + job}" for job in range(jobs))
    return Writer(f"shop_{number}", table, mode, ids)


def _together(world: World, case: Case, crew: Sequence[Writer], note: Note) -> Case:
    oracle = Oracle(world)
    untroubled(world, oracle, f"{case.table}-before", [case], FIRST)
    drivers = [_start(world, writer) for writer in crew]
    statuses: dict[str, tuple[str, str | None]] = {}
    for driver in drivers:
        stdout, stderr = driver.communicate(timeout=SECONDS)
        if driver.returncode != 0:
            case.findings.problems.append(f"a driver ended {driver.returncode}: {stderr[-3000:]}")
            continue
        statuses |= json.loads(stdout.splitlines()[-1])
    expected = [job for writer in crew for job in writer.jobs]
    for job in expected:
        status, by = statuses.get(job, ("", None))
        if status not in IN:
            case.findings.problems.append(f"{case.table}: {job} ended {status}")
        # Spark writes appends that have no key into a table that has one.
        if status == "LOADED" and case.mode == "APPEND" and by != "direct":
            case.findings.problems.append(f"{case.table}: {job} was written by {by}")
    jobs = oracle.jobs(case.table)
    if sorted(jobs) != sorted([FIRST, *expected]):
        case.findings.problems.append(f"{case.table}: in are {sorted(jobs)}")
    case.findings.add(oracle.check(case.table, case.told))
    note(f"{case.name}: {len(expected)} jobs, {len(jobs) - 1} in")
    if not case.findings.good:
        note(f"VIOLATED {case.name}: {case.findings}")
    return case


def _start(world: World, writer: Writer) -> subprocess.Popen[str]:
    """Start a writer's driver; it ends with the status of each job in JSON."""
    settings: dict[str, Any] = {"name": writer.name, "table_handling": "APPEND"}
    documents = {
        job: str(world.write(f"{writer.table}-{job}", {writer.table: writer.mode}, job, **settings))
        for job in writer.jobs
    }
    # The ids of the jobs have nothing in common: whatever a job's mode is, it adds its rows.
    world.modes[writer.table] = "APPEND"
    folder = world.folder / f"{writer.table}-{writer.name}"
    folder.mkdir(parents=True)
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.iceberg.driver", str(folder), json.dumps(documents)],
        cwd=Path(__file__).parents[3],
        env=environment(world.lake, folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

"""What `recover` and `maintain` remove after trouble, compared with what has to be gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from lakeload.documents.load import load_pipeline
from lakeload.documents.spec import destination_spec, table_specs
from lakeload.launch.run_folder import RunFolder
from lakeload.launch.spec import build_job_spec, new_attempt
from lakeload_jobs.contract.maintain import MaintainSpec
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.maintain import run
from tests.e2e.command import environment
from tests.faults.iceberg.case import Case, Note
from tests.faults.iceberg.driver import session
from tests.faults.iceberg.oracle import Oracle
from tests.faults.iceberg.rows import JOB, Mode
from tests.faults.iceberg.world import World
from tests.faults.product.syncs import SECONDS, run_command

NOW = MaintainSpec(
    ("branches", "uploads", "orphans"), apply=True, orphans_older_than=0, abort_older_than=0
)
"""What the command refuses for orphans: nothing loads meanwhile."""


def clean_up(
    world: World, cases: Sequence[Case], note: Note, *, spark: SparkSession | None = None
) -> int:
    """Recover every other table, maintain all of them, and look for what is left and what is gone.

    `spark` is this process's own session; without one, another process starts one. Returns how many
    uploads and files `maintain` had to remove.
    """
    oracle = Oracle(world)
    tables = {case.table: case for case in cases}
    recovered = list(tables.values())[::2]
    folder = world.write("recover", _modes(world, recovered), JOB)
    code, said = run_command(world, folder, "recover", "pipeline.yml", "--abort-older-than", "0")
    if code != 0:
        raise RuntimeError(f"`lakeload recover` ended with {code}: {said[-3000:]}")
    for case in recovered:
        case.findings.add(oracle.uploads(case.table))
        if world.removes_files:
            case.findings.add(oracle.files(case.table, of_tasks=True))
    before = sum(_left(oracle, table) for table in tables)
    documents = world.write("maintain", _modes(world, list(tables.values())), JOB)
    failed = _maintain_elsewhere(world, documents) if spark is None else maintain(spark, documents)
    for case in tables.values():
        case.findings.problems += failed.get(case.table, [])
        case.findings.add(oracle.check(case.table, case.told))
        case.findings.add(oracle.uploads(case.table))
        if world.removes_files:
            case.findings.add(oracle.files(case.table))
        if not case.findings.good:
            note(f"VIOLATED {case.name}: {case.findings}")
    note(f"clean-up of {len(tables)} tables: `maintain` had {before} uploads and files to remove")
    return before


def _modes(world: World, cases: Sequence[Case]) -> dict[str, Mode]:
    return {case.table: world.modes[case.table] for case in cases}


def _left(oracle: Oracle, table: str) -> int:
    return oracle.uploads(table).left + oracle.files(table).left


def maintain(spark: SparkSession, documents: Path) -> dict[str, list[str]]:
    """Maintain the tables of documents now; return what failed, by table."""
    document = load_pipeline(documents / "pipeline.yml", os.environ)
    tables, attempt = table_specs(document), new_attempt("maintain")
    destination = destination_spec(document.destination)
    spec = build_job_spec(document, destination, tables, attempt, RunFolder(documents))
    with EventLog(spec.events_path) as events:
        done = run(spark, replace(spec, job="maintain", maintain=NOW), events)
    if done.error is not None:
        raise RuntimeError(f"the maintenance failed: {done.error}")
    return {
        table.table: [f"{table.table}: {error}" for error in errors]
        for table in done.tables
        if (errors := [e for e in (table.error, *(one.error for one in table.steps)) if e])
    }


def _maintain_elsewhere(world: World, documents: Path) -> dict[str, list[str]]:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.faults.iceberg.clean_up", str(documents)],
        cwd=Path(__file__).parents[3],
        env=environment(world.lake, documents),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if ended.returncode != 0:
        raise RuntimeError(f"the maintenance ended {ended.returncode}: {ended.stderr[-3000:]}")
    found: dict[str, list[str]] = json.loads(ended.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    place = Path(sys.argv[1])
    sys.stdout.write(json.dumps(maintain(session(place), place)) + "\n")

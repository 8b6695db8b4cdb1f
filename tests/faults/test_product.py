"""Two of the campaign's cases: `make faults` runs all of them, this runs at each change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.product.campaign import CHAPTERS
from tests.faults.product.case import JOB, run_cases
from tests.faults.product.world import World
from tests.servers.fault_proxy import FaultProxy
from tests.servers.ministack import Lake

TWO = {
    "kill5-first-completion-after",
    "command-while-committing",
}
"""A kill past the commit, and one of the command: no other test makes them in a whole sync."""


@pytest.mark.e2e
@pytest.mark.timeout(900)
def test_syncs_after_kills_and_faults_are_committed_once(
    lake: Lake, fault_proxy: FaultProxy, tmp_path: Path, warm_spark_home: Path
) -> None:
    world = World(lake, fault_proxy, tmp_path, "six", glue=True)
    world.warm_spark = world.killed_spark = warm_spark_home
    cases = [case for chapter in CHAPTERS.values() for case in chapter(world) if case.name in TWO]
    assert {case.name for case in cases} == TWO
    notes: list[str] = []
    run_cases(world, cases, at_once=2, note=notes.append, then=[JOB])
    assert [case.findings for case in cases if not case.findings.good] == [], "\n".join(notes)

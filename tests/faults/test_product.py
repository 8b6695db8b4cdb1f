"""Six of the campaign's cases: `make faults` runs all of them, this runs at each change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.product.campaign import CHAPTERS
from tests.faults.product.case import run_cases
from tests.faults.product.world import World
from tests.servers.class_data import cache_with_class_data
from tests.servers.fault_proxy import FaultProxy
from tests.servers.ministack import Lake

SIX = {
    "kill1-record-after",
    "kill5-first-completion-after",
    "injected-00",
    "worker-retried",
    "command-while-committing",
    "source-grows",
}


@pytest.mark.e2e
@pytest.mark.timeout(900)
def test_every_job_is_in_once_after_kills_faults_and_a_changing_source(
    lake: Lake, fault_proxy: FaultProxy, tmp_path: Path
) -> None:
    cache = cache_with_class_data()
    world = World(lake, fault_proxy, tmp_path, "six", glue=True, cache=cache)
    cases = [case for chapter in CHAPTERS.values() for case in chapter(world) if case.name in SIX]
    assert {case.name for case in cases} == SIX
    notes: list[str] = []
    run_cases(world, cases, at_once=2, note=notes.append)
    assert [case.findings for case in cases if not case.findings.good] == [], "\n".join(notes)

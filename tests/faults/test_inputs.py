"""Some hundred hostile inputs at each change: `make faults` makes thousands a minute."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from tests.faults.inputs import watch
from tests.faults.inputs.targets import TARGETS
from tests.faults.inputs.watch import run_cases

FEW = {"inspect": 100, "load": 100, "plan": 60, "configuration": 40, "file systems": 40}


@pytest.mark.parametrize("target", TARGETS)
def test_no_hostile_input_ends_a_command_by_a_bug(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A busy machine is no hang.
    monkeypatch.setattr(watch, "SECONDS", 120)
    seed = 1  # The same inputs each time; `make faults` draws others.
    cases = list(run_cases(target, seed, FEW[target]))
    again = f"python -m tests.faults.inputs --only '{target}' --seed {seed} --times {FEW[target]}"

    assert len(cases) == FEW[target]
    assert [case.finding for case in cases if case.finding] == [], again


def test_findings_are_bugs_hangs_and_ends_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def misbehave(random: Random, folder: Path) -> None:
        match folder.name:
            case "1":
                raise LoadFailed("as it should be")
            case "2":
                raise IndexError("a bug")
            case "3":
                os.abort()
            case "4":
                os.read(os.pipe()[0], 1)

    monkeypatch.setitem(TARGETS, "inspect", misbehave)
    monkeypatch.setattr(watch, "SECONDS", 1)

    found = [case.finding for case in run_cases("inspect", 0, 6)]

    assert found[:2] == ["", ""]
    assert "IndexError: a bug" in found[2]
    assert found[3:] == ["ended the process with status -6", "takes more than 1 seconds", ""]

"""Some hundred hostile inputs at each change: `make faults` makes thousands a minute."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from tests.faults.inputs import watch
from tests.faults.inputs.targets import TARGETS
from tests.faults.inputs.watch import run_cases

ROOT = Path(__file__).parents[2]
FEW = {
    "inspect": 100,
    "load": 100,
    "plan": 60,
    "configuration": 40,
    "file systems": 40,
    "stored objects": 200,
    "run folders": 40,
}


@pytest.mark.parametrize("target", TARGETS)
def test_no_hostile_input_ends_a_command_by_a_bug(target: str) -> None:
    # As `make faults` runs it, in a process without what other tests have left. The seed is
    # fixed, so that each run has the same inputs; `make faults` draws others.
    command = [sys.executable, "-m", "tests.faults.inputs", "--only", target, "--seed", "1"]
    command += ["--times", str(FEW[target]), "--seconds", "120"]  # A busy machine is no hang.

    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert f"{FEW[target]} inputs      0 findings" in ended.stdout, ended.stdout + ended.stderr
    assert ended.returncode == 0


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

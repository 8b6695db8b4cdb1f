"""What every campaign ends with: its table, what was violated, and how to repeat it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults.__main__ import _table
from tests.faults.findings import Findings
from tests.faults.layer import Outcome, Wanted, report, run_layer

GOOD = Outcome("kill", "kill-1", 2, Findings())
BAD = Outcome("kill", "kill-2", 1, Findings(3, 4, 5, ["rows are gone"]), "--only kill-2")


def test_fault_report_counts_by_class_and_verifies_at_the_end() -> None:
    lines = report([GOOD, BAD, Outcome("late", "late-1", 7, Findings())], "again --seed 1")
    assert [line.split() for line in _table(lines)[1:]] == [
        ["kill", "3", "3", "4", "5"],
        ["late", "7", "0", "0", "0"],
    ]


def test_fault_violation_prints_the_command_that_repeats_it() -> None:
    lines = report([GOOD, BAD], "python -m tests.faults.x --seed 1")
    assert lines[-2:] == [
        "\nkill-2: rows are gone",
        "again: python -m tests.faults.x --seed 1 --only kill-2",
    ]
    whole = [Outcome("kill", name, 1, Findings(left=1)) for name in ("one", "two")]
    assert report(whole, "again")[-1:] == ["again: again"]
    assert not any(line.startswith("again") for line in report([GOOD], "again"))


def test_fault_campaign_with_a_violation_fails_and_keeps_its_folder(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", {**os.environ, "AWS_PROFILE": "the developer's"})
    folders: list[Path] = []

    def run(wanted: Wanted) -> list[Outcome]:
        assert "AWS_PROFILE" not in os.environ
        folders.append(wanted.folder)
        return [GOOD, BAD] if wanted.includes("kill-2") else [GOOD]

    assert run_layer("tests.faults.x", None, "cases", run, ["--only", "kill-1"]) == 0
    assert run_layer("tests.faults.x", None, "cases", run, ["--seed", "7"]) == 1
    assert [folder.exists() for folder in folders] == [False, True]
    assert "again: python -m tests.faults.x --seed 7 --only kill-2" in capsys.readouterr().out
    folders[1].rmdir()


def test_fault_campaign_that_runs_nothing_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    with pytest.raises(SystemExit):
        run_layer("tests.faults.x", None, "cases", lambda _: [], ["--only", "none"])
    assert "nothing was run" in capsys.readouterr().err

"""Mutations run again when the code that they change, or the test that watches, is touched."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults.mutations.__main__ import Verdicts, recorded
from tests.faults.mutations.proven import (
    MUTATIONS,
    fingerprints,
    read_proven,
    record,
    to_prove,
)
from tests.faults.mutations.test_mutate import SOURCE, WITHOUT_THE_CHECK


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one mutation, `no_check`, that is recorded."""
    _write(tmp_path / "sparkjobs/log.py", SOURCE)
    _write(tmp_path / "tests/test_log.py", "def test_once(): pass\n")
    _write(tmp_path / "no_check.patch", WITHOUT_THE_CHECK)
    record(fingerprints([tmp_path / "no_check.patch"], tmp_path), tmp_path / "proven.json")
    return tmp_path


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _due(root: Path) -> set[str]:
    return to_prove([root / "no_check.patch"], root, root / "proven.json")


def test_recorded_mutation_is_not_due(root: Path) -> None:
    assert _due(root) == set()


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("sparkjobs/log.py", "def put(self, key):", "def put(self, key, value=None):"),
        ("sparkjobs/log.py", "    def put", "    @final\n    def put"),
        ("sparkjobs/log.py", "may be faster", "may be slower"),
        ("sparkjobs/log.py", "return self.write(key)", "return self.write(key, 1)"),
        ("tests/test_log.py", "pass", "assert True"),
        ("no_check.patch", 'key += "x"', 'key += "y"'),
    ],
)
def test_touched_function_patch_or_test_makes_mutation_due(
    root: Path, file: str, old: str, new: str
) -> None:
    text = (root / file).read_text(encoding="utf-8")
    assert old in text
    _write(root / file, text.replace(old, new))
    assert _due(root) == {"no_check"}


@pytest.mark.parametrize(
    "text",
    [
        SOURCE.replace("return None", "return True"),
        f"import os\n{SOURCE}",
        SOURCE.replace("class Log", "class Book"),
    ],
)
def test_other_code_of_the_module_makes_no_mutation_due(root: Path, text: str) -> None:
    assert text != SOURCE
    _write(root / "sparkjobs/log.py", text)
    assert _due(root) == set()


def test_moved_function_makes_no_mutation_due(root: Path) -> None:
    (root / "sparkjobs/log.py").rename(root / "sparkjobs/moved.py")
    assert _due(root) == set()


def test_mutation_without_a_record_is_due(root: Path) -> None:
    record({}, root / "proven.json")
    assert _due(root) == {"no_check"}


def test_every_recorded_mutation_exists() -> None:
    """`python -m tests.faults.mutations` drops the others."""
    assert read_proven().keys() - {file.stem for file in MUTATIONS} == set()


def test_record_keeps_what_passed_and_drops_what_failed_or_is_gone() -> None:
    proven = {"old": "0", "touched": "1", "failed": "2", "gone": "3"}
    current = {"old": "0", "touched": "4", "failed": "2", "new": "5", "new_failed": "6"}
    noticed = {"touched": True, "failed": False, "new": True, "new_failed": False}
    assert recorded(proven, current, noticed) == {"old": "0", "touched": "4", "new": "5"}


def test_verdict_is_that_of_all_phases_of_a_mutations_test() -> None:
    verdicts = Verdicts()
    for nodeid, passed in [
        ("test_a.py::test_a[good]", True),
        ("test_a.py::test_a[good]", True),
        ("test_a.py::test_a[bad]", False),
        ("test_a.py::test_a[bad]", True),
        ("test_a.py::test_b", True),
    ]:
        report: Any = SimpleNamespace(nodeid=nodeid, passed=passed)
        verdicts.pytest_runtest_logreport(report)
    assert verdicts.noticed == {"good": True, "bad": False}

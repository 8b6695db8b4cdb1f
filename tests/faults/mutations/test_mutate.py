"""Mutations stand at one place of today's sources each, and say so when they do not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.faults.mutations.mutate import MisplacedMutation, mutate, read_mutation
from tests.faults.mutations.proven import MUTATIONS, ROOT

SOURCE = """\
class Log:
    def put(self, key):
        # Somebody may be faster.

        if self.taken(key):
            return False
        return self.write(key)

    def other(self, key):
        if self.taken(key):
            return False
        return None
"""
WITHOUT_THE_CHECK = """\
Rule: a key is written once.
Test: tests/test_log.py::test_once

@@ put
-if self.taken(key):
-    return False
+key += "x"
 return self.write(key)
"""


@pytest.mark.parametrize("file", MUTATIONS, ids=lambda file: file.stem)
def test_mutation_matches_exactly_one_place(file: Path) -> None:
    mutation = read_mutation(file)
    changed = mutate(mutation, ROOT / "sparkjobs")
    assert changed
    for path, text in changed.items():
        ast.parse(text)
        assert text != path.read_text(encoding="utf-8")
    test, _, name = mutation.test.partition("::")
    assert f"def {name}(" in (ROOT / test).read_text(encoding="utf-8")


def _mutated(tmp_path: Path, patch: str, **sources: str) -> dict[str, str]:
    (tmp_path / "sources" / "deep").mkdir(parents=True)
    for name, text in sources.items():
        (tmp_path / "sources" / "deep" / f"{name}.py").write_text(text, encoding="utf-8")
    file = tmp_path / "no_check.patch"
    file.write_text(patch, encoding="utf-8")
    changed = mutate(read_mutation(file), tmp_path / "sources")
    return {path.stem: text for path, text in changed.items()}


def test_mutation_is_found_in_any_file(tmp_path: Path) -> None:
    changed = _mutated(tmp_path, WITHOUT_THE_CHECK, log=SOURCE, empty="")
    assert list(changed) == ["log"]
    assert changed["log"].splitlines()[1:6] == [
        "    def put(self, key):",
        "        # Somebody may be faster.",
        "",
        '        key += "x"',
        "        return self.write(key)",
    ]
    assert changed["log"].splitlines()[7:] == SOURCE.splitlines()[8:]


def test_indentation_comments_and_blank_lines_do_not_matter(tmp_path: Path) -> None:
    moved = """\
def put(self, key):
    if self.taken(key):

        # Taken.
        return False
    return self.write(key)
"""
    changed = _mutated(tmp_path, WITHOUT_THE_CHECK, log=moved)
    assert changed == {"log": 'def put(self, key):\n    key += "x"\n    return self.write(key)\n'}


def test_a_mutation_whose_code_has_changed_says_where_its_function_is(tmp_path: Path) -> None:
    changed = SOURCE.replace("return self.write(key)", "return self.write(key, b'')")
    with pytest.raises(MisplacedMutation, match=r"fits at 0 places.*`put`.*log\.py:2"):
        _mutated(tmp_path, WITHOUT_THE_CHECK, log=changed)


def test_a_mutation_whose_function_is_gone_says_so(tmp_path: Path) -> None:
    with pytest.raises(MisplacedMutation, match=r"fits at 0 places of a function `put`.*: -"):
        _mutated(tmp_path, WITHOUT_THE_CHECK, log=SOURCE.replace("def put", "def write"))


def test_a_mutation_that_fits_at_two_places_names_both(tmp_path: Path) -> None:
    with pytest.raises(MisplacedMutation, match=r"fits at 2 places.*one\.py:5.*two\.py:5"):
        _mutated(tmp_path, WITHOUT_THE_CHECK, one=SOURCE, two=SOURCE)


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ("Rule: r.\nTest: t\n", "needs the lines"),
        ("Rule: r.\n\n@@ put\n-a\n+b\n", "needs the lines"),
        ("Rule: r.\nTest: t\n\n@@ put\na\n", "begins with"),
        ("Rule: r.\nTest: t\n\n@@ put\n+b\n", "code to stand at"),
        ("Rule: r.\nTest: t\n\n@@ put\n a\n", "and a change"),
    ],
)
def test_invalid_mutation_file_is_rejected(tmp_path: Path, patch: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _mutated(tmp_path, patch, log=SOURCE)

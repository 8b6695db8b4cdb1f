"""Every document of tests/cases/invalid gets exactly the diagnostics that stand beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lakeload.config.problems import Problem
from lakeload.documents.load import check
from lakeload.ui.problems import problem_text
from tests.unit.documents.diagnostics import ENVIRONMENT, INVALID, WIDTH, diagnostics, problems

NAMES = sorted(path.stem for path in INVALID.glob("*.yaml"))
HIDDEN = (
    *("AKIAIOSFODNN7EXAMPLE", "not-a-real-key-but-a-literal", "84315", "changeme", "hunter2"),
    *("literal-that-stays-hidden", "hidden: even here", "not a name, maybe the key", "id:secret"),
    *("not-shown", "padded", "Not_A_Bucket"),
)


@pytest.fixture(autouse=True)
def in_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(INVALID)


@pytest.mark.parametrize("name", NAMES)
def test_an_invalid_document_gets_its_diagnostics(name: str) -> None:
    expected = (INVALID / f"{name}.txt").read_text(encoding="utf-8")

    assert diagnostics(name) == expected


@pytest.mark.parametrize("name", NAMES)
def test_an_invalid_document_has_an_error(name: str) -> None:
    assert any(problem.severity == "error" for problem in problems(name))


def test_every_diagnostics_file_has_its_document() -> None:
    assert sorted(path.stem for path in INVALID.glob("*.txt")) == NAMES


def test_the_documents_differ_in_cause() -> None:
    causes = {(INVALID / f"{name}.txt").read_text().split("\n -->")[0] for name in NAMES}

    assert len(causes) >= 60
    assert len({problem.code for problem in _all_problems()}) >= 30


@pytest.mark.parametrize("secret", HIDDEN)
def test_secret_of_a_document_is_in_no_diagnostics(secret: str) -> None:
    documents = [path.read_bytes() for path in INVALID.glob("*.yaml")]
    sources = [*documents, *(value.encode() for value in ENVIRONMENT.values())]

    assert any(secret.encode() in source for source in sources)
    assert not [name for name in NAMES if secret in (INVALID / f"{name}.txt").read_text()]


def test_every_line_fits_eighty_columns() -> None:
    lines = [line for name in NAMES for line in diagnostics(name).splitlines()]

    assert [line for line in lines if len(line) > WIDTH] == []


def test_no_diagnostics_hold_a_control_character() -> None:
    odd = [name for name in NAMES if not diagnostics(name).replace("\n", "").isprintable()]

    assert odd == []


def test_every_problem_of_a_setting_has_a_place_and_a_line_to_show() -> None:
    for problem in _all_problems():
        assert problem.message
        if problem.key:
            assert problem.line >= 1
            assert problem.snippets[-1].line == problem.line


def test_caret_is_below_the_reported_key() -> None:
    [problem] = check([Path("unknown-key.yaml")], {})

    lines = problem_text(problem, 80).plain.splitlines()

    assert lines[2][lines[3].index("^") : lines[3].rindex("^") + 1] == "regoin"


def _all_problems() -> Iterator[Problem]:
    for name in NAMES:
        yield from problems(name)


@pytest.mark.parametrize("name", ["x" * 300, "folder/" * 200 + "x", "\0"])
def test_destination_whose_name_no_file_can_have_is_an_error(tmp_path: Path, name: str) -> None:
    document = {"version": 1, "name": "shop", "destination": name}
    (tmp_path / "pipeline.yml").write_text(yaml.safe_dump(document), encoding="utf-8")

    found = check([tmp_path / "pipeline.yml"], {})

    assert any("destination" in problem.message for problem in found)


@pytest.mark.timeout(20)
def test_document_with_a_value_of_many_digits_takes_no_time(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yml").write_text(f"version: 1\nname: {'9' * 300_000}x\n")

    assert check([tmp_path / "pipeline.yml"], {})

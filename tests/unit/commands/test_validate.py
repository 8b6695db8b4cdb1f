"""`lakeload validate` and `lakeload schema` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pytest

from tests.unit.commands.command import CONFIGS, lakeload
from tests.unit.documents.documents import validator

INVALID = Path(__file__).parents[2] / "cases" / "invalid"


def test_validate_valid_files_are_listed_and_exits_with_0() -> None:
    process = lakeload("validate", "destination-role.yaml", "pipeline-csv.yaml")

    assert process.returncode == 0
    assert process.stdout == (
        "destination-role.yaml is a valid destination\npipeline-csv.yaml is a valid pipeline\n"
    )
    assert process.stderr == ""


def test_validate_problems_are_on_stdout_and_exits_with_2() -> None:
    process = lakeload("validate", "unknown-key.yaml", folder=INVALID)

    assert process.returncode == 2
    assert process.stdout == (INVALID / "unknown-key.txt").read_text()
    assert process.stderr == ""


def test_all_problems_of_all_files_are_shown_once() -> None:
    names = ["destination-with-problems.yaml", "unknown-key.yaml", "bucket-name.yaml"]

    document = json.loads(lakeload("validate", *names, "--output", "json", folder=INVALID).stdout)

    assert [item["valid"] for item in document["files"]] == [False, False, False]
    assert [(item["file"], item["line"]) for item in document["problems"]] == [
        ("destination-with-problems.yaml", 5),
        ("unknown-key.yaml", 3),
        ("bucket-name.yaml", 2),
        ("bucket-name.yaml", 3),
    ]


def test_validate_json_has_the_documented_keys() -> None:
    process = lakeload("validate", "unknown-key.yaml", "--output", "json", folder=INVALID)

    documented = (CONFIGS.parent / "docs" / "configuration.md").read_text()
    example = json.loads(documented.partition("```json\n")[2].partition("```")[0])
    answer = json.loads(process.stdout)
    assert process.returncode == 2
    answer["files"][0]["file"] = answer["problems"][0]["file"] = "destination.yml"
    assert answer == example


def test_a_warning_or_a_note_leaves_the_exit_code_zero(tmp_path: Path) -> None:
    text = (CONFIGS / "destination-role.yaml").read_text()
    (tmp_path / "d.yaml").write_text(f"{text}iceberg: {{format_version: 2}}\n")

    process = lakeload("validate", "d.yaml", folder=tmp_path, LAKELOAD_EXTERNAL_ID="canary-5b ")

    assert process.returncode == 0
    assert process.stdout.endswith("d.yaml is a valid destination\n1 warning, 1 note\n")
    assert "canary-5b" not in process.stdout + process.stderr


def test_validate_quiet_prints_nothing_for_valid_files() -> None:
    assert lakeload("validate", "-q", "pipeline-csv.yaml").stdout == ""


def test_a_missing_file_is_a_problem_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yml").write_text("", "utf-8")
    names = ("no.yaml", "also/no.yaml", "pipelin.yaml")
    process = lakeload("validate", *names, folder=tmp_path)

    assert process.returncode == 2
    assert process.stdout.count("error: the file cannot be read: no such file or directory") == 3
    assert process.stdout.count("did you mean") == 1
    assert "did you mean `pipeline.yml`?" in process.stdout
    assert "the folder `also` does not exist" in process.stdout


def test_the_name_of_a_file_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    name = "[red]\x1b[31m\n:smile:.yaml"
    (tmp_path / name).write_text((CONFIGS / "destination-role.yaml").read_text())

    process = lakeload("validate", name, folder=tmp_path)

    assert process.stdout == "[red]\\x1b[31m\\n:smile:.yaml is a valid destination\n"


@pytest.mark.parametrize("kind", ["destination", "pipeline"])
def test_the_schema_is_one_json_document(kind: Literal["destination", "pipeline"]) -> None:
    process = lakeload("schema", kind)

    assert process.returncode == 0
    assert json.loads(process.stdout) == validator(kind).schema

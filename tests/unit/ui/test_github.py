"""Problems as workflow commands: what GitHub reads back is what was said."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from typer.testing import CliRunner

from lakeload.app import app
from lakeload.config.problems import Problem
from lakeload.ui.validation import annotation, path_in_repository


def read_back(line: str) -> tuple[str, dict[str, str], str]:
    """Read a line as a runner does: command, properties and message, escapes resolved."""
    match = re.fullmatch(r"::(\w+) (.*?)::(.*)", line)
    assert match, line
    properties = dict(item.split("=", 1) for item in match[2].split(","))
    return match[1], {name: unquote(value) for name, value in properties.items()}, unquote(match[3])


def test_a_problem_keeps_its_place_its_message_and_its_hint() -> None:
    problem = Problem(
        "error", "unknown-key", "unknown key `a`", "d.yml", 3, 7, 1, hint="one\n  two"
    )

    assert annotation(problem, None).endswith("::unknown key `a`%0Aone%0A  two")
    command, properties, message = read_back(annotation(problem, None))
    assert command == "error"
    assert properties.pop("file").endswith("d.yml")
    assert properties == {"line": "3", "col": "7", "title": "lakeload: unknown-key"}
    assert message == "unknown key `a`\none\n  two"


@pytest.mark.parametrize(
    ("severity", "command"), [("error", "error"), ("warning", "warning"), ("note", "notice")]
)
def test_each_severity_has_its_command(severity: str, command: str) -> None:
    problem = Problem(severity, "c", "m", "d.yml", 1, 1)  # type: ignore[arg-type]

    assert read_back(annotation(problem, None))[0] == command


def test_github_output_escapes_workflow_commands(tmp_path: Path) -> None:
    name = "a,line=9::100%:b.yml"
    message = "100% of `a::b,c`\r\n::error::x"
    problem = Problem("error", "c", message, str(tmp_path / name), 1, 2)

    line = annotation(problem, tmp_path)

    assert "\n" not in line
    assert "\r" not in line
    _, properties, read = read_back(line)
    assert properties == {"file": name, "line": "1", "col": "2", "title": "lakeload: c"}
    assert read == message


def test_a_problem_of_a_whole_file_has_no_line(tmp_path: Path) -> None:
    problem = Problem("error", "unreadable", "m", "d.yml")

    assert set(read_back(annotation(problem, tmp_path))[1]) == {"file", "title"}


def test_a_path_begins_at_the_root_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    below = tmp_path / "repo" / "lake" / "conf"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)

    assert path_in_repository("d.yml", None) == "lake/conf/d.yml"
    assert path_in_repository("../d.yml", None) == "lake/d.yml"
    assert path_in_repository(str(below / "d.yml"), None) == "lake/conf/d.yml"
    # A workspace may hold several repositories, each in a folder of its own.
    assert path_in_repository("d.yml", tmp_path) == "lake/conf/d.yml"


def test_a_submodule_belongs_to_the_repository_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / ".git").write_text("gitdir: ../.git/modules/sub\n")
    monkeypatch.chdir(tmp_path / "sub")

    assert path_in_repository("d.yml", None) == "sub/d.yml"


def test_a_worktree_and_a_checkout_without_git_have_a_root_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tree" / "conf").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "tree" / "conf")
    assert path_in_repository("d.yml", tmp_path / "tree") == "conf/d.yml"

    (tmp_path / "tree" / ".git").write_text("gitdir: /elsewhere\n")
    assert path_in_repository("d.yml", None) == "conf/d.yml"


def test_a_workspace_reached_through_a_link_is_the_same_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "d.yml").touch()
    monkeypatch.chdir(tmp_path / "real")

    assert path_in_repository("d.yml", tmp_path / "link") == "d.yml"


def test_a_file_outside_of_any_repository_keeps_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert path_in_repository("conf/d.yml", None) == "conf/d.yml"


def test_validate_annotates_every_problem_and_sums_them_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "d.yml").write_text("version: 1\nbucket: my-data-lake\nregoin: us-east-1\n")
    (tmp_path / "e.yml").write_text("version: 1\nbucket: my-data-lake\nregion: us-east-1\n")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    result = CliRunner().invoke(app, ["validate", "d.yml", "e.yml", "--output", "github"])

    assert result.exit_code == 2
    assert result.stdout.splitlines() == [
        "::error file=d.yml,line=3,col=1,title=lakeload%3A unknown-key"
        "::unknown key `regoin`%0Adid you mean `region`?",
        "checked 2 files: 1 error",
    ]
    assert result.stderr == ""


def test_a_file_without_problems_gets_no_annotation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "e.yml").write_text("version: 1\nbucket: my-data-lake\nregion: us-east-1\n")
    monkeypatch.chdir(tmp_path)

    result = CliRunner().invoke(app, ["validate", "e.yml", "--output", "github"])

    assert (result.exit_code, result.stdout) == (0, "checked 1 file: no problems\n")

"""`make changed`: which files changed, which tests run in which order, and what is left out."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import changed as module
from tests import scheduler
from tests.changed import (
    BUDGET,
    QUICK,
    SPARK,
    WIDTH,
    Choice,
    UnknownBase,
    affordable,
    changed_files,
    choose,
    lint,
    report,
)
from tests.import_graph import FAR, Graph, Module

IDS = "sparkjobs/lakeload_jobs/rows/ids.py"
NEAR = "tests/unit/rows/test_ids.py"


@pytest.fixture(autouse=True)
def files_that_need_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the name of a file say whether it needs Spark: these files are not there."""
    monkeypatch.setattr(scheduler, "needs_spark", lambda file: "spark" in file)


def _git(folder: Path, *arguments: str) -> None:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a commit on main."""
    _git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    for name in ("kept.py", "edited.py", "removed.py", "moved.py"):
        (tmp_path / name).write_text(f"# {name}\n", encoding="utf-8")
    (tmp_path / ".gitignore").write_text("ignored.py\n", encoding="utf-8")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "--quiet", "--message", "first")
    return tmp_path


def test_uncommitted_and_untracked_files_have_changed(repository: Path) -> None:
    assert changed_files(None, repository) == ("HEAD", [])
    (repository / "edited.py").write_text("a = 1\n", encoding="utf-8")
    (repository / "removed.py").unlink()
    _git(repository, "mv", "moved.py", "new name.py")
    (repository / "untracked.py").touch()
    (repository / "ignored.py").touch()
    changed = ["edited.py", "moved.py", "new name.py", "removed.py", "untracked.py"]
    assert changed_files(None, repository) == ("HEAD", changed)


def test_commits_of_a_branch_have_changed_since_it_left_its_upstream(repository: Path) -> None:
    _git(repository, "switch", "--quiet", "--create", "topic", "--track", "main")
    (repository / "edited.py").write_text("a = 1\n", encoding="utf-8")
    _git(repository, "commit", "--quiet", "--all", "--message", "second")
    _git(repository, "switch", "--quiet", "main")
    (repository / "kept.py").write_text("a = 1\n", encoding="utf-8")
    _git(repository, "commit", "--quiet", "--all", "--message", "third")
    _git(repository, "switch", "--quiet", "topic")
    assert changed_files(None, repository)[1] == ["edited.py"]
    assert changed_files("HEAD", repository) == ("HEAD", [])
    assert changed_files("main", repository) == ("main", ["edited.py", "kept.py"])
    _git(repository, "branch", "--unset-upstream")
    assert changed_files(None, repository) == ("HEAD", [])
    _git(repository, "update-ref", "refs/remotes/origin/main", "main")
    assert changed_files(None, repository)[1] == ["edited.py"]


def test_unknown_base_is_an_error(repository: Path) -> None:
    with pytest.raises(UnknownBase, match="nowhere"):
        changed_files("nowhere", repository)


def _graph(edges: dict[str, list[str]], strings: dict[str, str] | None = None) -> Graph:
    """Return a graph by what each module leads to, and strings of modules."""
    paths = {*edges, *(path for paths in edges.values() for path in paths), *(strings or {})}
    modules = {
        path: Module(
            *(path, frozenset(), frozenset({(strings or {}).get(path, "")}), frozenset()),
            *(frozenset(), False),
        )
        for path in paths
    }
    users = {
        path: frozenset(user for user, leads_to in edges.items() if path in leads_to)
        for path in paths
    }
    return Graph(modules, users, frozenset())


def test_tests_run_from_the_nearest_to_the_farthest() -> None:
    graph = _graph(
        {
            "tests/unit/jobs/test_load.py": ["sparkjobs/lakeload_jobs/jobs/load.py"],
            "tests/unit/rows/test_other.py": ["sparkjobs/lakeload_jobs/jobs/load.py"],
            "tests/integration/rows/test_job.py": ["sparkjobs/lakeload_jobs/jobs/load.py"],
            "tests/integration/rows/test_spark_ids.py": [IDS],
            "sparkjobs/lakeload_jobs/jobs/load.py": [IDS],
            "tests/unit/test_without.py": [],
            NEAR: [IDS],
        }
    )
    assert choose([IDS], graph, {}).run == {
        NEAR: 1,
        "tests/integration/rows/test_spark_ids.py": 1,
        "tests/unit/rows/test_other.py": 2,
        "tests/unit/jobs/test_load.py": 2,
        "tests/integration/rows/test_job.py": 2,
    }


def test_changed_test_runs_and_no_other() -> None:
    graph = _graph({NEAR: [IDS], "tests/unit/test_b.py": [IDS]})
    assert choose([NEAR], graph, {}) == Choice({NEAR: 0}, [], [])


def test_file_that_is_read_leads_to_its_readers() -> None:
    edges = {NEAR: ["tests/rows.py"], "tests/unit/test_b.py": []}
    graph = _graph(edges, {"tests/rows.py": "docs/rows.md"})
    assert choose(["docs/rows.md"], graph, {}) == Choice({NEAR: 1}, [], [])


def test_removed_module_leads_to_the_tests_of_its_folder() -> None:
    assert choose(["sparkjobs/lakeload_jobs/rows/gone.py"], _graph({NEAR: [IDS]}), {}).run == {
        NEAR: 1
    }


def test_file_that_no_module_reads_leads_to_the_tests_of_the_project() -> None:
    graph = _graph({"tests/test_docs.py": [], NEAR: []})
    choice = choose(["LICENSE"], graph, {})
    assert choice == Choice({"tests/test_docs.py": FAR}, [], ["LICENSE"])
    assert any("LICENSE" in line for line in report(["LICENSE"], choice, {}))


def test_settings_of_the_project_lead_to_all_tests() -> None:
    graph = _graph({"tests/test_docs.py": [], NEAR: []})
    assert choose(["pyproject.toml"], graph, {}).run.keys() == {"tests/test_docs.py", NEAR}


def _layers(*names: str) -> list[str]:
    return [f"tests/{name}/test_a.py" for name in names]


def test_all_quick_tests_and_all_changed_ones_run() -> None:
    quick = [*_layers("unit", "corpus", "model", "faults/mutations"), "tests/test_docs.py"]
    assert {module.layer(test) for test in quick} == set(QUICK)
    changed, other = _layers("e2e", "integration")
    times = dict.fromkeys([*quick, changed, other], BUDGET * 2.0)
    assert affordable([*quick, changed, other], {changed}, times) == {*quick, changed}


def test_the_nearest_slow_tests_run_as_far_as_they_fit_into_the_budget() -> None:
    first, large, last = _layers("integration/a", "integration/b", "integration/c")
    times = {first: BUDGET / 2, large: BUDGET / 2 + 1, last: BUDGET / 2}
    assert affordable([first, large, last], set(), times) == {first, last}


def test_the_start_of_spark_counts_once() -> None:
    tests = _layers("integration/spark/a", "integration/spark/b", "integration/c")
    times = dict.fromkeys(tests, (BUDGET - SPARK) / 2)
    assert affordable(tests, set(), times) == set(tests[:2])
    assert affordable(tests[1:], set(), times) == set(tests[1:])


@pytest.mark.parametrize(
    ("changed", "programs"),
    [
        ([IDS], ["ruff", "ruff", "mypy", "lint-imports"]),
        ([NEAR], ["ruff", "ruff", "mypy"]),
        (["pyproject.toml"], ["ruff", "ruff", "mypy", "lint-imports"]),
        (["docs/types.md"], []),
    ],
)
def test_lint_checks_what_a_change_can_break(changed: list[str], programs: list[str]) -> None:
    assert [Path(command[0]).name for command in lint(changed)] == programs


def test_report_names_what_is_left_out_and_fits_a_terminal() -> None:
    near = [f"tests/unit/rows/test_ids_of_every_kind_{n}.py" for n in range(9)]
    choice = Choice(dict.fromkeys(near, 1), _layers("e2e", "integration"), [])
    lines = report([f"sparkjobs/module_{n}.py" for n in range(12)], choice, {})
    assert all(len(line) <= WIDTH for line in lines)
    text = "\n".join(lines)
    assert "… and 4 more" in text
    assert "unit 9" in text
    assert "Left out: 2 files, about 23 CPU s (e2e 1, integration 1)" in text
    assert "`make test` runs them" in text


def _main(
    monkeypatch: pytest.MonkeyPatch, changed: list[str], statuses: dict[str, int], *arguments: str
) -> tuple[int, list[str]]:
    """Run it with these changes; return its status, and the programs that ran."""
    ran = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        program = "pytest" if "pytest" in command else Path(command[0]).name
        ran.append(program)
        return subprocess.CompletedProcess(command, statuses.get(program, 0))

    monkeypatch.setattr(module, "changed_files", lambda base: (base or "HEAD", changed))
    monkeypatch.setattr(module, "read_graph", lambda: _graph({NEAR: [IDS]}))
    monkeypatch.setattr(subprocess, "run", run)
    return module.main(arguments), ran


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        ({}, 0),
        ({"pytest": 1}, 1),
        ({"pytest": 5}, 0),
        ({"mypy": 2, "pytest": 1}, 2),
        ({"ruff": 3, "mypy": 2}, 3),
    ],
)
def test_status_is_that_of_the_first_check_that_fails(
    monkeypatch: pytest.MonkeyPatch, statuses: dict[str, int], status: int
) -> None:
    programs = ["ruff", "ruff", "mypy", "lint-imports", "pytest"]
    assert _main(monkeypatch, [IDS], statuses) == (status, programs)


def test_without_a_change_nothing_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _main(monkeypatch, [], {}, "--base", "v1") == (0, [])
    assert capsys.readouterr().out == "Nothing differs from v1.\n"


def test_list_runs_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _main(monkeypatch, [IDS], {}, "--list") == (0, [])
    assert capsys.readouterr().out.splitlines()[-1].split() == ["1", "0.5", "s", NEAR]


def test_pytest_keeps_the_order_of_the_files() -> None:
    names = ["tests/servers/test_free_ports.py", "tests/unit/contract/test_traits.py"]
    command = [*module.test_command(names, dict.fromkeys(names, 1)), "--collect-only"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    files = dict.fromkeys(line.split("::")[0] for line in listed.splitlines() if "::" in line)
    assert list(files) == names

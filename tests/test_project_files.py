"""Workflows, hooks, templates, the lock file and the Dockerfile are valid and up to date."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.pages import command

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONS = sorted((ROOT / ".github" / "actions").glob("*/action.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def document(path: Path) -> Any:
    """Return a YAML file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps() -> Iterator[dict[str, Any]]:
    """Yield every step of every workflow and action."""
    for path in WORKFLOWS:
        for job in document(path)["jobs"].values():
            yield from job.get("steps", ())
    for path in ACTIONS:
        yield from document(path)["runs"]["steps"]


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("vendor.github-workflows", "workflows/*.yml"),
        ("vendor.github-actions", "actions/*/action.yml"),
        ("vendor.github-issue-forms", "ISSUE_TEMPLATE/[!c]*.yml"),
        ("vendor.github-issue-config", "ISSUE_TEMPLATE/config.yml"),
        ("vendor.dependabot", "dependabot.yml"),
    ],
)
def test_files_for_github_keep_to_their_schema(schema: str, pattern: str) -> None:
    files = [str(path) for path in (ROOT / ".github").glob(pattern)]
    assert files
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *files]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_every_action_is_pinned_to_a_commit_with_its_version() -> None:
    used = [
        line
        for path in (*WORKFLOWS, *ACTIONS)
        for line in re.findall(r"uses: (\S+.*)", path.read_text(encoding="utf-8"))
        if not line.startswith("./")
    ]
    assert len(used) > 10
    assert [line for line in used if not re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line)] == []
    pins = {line.split("@")[0]: line for line in used}
    assert set(used) == set(pins.values()), "one version of each action"


@pytest.mark.parametrize("path", WORKFLOWS, ids=[path.name for path in WORKFLOWS])
def test_a_workflow_may_only_read_and_ends_in_time(path: Path) -> None:
    workflow = document(path)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert "uses" in job or job["timeout-minutes"] <= 60, name
        allowed = {
            "publish": {"id-token"},
            "notes": {"contents"},
            "deploy": {"pages", "id-token"},
        }.get(name, set())
        assert set(job.get("permissions", {})) == allowed, name
    for step in steps():
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_workflows_call_targets_and_files_that_exist() -> None:
    targets = re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    commands = [step["run"] for step in steps() if "run" in step]
    called = {word for command in commands for word in _targets(command)}
    assert {"lint", "unit", "e2e", "setup", "localstack", "docs"} <= called <= set(targets)
    files = {
        word
        for command in commands
        for word in shlex.split(command)
        if word.startswith(("tests/", "requirements.", "Dockerfile")) and "*" not in word
    }
    assert {"tests/integration", "requirements.lock", "Dockerfile"} <= files
    assert [name for name in files if not (ROOT / name).exists()] == []


def _targets(command: str) -> list[str]:
    return command.removeprefix("make ").split() if command.startswith("make ") else []


def test_every_supported_python_is_linted_and_tested() -> None:
    jobs = document(ROOT / ".github/workflows/ci.yml")["jobs"]
    for name in ("lint", "unit"):
        assert jobs[name]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert PROJECT["requires-python"] == ">=3.11"


def test_every_layer_of_tests_has_a_job() -> None:
    run = " ".join(step["run"] for step in steps() if "run" in step)
    for layer in ("tests/model", "tests/faults", "tests/integration", "make unit", "make e2e"):
        assert layer in run


def test_hooks_run_programs_of_the_environment() -> None:
    [local] = document(ROOT / ".pre-commit-config.yaml")["repos"]
    assert len({hook["id"] for hook in local["hooks"]}) == len(local["hooks"]) >= 5
    for hook in local["hooks"]:
        program = Path(hook["entry"].split()[0])
        assert program.parent == Path(".venv/bin")
        assert shutil.which(program.name, path=str(Path(sys.executable).parent))
        re.compile(hook.get("files", ""))


def locked() -> dict[str, list[str]]:
    """Return the lines of each pinned package."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith((" ", "#")):
            requirement = Requirement(line.removesuffix(" \\"))
            lines = found.setdefault(canonicalize_name(requirement.name), [])
            [version] = [one.version for one in requirement.specifier if one.operator == "=="]
            lines.append(version)
        elif line.lstrip().startswith("--hash="):
            lines.append(line.strip())
    return found


def test_the_lock_file_has_every_dependency_in_its_range_with_hashes() -> None:
    pins = locked()
    for text in PROJECT["dependencies"]:
        requirement = Requirement(text)
        lines = pins[canonicalize_name(requirement.name)]
        versions = [line for line in lines if not line.startswith("--hash=")]
        assert versions, text
        assert all(requirement.specifier.contains(version) for version in versions), text
    for name, lines in pins.items():
        assert any(line.startswith("--hash=sha256:") for line in lines), name


def test_the_lock_file_names_no_index() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in text
    assert "--index" not in text.replace("--no-emit-index-url", "")


def test_the_image_runs_without_privileges_and_with_what_is_locked() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    instructions = re.findall(r"^([A-Z]+) (.*)$", text, re.MULTILINE)
    names = [name for name, _ in instructions]
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert dict(instructions)["USER"] not in ("root", "0")
    assert dict(instructions)["ENTRYPOINT"] == '["lakeload"]'
    assert "--require-hashes --requirement /src/requirements.lock" in text
    assert "openjdk-21-jre-headless" in text
    copied = [word for name, rest in instructions if name == "COPY" for word in rest.split()[:-1]]
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8")
    for name in copied:
        if not name.startswith(("--from", "/")):
            assert f"!{name}\n" in allowed
            assert (ROOT / name).exists()


def test_commands_of_the_image_exist_with_their_options() -> None:
    lines = [
        line.removeprefix("RUN ")
        for line in (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
        if line.startswith("RUN lakeload ")
    ]
    assert lines == ["lakeload jars fetch"]
    for line in lines:
        _, name, *words = shlex.split(line)
        with command(name).make_context(name, words):
            pass


def test_paths_that_the_security_page_names_exist() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/.]+)`", text)
    assert len(named) > 5
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_packages_are_marked_as_typed() -> None:
    assert "Typing :: Typed" in PROJECT["classifiers"]
    for package in ("cli/lakeload", "sparkjobs/lakeload_jobs"):
        assert (ROOT / package / "py.typed").read_bytes() == b""


_NO_JAVA = """
import lakeload.machine.java as java
from lakeload_jobs.contract.errors import MachineNotReady

def missing(environ):
    raise MachineNotReady("Java was not found")

java.find_java = missing
"""


def _find_java(before: str = "") -> subprocess.CompletedProcess[str]:
    """Run the program with which `make setup` searches for Java."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    program = text.partition("define FIND_JAVA\n")[2].partition("endef\n")[0]
    return subprocess.run(
        [sys.executable, "-S", "-c", before + program],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": "cli:sparkjobs"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_make_setup_with_java_finds_it_with_the_standard_library_alone() -> None:
    found = _find_java()
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


def test_make_setup_without_java_names_the_command_that_installs_it() -> None:
    found = _find_java(_NO_JAVA)
    assert (found.returncode, found.stderr) == (1, "Java was not found\n")
    assert found.stdout.strip()

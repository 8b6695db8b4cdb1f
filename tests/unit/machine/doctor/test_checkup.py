"""Each check stands alone; and what a screen, a pipe and a program are shown of all of them."""

from __future__ import annotations

import ast
import io
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

from lakeload.checks import CheckStatus, Verdict
from lakeload.machine.doctor import checks
from lakeload.machine.doctor.checks import CHECKS
from lakeload.machine.doctor.model import (
    Check,
    CheckContext,
    CheckResult,
    run_checks,
)
from lakeload.ui import console
from lakeload.ui.checks import findings_json, show_findings, word
from lakeload.ui.console import OutputFormat, Stream
from lakeload_jobs.contract.errors import MachineNotReady
from tests.unit.machine.doctor.machines import context, statuses

FINDINGS = tomllib.loads(Path(checks.__file__).with_name("findings.toml").read_text("utf-8"))
SICK = Verdict(
    (
        CheckResult("python", CheckStatus.PASSED, "Python 3.11"),
        CheckResult("clock", CheckStatus.SKIPPED, "not asked"),
        CheckResult(
            "proxies", CheckStatus.WARNING, "[red]odd[/red]", "because " * 12, "export A=b"
        ),
        CheckResult("java", CheckStatus.FAILED, "no Java was found", "", "apt install java"),
    ),
    0.25,
)


def test_doctor_failing_check_does_not_affect_others(tmp_path: Path) -> None:
    def broken(_: CheckContext) -> Iterator[CheckResult]:
        yield CheckResult("early", CheckStatus.PASSED, "seen")
        raise PermissionError(13, "Permission denied")

    def lacking(_: CheckContext) -> Iterator[CheckResult]:
        raise MachineNotReady("no Java")

    def well(_: CheckContext) -> Iterator[CheckResult]:
        yield CheckResult("well", CheckStatus.PASSED, "seen")

    checks = [Check("broken", broken), Check("lacking", lacking), Check("well", well)]
    found = run_checks(context(tmp_path), checks).results
    assert [(one.name, word(one)) for one in found] == [
        ("early", "ok"),
        ("broken", "warning"),
        ("lacking", "warning"),
        ("well", "ok"),
    ]
    assert "Permission denied" in found[1].why


def test_doctor_check_without_a_result_times_out(tmp_path: Path) -> None:
    ever = threading.Event()

    def silent(_: CheckContext) -> Iterator[CheckResult]:
        yield CheckResult("first", CheckStatus.PASSED, "seen")
        ever.wait()

    def said(_: CheckContext) -> CheckResult:
        return CheckResult("told", CheckStatus.FAILED, "silence")

    hasty = context(tmp_path, seconds=0.05)
    found = run_checks(hasty, [Check("silent", silent), Check("other", silent, said)]).results
    ever.set()
    assert statuses(list(found)) == {"first": "ok", "silent": "warning", "told": "problem"}
    assert found[1].why == "no response within 0.05 s"
    assert found[1].command == "lakeload doctor --timeout 0.2s"


def test_doctor_bug_in_a_check_is_raised(tmp_path: Path) -> None:
    def buggy(_: CheckContext) -> Iterator[CheckResult]:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        run_checks(context(tmp_path), [Check("buggy", buggy)])


def _calls() -> Iterator[tuple[str, set[str]]]:
    """Yield the finding that each call names, and the values that it gives."""
    for path in Path(checks.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "described":
                key, values = node.args[0], {str(word.arg) for word in node.keywords}
                names = [key.body, key.orelse] if isinstance(key, ast.IfExp) else [key]
                for name in names:
                    if isinstance(name, ast.Constant):
                        yield str(name.value), values
                    else:  # the variable of the environment that it is about
                        yield from ((one, values) for one in FINDINGS if one.isupper())


def test_doctor_finding_texts_get_all_their_values() -> None:
    called: dict[str, set[str]] = {}
    for key, values in _calls():
        assert called.setdefault(key, values) == values
    wanted = {
        key: {name for text in texts.values() for _, name, _, _ in Formatter().parse(text) if name}
        for key, texts in FINDINGS.items()
    }
    assert called == wanted


def test_doctor_checks_import_no_module_in_threads() -> None:
    """Two threads that import modules of one package at once can lock each other out."""
    for path in Path(checks.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        nested = [node for function in functions for node in ast.walk(function)]
        assert not [node for node in nested if isinstance(node, ast.Import | ast.ImportFrom)], path


def test_doctor_on_an_empty_machine_runs_every_check(tmp_path: Path) -> None:
    report = run_checks(context(tmp_path, offline=True, seconds=60), CHECKS)
    found = statuses(list(report.results))
    assert (found["java"], found["bash"], found["clock"]) == ("problem", "problem", "skipped")
    assert not report.passed
    assert {check.name for check in CHECKS} - {
        "temporary-folder",
        "secrets",
        "own-folders",
        "extras",
    } <= {*found}


def shown(monkeypatch: pytest.MonkeyPatch, *, terminal: bool, quiet: bool = False) -> list[str]:
    text = io.StringIO()
    stream = Stream(
        file=text,
        width=80,
        markup=False,
        highlight=False,
        force_terminal=terminal,
        color_system=None,
        _environ={"TERM": "xterm"},
    )
    monkeypatch.setattr(console, "out", stream)
    console.configure(quiet=quiet, output=OutputFormat.TEXT)
    show_findings(SICK, Path("p.yml"), 4)
    console.configure()
    return [line.rstrip() for line in text.getvalue().splitlines()]


def test_doctor_on_a_terminal_prints_a_table_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, terminal=True)
    assert max(map(len, lines)) <= 80
    assert lines[0] == " ✓  python   Python 3.11"
    assert " !  proxies  [red]odd[/red]" in lines
    assert lines[-2:] == [
        "             → apt install java",
        "problems found for `p.yml`: 1 problem, 1 warning, 1 ok in 0.2 s",
    ]


def test_doctor_in_a_pipe_prints_a_line_per_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, terminal=False)
    assert [line.split()[:2] for line in lines if not line.startswith(" ")][:4] == [
        ["ok", "python"],
        ["skipped", "clock"],
        ["warning", "proxies"],
        ["problem", "java"],
    ]
    assert lines[-2].strip() == "→ apt install java"


def test_doctor_quiet_prints_only_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, terminal=False, quiet=True)
    assert not any("python" in line or "clock" in line for line in lines)
    assert any("java" in line for line in lines)


def test_doctor_json_has_the_documented_keys() -> None:
    document = findings_json(SICK, None, 4)
    assert {key: value for key, value in document.items() if key != "findings"} == {
        "status": "problem",
        "file": None,
        "seconds": 0.25,
        "exit_code": 4,
    }
    assert document["findings"][3] == {
        "name": "java",
        "status": "problem",
        "found": "no Java was found",
        "why": None,
        "command": "apt install java",
    }

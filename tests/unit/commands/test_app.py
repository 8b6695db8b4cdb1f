"""Exit codes, streams and errors of the command line as a whole."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from importlib.abc import MetaPathFinder
from importlib.metadata import version
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from lakeload import app as application
from lakeload.__main__ import main
from lakeload.app import COMMANDS, app
from lakeload.commands import validate as validate_command
from lakeload.config.problems import InvalidDocuments
from lakeload.ui import console
from lakeload.ui.demo import show_facts
from lakeload_jobs.contract.errors import ExitCode, InvalidInput, LakeloadError, Refused
from tests.unit.commands.command import CONFIGS, lakeload

VALID = str(CONFIGS / "pipeline-csv.yaml")


def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `validate` fail inside."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(validate_command, "inspect_all", fail)


class Interrupting(MetaPathFinder):
    """Ctrl-C while a module is imported."""

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == application.__name__:
            raise KeyboardInterrupt


def test_ctrl_c_while_the_command_line_is_imported_shows_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, application.__name__)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 130
    assert capsys.readouterr().err == "error: interrupted\n"


@pytest.mark.parametrize(
    ("arguments", "near"),
    [(["lake", "statsu"], "status"), (["plan", "p.yml", "--output", "jsn"], "json")],
)
def test_slip_in_one_of_several_values_is_told_with_the_nearest(
    arguments: list[str], near: str
) -> None:
    ended = CliRunner().invoke(app, arguments)

    assert ended.exit_code == ExitCode.INVALID
    assert f"Did you mean '{near}'?" in " ".join(ended.output.replace("│", "").split())


def test_facts_in_a_pipe_are_whole_lines(capsys: pytest.CaptureFixture[str]) -> None:
    path = "/a/folder/with/a/name/longer/than/any/terminal" * 3

    show_facts(Console(file=sys.stdout, width=80), [("data", path), ("log file", "l")])

    assert capsys.readouterr().out == f"  data      {path}\n  log file  l\n"


def bug_exit(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run `main` in this process and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["lakeload", *arguments])
    with pytest.raises(SystemExit) as ended:
        application.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_the_version_is_the_packages() -> None:
    process = lakeload("--version")

    assert (process.stdout, process.returncode) == (f"lakeload {version('lakeload')}\n", 0)


def test_help_lists_every_command_with_a_line_about_it() -> None:
    process = lakeload("--help")

    assert process.returncode == 0
    for name in COMMANDS:
        assert re.search(rf"^│ {name} +\w.*\w", process.stdout, re.MULTILINE), name


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_the_common_options(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "100"})

    assert result.exit_code == 0
    assert all(option in result.stdout for option in ("-v", "-q", "--log-file", "--help"))
    assert "<bool>" not in result.stdout
    assert "<int>" not in result.stdout


def test_paragraphs_of_the_help_break_where_the_line_is_full() -> None:
    result = CliRunner().invoke(app, ["import", "--help"], env={"COLUMNS": "80"})

    assert "\n Secrets become references to variables" in result.stdout


def test_a_misspelled_command_is_a_usage_error_that_offers_the_right_one() -> None:
    process = lakeload("validat")

    assert process.returncode == ExitCode.INVALID
    assert "Did you mean 'validate'?" in process.stderr
    assert process.stdout == ""


@pytest.mark.parametrize(
    "arguments", [["validate"], ["validate", "--nope", VALID], ["schema", "x"]]
)
def test_a_wrong_flag_is_exit_code_two_on_stderr(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == ExitCode.INVALID
    assert result.stdout == ""
    assert "Usage" in result.stderr


@pytest.mark.parametrize(
    "error", [InvalidInput("in `x`", hint="do y"), Refused("in `x`", hint="do y", retryable=True)]
)
def test_expected_error_is_on_stderr_with_its_exit_code(
    error: LakeloadError, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_with(error, monkeypatch)

    result = CliRunner().invoke(app, ["validate", VALID])

    assert result.exit_code == error.exit_code
    assert result.stdout == ""
    assert result.stderr == "error: in `x`\n hint: do y\n"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk_exits_with_the_code_of_the_machine(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_with(OSError(number, os.strerror(number), "/state/x"), monkeypatch)

    result = CliRunner().invoke(app, ["validate", VALID])

    assert result.exit_code == ExitCode.MACHINE
    assert result.stderr.startswith("error: the disk is full: writing `/state/x` failed\n hint: ")
    assert "LAKELOAD_RUN_DIR" in result.stderr
    assert "LAKELOAD_CACHE_DIR" in result.stderr


def test_an_expected_error_is_one_json_document_where_json_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fail_with(Refused("in `x`", hint="do y", retryable=True), monkeypatch)

    result = CliRunner().invoke(app, ["validate", VALID, "--output", "json"])

    assert result.exit_code == ExitCode.REFUSED
    assert result.stderr == ""
    assert json.loads(result.stdout) == {
        "error": {
            "type": "Refused",
            "message": "in `x`",
            "hint": "do y",
            "exit_code": 3,
            "retryable": True,
            "docs": "error-codes/#refused",
        }
    }


def test_markup_and_control_characters_of_an_error_are_shown_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fail_with(InvalidInput("[red]x[/red] :smile: \x1b[31m"), monkeypatch)

    result = CliRunner().invoke(app, ["validate", VALID])

    assert result.stderr == "error: [red]x[/red] :smile: \\x1b[31m\n"


def test_invalid_documents_are_shown_with_their_lines_by_every_command(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("version: 1\nnmae: x\ntables: []\n")

    result = CliRunner().invoke(app, ["plan", str(path)])

    assert result.exit_code == ExitCode.INVALID
    assert "= hint: did you mean `name`?" in result.stderr
    assert result.stdout == ""


def test_invalid_documents_are_part_of_the_json_error(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("version: 1\nnmae: x\ntables: []\n")

    result = CliRunner().invoke(app, ["plan", str(path), "--output", "json"])

    error = json.loads(result.stdout)["error"]
    assert error["type"] == InvalidDocuments.__name__
    assert error["problems"][0]["line"] >= 1


def test_a_bug_is_one_line_a_log_file_and_exit_code_seventy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fail_with(RuntimeError("odd, canary-3a and AKIAIOSFODNN7EXAMPLE"), monkeypatch)
    monkeypatch.setenv("LAKELOAD_RUN_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("SHOP_PASSWORD", "canary-3a")

    assert bug_exit(monkeypatch, "validate", VALID) == ExitCode.BUG

    [log] = (tmp_path / "runs").iterdir()
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err == f"error: lakeload has a bug (RuntimeError); details are in {log}\n"
    text = log.read_text()
    assert "Traceback" in text
    assert f"lakeload {version('lakeload')}" in text
    assert "canary-3a" not in text
    assert "AKIA" not in text
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_bug_is_json_where_json_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fail_with(RuntimeError("odd"), monkeypatch)
    monkeypatch.setenv("LAKELOAD_RUN_DIR", str(tmp_path))

    assert bug_exit(monkeypatch, "validate", VALID, "--output", "json") == ExitCode.BUG

    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["type"], error["exit_code"]) == ("RuntimeError", 70)


def test_bug_without_a_writable_log_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail_with(RuntimeError("odd"), monkeypatch)
    monkeypatch.setenv("LAKELOAD_RUN_DIR", "/dev/null/runs")

    assert bug_exit(monkeypatch, "validate", VALID) == ExitCode.BUG
    assert "its log file could not be written" in capsys.readouterr().err


def test_a_log_file_holds_lakeloads_own_lines_only(tmp_path: Path) -> None:
    import logging

    console.configure(log_file=tmp_path / "log")
    logging.getLogger("lakeload.x").debug("ours")
    logging.getLogger("lakeload_jobs.x").info("the job's")
    logging.getLogger("botocore.auth").debug("a signature")
    console.configure()

    text = (tmp_path / "log").read_text()
    assert "ours" in text
    assert "the job's" in text
    assert "a signature" not in text


@pytest.mark.parametrize(("verbose", "lines"), [(0, 0), (1, 1), (2, 2)])
def test_verbosity_decides_what_is_logged_on_stderr(
    verbose: int, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    import logging

    console.configure(verbose=verbose)
    logging.getLogger("lakeload.x").info("told")
    logging.getLogger("lakeload.x").debug("detail")
    console.configure()

    assert len(capsys.readouterr().err.splitlines()) == lines


def test_a_log_file_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["validate", VALID, "--log-file", str(tmp_path / "no" / "x")])

    assert result.exit_code == ExitCode.INVALID
    assert "--log-file" in result.stderr


def test_notes_are_silent_when_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    console.configure(quiet=True)
    console.note("hidden")
    console.configure()
    console.note("shown")

    assert capsys.readouterr().err == "shown\n"


def test_full_refresh_of_parquet_tables_is_rejected_with_alternatives() -> None:
    process = lakeload("sync", VALID, "--full-refresh")

    assert process.returncode == 2
    assert "`--reload` appends all files again" in process.stderr
    assert "`lakeload reset`" in process.stderr


def test_schema_option_belongs_to_plan_only() -> None:
    process = lakeload("sync", VALID, "--no-schema")

    assert process.returncode == 2
    assert "`--schema` and `--no-schema` go with `--dry-run`" in process.stderr


@pytest.mark.parametrize("command", ["sync", "plan"])
def test_a_limit_and_files_that_are_loaded_once_exclude_each_other(
    command: str, tmp_path: Path
) -> None:
    text = (CONFIGS / "pipeline-csv.yaml").read_text()
    assert "incremental: true" in text
    (tmp_path / "pipeline.yaml").write_text(text)
    for destination in CONFIGS.glob("destination*.yaml"):
        (tmp_path / destination.name).write_text(destination.read_text())

    process = lakeload(command, str(tmp_path / "pipeline.yaml"), "--limit", "5")

    assert process.returncode == 2
    assert "`--limit` cannot be used with incremental loads" in process.stderr


def test_a_shell_completes_commands_and_options() -> None:
    def completed(words: str, count: int) -> str:
        return lakeload(
            _LAKELOAD_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(count)
        ).stdout

    assert completed("lakeload im", 1).split() == ["import"]
    assert "--full-refresh" in completed("lakeload sync --fu", 2)

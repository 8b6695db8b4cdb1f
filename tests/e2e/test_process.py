"""The process of a command: its streams, its environment and the signals that reach it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lakeload_jobs.contract.errors import ExitCode

ROOT = Path(__file__).parents[2]
LAKELOAD = (sys.executable, "-m", "lakeload.app")
UNKNOWN_KEY = ROOT / "tests" / "cases" / "invalid" / "unknown-key.yaml"


def test_a_document_can_come_through_a_pipe() -> None:
    process = subprocess.run(
        [*LAKELOAD, "validate", "/dev/stdin"],
        input=(ROOT / "configs" / "destination-role.yaml").read_text(),
        capture_output=True,
        text=True,
        check=True,
    )

    assert process.stdout == "/dev/stdin is a valid destination\n"


@pytest.mark.parametrize(
    ("environment", "colour", "style"),
    [
        ({}, False, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, True),
        ({"TERM": "dumb"}, False, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(
    environment: dict[str, str], colour: bool, style: bool, forked_python: str
) -> None:
    command = [forked_python, "-m", "lakeload", "validate", str(UNKNOWN_KEY)]
    process = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )

    assert process.returncode == 2
    assert ("\x1b[1;31m" in process.stdout) is colour
    assert ("\x1b[" in process.stdout) is style


def test_a_terminal_without_unicode_gets_escapes(tmp_path: Path) -> None:
    (tmp_path / "日本.yaml").write_text("x: 1\n")

    process = subprocess.run(
        [*LAKELOAD, "validate", "日本.yaml"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert process.returncode == 2
    assert "\\u65e5\\u672c.yaml:1:1" in process.stdout


def test_inspect_needs_neither_environment_nor_java(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id;amount\n1;1,5\n", encoding="utf-8")
    program = "from lakeload.app import main; main()"
    command = [sys.executable, "-c", program, "inspect", str(tmp_path / "people.csv")]

    done = subprocess.run(command, cwd="/", env={}, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_ctrl_c_is_exit_code_one_hundred_and_thirty(tmp_path: Path) -> None:
    waiting = tmp_path / "never-written"
    os.mkfifo(waiting)
    process = subprocess.Popen(
        [*LAKELOAD, "validate", str(waiting)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # It opens the pipe once it has started; opening the other end waits for that.
    with waiting.open("w"):
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)

    assert process.returncode == ExitCode.INTERRUPTED
    assert (out, err) == ("", "error: interrupted\n")


ENDLESS = """
import os, signal, threading
from lakeload.formats.tables import for_each

def wait(table):
    if table == "orders":
        os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait()

try:
    for_each(["orders", "visits"], wait)
except KeyboardInterrupt:
    print("stopped")
"""


def test_ctrl_c_stops_without_waiting_for_tables() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == "stopped\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_while_python_ends_changes_no_exit_code(number: signal.Signals) -> None:
    # What is registered before the command runs after it, at the end of the process.
    program = (
        "import atexit, os, sys\n"
        f"atexit.register(os.kill, os.getpid(), {number})\n"
        "sys.argv = ['lakeload', '--version']\n"
        "from lakeload.app import main; main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert (ended.returncode, ended.stderr) == (0, b"")

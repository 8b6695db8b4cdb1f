"""A forked process against the one that `python` itself starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

PROGRAMS = {
    "surroundings": (
        "import os, sys; print(sys.argv, sys.path[0], os.getcwd(), sorted(os.environ.items())); "
        "print(sys.stdout.encoding, sys.stdout.errors, sys.stdout.isatty(), __name__)"
    ),
    "input": "import sys; print(sys.stdin.read().upper())",
    "both streams": "import sys; print('é', end=''); print('è', file=sys.stderr)",
    "a code": "import sys; sys.exit(300)",
    "a text": "import sys; sys.exit('no\\nway')",
    "no code": "raise SystemExit",
    "an error": "1 / 0",
    "a signal": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "what ends last": (
        "import atexit, threading, time; atexit.register(print, 'third'); "
        "threading.Thread(target=lambda: (time.sleep(0.1), print('second'))).start(); "
        "print('first')"
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_forked_program_behaves_as_in_its_own_python(
    forked_python: str, tmp_path: Path, name: str
) -> None:
    (tmp_path / "program.py").write_text(PROGRAMS[name])
    # PWD, because a shell starts the client and sets it.
    environment = {"PATH": os.environ["PATH"], "NAME": "välue", "PWD": str(tmp_path)}
    told = []
    for python in (sys.executable, forked_python):
        for module in (["program.py"], ["-P", "program.py"], ["-m", "program"]):
            ended = subprocess.run(
                [python, *module, "an argument"],
                cwd=tmp_path,
                env={**environment, "PYTHONPATH": str(tmp_path)},
                input="text",
                capture_output=True,
                encoding="utf-8",
                check=False,
            )
            # Above the error itself there is the one who runs the program.
            told.append((ended.returncode, ended.stdout, ended.stderr.splitlines()[-1:]))
    assert told[3:] == told[:3]


def test_forked_program_signal_ends_client_and_fork(forked_python: str, tmp_path: Path) -> None:
    client, process = _sleeping(forked_python, tmp_path)
    client.send_signal(signal.SIGTERM)
    assert client.wait(30) == -signal.SIGTERM
    assert not process.is_running()


def test_forked_program_ends_with_its_killed_client(forked_python: str, tmp_path: Path) -> None:
    client, process = _sleeping(forked_python, tmp_path)
    client.kill()
    client.wait(30)
    process.wait(30)


def _sleeping(python: str, folder: Path) -> tuple[subprocess.Popen[str], psutil.Process]:
    program = folder / "program.py"
    program.write_text("import os, time; print(os.getpid(), flush=True); time.sleep(300)")
    client = subprocess.Popen([python, str(program)], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    with client.stdout:
        return client, psutil.Process(int(client.stdout.readline()))


def test_forked_program_imports_process_dependent_modules_itself(
    forked_python: str, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(
        "import sys; print('lakeload_jobs.jobs.load' in sys.modules, "
        "'lakeload.ui.console' in sys.modules)"
    )
    ended = subprocess.run(
        [forked_python, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ended.stdout == "True False\n"

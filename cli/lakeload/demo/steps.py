"""Runs the demo's commands as a user would: as processes, in a folder, one after another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lakeload_jobs.contract.errors import Interrupted

STOP_SECONDS = 30.0
"""How long an interrupted command may take to stop Spark and abort its uploads."""


@dataclass(frozen=True)
class CommandResult:
    """How a command ended."""

    exit_code: int
    seconds: float


def run_command(
    arguments: Sequence[str], folder: Path, stdout: IO[str] | None = None
) -> CommandResult:
    """Run `lakeload` with these arguments in `folder`. It writes where we do, or to `stdout`.

    A signal that interrupts us is passed on, and awaited, before `Interrupted` goes on its way.
    """
    started = time.monotonic()
    # In a session of its own, so that Ctrl-C reaches it once: from here, not from the terminal too.
    process = subprocess.Popen(  # noqa: S603 - our own module, no shell
        [sys.executable, "-P", "-m", "lakeload", *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        start_new_session=True,
    )
    try:
        exit_code = process.wait()
    except (Interrupted, KeyboardInterrupt):
        _stop(process)
        raise
    return CommandResult(exit_code, time.monotonic() - started)


@contextmanager
def environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Set and unset variables of this process, and so of its children, for a while."""
    before = {name: os.environ.get(name) for name in changes}
    _apply(changes)
    try:
        yield
    finally:
        _apply(before)


def _apply(changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(STOP_SECONDS)
    except (subprocess.TimeoutExpired, Interrupted, KeyboardInterrupt):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

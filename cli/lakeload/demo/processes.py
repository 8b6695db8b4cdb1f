"""The demo's documents, and its commands as processes with an environment of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import IO

from lakeload.demo.aws import SeededLake
from lakeload_jobs.contract.errors import Interrupted

STOP_SECONDS = 30.0
"""How long an interrupted command may take to stop Spark and abort its uploads."""


@dataclass(frozen=True)
class CommandResult:
    """How a command ended."""

    exit_code: int
    seconds: float


def documents(table_format: str, lake: SeededLake, endpoint: str) -> dict[str, str]:
    """Return the documents that a user would write, with the endpoints of the embedded AWS."""
    folder = files(__package__) / table_format.lower()
    return {
        name: Template((folder / name).read_text("utf-8")).substitute(
            asdict(lake), endpoint=endpoint
        )
        for name in ("destination.yml", "pipeline.yml")
    }


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
def demo_environment(lake: SeededLake, folder: Path) -> Iterator[None]:
    """Set the variables of the demo's commands in this process, for a while.

    The user's own AWS settings must not reach the embedded AWS, nor its keys the real one.
    """
    outer = dict(os.environ)
    nowhere = str(folder / "no-aws-settings")
    for name in outer:
        if name.startswith(("AWS_", "LAKELOAD_")) and name != "LAKELOAD_CACHE_DIR":
            del os.environ[name]
    os.environ |= {
        "AWS_ACCESS_KEY_ID": lake.base_key.access_key_id,
        "AWS_SECRET_ACCESS_KEY": lake.base_key.secret_access_key,
        "AWS_CONFIG_FILE": nowhere,
        "AWS_SHARED_CREDENTIALS_FILE": nowhere,
        "AWS_EC2_METADATA_DISABLED": "true",
        "LAKELOAD_EXTERNAL_ID": lake.external_id,
        "LAKELOAD_RUN_DIR": str(folder / "runs"),
    }
    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = ",".join(filter(None, [outer.get(name), "127.0.0.1"]))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(outer)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(STOP_SECONDS)
    except (subprocess.TimeoutExpired, Interrupted, KeyboardInterrupt):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

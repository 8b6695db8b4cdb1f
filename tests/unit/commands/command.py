"""Runs the command line in this process, which costs a thirtieth of a process of its own.

What its streams, environment and signals do in a process: tests/e2e/test_process.py.
"""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

from typer.testing import CliRunner

from lakeload.app import app

CONFIGS = Path(__file__).parents[3] / "configs"


def lakeload(
    *arguments: str, folder: Path = CONFIGS, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `lakeload` with arguments and return what it wrote and its exit code."""
    with contextlib.chdir(folder):
        ended = CliRunner().invoke(
            app, arguments, env=environment, prog_name="lakeload", catch_exceptions=False
        )
    return subprocess.CompletedProcess(arguments, ended.exit_code, ended.stdout, ended.stderr)

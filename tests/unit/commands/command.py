"""Runs the command line in a process: forked, unless what Python does at its start matters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.servers.spark import FORKED_PYTHON

CONFIGS = Path(__file__).parents[3] / "configs"


def lakeload(
    *arguments: str, folder: Path = CONFIGS, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `lakeload` with arguments and return what it wrote and its exit code."""
    # What is forked has the streams of a UTF-8 terminal.
    forked = "PYTHONIOENCODING" not in environment
    python = os.environ[FORKED_PYTHON] if forked else sys.executable
    return subprocess.run(
        [python, "-m", "lakeload", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

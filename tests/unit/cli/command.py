"""Runs the command line in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CONFIGS = Path(__file__).parents[3] / "configs"


def lakeload(
    *arguments: str, folder: Path = CONFIGS, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `lakeload` with arguments and return what it wrote and its exit code."""
    return subprocess.run(
        [sys.executable, "-c", "from lakeload.app import main; main()", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

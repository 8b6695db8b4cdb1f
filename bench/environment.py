"""The environment of the peers that are Python packages: lakeload's own stays as users have it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.data import bench_dir

REQUIREMENTS = Path(__file__).parent / "peers" / "requirements.txt"
_VERSIONS = (
    "import importlib.metadata as m, json, sys; print(json.dumps([*map(m.version, sys.argv[1:])]))"
)


def peer_python() -> str:
    """The Python of the peers' environment, made when there is none for these requirements.

    It is in the benchmarks' folder. Raises `subprocess.CalledProcessError` when pip fails.
    """
    text = f"{sys.version}\n{REQUIREMENTS.read_text()}"
    home = bench_dir() / f"peers-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    python = home / "bin" / "python"
    if not (home / "complete").exists():
        print("installing the peers into an environment of their own (once)", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        subprocess.run([*pip, "--requirement", str(REQUIREMENTS)], check=True)
        (home / "complete").touch()
    return str(python)


def peer_versions(packages: Sequence[str]) -> str:
    """Names and versions of packages in the peers' environment, for a report's heading."""
    if not packages:
        return ""
    command = [peer_python(), "-c", _VERSIONS, *packages]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    versions = json.loads(answer.stdout)
    return ", ".join(f"{name} {found}" for name, found in zip(packages, versions, strict=True))

"""`python -m bench.startup`: what the light commands cost before they do anything."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

LIMIT = 0.45
"""Seconds of CPU that `--help` and `validate` may take."""

CONFIGS = Path(__file__).parents[1] / "configs"
EXAMPLE = CONFIGS / "pipeline-csv.yaml"
GLUE = CONFIGS / "destination-glue.yaml"
COMMANDS = {
    "--version": ["--version"],
    "--help": ["--help"],
    "validate": ["validate", str(EXAMPLE)],
    "schema": ["schema", "pipeline"],
    "init": [
        *("init", "--bucket", "my-data-lake", "--region", "us-east-1"),
        *("--path", "data/orders/*.csv", "--dry-run"),
    ],
    "policy": ["policy", str(GLUE), "--principal", "123456789012"],
}


def cpu_and_wall(arguments: list[str]) -> tuple[float, float]:
    """Run lakeload once and return its seconds of CPU and wall time."""
    before, started = os.times(), time.monotonic()
    command = [sys.executable, "-c", "from lakeload.app import main; main()", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    cpu = after.children_user + after.children_system
    return cpu - before.children_user - before.children_system, time.monotonic() - started


def main() -> None:
    """Print the median of five runs of each command, after one that fills the caches."""
    print(f"{'command':<12}{'CPU s':>8}{'wall s':>8}   limit {LIMIT} s of CPU")
    for name, arguments in COMMANDS.items():
        runs = [cpu_and_wall(arguments) for _ in range(6)][1:]
        cpu, wall = (statistics.median(values) for values in zip(*runs, strict=True))
        print(f"{name:<12}{cpu:>8.2f}{wall:>8.2f}")


if __name__ == "__main__":
    main()

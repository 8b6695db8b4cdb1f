"""What each layer of the tests costs: `python -m tests.times [LAYER …]`.

Each layer runs alone, so the times add up to more than those of `make test`, which starts servers
and Spark once for all. CPU seconds are those of every process that a layer started, user and system
time together; unlike the clock's they hardly depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import resource
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAYERS: dict[str, tuple[str, ...]] = {
    "unit": ("tests/unit", *(str(path) for path in sorted((ROOT / "tests").glob("test_*.py")))),
    "model": ("tests/model",),
    "servers": ("tests/servers",),
    "integration": ("tests/integration",),
    "e2e": ("tests/e2e",),
    "mutations": ("tests/faults/mutations",),
    "faults": ("tests/faults", "--ignore=tests/faults/mutations"),
}
"""Each layer's name, and what pytest is given."""
_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2): orphans below this process become its children."""
_COUNT = re.compile(r"^(?:\d+ failed, )?(\d+) passed.*$", re.MULTILINE)


@dataclass(frozen=True)
class Cost:
    """What one layer cost."""

    tests: int
    cpu: float
    clock: float
    passed: bool


def measure(arguments: tuple[str, ...], workers: int) -> Cost:
    """Run pytest to its end, and that of all it started."""
    before, began = _children(), time.monotonic()
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            str(workers),
            "--dist",
            "loadfile",
            *arguments,
        ],
        cwd=ROOT,
        # As `make test` does.
        env={k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    clock = time.monotonic() - began
    if ended.returncode:
        sys.stderr.write(ended.stdout)
    count = _COUNT.search(ended.stdout)
    return Cost(int(count[1]) if count else 0, _children() - before, clock, not ended.returncode)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Measure the layers that were named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.times", description=__doc__)
    parser.add_argument("layers", nargs="*", metavar="LAYER", help=f"{', '.join(LAYERS)}, or paths")
    parser.add_argument("-n", "--workers", type=int, default=3, help="worker processes of pytest")
    options = parser.parse_args()
    # Spark's JVM outlives the process that started it by a moment.
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    found = {}
    sys.stdout.write(f"{'layer':40} {'tests':>6} {'CPU s':>8} {'clock s':>8}\n")
    for name in options.layers or LAYERS:
        cost = found[name] = measure(LAYERS.get(name, (name,)), options.workers)
        problem = "" if cost.passed else "  FAILED"
        sys.stdout.write(f"{name:40} {cost.tests:6} {cost.cpu:8.0f} {cost.clock:8.0f}{problem}\n")
        sys.stdout.flush()
    total = [
        sum(getattr(cost, what) for cost in found.values()) for what in ("tests", "cpu", "clock")
    ]
    sys.stdout.write(f"{'together':40} {total[0]:6} {total[1]:8.0f} {total[2]:8.0f}\n")
    return 0 if all(cost.passed for cost in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

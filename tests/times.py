"""CPU time of the tests, by layer and by file: `python -m tests.times [LAYER … | PATH …]`.

One run of pytest with the workers of `make test`. CPU seconds are user and system time of all
processes that the run starts; unlike the clock's they hardly depend on what else the machine does.
A worker and what it starts count for the file that it runs. What all workers share (the JVM, forked
Pythons, servers) counts in equal parts for the files that run meanwhile and can use it.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.scheduler import needs_spark

ROOT = Path(__file__).parents[1]
LAYERS: dict[str, tuple[str, ...]] = {
    "mutations": ("tests/faults/mutations",),
    "faults": ("tests/faults",),
    "unit": ("tests/unit",),
    "corpus": ("tests/corpus",),
    "model": ("tests/model",),
    "integration": ("tests/integration",),
    "e2e": ("tests/e2e",),
    "servers": ("tests/servers",),
    "root": tuple(f"tests/{path.name}" for path in sorted((ROOT / "tests").glob("test_*.py"))),
}
"""Each layer's paths; a file belongs to the first layer that has it."""
FOLDER = "LAKELOAD_TEST_TIMES"
"""The variable with the folder in which workers write the file that they run."""
STARTED = "start, collection and end of the workers"
DEAREST = 20
_EVERY = 0.5
"""Seconds between two samples of all processes."""
_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2): orphans below this process become its children."""
_TICKS = os.sysconf("SC_CLK_TCK")


def pytest_runtest_logstart(nodeid: str, location: tuple[str, int | None, str]) -> None:
    """Write the file that this worker runs from now on: a hook of pytest, as is the next."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    note = Path(os.environ[FOLDER]) / str(os.getpid())
    file = nodeid.split("::")[0]
    if not note.exists() or note.read_text(encoding="utf-8") != file:
        note.write_text(file, encoding="utf-8")


def pytest_sessionfinish() -> None:
    """Count the end of a worker for no file."""
    if (note := Path(os.environ[FOLDER]) / str(os.getpid())).exists():
        note.write_text(STARTED, encoding="utf-8")


class Meter:
    """CPU seconds by file, from samples of /proc."""

    def __init__(self, folder: Path) -> None:
        self.files: dict[str, float] = defaultdict(float)
        self._folder = folder
        self._owners: dict[tuple[int, str], int] = {}
        self._totals: dict[int, float] = defaultdict(float)

    def sample(self) -> None:
        """Count what was used since the last sample for the files that run now."""
        running = self._running()
        totals = self._sampled(set(running))
        before = self._totals
        # Until a worker writes its first file it counts as one of the rest. When it or a child that
        # it does not wait for has ended, the CPU seconds move to those of a parent, the rest.
        for worker in (totals.keys() | before.keys()) - {0}:
            if worker not in before:
                before[worker] = totals[worker]
                before[0] -= totals[worker]
            elif totals[worker] < before[worker]:
                before[0] += before[worker] - totals[worker]
        for owner, total in totals.items():
            used = max(total - before[owner], 0)
            for file, share in self._shares(owner, running):
                self.files[file] += used * share
        self._totals = totals

    def _running(self) -> dict[int, str]:
        """Return the file of each worker, by process id."""
        return {int(note.name): note.read_text("utf-8") for note in self._folder.iterdir()}

    def _shares(self, owner: int, running: dict[int, str]) -> Iterator[tuple[str, float]]:
        """Yield the files that what this process and its children used counts for."""
        if owner in running:
            yield running[owner] or STARTED, 1
            return
        files = [file for file in running.values() if file and file != STARTED]
        users = [file for file in files if needs_spark(file)] or files or [STARTED]
        for file in users:
            yield file, 1 / len(users)

    def _sampled(self, workers: set[int]) -> dict[int, float]:
        """Return the CPU seconds of each worker's processes; those of all others under 0.

        A process stays with the worker whose child it was at first, though it become an orphan.
        The times of a child move to its parent when that waits for it.
        """
        totals: dict[int, float] = defaultdict(float)
        parents, times = {}, {}
        for pid, parent, started, used in _processes():
            parents[pid], times[pid] = parent, (started, used)
        below: dict[int, int] = {os.getpid(): 0}

        def owner(pid: int) -> int | None:
            if pid in workers:
                return pid
            if pid in below:
                return below[pid]
            key = pid, times[pid][0] if pid in times else ""
            if key in self._owners:
                return self._owners[key]
            parent = parents.get(pid, 0)
            result = owner(parent) if parent > 1 else None
            if result is not None:
                self._owners[key] = result
            return result

        for pid, (_, used) in times.items():
            if pid != os.getpid() and (of := owner(pid)) is not None:
                totals[of] += used
        return totals


def _processes() -> Iterator[tuple[int, int, str, float]]:
    """Yield id, parent, start and CPU seconds, with those of ended children, of each process."""
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            text = Path(entry.path, "stat").read_text("utf-8", errors="replace")
            words = text.rpartition(")")[2].split()
            used = sum(int(word) for word in words[11:15]) / _TICKS
            yield int(entry.name), int(words[1]), words[19], used


def measure(arguments: list[str], workers: int) -> tuple[int, dict[str, float], float, float]:
    """Run pytest to its end, and that of all it started.

    Returns its exit status, the CPU seconds of each file, those of all, and the seconds it took.
    """
    before, began = _children(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lakeload-times-") as folder:
        meter = Meter(Path(folder))
        options = ["-q", "-p", "tests.times", "-n", str(workers), "--dist", "loadfile"]
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, "--no-loadscope-reorder", *arguments],
            cwd=ROOT,
            # As `make test` does.
            env={k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
            | {FOLDER: folder},
            stdin=subprocess.DEVNULL,
        )
        while (status := process.poll()) is None:
            time.sleep(_EVERY)
            meter.sample()
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    return status, dict(meter.files), _children() - before, time.monotonic() - began


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _layer(file: str) -> str:
    """Return the layer of a file."""
    return next(
        (name for name, paths in LAYERS.items() for path in paths if file.startswith(path)), STARTED
    )


def _most(used: dict[str, float]) -> list[tuple[str, float]]:
    """Return names and CPU seconds, the most first."""
    return sorted(used.items(), key=lambda item: -item[1])


def main() -> int:
    """Measure what was named, or all; return pytest's status."""
    parser = argparse.ArgumentParser(prog="python -m tests.times", description=__doc__)
    parser.add_argument("layers", nargs="*", metavar="LAYER", help=f"{', '.join(LAYERS)}, or paths")
    parser.add_argument("-n", "--workers", type=int, default=3, help="worker processes of pytest")
    parser.add_argument("--json", metavar="FILE", help="write the CPU seconds of all files, too")
    options = parser.parse_args()
    # Spark's JVM outlives the process that started it by a moment.
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    paths = [path for name in options.layers for path in LAYERS.get(name, (name,))]
    status, files, total, clock = measure(paths, options.workers)
    layers: dict[str, float] = defaultdict(float)
    for file, used in files.items():
        layers[_layer(file)] += used
    sys.stdout.write(f"\n{'CPU s':>8}  layer\n")
    for name, used in _most(layers):
        sys.stdout.write(f"{used:8.0f}  {name}\n")
    rest = total - sum(files.values())
    sys.stdout.write(f"{rest:8.0f}  not sampled\n{total:8.0f}  together, in {clock:.0f} s\n")
    sys.stdout.write(f"\n{'CPU s':>8}  dearest files\n")
    for name, used in _most(files)[:DEAREST]:
        sys.stdout.write(f"{used:8.0f}  {name}\n")
    if options.json:
        seconds = {name: round(used, 1) for name, used in files.items() if name != STARTED}
        text = json.dumps(seconds, indent=1, sort_keys=True) + "\n"
        Path(options.json).write_text(text, "utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())

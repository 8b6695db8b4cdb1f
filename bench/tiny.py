"""`python -m bench.tiny`: how long a tiny `sync` takes, and how soon it says something.

Three small tables in one `lakeload sync` against the embedded AWS. Bars: 12 s of wall time for the
whole command and one second to its first line of output, each the median of the runs. With
`--class-data` each run is followed by one with the archive that `lakeload jars fetch` makes, and
the seconds of CPU are compared pair by pair.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from bench.contestants import plain_environment
from bench.data import bench_dir
from bench.lake import PREFIX, Lake, running_lake

WALL_BAR = 12.0
FIRST_LINE_BAR = 1.0
LAKELOAD = str(Path(sys.executable).with_name("lakeload"))
TABLES = {"customers": 20, "orders": 100, "countries": 5}


class SyncFailed(RuntimeError):
    """The tiny sync did not load its three tables; the message ends with what it printed."""


@dataclass(frozen=True)
class Times:
    """Seconds from the start of the process, and of CPU of everything it started."""

    first_line: float
    wall: float
    cpu: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Print every run and the medians; 0 when both bars are met."""
    parser = argparse.ArgumentParser(prog="python -m bench.tiny", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--class-data", action="store_true")
    options = parser.parse_args(arguments)
    count = options.runs
    bench_dir().mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="tiny-", dir=bench_dir()))
    try:
        with running_lake(scratch / "aws") as lake:
            if options.class_data:
                return _compare(count, lake, scratch)
            times = [_run(f"run-{number + 1}", lake, scratch) for number in range(count)]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    first = statistics.median(run.first_line for run in times)
    wall = statistics.median(run.wall for run in times)
    met = first <= FIRST_LINE_BAR and wall <= WALL_BAR
    print(f"median of {count}: first line {first:.2f} s (bar {FIRST_LINE_BAR:.0f} s), ", end="")
    print(f"wall {wall:.2f} s (bar {WALL_BAR:.0f} s): {'met' if met else 'MISSED'}")
    return 0 if met else 1


def _compare(count: int, lake: Lake, scratch: Path) -> int:
    """Print the CPU seconds of runs with and without the archive, and their ratio."""
    pipeline = _documents(scratch / "fetch", lake)
    environment = plain_environment() | {"LAKELOAD_CACHE_DIR": str(_cache(archive=True))}
    subprocess.run([LAKELOAD, "jars", "fetch", str(pipeline)], env=environment, check=True)
    without, with_archive = [], []
    # One of each that does not count: it fills the caches of files.
    for number in range(count + 1):
        pair = [
            _run(f"{'with' if archive else 'without'}-{number}", lake, scratch, archive=archive)
            for archive in (False, True)
        ]
        if number:
            without.append(pair[0].cpu)
            with_archive.append(pair[1].cpu)
    medians = statistics.median(without), statistics.median(with_archive)
    ratios = [a / b for a, b in zip(with_archive, without, strict=True)]
    print(f"median CPU of {count}: {medians[0]:.1f} s without, {medians[1]:.1f} s with", end="")
    print(f", ratio of pairs {statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})")
    return 0


def _cache(*, archive: bool) -> Path:
    return bench_dir() / ("lakeload-cache-class-data" if archive else "lakeload-cache")


def _run(name: str, lake: Lake, scratch: Path, *, archive: bool = False) -> Times:
    folder = scratch / name
    pipeline = _documents(folder, lake)
    environment = plain_environment() | lake.environment()
    environment["LAKELOAD_CACHE_DIR"] = str(_cache(archive=archive))
    environment["LAKELOAD_RUN_DIR"] = str(folder / "runs")
    before, started = os.times(), time.monotonic()
    process = subprocess.Popen(
        [LAKELOAD, "sync", str(pipeline)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None  # noqa: S101 - it was asked for above
    first_line = process.stdout.readline()
    first = time.monotonic() - started
    rest, _ = process.communicate()
    wall, after = time.monotonic() - started, os.times()
    cpu = after.children_user - before.children_user
    cpu += after.children_system - before.children_system
    loaded = len(lake.download(folder.name, folder / "out"))
    if process.returncode != 0 or loaded < len(TABLES):
        said = (first_line + rest).decode(errors="replace")
        raise SyncFailed(f"status {process.returncode}, {loaded} files under {PREFIX}:\n{said}")
    text = f"{name}: first line {first:.2f} s, wall {wall:.2f} s, CPU {cpu:.1f} s"
    print(text, flush=True)
    return Times(first, wall, cpu)


def _documents(folder: Path, lake: Lake) -> Path:
    """Three CSV files and the pipeline that loads them; returns the pipeline's path."""
    folder.mkdir()
    for table, rows in TABLES.items():
        lines = [f"{row},{table} {row},{row}.50,2026-01-01 00:00:00Z" for row in range(rows)]
        text = "\n".join(["id,name,amount,updated_at", *lines, ""])
        (folder / f"{table}.csv").write_text(text)
    document = {
        "version": 1,
        "name": "tiny",
        "destination": lake.destination(folder.name),
        "namespace": "tiny",
        "source": {"type": "FILES", "format": "CSV", "options": {"header": True}},
        "tables": [
            {"table": table, "path": f"{table}.csv", "primary_key": ["id"]} for table in TABLES
        ],
        "spark": {"master": "local[2]"},
    }
    path = folder / "pipeline.yml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


if __name__ == "__main__":
    sys.exit(main())

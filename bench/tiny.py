"""`python -m bench.tiny`: how long a tiny `sync` takes, and how soon it says something.

Three small tables in one `lakeload sync` against the embedded AWS, in pairs: without and with the
AppCDS archive that `lakeload jars fetch` makes. And the list of commands, `lakeload --help`. The
bars are those of the runs with the archive, each the median of the runs.
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

from bench.commands import LAKELOAD, cache, make_archive, plain_environment
from bench.csv_tables import write_csv_tables
from bench.data import bench_dir
from bench.lake import PREFIX, Lake, running_lake

WALL_BAR, CPU_BAR, FIRST_LINE_BAR, HELP_BAR = 7.0, 8.0, 0.5, 0.35
"""Seconds; of CPU those of everything that the command starts."""
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
    """Print every run, the medians and the bars; 0 when all are met."""
    parser = argparse.ArgumentParser(prog="python -m bench.tiny", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    count = parser.parse_args(arguments).runs
    bench_dir().mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="tiny-", dir=bench_dir()))
    try:
        with running_lake(scratch / "aws") as lake:
            without, with_archive = _pairs(count, lake, scratch)
        helps = [_help() for _ in range(count)]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"without the archive: wall {_shown([run.wall for run in without])}, ", end="")
    print(f"CPU {_shown([run.cpu for run in without])}")
    met = [
        _bar("wall", [run.wall for run in with_archive], WALL_BAR),
        _bar("CPU", [run.cpu for run in with_archive], CPU_BAR),
        _bar("first line", [run.first_line for run in with_archive], FIRST_LINE_BAR),
        _bar("CPU of `lakeload --help`", helps, HELP_BAR),
    ]
    return 0 if all(met) else 1


def _bar(name: str, seconds: Sequence[float], bar: float) -> bool:
    met = statistics.median(seconds) <= bar
    print(f"{name}: {_shown(seconds)}, bar {bar:g} s: {'reached' if met else 'MISSED'}")
    return met


def _shown(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.2f} s ({min(seconds):.2f}–{max(seconds):.2f})"


def _help() -> float:
    before = os.times()
    subprocess.run([LAKELOAD, "--help"], stdout=subprocess.DEVNULL, check=True)
    return _cpu_since(before)


def _cpu_since(before: os.times_result) -> float:
    after = os.times()
    cpu = after.children_user - before.children_user
    return cpu + after.children_system - before.children_system


def _pairs(count: int, lake: Lake, scratch: Path) -> tuple[list[Times], list[Times]]:
    """Return the runs without and with the archive."""
    pipeline = _documents(scratch / "fetch", lake)
    make_archive(pipeline)
    without, with_archive = [], []
    # One of each that does not count: it fills the caches of files.
    for number in range(count + 1):
        pair = [
            _run(f"{'with' if archive else 'without'}-{number}", lake, scratch, archive=archive)
            for archive in (False, True)
        ]
        if number:
            without.append(pair[0])
            with_archive.append(pair[1])
    return without, with_archive


def _run(name: str, lake: Lake, scratch: Path, *, archive: bool) -> Times:
    folder = scratch / name
    pipeline = _documents(folder, lake)
    environment = plain_environment() | lake.environment()
    environment["LAKELOAD_CACHE_DIR"] = str(cache(archive=archive))
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
    wall, cpu = time.monotonic() - started, _cpu_since(before)
    loaded = len(lake.download(folder.name, folder / "out"))
    if process.returncode != 0 or loaded < len(TABLES):
        said = (first_line + rest).decode(errors="replace")
        raise SyncFailed(f"status {process.returncode}, {loaded} files under {PREFIX}:\n{said}")
    text = f"{name}: first line {first:.2f} s, wall {wall:.2f} s, CPU {cpu:.1f} s"
    print(text, flush=True)
    return Times(first, wall, cpu)


def _documents(folder: Path, lake: Lake) -> Path:
    key = {"primary_key": ["id"]}
    return write_csv_tables(folder, TABLES, lake.destination(folder.name), table=key)


if __name__ == "__main__":
    sys.exit(main())

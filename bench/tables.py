"""`python -m bench.tables`: what each of many small tables costs, and a sync without news.

One `lakeload sync` loads a single small CSV file into its table, one loads as many as `--tables`,
each into a table of its own; their difference is what a table costs above the start. Then
`--idle` incremental tables are loaded once, and synced again without new files and without Java.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import yaml

from bench.commands import LAKELOAD, cache, plain_environment
from bench.csv_tables import CSV, write_csv_tables
from bench.data import bench_dir
from bench.lake import Lake, running_lake

CPU_BAR, IDLE_BAR = 0.15, 10.0
"""CPU seconds of a table above the start, and seconds of a sync without news."""
ROWS = 20


class SyncFailed(RuntimeError):
    """A sync failed, loaded other tables than it had to, or started Spark without need."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print every run and the bars; 0 when both are met."""
    parser = argparse.ArgumentParser(prog="python -m bench.tables", description=__doc__)
    parser.add_argument("--tables", type=int, default=200, help="tables that are loaded at once")
    parser.add_argument("--idle", type=int, default=1000, help="tables without new files")
    parser.add_argument("--runs", type=int, default=3, help="syncs without new files")
    given = parser.parse_args(arguments)
    bench_dir().mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="tables-", dir=bench_dir()))
    try:
        with running_lake(scratch / "aws") as lake:
            one, several, idle = (
                _documents(scratch / name, lake, count)
                for name, count in (("one", 1), ("several", given.tables), ("idle", given.idle))
            )
            alone, _ = _sync(one, lake, loads=1)
            together, _ = _sync(several, lake, loads=given.tables)
            _sync(idle, lake, loads=given.idle)
            walls = [_sync(idle, lake, loads=0)[1] for _ in range(given.runs)]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    each = (together - alone) / max(given.tables - 1, 1)
    met = [
        _bar(f"CPU of each of {given.tables} tables above the start", [each], CPU_BAR),
        _bar(f"{given.idle:,} incremental tables without new files", walls, IDLE_BAR),
    ]
    return 0 if all(met) else 1


def _bar(name: str, seconds: Sequence[float], bar: float) -> bool:
    middle = sorted(seconds)[len(seconds) // 2]
    met = middle <= bar
    spread = f"{min(seconds):.2f}–{max(seconds):.2f}"
    print(f"{name}: {middle:.2f} s ({spread}), bar {bar:g} s: {'reached' if met else 'MISSED'}")
    return met


def _sync(pipeline: Path, lake: Lake, *, loads: int) -> tuple[float, float]:
    """Return the CPU and wall time of a sync that has to load so many tables."""
    environment = plain_environment() | lake.environment()
    environment["LAKELOAD_CACHE_DIR"] = str(cache())
    environment["LAKELOAD_RUN_DIR"] = str(pipeline.parent / "runs")
    before, started = os.times(), time.monotonic()
    ended = subprocess.run(
        [LAKELOAD, "sync", str(pipeline), "--output", "json"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
    )
    wall, after = time.monotonic() - started, os.times()
    cpu = after.children_user + after.children_system - before.children_user
    cpu -= before.children_system
    tables = len(yaml.safe_load(pipeline.read_text())["tables"])
    loaded = len(lake.download(pipeline.parent.name, pipeline.parent / "out"))
    if ended.returncode != 0 or loaded != tables:
        raise SyncFailed(f"status {ended.returncode}, {loaded} files:\n{ended.stderr[-2000:]}")
    if not loads and (log := json.loads(ended.stdout)["log"]) is not None:
        raise SyncFailed(f"Spark was started: {log}")
    what = f"{loads:,} of {tables:,} tables" if loads else f"{tables:,} tables without new files"
    print(f"{what}: {cpu:.1f} s CPU, {wall:.1f} s wall", flush=True)
    return cpu, wall


def _documents(folder: Path, lake: Lake, count: int) -> Path:
    return write_csv_tables(
        folder,
        {f"table_{number:04d}": ROWS for number in range(count)},
        lake.destination(folder.name),
        table={"mode": "APPEND"},
        source={**CSV, "incremental": True},
    )


if __name__ == "__main__":
    sys.exit(main())

"""Peers of the Iceberg benchmark: stopped at a limit, counted, and never hidden in the report."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from bench.data import SHAPES, DataSet
from bench.iceberg.report import summary, unfinished
from bench.iceberg.run import Turn, interleaved
from bench.iceberg.setting import Run, Setting
from bench.iceberg.verify import Counts
from bench.lake import Lake
from bench.measure import Limits, Measurement, measure
from lakeload.demo.aws import AccessKey, SeededLake

GIBIBYTE = 2**30
LIMITS = Limits(seconds=600, memory=GIBIBYTE)


def test_a_command_is_stopped_with_its_children_when_its_time_is_over(tmp_path: Path) -> None:
    command = ["sh", "-c", "sleep 60 & echo $! > child; wait"]
    cost = measure(
        command,
        environment={"PATH": os.environ["PATH"]},
        folder=tmp_path,
        log=tmp_path / "log",
        limits=replace(LIMITS, seconds=0.3, left=0),
    )
    assert cost.stopped == "0.3 s"
    assert not _runs(int((tmp_path / "child").read_text()))


def test_a_command_is_stopped_when_it_takes_too_much_memory(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; held = b'x' * 2**26; time.sleep(60)"]
    cost = measure(
        command,
        environment={},
        folder=tmp_path,
        log=tmp_path / "log",
        limits=Limits(seconds=50, memory=2**25, left=0),
    )
    assert cost.stopped == "32 MiB"


def test_a_command_that_keeps_to_its_limits_ends_by_itself(tmp_path: Path) -> None:
    cost = measure(
        ["sh", "-c", "exit 3"],
        environment={"PATH": os.environ["PATH"]},
        folder=tmp_path,
        log=tmp_path / "log",
        limits=replace(LIMITS, left=0),
    )
    assert (cost.status, cost.stopped) == (3, "")


def test_bench_peers_that_cannot_finish_run_in_the_first_rounds_only() -> None:
    def turn(name: str, rounds: int, why: str = "") -> Turn:
        return Turn(rounds, lambda number: _run("merge", name, number, 1.0, why))

    turns = [turn("lakeload", 3), turn("spark", 3), turn("pyiceberg", 2), turn("dlt", 2, "failed")]
    found = [(run.number, run.name) for run in interleaved(turns)]
    assert found == [
        *((0, "lakeload"), (0, "spark"), (0, "pyiceberg"), (0, "dlt")),
        *((1, "spark"), (1, "pyiceberg"), (1, "lakeload")),
        *((2, "lakeload"), (2, "spark")),
    ]


@pytest.mark.parametrize(
    ("counts", "finished", "partly", "fault"),
    [
        (Counts(1020, 1020, {0: 100}), [0], [], ""),
        (Counts(1020, 1020, {0: 99}), [0], [], "99 of 100 rows of round 0"),
        (Counts(1021, 1020, {0: 100}), [0], [], "1 doubled keys"),
        (Counts(1019, 1019, {0: 100}), [0], [], "1,019 rows"),
        (Counts(1005, 1005, {0: 30}), [], [0], ""),
        (Counts(1005, 1005, {0: 30}), [], [], "1,005 rows"),
        (Counts(995, 995, {0: 30}), [], [0], "995 rows"),
    ],
)
def test_bench_table_with_lost_or_duplicate_rows_is_detected(
    counts: Counts, finished: list[int], partly: list[int], fault: str, tmp_path: Path
) -> None:
    assert counts.fault(_setting(tmp_path), finished, partly) == fault


def test_bench_report_names_slower_and_unfinished_peers(tmp_path: Path) -> None:
    setting = _setting(tmp_path)
    stopped = _run("merge", "dlt", 0, 900.0, "was stopped at 600 s")
    runs = [
        *(_run("append", "lakeload", 0, 6.0), _run("append", "spark", 0, 10.0)),
        *(_run("merge", "lakeload", 0, 30.0), _run("merge", "spark", 0, 20.0)),
        *(_run("merge", "pyiceberg", 0, 60.0), stopped),
    ]
    text, met = summary(setting, runs, [unfinished(setting, stopped, 40, 30.0)])
    lines = text.splitlines()
    assert "| pyiceberg | 1 | **60.0** (60.0–60.0) | **60.0** (60.0–60.0) | 512 |" in lines
    assert any(line.startswith("- lakeload / pyiceberg: CPU 0.50 ×") for line in lines)
    assert any("worse in CPU (1.50 ×), wall (1.50 ×)." in line for line in lines)
    assert (
        "- dlt was stopped at 600 s: 40 of 100 changes were in the table (900.0 s CPU, 900.0 s "
        "wall, peak 512 MiB); lakeload did all of them in 0.03 × that CPU."
    ) in lines
    assert not any(line.startswith("| dlt") for line in lines)
    assert "- met: append: CPU 0.60 × Spark alone (rounds 0.60–0.60), bar ≤ 0.7" in lines
    assert "- met: append: wall time 0.60 × Spark alone (rounds 0.60–0.60), bar ≤ 1.0" in lines
    assert "- MISSED: merge: CPU 1.50 × Spark alone (rounds 1.50–1.50), bar ≤ 0.85" in lines
    assert not met


def _runs(process: int) -> bool:
    """Whether a process is there; one that ended may wait for its parent to notice."""
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _run(what: str, name: str, number: int, seconds: float, why: str = "") -> Run:
    return Run(what, name, number, Measurement(seconds, seconds, GIBIBYTE // 2, 0, "test"), why)


def _setting(folder: Path) -> Setting:
    key = AccessKey("AKIA", "secret")
    seeded = SeededLake("bucket", "prefix", "us-east-1", "user", key, "role", "arn", "external")
    return Setting(
        Lake("http://127.0.0.1:1", seeded),
        DataSet(SHAPES["orders"], folder, 1000, {}, 0, 0),
        folder,
        (),
        "2g",
        2,
        100,
        3,
        2,
        LIMITS,
    )

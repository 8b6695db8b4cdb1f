"""`python -m bench.iceberg`: Iceberg tables by lakeload and by others, interleaved.

Loads of `--rows` rows into new tables and in place of others (`bench/iceberg/loads.py`), and an
upsert of `--changes` changes (four fifths of them updates all over the table) into a table of
`--rows`, each as a whole command against AWS Glue of the embedded AWS, through the same role, with
the same 18 columns. pyiceberg and dlt upsert the same changes into tables of their own. The bars
are about medians. See docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from bench.commands import cache
from bench.data import bench_dir, data_set
from bench.iceberg.changes import SPREAD, write_changes
from bench.iceberg.contestants import Lakeload, Merger, Spark
from bench.iceberg.loads import LOADS
from bench.iceberg.peers import Peer, peers
from bench.iceberg.report import summary, unfinished
from bench.iceberg.setting import SCHEMA, Run, Setting
from bench.iceberg.verify import check, count, glue
from bench.lake import BUCKET, PREFIX, Lake
from bench.measure import Limits
from lakeload.demo.aws import EmbeddedAws
from lakeload.machine.jars.fetch import fetch
from lakeload.machine.jars.pins import pinned

PEER_NAMES = ("pyiceberg", "dlt")
COMPARISONS = (*(load.what for load in LOADS), "merge")


@dataclass(frozen=True)
class Turn:
    """One contestant of a comparison, and in how many rounds it takes part."""

    rounds: int
    run: Callable[[int], Run]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print every run and the report; 0 when all bars are met."""
    given = _options(arguments)
    bench_dir().mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="iceberg-", dir=bench_dir()))
    jars = fetch(pinned("iceberg"), cache() / "jars", os.environ)
    try:
        with EmbeddedAws(scratch / "aws") as aws:
            setting = Setting(
                _lake(aws),
                data_set(given.rows),
                scratch,
                jars,
                given.heap,
                given.cores,
                given.changes,
                given.runs,
                given.peer_runs,
                Limits(given.peer_limit, psutil.virtual_memory().total // 2),
            )
            runs = _loads(setting, given.only)
            merges: list[Run] = []
            remarks: list[str] = []
            if "merge" in given.only:
                merges, remarks = _merges(setting, given.peers if given.peer_runs else ())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    text, met = summary(setting, [*runs, *merges], remarks)
    print(f"\n{text}")
    if given.markdown:
        given.markdown.write_text(text + "\n", encoding="utf-8")
    return 0 if met else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.iceberg", description=__doc__)
    add = parser.add_argument
    add("--only", nargs="*", choices=COMPARISONS, default=COMPARISONS, help="some comparisons")
    add("--rows", type=int, default=3_000_000, help="rows of the tables")
    add("--changes", type=int, default=200_000, help="changes of a round")
    add("--runs", type=int, default=5, help="rounds of lakeload and Spark; medians are shown")
    add("--peers", nargs="*", choices=PEER_NAMES, default=PEER_NAMES, help="who upserts too")
    add("--peer-runs", type=int, default=1, help="rounds of the peers, 0 for none")
    add("--peer-limit", type=float, default=600, help="seconds after which a peer is stopped")
    add("--heap", default="2g", help="driver memory of lakeload and of Spark")
    add("--cores", type=int, default=2, help="local[N] of lakeload and of Spark")
    add("--markdown", type=Path, metavar="FILE", help="write the report there too")
    given = parser.parse_args(arguments)
    if given.changes * 4 // 5 > given.rows // SPREAD or given.runs >= SPREAD:
        parser.error(f"each of up to {SPREAD - 1} runs updates other rows: fewer changes or runs")
    if given.peer_runs > given.runs:
        parser.error("--peer-runs is at most --runs")
    return given


def _lake(aws: EmbeddedAws) -> Lake:
    """The bucket and a role that may do everything: no contestant's policy is under test here."""
    seeded = aws.seed(bucket=BUCKET, prefix=PREFIX)
    everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    aws.admin().put_role_policy(seeded.role, {"Version": "2012-10-17", "Statement": [everything]})
    return Lake(aws.endpoint, seeded)


def interleaved(turns: Sequence[Turn]) -> Iterator[Run]:
    """Run all by turns, another one first each round; who could not finish is not asked again."""
    left = list(turns)
    for number in range(max(turn.rounds for turn in turns)):
        there = [turn for turn in left if number < turn.rounds]
        first = number % len(there)
        for turn in there[first:] + there[:first]:
            run = turn.run(number)
            yield run
            if run.why:
                left.remove(turn)


def _loads(setting: Setting, wanted: Sequence[str]) -> list[Run]:
    runs: list[Run] = []
    chosen = [load for load in LOADS if load.what in wanted]
    for at, load in enumerate(chosen):
        contestants: list[Lakeload | Spark] = [Lakeload(setting)]
        if load.archive:
            contestants.append(Lakeload(setting, "lakeload-archive", archive=True))
        if load.peer:
            contestants.append(Spark(setting))
        based = next((other for other in LOADS if other.what == load.base), None)
        if based and based not in chosen:
            for number in range(setting.runs):
                for one in contestants:
                    one.load(based, number)
        turns = [Turn(setting.runs, partial(one.load, load)) for one in contestants]
        of_load = list(interleaved(turns))
        catalog = glue(setting)
        for run in of_load:
            check(catalog, setting, f"{SCHEMA}.{load.table(run.name, run.number)}", ())
        print(f"{len(of_load)} tables of `{load.what}` hold what they must", flush=True)
        runs += of_load
        # The emulator keeps objects in memory. What follows may replace the rows of these tables.
        if not any(other.base == load.what for other in chosen[at + 1 :]):
            setting.lake.clear()
    return runs


def _merges(setting: Setting, wanted: Sequence[str]) -> tuple[list[Run], list[str]]:
    """Every merge, and what has to be said of those who did not finish."""
    for number in range(setting.runs + 1):
        write_changes(setting, number)
    invited = [peer for peer in peers(setting) if peer.name in wanted]
    own = [Lakeload(setting), Lakeload(setting, "lakeload-archive", archive=True)]
    everyone: list[Merger] = [*own, Spark(setting), *invited]
    there: list[Merger] = []
    remarks = []
    for merger in everyone:
        if why := merger.prepare():
            remarks.append(f"{merger.name} {why}.")
            print(remarks[-1], flush=True)
        else:
            there.append(merger)
    runs = list(interleaved([Turn(merger.rounds, merger.merge) for merger in there]))
    catalog = glue(setting)
    for name in ("lakeload", "lakeload_archive", "spark"):
        check(catalog, setting, f"{SCHEMA}.merged_{name}", range(setting.runs + 1))
    print("the tables that lakeload and Spark merged into hold what they must")
    for peer in (one for one in invited if one in there):
        runs, said = _judged(setting, peer, runs)
        remarks += said
    return runs, remarks


def _judged(setting: Setting, peer: Peer, runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """The runs that count, and how far a peer came that did not finish or did not do it right."""
    own = [run for run in runs if run.name == peer.name]
    found = count(glue(setting), peer.table, setting.peer_runs)
    finished = [run.number for run in own if not run.why]
    stopped = [run for run in own if run.why]
    lakeload = statistics.median(run.cost.cpu for run in runs if run.name == "lakeload")
    remarks = [
        unfinished(setting, run, found.rounds.get(run.number, 0), lakeload) for run in stopped
    ]
    if fault := found.fault(setting, finished, [run.number for run in stopped]):
        remarks.append(f"{peer.name} left a table that holds {fault}: its runs do not count.")
        return [run for run in runs if run.name != peer.name], remarks
    if not stopped:
        print(f"the table that {peer.name} upserted into holds what it must", flush=True)
    return list(runs), remarks

"""The second layer of `make faults`: every case, and the table it ends with."""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from lakeload.demo.aws import EmbeddedAws, seed_lake
from tests.faults.product.case import Case, run_cases
from tests.faults.product.crowds import crowds
from tests.faults.product.injected import injected_faults
from tests.faults.product.kills import late_requests, step_kills, twice_killed
from tests.faults.product.processes import lone_failures
from tests.faults.product.syncs import run_command
from tests.faults.product.world import World
from tests.servers.fault_proxy import FaultProxy
from tests.servers.ministack import AwsServer, Lake

Chapter = Callable[[World], list[Case]]

CHAPTERS: dict[str, Chapter] = {
    "kill1": lambda world: step_kills(world, tables=1),
    "kill5": lambda world: step_kills(world, tables=5),
    "twice": twice_killed,
    "late": late_requests,
    "injected": lambda world: injected_faults(world, 60),
    "alone": lambda world: lone_failures(),
    "crowd": lambda world: crowds(world, 5),
}
_IN_GLUE = {"kill5", "injected", "crowd"}
"""Chapters whose tables are in the Glue catalog too."""

_FOREIGN = ("AWS_", "LAKELOAD_", "SPARK_", "PYSPARK_")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign and return 1 when anything was violated."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.product", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="repeat the run of this seed")
    parser.add_argument("--only", metavar="GLOB", action="append", help="chapters or cases")
    parser.add_argument("--at-once", type=int, default=2, help="syncs at once")
    given = parser.parse_args(arguments)
    seed = secrets.randbelow(2**31) if given.seed is None else given.seed
    _isolate()
    folder = Path(tempfile.mkdtemp(prefix="lakeload-faults-"))
    _say(f"seed {seed}, folder {folder}")
    cases = _run(folder, seed, given.only or ["*"], given.at_once)
    good = all(case.findings.good for case in cases)
    if good:
        shutil.rmtree(folder)
    _report(cases, seed)
    return 0 if good else 1


def _run(folder: Path, seed: int, only: Sequence[str], at_once: int) -> list[Case]:
    done: list[Case] = []
    with EmbeddedAws(folder / "aws") as embedded:
        aws = AwsServer(embedded.endpoint)
        proxy = FaultProxy(embedded.endpoint)
        proxy.start()
        for name, chapter in CHAPTERS.items():
            # A lake, and a seed, for each chapter: each can be repeated by itself.
            bucket = f"lake-{secrets.token_hex(6)}"
            lake = Lake(aws, seed_lake(aws.admin, bucket=bucket, prefix="data-lake/test"))
            world = World(
                lake,
                proxy,
                folder / name,
                f"{seed} {name}",
                glue=name in _IN_GLUE,
                cache=folder / "cache",
            )
            chosen = [case for case in chapter(world) if _chosen(name, case, only)]
            if not chosen:
                continue
            if not done and only == ["*"]:
                _make_class_data(world)
            started = time.monotonic()
            run_cases(world, chosen, at_once=at_once, note=_say)
            _say(f"{name}: {len(chosen)} cases in {time.monotonic() - started:.0f} s")
            done += chosen
            lake.empty()
        proxy.stop()
    return done


def _make_class_data(world: World) -> None:
    """Let Spark start faster in the hundred loads that follow, as a user would."""
    folder = world.write("class-data", ["trained"])
    code, told = run_command(world, folder, "jars", "fetch", "pipeline.yml")
    if code != 0:
        raise RuntimeError(f"`lakeload jars fetch` ended with {code}: {told}")


def _chosen(chapter: str, case: Case, only: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in only for name in (chapter, case.name))


def _report(cases: Sequence[Case], seed: int) -> None:
    """Write the table, and what to run again."""
    _say(f"\n{'class':<28}{'times':>7}{'rows lost':>11}{'rows doubled':>14}{'left behind':>14}")
    for kind in dict.fromkeys(case.kind for case in cases):
        own = [case for case in cases if case.kind == kind]
        times = sum(case.times for case in own)
        lost = sum(case.findings.lost for case in own)
        doubled = sum(case.findings.doubled for case in own)
        left = sum(case.findings.uploads for case in own)
        _say(f"{kind:<28}{times:>7}{lost:>11}{doubled:>14}{left:>14}")
    for case in cases:
        for problem in case.findings.problems:
            _say(f"\n{case.name}: {problem}")
        if not case.findings.good:
            _say(f"again: python -m tests.faults.product --seed {seed} --only {case.name}")


def _isolate() -> None:
    """Keep the developer's AWS and Spark settings out, as the tests do."""
    for name in [name for name in os.environ if name.startswith(_FOREIGN)]:
        del os.environ[name]
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()

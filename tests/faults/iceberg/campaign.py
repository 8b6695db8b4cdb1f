"""The third layer of `make faults`: every chapter for both catalogs, and the table it ends with."""

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
from tests.faults.iceberg.answers import lost_answers, silences
from tests.faults.iceberg.case import Case, Note
from tests.faults.iceberg.crowd import appenders, appenders_and_merge
from tests.faults.iceberg.kills import Places, late_commits, places, step_kills
from tests.faults.iceberg.world import WORLDS, World
from tests.faults.product.syncs import run_command
from tests.servers.ministack import AwsServer, Lake

KILLS = 56
"""For each catalog; some strike elsewhere than meant, and 100 that struck are the bar."""
ANSWERS = 42

Chapter = Callable[[World, Places, Note, int], list[Case]]

CHAPTERS: dict[str, Chapter] = {
    "kills": lambda world, found, note, at_once: step_kills(
        world, found, KILLS, note, at_once=at_once
    ),
    "late": lambda world, found, note, at_once: late_commits(world, found, note),
    "answers": lambda world, found, note, at_once: lost_answers(
        world, found, ANSWERS, note, at_once=at_once
    ),
    "silences": lambda world, found, note, at_once: silences(world, found, note),
    "appenders": lambda world, found, note, at_once: appenders(world, 8, 10, note),
    "merge": lambda world, found, note, at_once: appenders_and_merge(world, 4, 6, note),
}
_FOREIGN = ("AWS_", "LAKELOAD_", "SPARK_", "PYSPARK_")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign and return 1 when anything was violated."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.iceberg", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="repeat the run of this seed")
    parser.add_argument("--only", metavar="GLOB", action="append", help="catalog/chapter")
    parser.add_argument("--at-once", type=int, default=2, help="syncs at once")
    given = parser.parse_args(arguments)
    seed = secrets.randbelow(2**31) if given.seed is None else given.seed
    _isolate()
    folder = Path(tempfile.mkdtemp(prefix="lakeload-faults-"))
    say(f"seed {seed}, folder {folder}")
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
        for name, open_world in WORLDS.items():
            chapters = [one for one in CHAPTERS if _chosen(f"{name}/{one}", only)]
            if not chapters:
                continue
            bucket = f"lake-{secrets.token_hex(6)}"
            lake = Lake(aws, seed_lake(aws.admin, bucket=bucket, prefix="data-lake/test"))
            with open_world(aws, lake, folder / name, f"{seed} {name}") as world:
                world.cache = folder / "cache"
                done += _chapters(world, chapters, at_once)
            lake.empty()
    return done


def _chapters(world: World, chapters: Sequence[str], at_once: int) -> list[Case]:
    _make_class_data(world)
    found = places(world)
    done: list[Case] = []
    for chapter in chapters:
        started = time.monotonic()
        cases = CHAPTERS[chapter](world, found, say, at_once)
        say(f"{world.catalog}/{chapter}: {len(cases)} in {time.monotonic() - started:.0f} s")
        done += cases
    return done


def _make_class_data(world: World) -> None:
    """Let Spark start faster in the loads that follow, as a user would."""
    folder = world.write("class-data", {"trained": "APPEND"}, "first")
    code, told = run_command(world, folder, "jars", "fetch", "pipeline.yml")
    if code != 0:
        raise RuntimeError(f"`lakeload jars fetch` ended with {code}: {told}")


def _chosen(name: str, only: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in only)


def _report(cases: Sequence[Case], seed: int) -> None:
    """Write the table, and what to run again."""
    say(f"\n{'class':<28}{'times':>7}{'rows lost':>11}{'rows doubled':>14}{'left behind':>14}")
    for kind in dict.fromkeys(case.kind for case in cases):
        own = [case for case in cases if case.kind == kind]
        lost = sum(case.findings.lost for case in own)
        doubled = sum(case.findings.doubled for case in own)
        left = sum(case.findings.branches for case in own)
        say(f"{kind:<28}{sum(c.counted for c in own):>7}{lost:>11}{doubled:>14}{left:>14}")
    for case in cases:
        for problem in case.findings.problems:
            say(f"\n{case.name}: {problem}")
    if not all(case.findings.good for case in cases):
        say(f"again: python -m tests.faults.iceberg --seed {seed}")


def _isolate() -> None:
    """Keep the developer's AWS and Spark settings out, as the tests do."""
    for name in [name for name in os.environ if name.startswith(_FOREIGN)]:
        del os.environ[name]
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"


def say(text: str) -> None:
    """Write a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()

"""The third layer of `make faults`: every chapter for both catalogs, and the table it ends with."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence

from lakeload.demo.aws import EmbeddedAws, seed_lake
from tests.faults.iceberg.answers import METADATA, lost_answers, retries, silences
from tests.faults.iceberg.case import Case, Note
from tests.faults.iceberg.clean_up import clean_up
from tests.faults.iceberg.crowd import appenders, appenders_and_merge
from tests.faults.iceberg.kills import (
    Places,
    late_commits,
    places,
    staging_kills,
    step_kills,
    widening_kills,
)
from tests.faults.iceberg.world import BY_DRIVER, BY_TASKS, World
from tests.faults.iceberg.worlds import WORLDS
from tests.faults.layer import Outcome, Wanted, run_layer, say
from tests.faults.product.syncs import run_command
from tests.servers.ministack import AwsServer, Lake

KILLS = 56
"""For each catalog; some strike elsewhere than meant, and 100 that struck are the bar."""
PARTITIONED_KILLS = 28
ANSWERS = 42
METADATA_ANSWERS = 28
REJECTING_KILLS = 28
REJECTING_ANSWERS = 28

Chapter = Callable[[World, Places, Note, int], list[Case]]

CHAPTERS: dict[str, Chapter] = {
    "kills": lambda world, found, note, at_once: step_kills(
        world, found, KILLS, note, at_once=at_once
    ),
    "partitions": lambda world, _, note, at_once: partitions(world, note, at_once),
    "columns": lambda world, _, note, at_once: widening_kills(world, note, at_once=at_once),
    "staging": lambda world, _, note, at_once: staging(world, note, at_once),
    "late": lambda world, found, note, at_once: late_commits(world, found, note),
    "answers": lambda world, found, note, at_once: lost_answers(
        world, found, ANSWERS, note, at_once=at_once
    ),
    "metadata": lambda world, found, note, at_once: lost_answers(
        world, found, METADATA_ANSWERS, note, at_once=at_once, of=METADATA
    ),
    "silences": lambda world, found, note, at_once: silences(world, found, note),
    "rejects": lambda world, _, note, at_once: rejects(world, note, at_once),
    "retries": lambda world, found, note, at_once: retries(world, note),
    "appenders": lambda world, found, note, at_once: appenders(world, 8, 10, note),
    "merge": lambda world, found, note, at_once: appenders_and_merge(world, 4, 6, note),
}


def partitions(world: World, note: Note, at_once: int) -> list[Case]:
    """Kills of loads of which the appends are of partitioned tables."""
    world.partition_by = ("bucket(3, id)",)
    try:
        return step_kills(world, places(world), PARTITIONED_KILLS, note, at_once=at_once)
    finally:
        world.partition_by = ()


def staging(world: World, note: Note, at_once: int) -> list[Case]:
    """Kills before files are committed: files of the driver, of tasks, and of partitions."""
    cases = staging_kills(world, "by-driver", note, at_once=at_once)
    world.master = BY_TASKS
    try:
        cases += staging_kills(world, "by-tasks", note, at_once=at_once)
        world.partition_by = ("bucket(3, id)",)
        return cases + staging_kills(world, "by-tasks", note, at_once=at_once)
    finally:
        world.partition_by, world.master = (), BY_DRIVER


def rejects(world: World, note: Note, at_once: int) -> list[Case]:
    """Kills and broken answers of loads with rejected records."""
    found = places(world, rejects=True)
    kills = step_kills(world, found, REJECTING_KILLS, note, at_once=at_once, rejects=True)
    return kills + lost_answers(
        world, found, REJECTING_ANSWERS, note, at_once=at_once, rejects=True
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign and return 1 when anything was violated."""
    return run_layer("tests.faults.iceberg", __doc__, "catalog/chapter", _run, arguments)


def _run(wanted: Wanted) -> Iterator[Outcome]:
    with EmbeddedAws(wanted.folder / "aws") as embedded:
        aws = AwsServer(embedded.endpoint)
        for name, open_world in WORLDS.items():
            chapters = [one for one in CHAPTERS if wanted.includes(f"{name}/{one}")]
            if not chapters:
                continue
            bucket = f"lake-{secrets.token_hex(6)}"
            lake = Lake(aws, seed_lake(aws.admin, bucket=bucket, prefix="data-lake/test"))
            with open_world(aws, lake, wanted.folder / name, f"{wanted.seed} {name}") as world:
                world.cache = wanted.folder / "cache"
                for case in _chapters(world, chapters, wanted.at_once):
                    yield Outcome(case.kind, case.name, int(case.counted), case.findings)
            lake.empty()


def _chapters(world: World, chapters: Sequence[str], at_once: int) -> list[Case]:
    _make_class_data(world)
    found = places(world)
    done: list[Case] = []
    for chapter in chapters:
        started = time.monotonic()
        cases = CHAPTERS[chapter](world, found, say, at_once)
        say(f"{world.catalog}/{chapter}: {len(cases)} in {time.monotonic() - started:.0f} s")
        done += cases
    clean_up(world, done, say)
    return done


def _make_class_data(world: World) -> None:
    """Let Spark start faster in the loads that follow, as a user would."""
    folder = world.write("class-data", {"trained": "APPEND"}, "first")
    code, told = run_command(world, folder, "jars", "fetch", "pipeline.yml")
    if code != 0:
        raise RuntimeError(f"`lakeload jars fetch` ended with {code}: {told}")

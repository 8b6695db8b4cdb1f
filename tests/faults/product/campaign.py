"""The second layer of `make faults`: every case, and the table it ends with."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence

from lakeload.demo.aws import EmbeddedAws, seed_lake
from tests.faults.layer import Outcome, Wanted, run_layer, say
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign and return 1 when anything was violated."""
    return run_layer("tests.faults.product", __doc__, "chapters or cases", _run, arguments)


def _run(wanted: Wanted) -> Iterator[Outcome]:
    begun = False
    with EmbeddedAws(wanted.folder / "aws") as embedded:
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
                wanted.folder / name,
                f"{wanted.seed} {name}",
                glue=name in _IN_GLUE,
                cache=wanted.folder / "cache",
            )
            chosen = [case for case in chapter(world) if wanted.includes(name, case.name)]
            if not chosen:
                continue
            if not begun and wanted.everything:
                _make_class_data(world)
            begun = True
            started = time.monotonic()
            run_cases(world, chosen, at_once=wanted.at_once, note=say)
            say(f"{name}: {len(chosen)} cases in {time.monotonic() - started:.0f} s")
            for case in chosen:
                again = f"--only {case.name}"
                yield Outcome(case.kind, case.name, case.times, case.findings, again)
            lake.empty()
        proxy.stop()


def _make_class_data(world: World) -> None:
    """Let Spark start faster in the hundred loads that follow, as a user would."""
    folder = world.write("class-data", ["trained"])
    code, told = run_command(world, folder, "jars", "fetch", "pipeline.yml")
    if code != 0:
        raise RuntimeError(f"`lakeload jars fetch` ended with {code}: {told}")

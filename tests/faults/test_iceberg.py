"""A handful of the Iceberg campaign's kills at each change; `make faults` makes all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.faults.iceberg.clean_up import clean_up
from tests.faults.iceberg.kills import kill_at
from tests.faults.iceberg.rows import JOB, NOTHING, Mode
from tests.faults.iceberg.steps import COMMIT, PUBLISH, REJECTED, Point
from tests.faults.iceberg.worlds import glue_world
from tests.servers.ministack import AwsServer, Lake

PLACES: list[tuple[Mode, bool, Point]] = [
    ("UPSERT", True, Point("write deletes", 1, after=False)),
]

STAGING: list[tuple[Mode, bool, Point]] = [
    ("APPEND", True, Point("write data", 1, after=True)),
    ("OVERWRITE", False, Point("complete data", 1, after=False)),
]
"""While an upload is open, and when it is completed and in no commit. No load comes next."""

WIDENING: list[tuple[Mode, bool, Point]] = [
    ("UPSERT", True, Point(COMMIT, 2, after=False)),
]
"""With a column that the table does not have: its publish is on its way and never arrives."""

REJECTING: list[tuple[Mode, bool, Point]] = [
    ("APPEND", True, Point(f"{REJECTED}{COMMIT}", 2, after=True)),
]
"""With rejected records: before the publish, when they are in the side table."""

STOPPED: list[tuple[Mode, bool, Point]] = [
    ("APPEND", True, Point(COMMIT, PUBLISH, after=True)),
]
"""By SIGTERM, which ends the driver alone: the JVM is warm. The response of the commit reaches
nobody."""


@pytest.mark.e2e
@pytest.mark.timeout(900)
def test_iceberg_jobs_after_kills_and_signals_are_committed_once_without_orphan_branches(
    aws: AwsServer,
    base_identity: Lake,
    tmp_path: Path,
    warm_spark_home: Path,
    jars_cache: Path,
    spark: SparkSession,
) -> None:
    notes: list[str] = []
    with glue_world(aws, base_identity, tmp_path, "1") as world:
        world.cache, world.warm_spark = jars_cache, warm_spark_home
        cases = kill_at(
            world,
            [*PLACES, *STAGING],
            notes.append,
            at_once=1,
            then=[JOB, NOTHING, NOTHING, JOB, JOB, JOB],
            widening=WIDENING,
            stopped=STOPPED,
            rejecting=REJECTING,
        )
        left = clean_up(world, cases[1:3], notes.append, spark=spark)
    assert left > 0
    assert [case.findings for case in cases if not case.findings.good] == [], "\n".join(notes)
    assert all(case.counted for case in cases)

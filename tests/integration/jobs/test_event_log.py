"""Progress events of a run, from Spark's status tracker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.progress import Progress


def _jobs(spark: SparkSession, count: int) -> None:
    for _ in range(count):
        spark.sparkContext.parallelize([1], 1).count()


def test_looks_at_many_jobs_ask_the_jvm_few_times(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _jobs(spark, 20)
    asked = []
    client: Any = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
    send = client.send_command

    def counted(command: str, *rest: Any, **more: Any) -> Any:
        if not command.startswith("m\n"):  # Objects of Java that earlier tests have left.
            asked.append(command)
        return send(command, *rest, **more)

    monkeypatch.setattr(client, "send_command", counted)
    with EventLog(str(tmp_path / "events")) as events:
        Progress(spark.sparkContext, events)

    # Spark remembers up to a thousand jobs, of which those above are some.
    assert 0 < len(asked) < 20


def test_jobs_of_others_are_not_counted(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "events"
    _jobs(spark, 3)

    with EventLog(str(path)) as events, Progress(spark.sparkContext, events):
        # One job: the tracker may know of a first one before it knows of a second.
        spark.sparkContext.parallelize([1, 2], 2).count()

    last = json.loads(path.read_text().splitlines()[-1])
    assert (last["done"], last["total"]) == (2, 2)

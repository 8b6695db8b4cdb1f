"""The maintenance of a table of any catalog: what a dry run says is what is then done."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import SparkSession

from lakeload_jobs.contract.events import Step
from lakeload_jobs.contract.maintain import MaintainSpec, StepResult
from lakeload_jobs.contract.spec import JobSpec
from lakeload_jobs.formats.iceberg.load.tables import load
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.maintain import run
from tests.integration.formats.iceberg.spark_catalog import open_in_spark

KEPT_IN = ("seaweedfs", "nessie")
"""The worlds whose table is maintained. Glue has tests of its own; Iceberg's own server keeps
metadata in its memory, and not where the tasks of a compaction look for it."""

TOGETHER: tuple[tuple[Step, ...], ...] = (
    ("branches", "manifests"),
    ("compact", "deletes"),
    ("expire", "orphans"),
)
"""A dry run knows nothing of what an earlier step of the same run would leave."""


def kept_in_order(spark: SparkSession, spec: JobSpec, catalog: str) -> None:
    """Take every step with the table of a spec: each does something, or says why it cannot.

    Nessie's client forbids every table to lose files that other branches may have.
    """
    (table,) = spec.tables
    open_in_spark(spark, spec.destination)
    java = load(spark, table.schema, table.table)
    assert java is not None
    orphan = f"{java.location()}/data/left-behind.parquet"
    stream = java.io().newOutputFile(orphan).create()
    stream.write(bytearray(b"left behind"))
    stream.close()
    done = _maintained(spark, spec)

    removing = "UNSUPPORTED" if catalog == "nessie" else "DONE"
    statuses = {name: step.status for name, step in done.items()}
    assert statuses == {
        "branches": "NOTHING_TO_DO",
        "compact": "DONE",
        "deletes": "NOTHING_TO_DO",
        "manifests": "DONE",
        "expire": removing,
        "orphans": removing,
    }, statuses
    assert java.io().newInputFile(orphan).exists() == (catalog == "nessie")
    if catalog == "nessie":
        assert "`nessie-gc`" in done["orphans"].notes[0]


def _maintained(spark: SparkSession, spec: JobSpec) -> Mapping[Step, StepResult]:
    """Take the steps, each after a dry run that has to say the same."""
    done: dict[Step, StepResult] = {}
    for steps in TOGETHER:
        said, did = (_run(spark, spec, steps, apply=apply) for apply in (False, True))
        for step in steps:
            assert _as_said(did[step]) == said[step], (said[step], did[step])
        done |= did
    return done


def _run(
    spark: SparkSession, spec: JobSpec, steps: tuple[Step, ...], *, apply: bool
) -> dict[Step, StepResult]:
    wanted = MaintainSpec(steps=steps, apply=apply, older_than=0, orphans_older_than=0)
    job = replace(spec, job="maintain", maintain=wanted, attempt_id=str(uuid.uuid4()))
    open_in_spark(spark, job.destination)
    with EventLog(job.events_path) as events:
        result = run(spark, job, events)
    assert result.error is None, result.error
    (table,) = result.tables
    assert table.error is None, table.error
    failed = [step.error for step in table.steps if step.error is not None]
    assert not failed, failed
    return {step.step: step for step in table.steps}


def _as_said(did: StepResult) -> StepResult:
    """Return what the dry run says of it: not which deletes will be found to apply to no file."""
    return replace(did, status="WOULD_DO", delete_files=0) if did.status == "DONE" else did

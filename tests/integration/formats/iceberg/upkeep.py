"""Loads of tables in Glue and their maintenance, in the session that all tests share."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyiceberg.table import Table
from pyspark.sql import SparkSession

from lakeload.demo.aws import embedded_policy
from lakeload.policy.iam import PolicyOptions, role_policies
from lakeload_jobs.contract.events import Step
from lakeload_jobs.contract.maintain import (
    MaintainSpec,
    StepResult,
    TableMaintenance,
)
from lakeload_jobs.contract.spec import FilesInput, TableSpec
from lakeload_jobs.contract.traits import FORMATS
from lakeload_jobs.formats.iceberg.load.tables import load
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.maintain import run
from tests.integration.formats.iceberg.catalog_world import CatalogWorld
from tests.integration.formats.iceberg.conftest import Loads
from tests.integration.formats.iceberg.glue_world import glue_world
from tests.integration.formats.iceberg.spark_catalog import open_in_spark
from tests.servers.ministack import Lake

NOW: dict[str, Any] = {"older_than": 0, "orphans_older_than": 0}


@dataclass
class Upkeep(Loads):
    """Loads into Glue, and the maintenance of what they made."""

    world: CatalogWorld = field(kw_only=True)
    lake: Lake = field(kw_only=True)

    def read(self, name: str = "orders") -> Table:
        """Return the table as pyiceberg sees it now."""
        return self.world.read(self.schema, name)

    def allow(self, *, maintain: bool) -> None:
        """Give the role what a load needs, and with `maintain` what `--with maintain` adds."""
        load_policy = dict(embedded_policy(self.destination))
        found = load_policy["Statement"]
        statements = list(found) if isinstance(found, list) else [found]
        if maintain:
            documents = role_policies(self.destination, PolicyOptions(maintain=True))
            (extra,) = (one for one in documents if one.name == "maintain")
            statements += [one.as_json() for one in extra.statements]
        role = self.lake.seeded.role
        self.lake.server.admin.put_role_policy(role, {**load_policy, "Statement": statements})

    @contextmanager
    def without_action(self, action: str) -> Iterator[None]:
        """Take one action from the role for a while."""
        policy = dict(embedded_policy(self.destination))
        found: Any = policy["Statement"]
        statements = [one for one in found if action not in (one["Action"], *one["Action"])]
        role = self.lake.seeded.role
        self.lake.server.admin.put_role_policy(role, {**policy, "Statement": statements})
        try:
            yield
        finally:
            self.allow(maintain=True)

    def sql(self, text: str) -> None:
        """Somebody else writes: `{t}` is the table."""
        open_in_spark(self.spark, self.destination)
        self.spark.sql(text.format(t=f"lake.`{self.schema}`.orders"))

    def keep(self, table: TableSpec, *steps: Step, apply: bool = True, **options: Any) -> Steps:
        """Take the steps, all when none are named, and return what became of each."""
        wanted = MaintainSpec(
            steps=steps or FORMATS["ICEBERG"].maintenance_steps, apply=apply, **options
        )
        done = self.maintained(table, wanted)
        assert done.error is None, done.error
        return {step.step: step for step in done.steps}

    def maintained(self, table: TableSpec, wanted: MaintainSpec) -> TableMaintenance:
        """Run a job of maintenance with one table."""
        spec = replace(self.spec(table), job="maintain", maintain=wanted)
        open_in_spark(self.spark, self.destination)
        with EventLog(spec.events_path) as events:
            result = run(self.spark, spec, events)
        assert result.error is None, result.error
        return result.tables[0]

    def java(self) -> Any:
        """Return the table as Iceberg's Java has it."""
        open_in_spark(self.spark, self.destination)
        return load(self.spark, self.schema, "orders")

    def objects(self) -> dict[str, int]:
        """Return every object below the table's location, with its size."""
        table = self.java()
        listed = table.io().listPrefix(table.location()).iterator()
        found = {}
        while listed.hasNext():
            entry = listed.next()
            found[str(entry.location())] = int(entry.size())
        return found


Steps = dict[Step, StepResult]


def glue_upkeep(spark: SparkSession, lake: Lake, folder: Path) -> Upkeep:
    """Return the loads of one test into a database of its own, whose role may maintain it."""
    world = glue_world(lake)
    schema = f"lakes_t{uuid.uuid4().hex[:8]}"
    made = Upkeep(spark, world.destination, folder, schema, "", {}, world=world, lake=lake)
    made.allow(maintain=True)
    return made


def statuses(steps: Steps) -> dict[Step, str]:
    """Return the status of each step; shows what failed."""
    assert [step.error for step in steps.values() if step.status == "FAILED"] == []
    return {name: step.status for name, step in steps.items()}


def incremental(upkeep: Upkeep, **changes: Any) -> TableSpec:
    """Return a table that is loaded from every new file of a folder."""
    pattern, folder = str(upkeep.folder / "*.parquet"), str(upkeep.folder)
    source = FilesInput("PARQUET", (pattern,), {}, incremental=True, folder=folder)
    return upkeep.table(input=source, **changes)


def small_files(upkeep: Upkeep, *, commits: int = 1, rows: int = 1, branch: str = "main") -> None:
    """Somebody else appends rows with ids from 100, six files of `rows` rows in each commit."""
    open_in_spark(upkeep.spark, upkeep.destination)
    for number in range(commits):
        first = 100 + number * 6 * rows
        frame = upkeep.spark.range(first, first + 6 * rows, 1, 6)
        to = frame.writeTo(f"lake.`{upkeep.schema}`.orders.branch_{branch}")
        to.option("distribution-mode", "none").append()

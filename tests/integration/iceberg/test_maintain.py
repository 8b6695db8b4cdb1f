"""Maintenance of tables in Glue: what a dry run says, what is done, and beside which loads."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from lakeload.demo.aws_policies import embedded_policy
from lakeload.policy.iam import PolicyOptions, role_policies
from lakeload_jobs.contract.maintain import (
    ICEBERG_STEPS,
    MaintainSpec,
    Step,
    StepResult,
    TableMaintenance,
)
from lakeload_jobs.contract.spec import FilesInput, TableSpec
from lakeload_jobs.iceberg.branches import create_branch
from lakeload_jobs.iceberg.catalog_settings import connect
from lakeload_jobs.iceberg.maintain import compact as compact_module
from lakeload_jobs.iceberg.tables import load
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.maintain import run
from lakeload_jobs.lake.aws import AwsSession
from lakeload_jobs.rules.iceberg_branches import staging_branch
from tests.integration.iceberg.catalog_world import CatalogWorld
from tests.integration.iceberg.conftest import Loads
from tests.integration.iceberg.glue_world import glue_world
from tests.integration.iceberg.test_publish_races import before_publishing
from tests.servers.ministack import Lake

# Many commits, each of which a busy machine takes seconds for.
pytestmark = pytest.mark.timeout(600)

ATTEMPT = "0b6f3c1e-7d7b-4c7e-9d0f-1f2e3d4c5b6a"
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

    def sql(self, text: str) -> None:
        """Somebody else writes: `{t}` is the table."""
        connect(self.spark, self.destination, AwsSession(self.destination))
        self.spark.sql(text.format(t=f"lake.`{self.schema}`.orders"))

    def keep(self, table: TableSpec, *steps: Step, apply: bool = True, **options: Any) -> Steps:
        """Take the steps, all when none are named, and return what became of each."""
        wanted = MaintainSpec(steps=steps or ICEBERG_STEPS, apply=apply, **options)
        done = self.maintained(table, wanted)
        assert done.error is None, done.error
        return {step.step: step for step in done.steps}

    def maintained(self, table: TableSpec, wanted: MaintainSpec) -> TableMaintenance:
        """Run a job of maintenance with one table."""
        spec = replace(self.spec(table), job="maintain", maintain=wanted)
        connect(self.spark, self.destination, AwsSession(self.destination))
        with EventLog(spec.events_path) as events:
            result = run(self.spark, spec, events)
        assert result.error is None, result.error
        return result.tables[0]

    def java(self) -> Any:
        """Return the table as Iceberg's Java has it."""
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


@pytest.fixture
def upkeep(spark: SparkSession, base_identity: Lake, tmp_path: Path) -> Upkeep:
    world = glue_world(base_identity)
    schema = f"lakes_t{uuid.uuid4().hex[:8]}"
    made = Upkeep(
        spark, world.destination, tmp_path, schema, "", {}, world=world, lake=base_identity
    )
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


def small_files(upkeep: Upkeep, *, commits: int = 1) -> None:
    """Somebody else appends rows with ids from 100, six files of a row in each commit."""
    connect(upkeep.spark, upkeep.destination, AwsSession(upkeep.destination))
    for number in range(commits):
        first = 100 + number * 6
        frame = upkeep.spark.range(first, first + 6, 1, 6)
        frame.writeTo(f"lake.`{upkeep.schema}`.orders").append()


def test_a_dry_run_says_what_is_then_done_and_writes_nothing(upkeep: Upkeep) -> None:
    table = incremental(upkeep)
    upkeep.file([{"id": n} for n in range(10)])
    upkeep.loaded(table)
    small_files(upkeep, commits=3)
    upkeep.sql("DELETE FROM {t} WHERE id = 3")
    upkeep.file([{"id": 10}])
    upkeep.loaded(table)
    expected = upkeep.rows()
    left = staging_branch(datetime.now(UTC) - timedelta(days=2), ATTEMPT)
    young = staging_branch(datetime.now(UTC), ATTEMPT)
    for name in (left, young):
        create_branch(upkeep.spark, upkeep.schema, "orders", name, "main")
    before = upkeep.objects()

    said = upkeep.keep(table, apply=False, **NOW)

    assert statuses(said) == {
        "branches": "WOULD_DO",
        "compact": "WOULD_DO",
        "deletes": "NOTHING_TO_DO",
        "manifests": "WOULD_DO",
        "expire": "WOULD_DO",
        "orphans": "NOTHING_TO_DO",
    }
    assert said["branches"].items == (left,)
    assert upkeep.objects() == before

    did = upkeep.keep(table, "branches", "compact", "manifests")

    assert set(statuses(did).values()) == {"DONE"}
    assert set(upkeep.read().metadata.refs) == {"main", young}
    for name in ("files", "files_after", "bytes"):
        assert getattr(did["compact"], name) == getattr(said["compact"], name)
    assert (did["compact"].files, did["compact"].files_after) == (20, 1)
    assert upkeep.rows() == expected

    upkeep.sql(f"ALTER TABLE {{t}} DROP BRANCH `{young}`")
    orphan = f"{upkeep.java().location()}/data/left-behind.parquet"
    stream = upkeep.java().io().newOutputFile(orphan).create()
    stream.write(bytearray(b"left behind"))
    stream.close()
    said = upkeep.keep(table, "expire", "orphans", apply=False, **NOW)
    before = upkeep.objects()
    did = upkeep.keep(table, "expire", **NOW)
    gone = {key: size for key, size in before.items() if key not in upkeep.objects()}

    assert did["expire"] == replace(said["expire"], status="DONE")
    assert did["expire"].files == len(gone) > 0
    lists = sum(size for key, size in gone.items() if "/snap-" in key)
    assert did["expire"].bytes == sum(gone.values()) - lists
    assert (said["orphans"].items, said["orphans"].bytes) == ((orphan,), 11)
    assert statuses(upkeep.keep(table, "orphans", apply=True)) == {"orphans": "NOTHING_TO_DO"}
    assert statuses(upkeep.keep(table, "orphans", **NOW)) == {"orphans": "DONE"}
    assert orphan not in upkeep.objects()
    assert upkeep.rows() == expected

    # The state's snapshot is still there: the next load goes on from it.
    upkeep.file([{"id": 11}])
    assert upkeep.loaded(table).rows == 1


def test_loads_that_meet_a_maintenance_all_come_in(
    upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed: dict[str, Any] = {"primary_key": ("id",)}
    upkeep.loaded(upkeep.table(upkeep.file([{"id": n, "note": "a"} for n in range(3)]), **keyed))
    small_files(upkeep)
    whole = upkeep.table(upkeep.file([{"id": 50, "note": "b"}]), **keyed)

    def meanwhile() -> None:
        steps = upkeep.keep(whole, "compact", "manifests", "expire", **NOW)
        assert statuses(steps)["compact"] == "DONE"

    before_publishing(monkeypatch, meanwhile)
    upkeep.loaded(whole)
    expected = {0, 1, 2, 50, *range(100, 106)}
    assert {row["id"] for row in upkeep.rows()} == expected

    small_files(upkeep)
    before_publishing(monkeypatch, meanwhile)
    rows = [{"id": 0, "note": "new"}, {"id": 51, "note": "b"}]
    upserted = upkeep.loaded(upkeep.table(upkeep.file(rows), mode="UPSERT", **keyed))

    assert upserted.changes is not None
    assert (upserted.changes.inserted, upserted.changes.updated) == (1, 1)
    found = upkeep.rows()
    assert {row["id"] for row in found} == {*expected, 51}
    assert [row["note"] for row in found if row["id"] == 0] == ["new"]
    assert list(upkeep.read().metadata.refs) == ["main"]


def test_a_compaction_that_loses_is_taken_anew_and_then_told(
    upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = upkeep.table(upkeep.file([{"id": n} for n in range(10)]))
    upkeep.loaded(table)
    small_files(upkeep)
    rewrite, losses = compact_module._rewrite, iter(range(4))

    def disturbed(*given: Any) -> Any:
        if next(losses, None) is not None:
            upkeep.sql("DELETE FROM {t} WHERE id IN (SELECT min(id) FROM {t})")
        return rewrite(*given)

    monkeypatch.setattr(compact_module, "_rewrite", disturbed)
    lost = upkeep.keep(table, "compact")["compact"]
    won = upkeep.keep(table, "compact")["compact"]

    assert lost.error is not None
    assert (lost.status, lost.error.exit_code, lost.error.retryable) == ("LOST_RACE", 5, True)
    assert won.status == "DONE"
    assert {row["id"] for row in upkeep.rows()} == {*range(4, 10), *range(100, 106)}


def test_limits_and_permissions_are_kept(upkeep: Upkeep) -> None:
    table = upkeep.table(upkeep.file([{"id": n} for n in range(10)]))
    upkeep.loaded(table)
    small_files(upkeep)
    sizes = [task.file.file_size_in_bytes for task in upkeep.read().scan().plan_files()]
    limit = sum(sorted(sizes)[-3:])

    refused = upkeep.keep(table, "compact", where="no_such = 1")["compact"]
    filtered = upkeep.keep(table, "compact", apply=False, where="id >= 101")["compact"]
    limited = upkeep.keep(table, "compact", max_bytes=limit)["compact"]
    snapshots = len(upkeep.read().snapshots())
    upkeep.allow(maintain=False)
    denied = upkeep.keep(table, "expire", retain_last=1, **NOW)["expire"]

    assert refused.error is not None
    assert (refused.status, refused.error.exit_code) == ("FAILED", 2)
    assert "`no_such` cannot be resolved" in refused.error.message
    assert filtered.files == 5
    assert (limited.status, limited.files, limited.files_after) == ("DONE", 3, 1)
    assert (limited.bytes or 0) <= limit
    assert denied.error is not None
    assert "`s3:DeleteObject`" in denied.error.message
    assert f"{upkeep.schema}/orders/metadata/" in denied.error.message
    assert len(upkeep.read().snapshots()) == snapshots > 1
    assert len(upkeep.rows()) == 16

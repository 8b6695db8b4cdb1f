"""The whole life of a table in each catalog, every row compared with what it has to be."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeload.documents.spec import fingerprint
from lakeload_jobs.contract.result import RowChanges, RunResult, TableResult
from lakeload_jobs.contract.spec import ColumnsSpec, FilesInput, JobSpec, PartitionField, TableSpec
from lakeload_jobs.contract.traits import vends
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.load import run
from tests.integration.formats.iceberg.catalog_upkeep import KEPT_IN, kept_in_order
from tests.integration.formats.iceberg.catalog_world import CatalogWorld
from tests.integration.formats.iceberg.catalog_worlds import VARIANTS, WORLDS
from tests.integration.formats.iceberg.table_oracle import (
    SECOND,
    Oracle,
    Row,
    assert_same,
    read,
    row,
    write_rows,
)

# Seven loads in one test, and each a dozen of Spark's jobs.
pytestmark = pytest.mark.timeout(900)

TABLE = "orders"


@dataclass
class Life:
    """One table of one catalog, what was loaded into it, and what it has to hold."""

    spark: SparkSession
    world: CatalogWorld
    folder: Path
    oracle: Oracle = field(default_factory=Oracle)
    jobs: int = 0

    def spec(self, rows: Sequence[Row], *, version: int = 1, **changes: Any) -> JobSpec:
        """Return the spec of a new job over one more file of the source."""
        self.jobs += 1
        name = f"{self.jobs:03d}.parquet"
        path = write_rows(self.folder / "orders" / name, rows, version=version)
        changes = {"partition_by": (PartitionField("bucket", "id", 2),)} | changes
        whole = changes.get("mode") == "OVERWRITE"
        paths = str(path) if whole else str(self.folder / "orders" / "*.parquet")
        table = TableSpec(
            source=TABLE,
            schema=self.world.schema,
            table=TABLE,
            input=FilesInput(
                "PARQUET", (paths,), {}, incremental=not whole, folder=str(self.folder)
            ),
            fingerprint="",
            primary_key=("id",),
            cursor="version",
            deleted_when="gone",
            columns=ColumnsSpec(),
            **changes,
        )
        table = replace(table, fingerprint=fingerprint(repr(table)))
        return JobSpec(
            contract=1,
            pipeline="shop",
            job_id=f"job-{self.jobs}",
            attempt_id=str(uuid.uuid4()),
            synced=datetime(2026, 11, 21, 10, self.jobs, tzinfo=UTC),
            destination=self.world.destination,
            tables=(table,),
            events_path=str(self.folder / f"events-{self.jobs}.jsonl"),
            result_path=str(self.folder / f"result-{self.jobs}.json"),
            schema_changes="EVOLVE",
            nested="JSON",
        )

    def run(self, spec: JobSpec) -> TableResult:
        """Run a spec and return what became of its table."""
        with EventLog(spec.events_path) as events:
            result: RunResult = run(self.spark, spec, events)
        assert result.error is None, result.error
        return result.tables[0]

    def load(self, spec: JobSpec, rows: Sequence[Row]) -> TableResult:
        """Run a spec, note the same in the oracle, and compare the table with it."""
        result = self.run(spec)
        assert (result.status, result.error) == ("LOADED", None)
        assert result.snapshot_id is not None
        table = spec.tables[0]
        lends = self.world.name in ("open-catalog", "rest-token")
        assert result.writer == ("spark" if lends or table.mode == "UPSERT" else "direct")
        if table.mode == "APPEND":
            self.oracle.append(rows, spec.job_id)
        elif table.mode == "OVERWRITE":
            self.oracle.overwrite(rows, spec.job_id)
        else:
            self.oracle.upsert(rows, spec.job_id, table.deletes)
        self.oracle.remember(result.snapshot_id)
        self.compare(spec.job_id)
        return result

    def compare(self, when: str) -> None:
        """Compare the table as it is now."""
        now = self.world.read(self.world.schema, TABLE)
        assert_same(read(now), self.oracle.rows, f"{self.world.name} after {when}")

    def travel(self) -> None:
        """Compare every snapshot that was published."""
        now = self.world.read(self.world.schema, TABLE)
        for snapshot, rows in self.oracle.at.items():
            assert_same(read(now, snapshot), rows, f"{self.world.name} at {snapshot}")

    def forget(self) -> None:
        """Leave out of the oracle what has expired."""
        snapshots = self.world.read(self.world.schema, TABLE).snapshots()
        kept = {one.snapshot_id for one in snapshots}
        self.oracle.at = {one: rows for one, rows in self.oracle.at.items() if one in kept}


@pytest.mark.parametrize("name", WORLDS)
def test_table_of_each_catalog_passes_all_operations(
    name: str, make_world: Callable[[str], CatalogWorld], spark: SparkSession, tmp_path: Path
) -> None:
    life = Life(spark, make_world(name), tmp_path)

    first = [row(number) for number in range(1, 41)]
    life.load(life.spec(first), first)
    rows = [row(number) for number in range(41, 61)]
    life.load(life.spec(rows), rows)
    wide = [row(number, wide=True) for number in range(61, 71)]
    third = life.spec(wide, version=SECOND)
    appended = life.load(third, wide)
    _number_of_a_job_is_dense(life, third.job_id, len(wide))
    lent = vends(life.world.destination.iceberg.catalog)
    assert appended.writer == ("spark" if lent else "direct")

    again = life.run(replace(third, attempt_id=str(uuid.uuid4())))
    assert (again.status, again.snapshot_id) == ("NO_OP", appended.snapshot_id)
    life.compare("the same job again")

    changed = [row(number, version=2, wide=True) for number in range(1, 11)]
    twice = [row(5, version=3, wide=True), row(6, version=1, wide=True)]
    new = [row(number, wide=True) for number in range(71, 76)]
    gone = [row(number, version=2, gone=True, wide=True) for number in (11, 12)]
    late = [row(30, version=0, wide=True)]
    batch = [*twice, *changed, *new, *gone, *late]
    upserted = life.load(life.spec(batch, version=SECOND, mode="UPSERT"), batch)
    assert upserted.changes == RowChanges(5, 12, 0, unchanged=0, ignored=1)
    assert upserted.same_key is not None
    assert upserted.same_key.rows == 2

    last = [row(20, version=2, wide=True), row(76, wide=True)]
    removed = [row(number, version=2, gone=True, wide=True) for number in (21, 22)]
    batch = [*last, *removed]
    # With partitions that the table does not have yet. A dry run of `compact` has no estimate for
    # files that get others.
    more = (PartitionField("bucket", "id", 2 if name in KEPT_IN else 4),)
    merge = life.spec(batch, version=SECOND, mode="UPSERT", deletes="DELETE", partition_by=more)
    deleted = life.load(merge, batch)
    assert deleted.changes is not None
    assert (deleted.changes.inserted, deleted.changes.updated, deleted.changes.deleted) == (1, 1, 2)
    if name in KEPT_IN:
        kept_in_order(spark, merge, name)
        life.compare("the maintenance")
        life.forget()

    whole = [row(number, version=4, wide=True) for number in range(1, 16)]
    more = (PartitionField("bucket", "id", 8),)
    life.load(life.spec(whole, version=SECOND, mode="OVERWRITE", partition_by=more), whole)
    assert life.jobs == 6
    life.travel()
    _nothing_of_lakeload_is_left(life)
    _was_asked_as_configured(life.world)


@pytest.mark.parametrize("name", VARIANTS)
def test_two_loads_into_each_catalog_and_login_succeed(
    name: str, make_world: Callable[[str], CatalogWorld], spark: SparkSession, tmp_path: Path
) -> None:
    world = make_world(name)
    # Of its own: tables of other tests and of the whole life live in that of the world.
    life = Life(spark, replace(world, schema=f"{world.schema}_two_loads"), tmp_path)
    first = [row(number) for number in range(1, 5)]
    life.load(life.spec(first), first)
    # A MERGE that brings columns.
    batch = [row(2, version=2, wide=True), row(5, wide=True)]
    life.load(life.spec(batch, version=SECOND, mode="UPSERT"), batch)
    life.travel()
    _nothing_of_lakeload_is_left(life)
    _was_asked_as_configured(life.world)
    _token_is_shown_nowhere(life)


def _token_is_shown_nowhere(life: Life) -> None:
    """Neither in the session's settings nor in what the job writes on this machine."""
    reference = life.world.destination.iceberg.catalog.token
    if reference is None:
        return
    token = os.environ[reference.name]
    assert token not in str(dict(life.spark.conf.getAll))
    written = [path.read_text() for path in life.folder.glob("events-*.jsonl")]
    assert len(written) == life.jobs
    assert not any(token in text for text in written)


def _number_of_a_job_is_dense(life: Life, job: str, rows: int) -> None:
    found = life.world.read(life.world.schema, TABLE).scan().to_arrow().to_pylist()
    numbers = sorted(one["_supa_index"] for one in found if one["_supa_job_id"] == job)
    assert numbers == list(range(1, rows + 1))


def _nothing_of_lakeload_is_left(life: Life) -> None:
    """No staging branch outlives its job, and each published snapshot names its own."""
    table = life.world.read(life.world.schema, TABLE)
    assert set(table.metadata.refs) == {"main"}
    assert table.metadata.current_snapshot_id == list(life.oracle.at)[-1]
    assert {field.name for field in table.schema().fields if field.required} == {"id"}
    assert table.schema().identifier_field_names() == {"id"}
    named = {}
    for snapshot in table.metadata.snapshots:
        if snapshot.snapshot_id in life.oracle.at and snapshot.summary is not None:
            named[snapshot.snapshot_id] = snapshot.summary["lakeload.job-id"]
    assert list(named) == list(life.oracle.at)
    assert len(set(named.values())) == len(named)
    assert int(table.properties["lakeload.seq"]) == life.jobs


def _was_asked_as_configured(world: CatalogWorld) -> None:
    """A gate saw Spark's requests too: with the delegation, scope and headers of the document."""
    if not world.gates:
        return
    gate, tokens = world.gates[0], world.gates[-1]
    spec = world.destination.iceberg.catalog
    loads = [r for r in gate.requests if "/tables" in r.path and r.method in ("GET", "POST")]
    reader = [r for r in loads if "pyiceberg" in _header(r.headers, "user-agent").lower()]
    ours = [r for r in loads if r not in reader]
    assert ours
    lent = {_header(r.headers, "x-iceberg-access-delegation") for r in ours}
    wanted = "vended-credentials" if spec.access_delegation == "VENDED_CREDENTIALS" else ""
    assert lent == {wanted}
    asked = [r.form for r in tokens.requests if r.path.endswith("/oauth/tokens")]
    scopes = {form["scope"] for form in asked if form["client_id"] == "loader-id"}
    assert scopes == ({spec.scope} if spec.scope else set())
    if spec.headers:
        assert {_header(r.headers, "x-tenant") for r in ours} == {"tenant-4711"}


def _header(headers: dict[str, str], name: str) -> str:
    return next((value for key, value in headers.items() if key.lower() == name), "")

"""A document that changed under a loaded table is refused before Spark, in `plan` and `sync`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakeload.documents.load import load_pipeline
from lakeload.documents.spec import destination_spec, table_specs
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.admission import LoadAttempt, table_settings
from lakeload_jobs.formats.parquet.log.records import LoadRecord, Target
from lakeload_jobs.formats.parquet.log.table_log import TableLog
from lakeload_jobs.storage.objects import Objects
from tests.e2e.command import lakeload, sync
from tests.servers.ministack import Lake

pytestmark = pytest.mark.usefixtures("forked_commands")

ORDERS = {"table": "orders", "path": "orders.csv"}
RETURNS = {"table": "returns", "path": "orders.csv"}
GLUE = {"parquet": {"update_glue_catalog": True}}


@pytest.fixture
def folder(base_identity: Lake, tmp_path: Path) -> Path:
    """Documents whose two tables one job has loaded."""
    (tmp_path / "orders.csv").write_text("id,name\n1,a\n")
    base_identity.write_pipeline(tmp_path, tables=[ORDERS, RETURNS])
    document = load_pipeline(tmp_path / "pipeline.yml", base_identity.environment)
    destination = destination_spec(document.destination)
    objects = Objects(AwsSession(destination), destination)
    for table in table_specs(document):
        _load(objects, destination, table)
    return tmp_path


def test_changed_table_settings_are_rejected_before_spark(lake: Lake, folder: Path) -> None:
    moved = {**RETURNS, "name": "returns_2"}
    lake.write_pipeline(folder, tables=[ORDERS, moved], destination=GLUE)
    before = lake.keys()

    ended = lakeload(lake, folder, "plan", "pipeline.yml", "--output", "json")

    assert ended.code == 2, ended.stderr
    orders, returns = ended.tables["orders"], ended.tables["returns"]
    assert (orders["action"], returns["action"]) == ("BLOCKED", "BLOCKED")
    assert "is loaded without AWS Glue (pipeline `shop`, record 1)" in orders["error"]["message"]
    assert "restore `update_glue_catalog: false`" in orders["error"]["hint"]
    prefix = f"{lake.seeded.prefix}/shop"
    assert returns["error"]["message"] == (
        f"pipeline `shop` loads `returns` into `{prefix}/returns/` (record 1), and would now load "
        f"it into `{prefix}/returns_2/`"
    )

    ended = sync(lake, folder)

    assert ended.code != 0
    assert {table["status"] for table in ended.document["tables"]} == {"FAILED"}
    assert ended.tables["orders"]["error"]["message"] == orders["error"]["message"]
    assert ended.tables["returns"]["error"]["message"] == returns["error"]["message"]
    assert not list((folder / "runs").glob("2*"))
    assert [key for key in lake.keys() if "/job-history/" not in key] == before  # noqa: SIM118


def test_renamed_pipeline_is_rejected_before_spark(lake: Lake, folder: Path) -> None:
    lake.write_pipeline(folder, tables=[ORDERS, RETURNS], name="store")

    ended = lakeload(lake, folder, "plan", "pipeline.yml")

    assert ended.code == 3, ended.stderr
    assert "first run of pipeline `store`" in ended.stderr
    assert "restore `name: shop`" in ended.stderr

    lake.write_pipeline(folder, tables=[ORDERS], name="store", table_handling="APPEND")

    ended = lakeload(lake, folder, "plan", "pipeline.yml")

    assert ended.code == 0, ended.stderr
    assert "warning: shop.orders: pipeline `shop` loads `orders`" in ended.stderr


def _load(objects: Objects, destination: DestinationSpec, table: TableSpec) -> None:
    """Bring a job without rows in, as the Spark job would."""
    location = TableLocation(destination.prefix, table.schema, table.table)
    settings = table_settings(destination, location)
    log = TableLog(objects, location)
    fingerprint, source = table.fingerprint, table.source
    log.open(LoadAttempt("shop", "job-1", "attempt-1", fingerprint, source, "FAIL", settings))
    now = datetime.now(UTC)
    log.commit(
        LoadRecord(
            tool="test",
            pipeline="shop",
            source=table.source,
            job_id="job-1",
            attempt_id="attempt-1",
            started_at=now,
            created_at=now,
            synced=now,
            mode="APPEND",
            table_handling="FAIL",
            fingerprint=table.fingerprint,
            target=Target(destination.prefix, table.schema, table.table),
            partition_strategy=settings.partition_strategy,
            file_name_pattern="part-{supa_job_id}-{seq}",
            partition="",
            columns=(),
            column_map={},
            index="dense",
            rows=0,
            files=(),
        )
    )

"""recover, runs and reset through a REST catalog that gives out its own keys."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from lakeload.formats.iceberg.recover import drop_branches
from lakeload.formats.iceberg.reset import drop_tables
from lakeload.formats.iceberg.runs import read_snapshots
from lakeload.formats.iceberg.tables import IcebergTables
from lakeload.formats.tables import TableRef
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import CatalogSpec
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.iceberg.catalogs import CatalogError, changes
from lakeload_jobs.formats.iceberg.catalogs.rest_tables import RestTables
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable, TableStore
from lakeload_jobs.formats.iceberg.catalogs.tables import open_tables
from lakeload_jobs.formats.iceberg.commits.errors import CommitRejected, CommitUnknown
from tests.integration.commands.iceberg_writer import IcebergWriter
from tests.integration.formats.iceberg.catalogs.world import World, secret
from tests.servers.oauth2_gate import CATALOG, Gate
from tests.servers.rest_catalog import BUCKET
from tests.servers.seaweedfs import KEY, SECRET, SeaweedFs

DAY = timedelta(hours=24)


@pytest.fixture
def world(seaweedfs: SeaweedFs, polaris: Gate, monkeypatch: pytest.MonkeyPatch) -> World:
    """Open Catalog, with everything right."""
    spec = CatalogSpec(
        type="SNOWFLAKE_OPEN_CATALOG",
        uri=polaris.uri,
        warehouse=CATALOG,
        client_id=secret(monkeypatch, "CLIENT_ID", "loader-id"),
        client_secret=secret(monkeypatch, "CLIENT_SECRET", "loader-secret"),
        scope="PRINCIPAL_ROLE:ALL",
    )
    return World(seaweedfs, monkeypatch, BUCKET, spec)


@pytest.fixture
def writer(polaris: Gate, seaweedfs: SeaweedFs) -> IcebergWriter:
    """An empty table of pipeline `shop`, written past the gate."""
    catalog = load_catalog(
        "writer",
        **{
            "type": "rest",
            "uri": polaris.backend,
            "s3.endpoint": seaweedfs.s3_endpoint,
            "s3.access-key-id": KEY,
            "s3.secret-access-key": SECRET,
            "s3.region": "us-east-1",
        },
    )
    made = IcebergWriter(catalog, f"upkeep_{uuid.uuid4().hex[:8]}", "orders")
    made.create()
    return made


def opened(world: World) -> TableStore:
    """Return the tables of the catalog as a command opens it."""
    return open_tables(world.destination, AwsSession(world.destination))


def dropping(world: World) -> IcebergTables:
    """Return a reset of pipeline `shop` as the command runs it."""
    session = AwsSession(world.destination)
    return IcebergTables(opened(world), world.destination, session, "shop", print)


def place(writer: IcebergWriter, name: str = "orders") -> TableRef:
    """Return the table as a command names it."""
    return TableRef(f"{writer.namespace}.{name}", TableLocation("", writer.namespace, name))


def test_rest_table_is_inspected_recovered_and_reset(
    world: World, writer: IcebergWriter, seaweedfs: SeaweedFs
) -> None:
    tables, table = opened(world), place(writer)
    head = writer.load("monday", 3)
    left = writer.stage(datetime.now(UTC) - timedelta(hours=30))
    history = read_snapshots(tables, [table, place(writer, "new")], "main", 20)
    assert [(run.job_id, run.document["snapshot_id"], run.rows) for run in history.runs] == [
        ("monday", head, 3)
    ]
    assert [found["exists"] for found in history.document["tables"]] == [True, False]
    (refused,) = drop_tables(dropping(world), [table], act=True)
    assert "may be running" in str(refused.error)
    found = drop_branches(tables, table, DAY, dry_run=False)
    assert [branch.name for branch in found.dropped] == [left]
    assert set(writer.table().metadata.refs) == {"main"}
    location = writer.table().location().removeprefix(f"s3://{BUCKET}/")
    assert [key for key in seaweedfs.keys(BUCKET) if key.startswith(location)]
    (gone,) = drop_tables(dropping(world), [table], act=True)
    assert (gone.error, gone.dropped, gone.rows) == (None, True, 3)
    assert not [key for key in seaweedfs.keys(BUCKET) if key.startswith(location)]
    assert not writer.catalog.table_exists((writer.namespace, "orders"))


@pytest.mark.parametrize("acted", [True, False])
def test_reset_with_a_lost_response_removes_the_files_of_a_table_that_is_gone(
    acted: bool,
    world: World,
    writer: IcebergWriter,
    seaweedfs: SeaweedFs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer.load("monday", 3)
    location = writer.table().location().removeprefix(f"s3://{BUCKET}/")
    real = RestTables.drop

    def lose_the_answer(tables: RestTables, table: ReadTable) -> None:
        if acted:
            real(tables, table)
        raise CommitUnknown("no answer")

    monkeypatch.setattr(RestTables, "drop", lose_the_answer)
    (found,) = drop_tables(dropping(world), [place(writer)], act=True)
    assert (found.error is None, found.dropped) == (acted, acted)
    assert writer.catalog.table_exists((writer.namespace, "orders")) is not acted
    assert bool([key for key in seaweedfs.keys(BUCKET) if key.startswith(location)]) is not acted


def test_inspection_of_a_moving_branch_is_repeated(
    world: World, writer: IcebergWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, table = opened(world), place(writer)
    writer.load("monday", 3)
    left = writer.stage(datetime.now(UTC) - timedelta(hours=30))
    real, calls = changes.drop_branches, []

    def lose_the_first(*given: Any) -> tuple[str, ...]:
        calls.append(given)
        if len(calls) == 1:
            raise CommitRejected("lost")
        return real(*given)

    monkeypatch.setattr(changes, "drop_branches", lose_the_first)
    found = drop_branches(tables, table, DAY, dry_run=False)
    assert ([branch.name for branch in found.dropped], len(calls)) == ([left], 2)


def test_client_without_a_privilege_gets_its_name(
    world: World, writer: IcebergWriter, polaris: Gate
) -> None:
    writer.load("monday", 3)
    polaris.deny("DROP_TABLE_WITHOUT_PURGE")
    (refused,) = drop_tables(dropping(world), [place(writer)], act=True)
    assert isinstance(refused.error, CatalogError)
    assert (refused.error.denied, refused.dropped) == (True, False)
    assert replace(refused, error=None).removal is None
    assert writer.table().scan().to_arrow().num_rows == 3

"""Commits without Java to tables of each version of the format, in Glue and in a REST catalog."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable

import pyarrow as pa
import pytest

from lakeload.formats.iceberg.reset import drop_tables
from lakeload.formats.iceberg.tables import IcebergTables
from lakeload.formats.tables import TableRef
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.iceberg.catalogs.catalog import IcebergCatalog
from lakeload_jobs.formats.iceberg.catalogs.changes import drop_branches, settle_partition
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.opening import open_catalog
from lakeload_jobs.formats.iceberg.catalogs.table_stores import TableStore
from lakeload_jobs.formats.iceberg.catalogs.tables import open_tables
from lakeload_jobs.formats.iceberg.catalogs.vended_files import files_for
from lakeload_jobs.formats.iceberg.commits.definitions import UNSORTED, new_schema, partition_spec
from lakeload_jobs.formats.iceberg.commits.errors import CommitRejected
from lakeload_jobs.formats.iceberg.commits.metadata import NewTable, set_properties
from lakeload_jobs.formats.iceberg.rules.facts import CREATED_BY
from tests.integration.formats.iceberg.catalog_world import CatalogWorld

each_catalog = pytest.mark.parametrize("name", ["glue", "rest", "open-catalog"])


def opened(world: CatalogWorld) -> IcebergCatalog:
    """The catalog, with the namespace of the world."""
    catalog = open_catalog(world.destination, AwsSession(world.destination))
    # Another test may have made it: a load may not ask Glue for all databases.
    with contextlib.suppress(CatalogError):
        catalog.create_namespace(world.schema)
    return catalog


def place(world: CatalogWorld, name: str) -> str | None:
    """Where a table is to lie; None where the catalog decides that."""
    bucket, prefix = world.destination.bucket, world.destination.prefix
    return f"s3://{bucket}/{prefix}/{name}" if world.name in {"glue", "nessie"} else None


@each_catalog
@pytest.mark.parametrize("version", [2, 3])
def test_table_is_created_and_its_properties_and_branches_change(
    name: str, version: int, make_world: Callable[[str], CatalogWorld]
) -> None:
    world, table = make_world(name), f"own_{secrets.token_hex(4)}"
    catalog = opened(world)
    columns, properties = {"id": "long", "city": "string"}, {"format-version": str(version)}
    where = catalog.create_table(
        world.schema, table, columns=columns, location=place(world, table), properties=properties
    )
    assert where.startswith("s3://")
    catalog.set_property(world.schema, table, "who", "we")
    store = catalog._tables
    known = catalog.load_table(world.schema, table)
    assert drop_branches(store, known, ["nosuch"]) == ()
    now = world.read(world.schema, table)
    assert (now.format_version, now.properties["who"]) == (version, "we")
    assert [field.name for field in now.schema().fields] == ["id", "city"]


@each_catalog
@pytest.mark.parametrize("version", [2, 3])
def test_what_recover_removes_is_gone_and_the_rest_stays(
    name: str, version: int, make_world: Callable[[str], CatalogWorld]
) -> None:
    world, table = make_world(name), f"own_{secrets.token_hex(4)}"
    catalog = opened(world)
    columns = {"id": "long", "round": "string"}
    catalog.create_table(world.schema, table, columns=columns, location=place(world, table))
    # pyiceberg writes no table of version 3: it is upgraded once it has rows.
    strange = world.read(world.schema, table)
    with strange.update_spec() as update:
        update.add_identity("round")
    for rows, of in enumerate(("a", "b", "a"), start=1):
        ids = pa.array(range(rows), pa.int64())
        strange.append(pa.table({"id": ids, "round": [of] * rows}))
    head = strange.metadata.current_snapshot_id
    assert head is not None
    strange.manage_snapshots().create_branch(head, "left").commit()
    if version == 3:
        known = catalog._tables.load(world.schema, table)
        assert known is not None
        upgrade = {"action": "upgrade-format-version", "format-version": 3}
        catalog._tables.commit(known, [], [upgrade])

    store, session = catalog._tables, AwsSession(world.destination)
    catalog.set_property(world.schema, table, "pending", "{}")

    def settled(who: str) -> bool:
        now = catalog.load_table(world.schema, table)
        files = files_for(now, world.destination, session, store)
        gone = ("round", "a")
        return settle_partition(store, files, now, gone, summary={"who": who}, forget="pending")

    assert (settled("we"), settled("nobody")) == (True, False)
    dropped = drop_branches(store, catalog.load_table(world.schema, table), ["left", "nosuch"])
    assert dropped == ("left",)
    now = world.read(world.schema, table)
    assert now.format_version == version
    assert now.scan().to_arrow()["round"].to_numpy(zero_copy_only=False).tolist() == ["b", "b"]
    assert now.metadata.refs.keys() == {"main"}
    assert "pending" not in now.properties
    snapshot = now.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert (snapshot.summary["who"], snapshot.summary["total-records"]) == ("we", "2")


def made(world: CatalogWorld, table: str) -> TableStore:
    """The catalog, with a table that the pipeline `shop` has made."""
    tables = open_tables(world.destination, AwsSession(world.destination))
    with contextlib.suppress(CommitRejected):
        tables.create_namespace(world.schema, None)
    schema = new_schema([{"id": 0, "name": "id", "required": False, "type": "long"}])
    new = NewTable(schema, partition_spec(schema, ()), UNSORTED, {CREATED_BY: "shop"})
    tables.create(world.schema, table, new, place(world, table))
    return tables


@pytest.mark.parametrize("name", ["open-catalog", "nessie"])
def test_table_is_dropped_as_it_was_read(
    name: str, make_world: Callable[[str], CatalogWorld]
) -> None:
    world, table = make_world(name), f"own_{secrets.token_hex(4)}"
    tables = made(world, table)
    known = tables.load(world.schema, table)
    assert known is not None
    tables.commit(known, [], [set_properties({"a": "b"})])
    if name == "nessie":
        with pytest.raises(CommitRejected):
            tables.drop(known)
    now = tables.load(world.schema, table)
    assert now is not None

    tables.drop(now)

    assert tables.load(world.schema, table) is None


def test_reset_keeps_the_files_that_branches_of_nessie_may_need(
    make_world: Callable[[str], CatalogWorld],
) -> None:
    world, table = make_world("nessie"), f"own_{secrets.token_hex(4)}"
    tables, session = made(world, table), AwsSession(world.destination)
    known = tables.load(world.schema, table)
    assert known is not None
    lake = IcebergTables(tables, world.destination, session, "shop", print)
    of = TableRef(table, TableLocation(world.destination.prefix, world.schema, table))

    (found,) = drop_tables(lake, [of], act=True)

    assert (found.error, found.dropped) == (None, True)
    assert "nessie-gc" in (found.stay or "")
    assert tables.load(world.schema, table) is None
    files = files_for(known, world.destination, session, tables)
    assert files.read(known.metadata_location)

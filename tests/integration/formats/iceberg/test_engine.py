"""Commits by requests of our own, on each catalog: what is in is what pyiceberg reads then."""

from __future__ import annotations

import contextlib
import io
import secrets
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.formats.iceberg.catalogs.changes import drop_branches
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.pyiceberg_files import PyIcebergFiles
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable, TableStore, now_ms
from lakeload_jobs.formats.iceberg.catalogs.tables import open_tables
from lakeload_jobs.formats.iceberg.commits.errors import CommitRejected, CommitUnknown
from lakeload_jobs.formats.iceberg.commits.footers import WrittenFile, data_file
from lakeload_jobs.formats.iceberg.commits.manifests import Manifest, write_added
from lakeload_jobs.formats.iceberg.commits.metadata import (
    MAIN,
    Json,
    NewTable,
    add_snapshot,
    assert_ref,
    ref,
    remove_ref,
    schema_of,
    set_branch,
    set_properties,
)
from lakeload_jobs.formats.iceberg.commits.snapshots import Addition, added, new_snapshot_id
from tests.integration.formats.iceberg.catalog_world import CatalogWorld

pytestmark = pytest.mark.timeout(300)

CATALOGS = ("glue", "rest", "seaweedfs", "nessie")
SCHEMA: Json = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "city", "required": False, "type": "string"},
    ],
}


@dataclass
class Loads:
    """One table of a catalog, loaded by commits of our own."""

    world: CatalogWorld
    store: TableStore
    files: LakeFiles
    name: str
    manifests: int = 0

    @property
    def table(self) -> ReadTable:
        """The table, read now."""
        found = self.store.load(self.world.schema, self.name)
        assert found is not None
        return found

    def read(self) -> Table:
        """The table as pyiceberg reads it."""
        return self.world.read(self.world.schema, self.name)

    def ids(self) -> list[int]:
        """The ids of all rows."""
        ids: list[int] = self.read().scan().to_arrow()["id"].to_numpy().tolist()
        return sorted(ids)

    def begin(self, branch: str) -> int | None:
        """Make a branch where main is; return that snapshot."""
        table = self.table
        head = ref(table.metadata, MAIN)
        updates = []
        at = head
        if at is None:
            empty = added(
                self.files,
                table.metadata,
                Addition(new_snapshot_id(), None, (), {}),
                now_ms=now_ms(),
            )
            updates, at = [add_snapshot(empty)], empty["snapshot-id"]
        updates.append(set_branch(branch, at, min_snapshots_to_keep=1))
        self.store.commit(table, [assert_ref(branch, None)], updates)
        return head

    def manifest(self, *ids: int) -> Manifest:
        """Write a data file of these rows, and a manifest that names it."""
        table = self.table
        out = io.BytesIO()
        rows = pa.table({"id": pa.array(ids, pa.int64()), "city": [f"city {i}" for i in ids]})
        numbered = [
            field.with_metadata({"PARQUET:field_id": str(at)})
            for at, field in enumerate(rows.schema, start=1)
        ]
        rows = rows.cast(pa.schema(numbered))
        pq.write_table(rows, out)
        data = out.getvalue()
        place = f"{table.metadata['location'].rstrip('/')}/data/{secrets.token_hex(8)}.parquet"
        self.files.write(place, data)
        size = int.from_bytes(data[-8:-4], "little")
        written = WrittenFile(place, len(data), len(ids), data[-8 - size : -8], {})
        entry = data_file(schema_of(table.metadata), table.metadata["properties"], written)
        return write_added(self.files, table.metadata, new_snapshot_id(), [entry])

    def publish(
        self,
        branch: str,
        manifest: Manifest,
        table: ReadTable | None = None,
        *,
        replaces: bool = False,
    ) -> ReadTable:
        """Add the files to main, remove the branch and note the job, in one commit."""
        table = table or self.table
        head = ref(table.metadata, MAIN)
        addition = Addition(
            int(manifest.row["added_snapshot_id"]),
            head,
            [manifest],
            {"lakeload.job-id": branch},
            replaces,
        )
        snapshot = added(self.files, table.metadata, addition, now_ms=now_ms())
        branch_at = ref(table.metadata, branch)
        return self.store.commit(
            table,
            [assert_ref(MAIN, head), assert_ref(branch, branch_at or 0)],
            [
                add_snapshot(snapshot),
                set_branch(MAIN, snapshot["snapshot-id"]),
                remove_ref(branch),
                set_properties({"jobs": branch}),
            ],
        )


def loads(world: CatalogWorld, version: int = 2, **properties: str) -> Loads:
    """Create a table of a new name."""
    session = AwsSession(world.destination)
    store = open_tables(world.destination, session)
    name = f"own_{secrets.token_hex(4)}"
    with contextlib.suppress(CommitRejected):  # The namespace of another test is as good.
        store.create_namespace(world.schema, None)
    spec: Json = {"spec-id": 0, "fields": []}
    order: Json = {"order-id": 0, "fields": []}
    table = NewTable(SCHEMA, spec, order, properties, version)
    place = f"s3://{world.destination.bucket}/{world.destination.prefix}/{name}"
    located = name_is_placed(world)
    store.create(world.schema, name, table, place if located else None)
    return Loads(world, store, LakeFiles(session, world.destination), name)


def name_is_placed(world: CatalogWorld) -> bool:
    """Whether the destination says where tables lie."""
    return world.name in ("glue", "nessie")


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", CATALOGS)
def test_jobs_are_added_and_replaced(
    name: str, version: int, make_world: Callable[[str], CatalogWorld]
) -> None:
    table = loads(make_world(name), version)
    for number in range(3):
        table.begin(f"job{number}")
        table.publish(f"job{number}", table.manifest(10 * number, 10 * number + 1))
    assert table.ids() == [0, 1, 10, 11, 20, 21]
    read = table.read()
    assert read.properties["jobs"] == "job2"
    assert set(read.metadata.refs) == {"main"}
    summary = read.current_snapshot().summary  # type: ignore[union-attr]
    assert summary is not None
    assert summary["total-records"] == "6"
    if version == 3:
        assert table.table.metadata["next-row-id"] == 6
    table.begin("all")
    table.publish("all", table.manifest(7), replaces=True)
    assert table.ids() == [7]
    summary = table.read().current_snapshot().summary  # type: ignore[union-attr]
    assert summary is not None
    assert (summary["deleted-records"], summary["total-records"]) == ("6", "1")


@pytest.mark.parametrize("name", CATALOGS)
def test_a_commit_that_comes_second_is_not_in(
    name: str, make_world: Callable[[str], CatalogWorld]
) -> None:
    table = loads(make_world(name))
    table.begin("first")
    table.begin("second")
    known = table.table
    manifest = table.manifest(2)
    table.publish("first", table.manifest(1))
    with pytest.raises((CommitRejected, CommitUnknown)):
        table.publish("second", manifest, known)
    assert table.ids() == [1]
    # With the same manifest, on the head as it is now.
    table.publish("second", manifest)
    assert table.ids() == [1, 2]


@pytest.mark.parametrize("name", CATALOGS)
def test_a_commit_without_its_branch_is_not_in(
    name: str, make_world: Callable[[str], CatalogWorld]
) -> None:
    table = loads(make_world(name))
    table.begin("kept")
    table.publish("kept", table.manifest(1))
    table.begin("dropped")
    known, manifest = table.table, table.manifest(2)
    now = table.table
    table.store.commit(now, [], [remove_ref("dropped")])
    with pytest.raises((CommitRejected, CommitUnknown)):
        table.publish("dropped", manifest, known)
    assert table.ids() == [1]


@pytest.mark.parametrize("name", CATALOGS)
def test_a_table_is_created_once_and_read_as_missing_before(
    name: str, make_world: Callable[[str], CatalogWorld]
) -> None:
    table = loads(make_world(name))
    assert table.store.load(table.world.schema, "no_such_table") is None
    again = NewTable(SCHEMA, {"spec-id": 0, "fields": []}, {"order-id": 0, "fields": []}, {})
    uuid = table.table.metadata["table-uuid"]
    if name != "seaweedfs":
        place = f"s3://{table.world.destination.bucket}/{table.world.destination.prefix}/other"
        located = name in ("glue", "nessie")
        with pytest.raises(CommitRejected):
            table.store.create(table.world.schema, table.name, again, place if located else None)
    assert table.table.metadata["table-uuid"] == uuid


@pytest.mark.parametrize("name", CATALOGS)
def test_a_namespace_is_created_once_with_its_location(
    name: str, make_world: Callable[[str], CatalogWorld]
) -> None:
    world = make_world(name)
    store = open_tables(world.destination, AwsSession(world.destination))
    plain, located = (f"{world.schema}_{secrets.token_hex(4)}" for _ in range(2))
    place = f"s3://{world.destination.bucket}/{world.destination.prefix}/{located}"
    assert store.namespace_location(located) is None
    store.create_namespace(located, place)
    assert store.namespace_location(located) == place
    with pytest.raises(CommitRejected):
        store.create_namespace(located, None)
    store.create_namespace(plain, None)
    assert store.namespace_location(plain) is not None
    assert store.load(plain, "no_such_table") is None
    assert store.load(f"{plain}_no", "no_such_table") is None


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", ["glue", "rest", "nessie"])
def test_what_recover_does_works_with_each_version_of_the_format(
    name: str, version: int, make_world: Callable[[str], CatalogWorld]
) -> None:
    table = loads(make_world(name), version)
    table.begin("job")
    table.publish("job", table.manifest(1))
    table.begin("left")
    store = open_tables(table.world.destination, AwsSession(table.world.destination))
    known = store.load(table.world.schema, table.name)
    assert known is not None
    assert drop_branches(store, known, ["left", "nosuch"]) == ("left",)
    known = store.load(table.world.schema, table.name)
    assert known is not None
    store.commit(known, [], [set_properties({"who": "we"})])
    assert table.read().metadata.refs.keys() == {"main"}
    assert (table.read().properties["who"], table.ids()) == ("we", [1])


@pytest.mark.parametrize("version", [2, 3])
def test_manifests_are_merged_as_the_property_says(
    version: int, make_world: Callable[[str], CatalogWorld]
) -> None:
    table = loads(make_world("glue"), version, **{"commit.manifest.min-count-to-merge": "4"})
    numbers = []
    for number in range(10):
        table.begin(f"job{number}")
        table.publish(f"job{number}", table.manifest(number))
        snapshot = table.read().current_snapshot()
        assert snapshot is not None
        numbers.append(len(snapshot.manifests(PyIcebergFiles(table.files))))
    assert numbers == [1, 2, 3, 1, 2, 3, 1, 2, 3, 1]
    assert table.ids() == list(range(10))

"""The same writer by lakeload's own requests: one `TableStore`, and the steps of a load with files
that need not exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    CredentialsSpec,
    DestinationSpec,
    EndpointsSpec,
    IcebergSpec,
)
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.http import HttpTimeouts
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable, TableStore, now_ms
from lakeload_jobs.formats.iceberg.catalogs.tables import open_tables
from lakeload_jobs.formats.iceberg.commits.errors import CommitRejected, CommitUnknown
from lakeload_jobs.formats.iceberg.commits.manifests import (
    DATA,
    Manifest,
    read_list,
    read_paths,
    write_added,
)
from lakeload_jobs.formats.iceberg.commits.metadata import (
    MAIN,
    Json,
    NewTable,
    add_snapshot,
    assert_ref,
    ref,
    remove_ref,
    set_branch,
    set_properties,
    snapshot_of,
)
from lakeload_jobs.formats.iceberg.commits.snapshots import Addition, added, new_snapshot_id
from tests.integration.formats.iceberg.catalogs.world import secret_file
from tests.integration.formats.iceberg.proof.client import JOBS, Seen
from tests.servers.nessie import BUCKET as NESSIE_BUCKET
from tests.servers.oauth2_gate import CATALOG
from tests.servers.rest_catalog import BUCKET as REST_BUCKET
from tests.servers.seaweedfs import KEY, SECRET, TABLE_BUCKET

SCHEMA: Json = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
}
UNPARTITIONED: Json = {"spec-id": 0, "fields": []}
UNSORTED: Json = {"order-id": 0, "fields": []}
GLUE_BUCKET = "proof-lake"
PATIENCE = HttpTimeouts(connect=5, read=10, attempts=2)


class TableExists(Exception):
    """Another writer has created the table."""


def _attempt(call: Callable[[], object]) -> tuple[Seen, str]:
    """Make a call and return what became of it and the class of its exception, '' for none."""
    try:
        call()
    except CommitRejected as error:
        return Seen.REFUSED, type(error).__name__
    except TableExists as error:
        return Seen.EXISTS, type(error).__name__
    except CommitUnknown as error:
        return (Seen.MOVED if error.overtaken else Seen.UNKNOWN), type(error).__name__
    except (CatalogError, AwsError) as error:
        # Whatever may be in is a `CommitUnknown`.
        return Seen.REFUSED, error.code
    return Seen.LANDED, ""


@dataclass
class OwnTransaction:
    """A publish that is decided, and not sent."""

    store: TableStore
    table: ReadTable
    snapshot: int
    requirements: Sequence[Json]
    updates: Sequence[Json]

    def commitTransaction(self) -> None:
        """Send it."""
        self.store.commit(self.table, self.requirements, self.updates)


@dataclass
class OwnBuilder:
    """A table that is to be created."""

    client: OwnClient
    name: str

    def create(self) -> None:
        """Create it."""
        own = self.client
        new = NewTable(SCHEMA, UNPARTITIONED, UNSORTED, {}, own.version)
        try:
            own.store.create(own.namespace, self.name, new, own.place(self.name))
        except CommitRejected as error:
            raise TableExists(str(error)) from error


@dataclass
class OwnClient:
    """One writer of a namespace, in place of Java's `Client`."""

    destination: DestinationSpec
    store: TableStore
    lake: LakeFiles
    namespace: str
    located: bool
    """The destination says where tables lie."""
    version: int = 2
    staged: dict[tuple[str, str], Sequence[Manifest]] = field(default_factory=dict)

    @classmethod
    def of(cls, destination: DestinationSpec, namespace: str) -> OwnClient:
        """Return a writer with a session of its own, as another process has it."""
        # The client of Glue sends a request again whose answer is lost.
        session = AwsSession(destination, read_timeout=10, max_attempts=3)
        store = open_tables(destination, session, PATIENCE)
        located = destination.iceberg.catalog.type in ("GLUE", "NESSIE")
        return cls(destination, store, LakeFiles(session, destination), namespace, located)

    def attempt(self, call: Callable[[], object]) -> tuple[Seen, str]:
        """Make a call and return what became of it and the class of its exception, '' for none."""
        return _attempt(call)

    def place(self, table: str) -> str | None:
        """Return where a new table lies."""
        base = f"s3://{self.destination.bucket}/{self.destination.prefix}/{self.namespace}"
        return f"{base}/{table}" if self.located else None

    def load(self, table: str) -> ReadTable:
        """Return the table, read now."""
        found = self.store.load(self.namespace, table)
        assert found is not None, table
        return found

    def builder(self, table: str) -> OwnBuilder:
        """Return a builder of a table with one column."""
        return OwnBuilder(self, table)

    def create(self, table: str, *files: str) -> None:
        """Make a table; each file is appended by a commit of its own."""
        self.builder(table).create()
        for file in files:
            self.append(table, file)

    def append(self, table: str, file: str) -> int:
        """Append to main as a stranger does, and return the new snapshot."""
        now = self.load(table)
        head, manifest = ref(now.metadata, MAIN), self.manifest(now, file)
        snapshot = self._added(now, head, [manifest], {})
        updates = [add_snapshot(snapshot), set_branch(MAIN, snapshot["snapshot-id"])]
        self.store.commit(now, [assert_ref(MAIN, head)], updates)
        return int(snapshot["snapshot-id"])

    def stage(self, table: str, branch: str, *, mode: str = "append") -> int:
        """Make a branch on main and the manifest of the file `branch`; return the branch's
        snapshot. An append without rows is staged by the mode `nothing`."""
        now = self.load(table)
        updates, at = [], ref(now.metadata, MAIN)
        if at is None:
            empty = self._added(now, None, [], {})
            updates, at = [add_snapshot(empty)], int(empty["snapshot-id"])
        updates.append(set_branch(branch, at, min_snapshots_to_keep=1))
        self.store.commit(now, [assert_ref(branch, None)], updates)
        self.staged[table, branch] = [self.manifest(now, branch)] if mode != "nothing" else []
        return at

    def open(self, table: str, branch: str, *, mode: str = "append") -> OwnTransaction:
        """Return the publish, built on what the table is now, and not committed."""
        now = self.load(table)
        head, manifests = ref(now.metadata, MAIN), self.staged[table, branch]
        summary = {"lakeload.job-id": branch}
        snapshot = self._added(now, head, manifests, summary, replaces=mode == "overwrite")
        number = int(snapshot["snapshot-id"])
        jobs = [job for job in now.metadata["properties"].get(JOBS, "").split(",") if job]
        return OwnTransaction(
            self.store,
            now,
            number,
            [assert_ref(MAIN, head), assert_ref(branch, ref(now.metadata, branch) or 0)],
            [
                add_snapshot(snapshot),
                set_branch(MAIN, number),
                remove_ref(branch),
                set_properties({JOBS: ",".join([*jobs, branch])}),
            ],
        )

    def publish(self, table: str, branch: str, *, mode: str = "append") -> tuple[Seen, str]:
        """Build and commit the publish."""
        return _attempt(lambda: self.open(table, branch, mode=mode).commitTransaction())

    def set_property(self, table: str, name: str, value: str) -> None:
        """Commit a change of one property alone."""
        self.store.commit(self.load(table), [], [set_properties({name: value})])

    def drop_branch(self, table: str, branch: str) -> None:
        """Drop a branch as a clean-up does."""
        now = self.load(table)
        at = ref(now.metadata, branch)
        self.store.commit(now, [assert_ref(branch, at)], [remove_ref(branch)])

    def rollback(self, table: str, snapshot: int) -> None:
        """Set main back by hand."""
        now = self.load(table)
        head = ref(now.metadata, MAIN)
        self.store.commit(now, [assert_ref(MAIN, head)], [set_branch(MAIN, snapshot)])

    def files(self, table: str) -> list[str]:
        """Return the names of main's files, through its manifests."""
        metadata = self.load(table).metadata
        head = ref(metadata, MAIN)
        if head is None:
            return []
        rows = read_list(self.lake, snapshot_of(metadata, head))
        paths = (path for row in rows for path in read_paths(self.lake, row))
        return sorted(path.rpartition("/")[2].removesuffix(".parquet") for path in paths)

    def jobs(self, table: str) -> list[str]:
        """Return the jobs in the table's property, oldest first."""
        text = self.property_of(table, JOBS) or ""
        return [job for job in text.split(",") if job]

    def property_of(self, table: str, name: str) -> str | None:
        """Return a property of the table."""
        found: str | None = self.load(table).metadata["properties"].get(name)
        return found

    def refs(self, table: str) -> list[str]:
        """Return the names of the table's branches."""
        return sorted(self.load(table).metadata.get("refs", {}))

    def history(self, table: str) -> list[int]:
        """Return the snapshots of main's lineage, newest first."""
        metadata = self.load(table).metadata
        found, at = [], ref(metadata, MAIN)
        while at is not None and (snapshot := snapshot_of(metadata, at)) is not None:
            found.append(at)
            at = snapshot.get("parent-snapshot-id")
        return found

    def manifest(self, now: ReadTable, name: str) -> Manifest:
        """Write a manifest that names one file of one row."""
        place = f"{now.metadata['location'].rstrip('/')}/data/{name}.parquet"
        entry: Json = {
            "content": DATA,
            "file_path": place,
            "file_format": "PARQUET",
            "partition": {},
            "record_count": 1,
            "file_size_in_bytes": 100,
            "column_sizes": [],
            "value_counts": [],
            "null_value_counts": [],
            "nan_value_counts": [],
            "lower_bounds": [],
            "upper_bounds": [],
            "key_metadata": None,
            "split_offsets": [4],
            "equality_ids": None,
            "sort_order_id": 0,
        }
        return write_added(self.lake, now.metadata, new_snapshot_id(), [entry])

    def _added(
        self,
        now: ReadTable,
        head: int | None,
        manifests: Sequence[Manifest],
        summary: Mapping[str, str],
        *,
        replaces: bool = False,
    ) -> Json:
        # The entries of a manifest have the id of their snapshot in them.
        ids = [int(one.row["added_snapshot_id"]) for one in manifests] or [new_snapshot_id()]
        addition = Addition(ids[0], head, manifests, summary, replaces)
        return added(self.lake, now.metadata, addition, now_ms=now_ms())


def own_client(name: str, server: str, s3: str, namespace: str, *, version: int = 2) -> OwnClient:
    """Return a writer of a catalog, by the name of its place."""
    bucket, spec = _catalog(name, server)
    key, secret = ("test", "test") if name == "GLUE" else (KEY, SECRET)
    destination = DestinationSpec(
        bucket=bucket,
        region="us-east-1",
        prefix="own",
        credentials=CredentialsSpec(
            access_key_id=secret_file("KEY", key), secret_access_key=secret_file("SECRET", secret)
        ),
        endpoints=EndpointsSpec(s3=s3, glue=server if name == "GLUE" else None),
        table_format="ICEBERG",
        iceberg=IcebergSpec(catalog=spec),
    )
    return replace(OwnClient.of(destination, namespace), version=version)


def _catalog(name: str, server: str) -> tuple[str, CatalogSpec]:
    """Return the bucket and the catalog of a destination."""
    if name == "GLUE":
        return GLUE_BUCKET, CatalogSpec()
    if name == "NESSIE_NATIVE":
        return NESSIE_BUCKET, CatalogSpec(type="NESSIE", uri=server, api="NATIVE", ref="main")
    rest: Any = {"type": "REST", "access_delegation": "NONE", "scope": "PRINCIPAL_ROLE:ALL"}
    if name == "SEAWEEDFS":
        credential = secret_file("CREDENTIAL", f"{KEY}:{SECRET}")
        given: Any = {"uri": server, "warehouse": "s3://warehouse"}
        return TABLE_BUCKET, CatalogSpec(**rest, **given, credential=credential)
    uri = f"{server}/api/catalog"
    credential = secret_file("CREDENTIAL", "loader-id:loader-secret")
    given = {"uri": uri, "warehouse": CATALOG, "oauth2_server_uri": f"{uri}/v1/oauth/tokens"}
    return REST_BUCKET, CatalogSpec(**rest, **given, credential=credential)

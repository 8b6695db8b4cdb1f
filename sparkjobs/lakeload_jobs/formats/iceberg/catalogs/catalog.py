"""IcebergCatalog: one open catalog, its calls, and errors of our own family."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus

from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePropertiesUpdate,
    TableUpdate,
)

from lakeload_jobs.aws.vended_credentials import HandedKeys
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.http import origin
from lakeload_jobs.formats.iceberg.catalogs.translate import catalog_call

_FALSE_COMMITS: tuple[tuple[TableUpdate, ...], ...] = (
    (),
    (RemovePropertiesUpdate(removals=["lakeload.compared"]),),
)
"""Updates that change nothing. The second is for catalogs that do not read a commit without any; no
table has the property."""


@dataclass(frozen=True)
class OpenTable:
    """One table as it was when it was read."""

    table: Table
    """pyiceberg's own, for this package alone."""

    @property
    def metadata(self) -> TableMetadata:
        """Everything the catalog says of it."""
        return self.table.metadata

    @property
    def location(self) -> str:
        """Where its files lie, without a final slash."""
        return self.table.location().rstrip("/")

    @property
    def metadata_location(self) -> str:
        """Its current metadata file."""
        return self.table.metadata_location

    @property
    def properties(self) -> Mapping[str, str]:
        """Its properties."""
        return self.table.properties

    @property
    def snapshot_id(self) -> int | None:
        """Its current snapshot; None for a table without any."""
        snapshot = self.table.current_snapshot()
        return snapshot.snapshot_id if snapshot else None

    @property
    def format_version(self) -> int:
        """Its format version."""
        return self.table.format_version

    def vended_keys(self, region: str) -> HandedKeys | None:
        """Return the keys that the catalog made for it, for a bucket of `region` unless the catalog
        says otherwise; None when it made none."""
        given = self.table.io.properties
        key, secret = given.get("s3.access-key-id"), given.get("s3.secret-access-key")
        if not key or not secret:
            return None
        token = given.get("s3.session-token")
        return HandedKeys(
            access_key_id=key,
            secret_access_key=Secret(secret),
            session_token=Secret(token) if token else None,
            region=given.get("s3.region") or given.get("client.region") or region,
            endpoint=given.get("s3.endpoint"),
            path_style=str(given.get("s3.path-style-access", "")).lower() == "true",
        )


@dataclass(frozen=True)
class IcebergCatalog:
    """An open catalog. Namespaces have one level. Every method raises `CatalogError` for what the
    catalog refuses and `AwsError` for what Glue or S3 does."""

    _catalog: Catalog
    _uri: str
    _hidden: Sequence[Secret] = ()
    files: LakeFiles | None = None
    """Where metadata is written from here; None where the catalog does that itself."""

    def namespaces(self) -> tuple[str, ...]:
        """Return the names of the top namespaces."""
        with self._call("listing the namespaces"):
            return tuple(".".join(name) for name in self._catalog.list_namespaces())

    def create_namespace(self, name: str, location: str | None = None) -> None:
        """Make a namespace; 409 when there is one."""
        properties = {"location": location} if location else {}
        with self._call(f"creating the namespace `{name}`"):
            self._catalog.create_namespace((name,), properties)

    def drop_namespace(self, name: str) -> None:
        """Drop an empty namespace; 404 when there is none."""
        with self._call(f"dropping the namespace `{name}`"):
            self._catalog.drop_namespace((name,))

    def create_table(
        self,
        namespace: str,
        name: str,
        *,
        columns: Mapping[str, str],
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> OpenTable:
        """Make a table of optional columns with the types as Iceberg writes them (`long`)."""
        fields = [
            {"id": number, "name": column, "type": kind, "required": False}
            for number, (column, kind) in enumerate(columns.items(), start=1)
        ]
        schema = Schema.model_validate({"type": "struct", "fields": fields})
        with self._call(f"creating the table `{namespace}.{name}`"):
            return OpenTable(
                self._catalog.create_table(
                    (namespace, name), schema, location=location, properties=dict(properties or {})
                )
            )

    def load_table(self, namespace: str, name: str) -> OpenTable:
        """Read a table; 404 when there is none."""
        with self._call(f"reading the table `{namespace}.{name}`"):
            return OpenTable(self._catalog.load_table((namespace, name)))

    def set_property(self, namespace: str, name: str, key: str, value: str) -> OpenTable:
        """Commit a change of one property; 409 when another commit came first."""
        with self._call(f"committing to the table `{namespace}.{name}`"):
            table = self._catalog.load_table((namespace, name))
            with table.transaction() as transaction:
                transaction.set_properties({key: value})
            return OpenTable(table)

    def refuses_overtaken(self, namespace: str, name: str, branch: str) -> bool:
        """Return whether a commit is refused that asserts a snapshot which `branch` is not at.

        A REST catalog is asked so, since Glue's client compares by itself. A commit that is taken
        changes nothing of the table. Raises `CatalogError` for an answer that says nothing of it,
        such as a missing privilege.
        """
        table = self.load_table(namespace, name).table
        at = table.metadata.refs.get(branch)
        false = {"ref": branch, "snapshot-id": (at.snapshot_id if at else 0) ^ 1}
        asserts = (
            AssertTableUUID(uuid=table.metadata.table_uuid),
            AssertRefSnapshotId.model_validate(false),
        )
        doing = f"asking whether commits to the table `{namespace}.{name}` are compared"
        for updates in _FALSE_COMMITS:
            try:
                with self._call(doing):
                    self._catalog.commit_table(table, asserts, updates)
            except CatalogError as error:
                if error.status == HTTPStatus.CONFLICT:
                    return True
                if updates or error.status != HTTPStatus.BAD_REQUEST:
                    raise
        return False

    def drop_branches(
        self, namespace: str, name: str, branches: Collection[str]
    ) -> tuple[str, ...]:
        """Drop those of the branches that are there, in one commit that asserts each; return them.

        409 when another commit came first: look again.
        """
        with self._call(f"dropping branches of the table `{namespace}.{name}`"):
            table = self._catalog.load_table((namespace, name))
            there = tuple(branch for branch in branches if branch in table.metadata.refs)
            if there:
                with table.manage_snapshots() as changes:
                    for branch in there:
                        changes.remove_branch(branch)
            return there

    def drop_table(self, namespace: str, name: str, *, purge: bool = False) -> None:
        """Drop a table; 404 when there is none. With `purge` its files go too, where the catalog
        has that."""
        with self._call(f"dropping the table `{namespace}.{name}`"):
            drop = self._catalog.purge_table if purge else self._catalog.drop_table
            drop((namespace, name))

    @property
    def place(self) -> str:
        """Where it is, as far as that may be shown."""
        return origin(self._uri) if "://" in self._uri else self._uri

    @contextmanager
    def _call(self, doing: str) -> Iterator[None]:
        with catalog_call(f"{doing} in the catalog `{self.place}`", self._uri, self._hidden):
            yield

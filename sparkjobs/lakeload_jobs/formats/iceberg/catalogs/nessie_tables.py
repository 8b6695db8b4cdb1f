"""Tables of Nessie's native interface: a branch holds the names of metadata files, and compares its
own hash.

https://projectnessie.org/develop/rest/ (API v2)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError, not_iceberg
from lakeload_jobs.formats.iceberg.catalogs.nessie import NessieApi, namespace_content
from lakeload_jobs.formats.iceberg.catalogs.table_stores import (
    MetadataWriter,
    ReadTable,
    RemovableFiles,
)
from lakeload_jobs.formats.iceberg.commits.errors import (
    CommitRejected,
    CommitUnknown,
    Unsupported,
)
from lakeload_jobs.formats.iceberg.commits.metadata import NO_SNAPSHOT, Json, Metadata, NewTable

_TABLE = "ICEBERG_TABLE"
_NO_CONTENT = "CONTENT_NOT_FOUND"


class NessieTables:
    """The tables of one branch of Nessie; implements `TableStore`."""

    def __init__(self, api: NessieApi, branch: str, files: RemovableFiles) -> None:
        self._api = api
        self._branch = branch
        self._writer = MetadataWriter(files)

    def namespace_location(self, namespace: str) -> str | None:
        """Read a namespace in one request."""
        found = self._content((namespace,))
        if found is None:
            return None
        return str((found[0].get("properties") or {}).get("location") or "")

    def create_namespace(self, namespace: str, location: str | None) -> None:
        """Create a namespace: one request for the branch's hash, one for the namespace."""
        head = self._api.head(self._branch)
        content = namespace_content(namespace, location)
        self._create(head, (namespace,), content, "the namespace exists already")

    def open(self) -> None:
        """Look for the branch."""
        self._api.head(self._branch)

    def load(self, namespace: str, name: str) -> ReadTable | None:
        """Read a table: one request to Nessie, one to S3."""
        found = self._content((namespace, name))
        if found is None:
            return None
        content, head = found
        if content.get("type") != _TABLE:
            raise not_iceberg(namespace, name)
        place = content["metadataLocation"]
        return ReadTable(namespace, name, self._writer.read(place), place, (content, head))

    def create(self, namespace: str, name: str, table: NewTable, location: str | None) -> ReadTable:
        """Create a table at `location`, which Nessie does not choose."""
        if location is None:
            raise Unsupported("no location")
        metadata, place = self._writer.create(table, location)
        head = self._api.head(self._branch)
        content = _content(metadata, place, None)
        self._create(head, (namespace, name), content, "the table exists already")
        return ReadTable(namespace, name, metadata, place)

    def commit(
        self,
        table: ReadTable,
        requirements: Iterable[Mapping[str, Any]],
        updates: Iterable[Mapping[str, Any]],
    ) -> ReadTable:
        """Commit: the metadata file, then one request that names the hash that was read."""
        metadata, place = self._writer.commit(table, requirements, updates)
        content, head = table.version
        key = (table.namespace, table.name)
        with _comparing():
            self._put(head, key, _content(metadata, place, content["id"]))
        return ReadTable(table.namespace, table.name, metadata, place)

    def drop(self, table: ReadTable) -> None:
        """Drop a table: one request that names the hash that was read."""
        _, head = table.version
        with _comparing(), _unknown():
            self._api.delete(self._branch, head, (table.namespace, table.name))

    def _create(self, head: str, key: tuple[str, ...], content: Json, exists: str) -> None:
        try:
            self._put(head, key, content)
        except CatalogError as error:
            # To a creator who comes second Nessie may say that the request was a bad one. What a
            # conflict is about, such as a namespace that is gone, only a read tells.
            if error.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT) and self._content(key):
                raise CommitRejected(exists) from error
            raise

    def _content(self, key: tuple[str, ...]) -> tuple[Json, str] | None:
        """Return what the branch holds under a key, and its hash; None where it holds nothing."""
        try:
            return self._api.content(self._branch, key)
        except CatalogError as error:
            # A branch that is not there is no missing table.
            if error.code == _NO_CONTENT:
                return None
            raise

    def _put(self, head: str, key: tuple[str, ...], content: Json) -> None:
        with _unknown():
            self._api.put(self._branch, head, key, content)


@contextmanager
def _comparing() -> Iterator[None]:
    """Translate the answer that the branch has moved, or that Nessie is busy."""
    try:
        yield
    except CatalogError as error:
        if error.status in (HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS):
            busy = error.status != HTTPStatus.CONFLICT
            raise CommitRejected(error.message, busy=busy) from error
        raise


@contextmanager
def _unknown() -> Iterator[None]:
    """Translate an answer that says nothing of what was sent."""
    try:
        yield
    except CatalogError as error:
        if error.may_have_acted:
            raise CommitUnknown(error.message) from error
        raise


def _content(metadata: Metadata, place: str, identifier: str | None) -> Json:
    """Return what Nessie holds of a table; without `identifier` it is a new one."""
    content = {
        "type": _TABLE,
        "metadataLocation": place,
        "snapshotId": metadata.get("current-snapshot-id") or NO_SNAPSHOT,
        "schemaId": metadata["current-schema-id"],
        "specId": metadata["default-spec-id"],
        "sortOrderId": metadata["default-sort-order-id"],
    }
    return content | ({"id": identifier} if identifier else {})

"""Tables of a REST catalog, which writes the metadata itself and compares what a commit asserts.

https://github.com/apache/iceberg/blob/main/open-api/rest-catalog-open-api.yaml
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import requests

from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.formats.iceberg.catalogs.errors import OWN_CREDENTIALS, CatalogError, advised
from lakeload_jobs.formats.iceberg.catalogs.http import (
    Identity,
    document_of,
    error_from,
    http_call,
    not_a_catalog,
    origin,
)
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable, supported
from lakeload_jobs.formats.iceberg.commits.errors import (
    CommitRejected,
    CommitUnknown,
    Unsupported,
)
from lakeload_jobs.formats.iceberg.commits.metadata import Json, NewTable, assert_uuid, normalised

_SIGNS = "s3.remote-signing-enabled"
_EXPIRED = (HTTPStatus.UNAUTHORIZED, 419)
"""A token that has expired: nothing was done, and a new one is asked for once."""
_EXISTS = (HTTPStatus.CONFLICT,)
_NOT_IN = (HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS)
"""Statuses of a commit that is not in and may be tried again."""


class RestTables:
    """The tables of one warehouse; implements `TableStore`. `session` has the time-outs and the
    headers of every request, and repeats no POST; `hidden` is what no message may show. With
    `vended` the catalog is asked for credentials for the files of a table. `advises`: errors say
    what to do, since no connection test explains them."""

    def __init__(
        self,
        session: requests.Session,
        identity: Identity,
        uri: str,
        warehouse: str | None,
        hidden: Sequence[Secret],
        *,
        vended: bool,
        advises: bool,
    ) -> None:
        self._session = session
        self._identity = identity
        self._uri = uri.rstrip("/")
        self._warehouse = warehouse
        self._hidden = hidden
        self._vended = vended
        self._advises = advises
        session.auth = identity

    def namespace_location(self, namespace: str) -> str | None:
        """Read a namespace in one request."""
        doing = f"reading the namespace `{namespace}` of the catalog `{origin(self._uri)}`"
        try:
            answer = self._ask("GET", _namespace_path(namespace), doing)
        except CatalogError as error:
            if error.missing:
                return None
            raise
        return str((answer.get("properties") or {}).get("location") or "")

    def create_namespace(self, namespace: str, location: str | None) -> None:
        """Create a namespace in one request."""
        doing = f"creating the namespace `{namespace}` in the catalog `{origin(self._uri)}`"
        properties = {"location": location} if location else {}
        body = {"namespace": [namespace], "properties": properties}
        with _outcome(_EXISTS):
            self._ask("POST", "namespaces", doing, body)

    def open(self) -> None:
        """Read the catalog's configuration, once."""
        _ = self._config

    def load(self, namespace: str, name: str) -> ReadTable | None:
        """Read a table in one request."""
        doing = f"reading the table `{namespace}.{name}` in the catalog `{origin(self._uri)}`"
        try:
            answer = self._ask("GET", self._path(namespace, name), doing)
        except CatalogError as error:
            if error.missing:
                return None
            raise
        return self._table(namespace, name, answer, doing)

    def create(self, namespace: str, name: str, table: NewTable, location: str | None) -> ReadTable:
        """Create a table in one request."""
        doing = f"creating the table `{namespace}.{name}` in the catalog `{origin(self._uri)}`"
        body: Json = {
            "name": name,
            "schema": table.schema,
            "partition-spec": table.spec,
            "write-order": table.order,
            "stage-create": False,
            "properties": {
                **self._table_defaults("table-default."),
                **table.properties,
                "format-version": str(table.format_version),
                **self._table_defaults("table-override."),
            },
            **({"location": location} if location else {}),
        }
        with _outcome(_EXISTS):
            answer = self._ask("POST", f"{_namespace_path(namespace)}/tables", doing, body)
            metadata, place = _metadata(answer, doing)
        return ReadTable(namespace, name, normalised(metadata), place)

    def commit(
        self,
        table: ReadTable,
        requirements: Iterable[Mapping[str, Any]],
        updates: Iterable[Mapping[str, Any]],
    ) -> ReadTable:
        """Commit in one request, which also asserts that the table is the one that was read."""
        doing = f"committing to the table `{table.target}` in the catalog `{origin(self._uri)}`"
        body: Json = {
            "identifier": {"namespace": [table.namespace], "name": table.name},
            "requirements": [assert_uuid(table.metadata), *map(dict, requirements)],
            "updates": list(map(dict, updates)),
        }
        path = self._path(table.namespace, table.name)
        try:
            with _outcome(_NOT_IN):
                metadata, place = _metadata(self._ask("POST", path, doing, body), doing)
                if metadata.get("table-uuid") != table.metadata["table-uuid"]:
                    raise not_a_catalog(doing, HTTPStatus.OK)
        except CatalogError as error:
            # What contradicts the table is a bad request, such as a sequence number that another
            # commit has taken, where no assertion says so before.
            if error.status == HTTPStatus.BAD_REQUEST and self._has_moved(table):
                raise CommitRejected(error.said or error.message, busy=True) from error
            raise
        # The answer to a commit has no credentials: those of the table are as good as before. What
        # lakeload does not support is found by the next read: the commit is in.
        return replace(table, metadata=normalised(metadata), metadata_location=place)

    def drop(self, table: ReadTable) -> None:
        """Drop a table in one request."""
        doing = f"dropping the table `{table.target}` in the catalog `{origin(self._uri)}`"
        path = f"{self._path(table.namespace, table.name)}?purgeRequested=false"
        try:
            with _outcome(()):
                self._ask("DELETE", path, doing)
        except CatalogError as error:
            if not error.missing:
                raise

    def _has_moved(self, table: ReadTable) -> bool:
        """Whether another commit has come in since the table was read, as far as can be told."""
        try:
            now = self.load(table.namespace, table.name)
        except (CatalogError, Unsupported):
            return False
        return now is not None and now.metadata_location != table.metadata_location

    @cached_property
    def _config(self) -> Mapping[str, Any]:
        """What the catalog tells its clients once in a run."""
        doing = f"opening the catalog `{origin(self._uri)}`"
        if self._warehouse:
            doing = (
                f"opening the warehouse `{self._warehouse}` of the catalog `{origin(self._uri)}`"
            )
        suffix = f"?warehouse={quote(self._warehouse, safe='')}" if self._warehouse else ""
        config = self._request("GET", f"{self._uri}/v1/config{suffix}", doing)
        return {**(config.get("defaults") or {}), **(config.get("overrides") or {})}

    @property
    def _base(self) -> str:
        """The address below which tables are."""
        told = self._config
        uri, prefix = str(told.get("uri") or self._uri).rstrip("/"), str(told.get("prefix") or "")
        # A prefix is encoded already.
        return f"{uri}/v1/{prefix}".rstrip("/")

    def _table_defaults(self, prefix: str) -> dict[str, str]:
        """Return the properties that the catalog wants of new tables, which clients add."""
        found = self._config.items()
        return {key.removeprefix(prefix): value for key, value in found if key.startswith(prefix)}

    def _path(self, namespace: str, name: str) -> str:
        return f"{_namespace_path(namespace)}/tables/{quote(name, safe='')}"

    def _ask(self, method: str, path: str, doing: str, body: Json | None = None) -> Json:
        return self._request(method, f"{self._base}/{path}", doing, body)

    def _request(self, method: str, url: str, doing: str, body: Json | None = None) -> Json:
        with http_call(doing, self._uri):
            response = self._session.request(method, url, json=body)
            if response.status_code in _EXPIRED:
                self._identity.renew()
                response = self._session.request(method, url, json=body)
        if not response.ok:
            error = error_from(doing, response, self._hidden)
            raise advised(error) if self._advises else error
        return document_of(response, doing)

    def _table(self, namespace: str, name: str, answer: Json, doing: str) -> ReadTable:
        metadata, place = _metadata(answer, doing)
        # The table's own settings over those of the catalog, which hold for all tables.
        config = {**self._config, **(answer.get("config") or {})}
        credentials = tuple(
            (str(one.get("prefix") or ""), one.get("config") or {})
            for one in answer.get("storage-credentials") or ()
        )
        table = ReadTable(namespace, name, supported(metadata), place, None, config, credentials)
        if self._vended and str(config.get(_SIGNS, "")).lower() == "true":
            _check_keys(table)
        return table


@contextmanager
def _outcome(rejected: Sequence[int]) -> Iterator[None]:
    """Translate what became of a request that changes something, as far as its answer tells."""
    try:
        yield
    except CatalogError as error:
        if error.may_have_acted:
            raise CommitUnknown(error.message) from error
        if error.status in rejected:
            busy = error.status != HTTPStatus.CONFLICT
            raise CommitRejected(error.said or error.message, busy=busy) from error
        raise


def _metadata(answer: Json, doing: str) -> tuple[Json, str]:
    """Return the metadata in an answer, and the place of its file. Raises `CatalogError`."""
    metadata = answer.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("location"), str):
        raise not_a_catalog(doing, HTTPStatus.OK)
    return metadata, str(answer.get("metadata-location") or "")


def _check_keys(table: ReadTable) -> None:
    """Raise `Unsupported` for a table whose catalog signs requests in place of vending keys."""
    configs = (table.config or {}, *(config for _, config in table.credentials))
    if not any("s3.access-key-id" in config for config in configs):
        raise Unsupported(
            f"files for which its catalog signs every request (`{_SIGNS}`)",
            hint=OWN_CREDENTIALS,
        )


def _namespace_path(namespace: str) -> str:
    return f"namespaces/{quote(namespace, safe='')}"

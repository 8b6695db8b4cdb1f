"""Opening a catalog with pyiceberg, by its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import requests
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.io import FileIO

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import Interface, catalog_traits
from lakeload_jobs.formats.iceberg.catalogs.catalog import IcebergCatalog, catalog_call
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.glue_tables import GlueTables
from lakeload_jobs.formats.iceberg.catalogs.http import (
    DEFAULT_PATIENCE,
    HttpTimeouts,
    Identity,
    origin,
    prepare,
)
from lakeload_jobs.formats.iceberg.catalogs.pyiceberg_files import PyIcebergFiles
from lakeload_jobs.formats.iceberg.catalogs.rest import DELEGATION_HEADER, RestConnection


def open_glue(
    destination: DestinationSpec, session: AwsSession, files: LakeFiles
) -> IcebergCatalog:
    """Return Glue's catalog, with metadata in `files`; nothing is called yet. Raises `AwsError`,
    `InvalidInput`."""
    place = f"glue.{destination.region}"
    with catalog_call("opening Glue's catalog", place):
        catalog = _Glue(session.glue, files)
    return IcebergCatalog(catalog, GlueTables(session, destination, files), place)


class _Glue(GlueCatalog):
    """pyiceberg's Glue catalog with our client and files."""

    def __init__(self, client: Any, files: LakeFiles) -> None:
        self._files = files
        super().__init__("lakeload", client=client)

    def _load_file_io(self, properties: Any = None, location: str | None = None) -> FileIO:
        return PyIcebergFiles(self._files)


def open_catalog(
    destination: DestinationSpec, session: AwsSession, patience: HttpTimeouts = DEFAULT_PATIENCE
) -> IcebergCatalog:
    """Return the open catalog. `patience` is for REST; Glue has that of `session`.

    Raises `CatalogError`, `AwsError`, and `InvalidInput` for a missing secret or for Nessie's
    native interface, which Spark alone has a client for.
    """
    interface = catalog_traits(destination.iceberg.catalog).interface
    return _OPENED_BY[interface](destination, session, patience)


def _only_through_spark(*_: object) -> NoReturn:
    raise InvalidInput(
        "this command does not start Spark, and Nessie's native interface works only through Spark",
        hint="use `sync`, `plan` or `maintain`, which start Spark",
    )


_OPENED_BY: Mapping[
    Interface, Callable[[DestinationSpec, AwsSession, HttpTimeouts], IcebergCatalog]
] = {
    Interface.GLUE: lambda destination, session, _: open_glue(
        destination, session, LakeFiles(session, destination)
    ),
    Interface.REST: lambda *given: open_rest(RestConnection(*given)),
    Interface.NESSIE: _only_through_spark,
}


def open_rest(connection: RestConnection) -> IcebergCatalog:
    """Open a REST catalog: our identity is accepted and the warehouse is known."""
    uri, warehouse = connection.uri, connection.warehouse
    doing = f"opening the catalog `{origin(uri)}`"
    if warehouse:
        doing = f"opening the warehouse `{warehouse}` of the catalog `{origin(uri)}`"
    identity, headers = connection.identity, connection.headers
    with catalog_call(doing, uri, connection.hidden):
        catalog = _Rest(connection, identity, headers)
    return IcebergCatalog(catalog, connection.tables(), uri, connection.hidden)


class _Rest(RestCatalog):
    """pyiceberg's REST catalog with our identity, time-outs and files."""

    def __init__(
        self, connection: RestConnection, identity: Identity, headers: dict[str, str]
    ) -> None:
        self._connection = connection
        self._identity = identity
        self._headers = headers
        settings: dict[str, Any] = {"uri": connection.uri, "auth": {"type": "noop"}}
        if connection.warehouse:
            settings["warehouse"] = connection.warehouse
        super().__init__("lakeload", **settings)

    def _create_session(self) -> requests.Session:
        session = prepare(super()._create_session(), self._connection.patience)
        session.auth = self._identity
        # pyiceberg asks for vended credentials unless it is told otherwise.
        session.headers.pop(DELEGATION_HEADER, None)
        session.headers.update(self._headers)
        return session

    def _refresh_token(self) -> None:
        # pyiceberg calls this before it repeats what a 401 or 419 refused.
        self._identity.renew()

    def _load_file_io(self, properties: Any = None, location: str | None = None) -> FileIO:
        if self._connection.vended:
            return super()._load_file_io(properties or {}, location)
        lake = LakeFiles(self._connection.session, self._connection.destination)
        return PyIcebergFiles(lake)

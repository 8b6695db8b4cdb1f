"""Opening a catalog by its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.io import FileIO

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import Interface, catalog_traits
from lakeload_jobs.formats.iceberg.catalogs.catalog import IcebergCatalog, catalog_call
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.glue_tables import GlueTables
from lakeload_jobs.formats.iceberg.catalogs.http import DEFAULT_PATIENCE, HttpTimeouts
from lakeload_jobs.formats.iceberg.catalogs.nessie import NessieApi
from lakeload_jobs.formats.iceberg.catalogs.nessie_tables import NessieTables
from lakeload_jobs.formats.iceberg.catalogs.rest import RestConnection
from lakeload_jobs.formats.iceberg.catalogs.table_stores import TableStore
from lakeload_jobs.formats.iceberg.rules.catalogs import own_location


def open_glue(destination: DestinationSpec, session: AwsSession) -> IcebergCatalog:
    """Return Glue's catalog; nothing is called yet. Raises `AwsError`, `InvalidInput`."""
    place = f"glue.{destination.region}"
    files = LakeFiles(session, destination)
    with catalog_call("opening Glue's catalog", place):
        catalog = _Glue(session.glue, files)
    return IcebergCatalog(catalog, GlueTables(session, files), place, (), files)


class _Glue(GlueCatalog):
    """pyiceberg's Glue catalog with our client and files."""

    def __init__(self, client: Any, files: LakeFiles) -> None:
        self._files = files
        super().__init__("lakeload", client=client)

    def _load_file_io(self, properties: Any = None, location: str | None = None) -> FileIO:
        return self._files


def open_catalog(
    destination: DestinationSpec, session: AwsSession, patience: HttpTimeouts = DEFAULT_PATIENCE
) -> IcebergCatalog:
    """Return the open catalog. `patience` is for REST; Glue has that of `session`.

    Raises `CatalogError`, `AwsError`, and `InvalidInput` for a missing secret or for Nessie's
    native interface, which Spark alone has a client for.
    """
    opener = _OPENERS[catalog_traits(destination.iceberg.catalog).interface]
    return opener(destination, session, patience)


def _rest(
    destination: DestinationSpec, session: AwsSession, patience: HttpTimeouts
) -> IcebergCatalog:
    return RestConnection(destination, session, patience).open()


def _glue(
    destination: DestinationSpec, session: AwsSession, patience: HttpTimeouts
) -> IcebergCatalog:
    return open_glue(destination, session)


def _nessie(
    destination: DestinationSpec, session: AwsSession, patience: HttpTimeouts
) -> IcebergCatalog:
    raise InvalidInput(
        "this command does not start Spark, and Nessie's native interface works only through Spark",
        hint="use `sync`, `plan` or `maintain`, which start Spark",
    )


_OPENERS: Mapping[
    Interface, Callable[[DestinationSpec, AwsSession, HttpTimeouts], IcebergCatalog]
] = {
    Interface.GLUE: _glue,
    Interface.REST: _rest,
    Interface.NESSIE: _nessie,
}


def open_tables(
    destination: DestinationSpec, session: AwsSession, patience: HttpTimeouts = DEFAULT_PATIENCE
) -> TableStore:
    """Return the tables of the catalog, read and committed to by requests of our own. Raises as
    `open_catalog`; nothing is asked yet."""
    spec = destination.iceberg.catalog
    files = LakeFiles(session, destination)
    match catalog_traits(spec).interface:
        case Interface.GLUE:
            return GlueTables(session, files)
        case Interface.NESSIE:
            api = NessieApi(spec, session, patience)
            return NessieTables(api, spec.ref, files, own_location(destination) or "")
        case Interface.REST:
            return RestConnection(destination, session, patience).tables()

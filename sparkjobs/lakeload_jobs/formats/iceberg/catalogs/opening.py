"""Opening a catalog by its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

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
from lakeload_jobs.formats.iceberg.catalogs.rest import RestConnection


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
    Interface.GLUE: lambda destination, session, _: open_glue(destination, session),
    Interface.REST: lambda *given: RestConnection(*given).open(),
    Interface.NESSIE: _only_through_spark,
}

"""The tables of a catalog, by its type: what loads read and commit to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import Interface, catalog_traits
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.glue_tables import GlueTables
from lakeload_jobs.formats.iceberg.catalogs.table_stores import TableStore

if TYPE_CHECKING:
    from lakeload_jobs.formats.iceberg.catalogs.http import HttpTimeouts

# Glue, and tables of other formats, do without an HTTP client, which takes long to import.


def open_tables(
    destination: DestinationSpec, session: AwsSession, patience: HttpTimeouts | None = None
) -> TableStore:
    """Return the tables of the catalog, read and committed to by requests of our own, whose errors
    say what to do; `patience` None is the usual one. Raises as `open_catalog`; nothing is asked
    yet."""
    interface = catalog_traits(destination.iceberg.catalog).interface
    return _OPENED_BY[interface](destination, session, patience)


def _glue(destination: DestinationSpec, session: AwsSession, _: HttpTimeouts | None) -> TableStore:
    return GlueTables(session, destination, LakeFiles(session, destination))


def _nessie(
    destination: DestinationSpec, session: AwsSession, patience: HttpTimeouts | None
) -> TableStore:
    from lakeload_jobs.formats.iceberg.catalogs.http import DEFAULT_PATIENCE
    from lakeload_jobs.formats.iceberg.catalogs.nessie import NessieApi
    from lakeload_jobs.formats.iceberg.catalogs.nessie_tables import NessieTables

    spec, files = destination.iceberg.catalog, LakeFiles(session, destination)
    api = NessieApi(spec, session, patience or DEFAULT_PATIENCE, advises=True)
    return NessieTables(api, spec.ref, files)


def _rest(
    destination: DestinationSpec, session: AwsSession, patience: HttpTimeouts | None
) -> TableStore:
    from lakeload_jobs.formats.iceberg.catalogs.http import DEFAULT_PATIENCE
    from lakeload_jobs.formats.iceberg.catalogs.rest import RestConnection

    return RestConnection(destination, session, patience or DEFAULT_PATIENCE).tables(advises=True)


_OPENED_BY: Mapping[
    Interface, Callable[[DestinationSpec, AwsSession, HttpTimeouts | None], TableStore]
] = {
    Interface.GLUE: _glue,
    Interface.NESSIE: _nessie,
    Interface.REST: _rest,
}

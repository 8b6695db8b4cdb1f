"""The tables of a catalog, by its type: what loads read and commit to."""

from __future__ import annotations

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import Interface, catalog_traits
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.glue_tables import GlueTables
from lakeload_jobs.formats.iceberg.catalogs.http import DEFAULT_PATIENCE, HttpTimeouts
from lakeload_jobs.formats.iceberg.catalogs.nessie import NessieApi
from lakeload_jobs.formats.iceberg.catalogs.nessie_tables import NessieTables
from lakeload_jobs.formats.iceberg.catalogs.rest import RestConnection
from lakeload_jobs.formats.iceberg.catalogs.table_stores import TableStore
from lakeload_jobs.formats.iceberg.rules.catalogs import own_location


def open_tables(
    destination: DestinationSpec, session: AwsSession, patience: HttpTimeouts = DEFAULT_PATIENCE
) -> TableStore:
    """Return the tables of the catalog, read and committed to by requests of our own, whose errors
    say what to do. Raises as `open_catalog`; nothing is asked yet."""
    spec = destination.iceberg.catalog
    files = LakeFiles(session, destination)
    match catalog_traits(spec).interface:
        case Interface.GLUE:
            return GlueTables(session, destination, files)
        case Interface.NESSIE:
            api = NessieApi(spec, session, patience, advises=True)
            return NessieTables(api, spec.ref, files, own_location(destination) or "")
        case Interface.REST:
            return RestConnection(destination, session, patience).tables(advises=True)

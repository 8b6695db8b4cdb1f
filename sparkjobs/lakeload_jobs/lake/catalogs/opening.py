"""Opening the Iceberg catalog of a destination. Imports pyiceberg, which takes a second or two."""

from __future__ import annotations

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.lake.aws import AwsSession
from lakeload_jobs.lake.catalogs.catalog import IcebergCatalog
from lakeload_jobs.lake.catalogs.glue import open_glue
from lakeload_jobs.lake.catalogs.http import DEFAULT_PATIENCE, Patience
from lakeload_jobs.lake.catalogs.rest import RestConnection, is_rest


def open_catalog(
    destination: DestinationSpec, session: AwsSession, patience: Patience = DEFAULT_PATIENCE
) -> IcebergCatalog:
    """Return the open catalog. `patience` is for REST; Glue has that of `session`.

    Raises `CatalogError`, `AwsError`, and `InvalidInput` for a missing secret or for Nessie's
    native interface, which Spark alone has a client for.
    """
    spec = destination.iceberg.catalog
    if spec.type == "GLUE":
        return open_glue(destination, session)
    if not is_rest(spec):
        raise InvalidInput(
            "Nessie's native interface can be used from Spark alone",
            hint="`sync`, `plan` and `maintain` start Spark; this command cannot ask that catalog",
        )
    return RestConnection(destination, session, patience).open()

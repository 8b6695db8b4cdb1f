"""The Iceberg tables of a pipeline that a command is about, and their catalog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakeload.documents.load import DestinationDocument, PipelineDocument
from lakeload.formats.tables import TableRef, TablesRequest, open_pipeline
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import catalog_traits
from lakeload_jobs.formats.parquet.log.publish import Notify

if TYPE_CHECKING:
    from lakeload_jobs.formats.iceberg.catalogs.catalog import IcebergCatalog

_WITHOUT_A_CLIENT = {
    "recover": "run `lakeload maintain PIPELINE --only branches --apply` to drop the branches of "
    "abandoned attempts; the next `lakeload sync` of the table drops them too",
    "reset": "drop the table in Spark: `DROP TABLE lake.<schema>.<table> PURGE`",
}
"""What to do instead, by command."""


@dataclass(frozen=True)
class IcebergTables:
    """Iceberg tables of a pipeline, and what work on them needs."""

    catalog: IcebergCatalog
    destination: DestinationSpec
    session: AwsSession
    pipeline: str
    notify: Notify
    tables: Sequence[TableRef] = ()


def pipeline_of(request: TablesRequest) -> PipelineDocument:
    """Return the pipeline that a command is about. Raises `InvalidInput` for a destination, whose
    catalog may hold tables of others beside ours."""
    document = request.document
    if isinstance(document, DestinationDocument):
        raise InvalidInput(
            f"`lakeload {request.command}` needs a pipeline for Iceberg tables: a catalog "
            "can hold tables of other writers too",
            hint="give the pipeline's configuration file",
        )
    return document


def open_tables(request: TablesRequest) -> IcebergTables:
    """Open the catalog of a pipeline's tables.

    Raises `InvalidDocuments`; `InvalidInput` for a glob without a match, for a destination, whose
    catalog may hold tables of others beside ours, and for a catalog that Spark alone has a client
    for; `Refused`.
    """
    document = pipeline_of(request)
    if catalog_traits(document.destination.model.iceberg.catalog).spark_only:
        raise InvalidInput(
            f"`lakeload {request.command}` cannot use Nessie's native interface: only Spark "
            "has a client for it",
            hint=_WITHOUT_A_CLIENT[request.command],
        )
    from lakeload_jobs.formats.iceberg.catalogs.opening import open_catalog

    destination, session, tables = open_pipeline(document, request)
    catalog = open_catalog(destination, session)
    name = document.model.name
    return IcebergTables(catalog, destination, session, name, request.notify, tables)

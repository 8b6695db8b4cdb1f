"""The Iceberg tables of a pipeline that a command is about, and their catalog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakeload.documents.load import DestinationDocument, PipelineDocument
from lakeload.formats.tables import TableRef, TablesRequest, open_pipeline
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.formats.iceberg.catalogs.table_stores import TableStore
from lakeload_jobs.formats.iceberg.catalogs.tables import open_tables as open_store
from lakeload_jobs.formats.parquet.log.publish import Notify


@dataclass(frozen=True)
class IcebergTables:
    """Iceberg tables of a pipeline, and what work on them needs."""

    store: TableStore
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

    Raises `InvalidDocuments`; `InvalidInput` for a glob without a match and for a destination,
    whose catalog may hold tables of others beside ours; `Refused`.
    """
    document = pipeline_of(request)
    destination, session, tables = open_pipeline(document, request)
    store = open_store(destination, session)
    store.open()
    return IcebergTables(store, destination, session, document.model.name, request.notify, tables)

"""Rows of small tables, read with pyiceberg."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import StaticTable
from pyiceberg.table.metadata import TableMetadataUtil

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable


def read_rows(
    table: ReadTable,
    destination: DestinationSpec,
    session: AwsSession,
    snapshot_id: int | None = None,
) -> pa.Table:
    """Return all rows of a table that fits into memory, with the columns of that snapshot.

    It is for looking at a small table: the destination's keys are taken as they are now, and are
    not renewed. Raises `AwsError` without an identity, `CatalogError` for files that cannot be
    read.
    """
    keys = session.keys()
    settings = {
        "s3.region": destination.region,
        "s3.access-key-id": keys.access_key_id,
        "s3.secret-access-key": keys.secret_access_key.reveal(),
    }
    if keys.session_token:
        settings["s3.session-token"] = keys.session_token.reveal()
    if destination.endpoints.s3:
        settings["s3.endpoint"] = destination.endpoints.s3
    # pyiceberg reads data files with Arrow's own S3, which our file access is not.
    reading = StaticTable(
        (table.namespace, table.name),
        TableMetadataUtil.parse_obj(dict(table.metadata)),
        table.metadata_location,
        PyArrowFileIO(settings),
        NoopCatalog(table.namespace),
    )
    try:
        return reading.scan(snapshot_id=snapshot_id).to_arrow()
    except (ImportError, OSError, ValueError) as error:
        raise CatalogError(
            f"reading the rows below `{table.location}`: {error}", code="FilesUnreadable"
        ) from error

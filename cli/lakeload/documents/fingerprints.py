"""The fingerprint of a load: everything that decides which rows land where.

Logs and tables hold the fingerprints of all loads so far, so what takes part is named here, setting
by setting, and stays as it is: a setting that comes later takes part only where it is given.

Paths count as they are written, so that a scheduler may check the documents out anywhere.
Credentials, endpoints, sizes and parallelism change how a load runs, not what it loads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lakeload.documents.load import PipelineDocument
from lakeload.sources.registry import SOURCES
from lakeload_jobs.contract.spec import (
    ColumnsSpec,
    DestinationSpec,
    PartitionField,
    RunOptions,
    TableFormat,
    TableSpec,
)
from lakeload_jobs.core.fingerprint import fingerprint

Identity = Mapping[str, Any]
"""Settings that tell one load from another, by name."""


@dataclass(frozen=True)
class FormatIdentity:
    """What takes part for one table format: of the destination, and of each table."""

    destination: Callable[[DestinationSpec], Identity]
    table: Callable[[TableSpec], Identity]


def load_fingerprint(
    document: PipelineDocument,
    destination: DestinationSpec,
    written: TableSpec,
    options: RunOptions,
) -> str:
    """Return the fingerprint of a table's load.

    `written` has its paths as in the document, no fingerprint and no credentials.
    """
    model, identity = document.model, FORMATS[destination.table_format]
    return fingerprint(
        {
            "bucket": destination.bucket,
            "prefix": destination.prefix,
            "pipeline": model.name,
            "nested": document.nested,
            "on_bad_value": model.on_bad_value,
            "tracking_columns": model.tracking_columns,
            "table": {**_table(written), **identity.table(written)},
            **identity.destination(destination),
            **_run(options),
        }
    )


def _table(table: TableSpec) -> Identity:
    """Return what takes part whatever the format is."""
    return {
        "source": table.source,
        "schema": table.schema,
        "table": table.table,
        "input": SOURCES[table.input.type].identity(table.input),
        "columns": _columns(table.columns),
        "primary_key": table.primary_key,
        "where": table.where,
        "deleted_when": table.deleted_when,
        # Fingerprints have always covered the empty one of the table itself.
        "fingerprint": "",
    }


def _columns(columns: ColumnsSpec) -> Identity:
    return {
        "include": columns.include,
        "exclude": columns.exclude,
        "rename": columns.rename,
        "types": columns.types,
    }


def _run(options: RunOptions) -> Identity:
    # A key of its own only where it is asked for: older fingerprints are without it.
    refresh = {"full_refresh": True} if options.full_refresh else {}
    return {"limit": options.limit, "reload": options.reload, **refresh}


def _parquet(destination: DestinationSpec) -> Identity:
    parquet = destination.parquet
    return {
        "partition_strategy": parquet.partition_strategy,
        "file_name_pattern": parquet.file_name_pattern,
        "update_glue_catalog": parquet.update_glue_catalog,
        "partition_projection": parquet.partition_projection,
    }


def _parquet_table(_: TableSpec) -> Identity:
    """Nothing: fingerprints of Parquet tables are older than modes (docs/decisions/0087)."""
    return {}


def _iceberg(destination: DestinationSpec) -> Identity:
    """Name the catalog and the place in it; how a table is made does not change its rows."""
    iceberg = destination.iceberg
    catalog = iceberg.catalog
    return {
        "table_format": "ICEBERG",
        "catalog": {
            "type": catalog.type,
            "glue_id": catalog.glue_id,
            "uri": catalog.uri,
            "warehouse": catalog.warehouse,
            "ref": catalog.ref,
        },
        "warehouse_location": iceberg.warehouse_location,
        "branch": iceberg.branch,
    }


def _iceberg_table(table: TableSpec) -> Identity:
    return {
        "mode": table.mode,
        "cursor": table.cursor,
        "deletes": table.deletes,
        # Not given or empty: the same rows land in the same table.
        "partition_by": [_partition(field) for field in table.partition_by or ()],
    }


def _partition(field: PartitionField) -> Identity:
    return {"transform": field.transform, "column": field.column, "width": field.width}


FORMATS: Mapping[TableFormat, FormatIdentity] = {
    "PARQUET": FormatIdentity(_parquet, _parquet_table),
    "ICEBERG": FormatIdentity(_iceberg, _iceberg_table),
}

"""The fingerprint of a load: everything that decides which rows land where.

Paths count as they are written, so that a scheduler may check the documents out anywhere.
Credentials, endpoints, sizes and parallelism change how a load runs, not what it loads.
"""

from __future__ import annotations

from typing import Any

from lakeload.documents.destination import Destination
from lakeload.documents.load import PipelineDocument
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.spec import RunOptions, TableSpec
from lakeload_jobs.core.fingerprint import fingerprint

_OF_ICEBERG = ("mode", "cursor", "deletes", "partition_by", "table_properties")
"""Fields of a table that only ICEBERG has. The logs of Parquet tables hold fingerprints from
before there were any: they take no part in those (docs/decisions/0087)."""


def load_fingerprint(document: PipelineDocument, written: TableSpec, options: RunOptions) -> str:
    """Return the fingerprint of a table's load.

    `written` has its paths as in the document, no fingerprint and no credentials.
    """
    model, destination = document.model, document.destination.model
    table: dict[str, Any] = to_json(written)
    iceberg = destination.table_format == "ICEBERG"
    for name in ("table_properties",) if iceberg else _OF_ICEBERG:
        table.pop(name)
    if iceberg:
        # Not given or empty: the same rows land in the same table.
        table["partition_by"] = table["partition_by"] or []
    return fingerprint(
        {
            "bucket": destination.bucket,
            "prefix": destination.prefix,
            "pipeline": model.name,
            "nested": document.nested,
            "on_bad_value": model.on_bad_value,
            "tracking_columns": model.tracking_columns,
            "table": table,
            **(_iceberg(destination) if iceberg else _parquet(destination)),
            **_run(options),
        }
    )


def _run(options: RunOptions) -> dict[str, Any]:
    """Name the options that make another load of the same tables."""
    # A key of its own only where it is asked for: older fingerprints are without it.
    refresh = {"full_refresh": True} if options.full_refresh else {}
    return {"limit": options.limit, "reload": options.reload, **refresh}


def _parquet(destination: Destination) -> dict[str, Any]:
    return {
        "partition_strategy": destination.parquet.partition_strategy,
        "file_name_pattern": destination.parquet.file_name_pattern,
        "update_glue_catalog": destination.parquet.update_glue_catalog,
        "partition_projection": destination.parquet.partition_projection,
    }


def _iceberg(destination: Destination) -> dict[str, Any]:
    """Name the catalog and the place in it; how a table is made does not change its rows."""
    catalog = destination.iceberg.catalog
    return {
        "table_format": "ICEBERG",
        "catalog": {
            "type": catalog.type,
            "glue_id": catalog.glue_id,
            "uri": catalog.uri,
            "warehouse": catalog.warehouse or catalog.catalog_name,
            "ref": catalog.ref,
        },
        "warehouse_location": destination.iceberg.warehouse_location,
        "branch": destination.iceberg.branch,
    }

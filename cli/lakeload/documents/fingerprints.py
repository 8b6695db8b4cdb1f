"""The fingerprint of a load: everything that decides which rows land where.

Logs and tables hold the fingerprints of all loads so far, so what takes part is named here, setting
by setting, and stays as it is: a setting that comes later takes part only where it is given.

Paths count as they are written, so that a scheduler may check the documents out anywhere.
Credentials, endpoints, sizes and parallelism change how a load runs, not what it loads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakeload.documents.format_rules import FORMAT_RULES
from lakeload.documents.load import PipelineDocument
from lakeload.sources.registry import SOURCES
from lakeload_jobs.contract.spec import (
    ColumnsSpec,
    DestinationSpec,
    RunOptions,
    TableSpec,
)
from lakeload_jobs.core.fingerprint import fingerprint


def load_fingerprint(
    document: PipelineDocument,
    destination: DestinationSpec,
    written: TableSpec,
    options: RunOptions,
) -> str:
    """Return the fingerprint of a table's load.

    `written` has its paths as in the document, no fingerprint and no credentials.
    """
    model, rules = document.model, FORMAT_RULES[destination.table_format]
    return fingerprint(
        {
            "bucket": destination.bucket,
            "prefix": destination.prefix,
            "pipeline": model.name,
            "nested": document.nested,
            "on_bad_value": model.on_bad_value,
            "tracking_columns": model.tracking_columns,
            "table": {**_table(written), **rules.table_identity(written)},
            **rules.destination_identity(destination),
            **_run(options),
        }
    )


def _table(table: TableSpec) -> Mapping[str, Any]:
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


def _columns(columns: ColumnsSpec) -> Mapping[str, Any]:
    return {
        "include": columns.include,
        "exclude": columns.exclude,
        "rename": columns.rename,
        "types": columns.types,
    }


def _run(options: RunOptions) -> Mapping[str, Any]:
    # A key of its own only where it is asked for: older fingerprints are without it.
    refresh = {"full_refresh": True} if options.full_refresh else {}
    return {"limit": options.limit, "reload": options.reload, **refresh}

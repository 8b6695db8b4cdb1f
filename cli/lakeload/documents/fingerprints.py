"""The fingerprint that tells whether a job id is used again for the same load."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from lakeload.documents.format_rules import FORMAT_RULES
from lakeload.documents.load import PipelineDocument
from lakeload.sources.registry import SOURCES
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.spec import (
    ColumnsSpec,
    DestinationSpec,
    RunOptions,
    TableSpec,
)


def canonical_json(data: Any) -> str:
    """Return JSON that is equal for equal data: keys sorted, no spaces, ASCII only.

    Takes what `codec.to_json` takes; raises `ValueError` for NaN and infinities.
    """
    return json.dumps(to_json(data), sort_keys=True, separators=(",", ":"), allow_nan=False)


def fingerprint(data: Any) -> str:
    """Return the SHA-256 of `canonical_json(data)` as 64 lower-case hex digits."""
    return hashlib.sha256(canonical_json(data).encode()).hexdigest()


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

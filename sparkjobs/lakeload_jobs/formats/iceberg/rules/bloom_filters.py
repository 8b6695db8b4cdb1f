"""Table properties of bloom filters: https://iceberg.apache.org/docs/latest/configuration/."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

BLOOM_FILTER_ENABLED = "write.parquet.bloom-filter-enabled.column."
BLOOM_FILTER_ADAPTIVE = "write.parquet.bloom-filter-adaptive-enabled"
"""A filter is as large as the values need. Without it, each takes 1 MiB, also for one row."""


def bloom_filter_properties(columns: Sequence[str], existing: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that a table of these `existing` ones lacks to have bloom filters for
    these columns."""
    enabled = {f"{BLOOM_FILTER_ENABLED}{name}": "true" for name in columns}
    lacking = {name: on for name, on in enabled.items() if existing.get(name, "").lower() != on}
    if columns and BLOOM_FILTER_ADAPTIVE not in existing:
        lacking[BLOOM_FILTER_ADAPTIVE] = "true"
    return lacking

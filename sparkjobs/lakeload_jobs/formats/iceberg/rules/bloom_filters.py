"""Table properties of bloom filters: https://iceberg.apache.org/docs/latest/configuration/."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

BLOOM_FILTER_ENABLED = "write.parquet.bloom-filter-enabled.column."
BLOOM_FILTER_FPP = "write.parquet.bloom-filter-fpp.column."
DEFAULT_FPP = 0.01
"""Share of absent values that a filter lets pass, where the table does not say it."""
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


def bloom_filters_of(properties: Mapping[str, str]) -> dict[str, float]:
    """Return the columns for which the properties of a table ask for a bloom filter, each with its
    share of absent values that pass. Raises `ValueError` for one that is not between 0 and 1."""
    enabled = (
        name.removeprefix(BLOOM_FILTER_ENABLED)
        for name, value in properties.items()
        if name.startswith(BLOOM_FILTER_ENABLED) and value.lower() == "true"
    )
    return {
        column: parse_fpp(properties.get(f"{BLOOM_FILTER_FPP}{column}", str(DEFAULT_FPP)))
        for column in enabled
    }


def parse_fpp(text: str) -> float:
    """Return a share of absent values that pass. Raises `ValueError` for none."""
    share = float(text)
    if not 0 < share < 1:
        raise ValueError(f"{text} is not between 0 and 1")
    return share

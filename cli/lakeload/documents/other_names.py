"""What other products call a value that has another name here."""

from __future__ import annotations

_VALUES = {
    ("Catalog", "type", "POLARIS"): (
        "a Polaris catalog is `REST`, and Snowflake's is `SNOWFLAKE_OPEN_CATALOG`"
    ),
    ("Table", "mode", "APPEND_DEDUP"): "write `UPSERT`: of several versions of a row one is kept",
}


def our_name(model: str, field: str, value: str) -> str | None:
    """Return what to write for another product's value; None where it is no such value."""
    return _VALUES.get((model, field, value.upper()))

"""Allowed properties of Iceberg tables.

Names: https://iceberg.apache.org/docs/latest/configuration/. What is refused is what lakeload must
be able to rely on, what Iceberg sets by itself, and what must never be seen by a table's readers.
"""

from __future__ import annotations

import re

from lakeload.data import read_toml

_NAMES = read_toml(__package__, "table_properties.toml")

_SECRET = re.compile(
    r"secret|passw|pwd|token|credential$|(access|private|api|account)[._-]?key|sas[._-]|"
    r"external[._-]?id|client[._-]?id|^auth|authori[sz]ation",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(r"://[^/\s@'\"]+@|\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b")
_MAX_NAME = 255
"""Glue's limit for the name of a parameter."""


def property_problem(name: str, value: str) -> tuple[str, str] | None:
    """Say why a document cannot set a table property, and what to do instead, or return None.

    The texts never hold the value: it may be a secret.
    """
    lower = name.strip().lower()
    if not lower or lower != name.lower() or len(name) > _MAX_NAME:
        return (
            f"`{name[:60]}` is not the name of a table property",
            f"a name has 1 to {_MAX_NAME} characters and no space around it",
        )
    if lower.startswith("lakeload."):
        return (
            f"`{name}` is reserved: lakeload records there what it has loaded",
            "remove the line",
        )
    if lower in _NAMES["refused"]:
        why, hint = _NAMES["refused"][lower]
        return f"`{name}` {why}", hint
    if lower in _NAMES["by_iceberg"] or lower in _NAMES["by_spark"]:
        maker = "Iceberg" if lower in _NAMES["by_iceberg"] else "Spark"
        return f"`{name}` is set by {maker} itself", "remove the line"
    plain = lower.startswith(tuple(_NAMES["for_tables"]))
    if (not plain and _SECRET.search(name)) or _SECRET_VALUE.search(value):
        return (
            f"`{name}` looks like a secret, and everyone who can read a table sees its properties",
            "secrets go under `credentials` and `iceberg.catalog`, as references",
        )
    if lower.startswith(tuple(_NAMES["for_catalogs"])) or lower in _NAMES["of_catalogs"]:
        return (
            f"`{name}` is a property of catalogs, not of tables",
            "the settings of the catalog are under `iceberg.catalog`",
        )
    return None

"""Which properties of Iceberg tables a document may set.

Names: https://iceberg.apache.org/docs/latest/configuration/. What is refused is what lakeload must
be able to rely on, what Iceberg sets by itself, and what must never be seen by a table's readers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_FOR_TABLES = ("write.", "read.", "commit.", "history.")
"""Iceberg's own prefixes, whose names may end in that of a column: one may be called `token`."""

_FOR_CATALOGS = (
    "client.",
    "dynamodb.",
    "glue.",
    "header.",
    "io.",
    "kms.",
    "oauth2-",
    "rest.",
    "rest-",
    "s3.",
    "sts.",
)
_CATALOG_NAMES = frozenset({"uri", "warehouse", "catalog-impl", "io-impl", "client-id", "scope"})

_BY_ICEBERG = frozenset(
    {
        "uuid",
        "snapshot-count",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
_BY_SPARK = frozenset({"provider", "owner", "external", "is_managed_location"})

_OTHER_SETTING: Mapping[str, tuple[str, str]] = {
    "format-version": (
        "is the setting `format_version`",
        "write `format_version` under `iceberg`",
    ),
    "location": (
        "follows from bucket, prefix and the names of schema and table",
        "set `prefix`, `warehouse_location` or `namespace`",
    ),
    **{
        f"write.{name}": (
            "would put files of the table outside its own folder",
            "set `prefix` or `warehouse_location`; `write.object-storage.enabled` spreads files "
            "over folders within",
        )
        for name in (
            "data.path",
            "metadata.path",
            "folder-storage.path",
            "object-storage.path",
        )
    },
    "write.location-provider.impl": (
        "would put files of the table where lakeload does not look for them",
        "remove the line",
    ),
    "write.wap.enabled": (
        "is a second way to stage writes, and lakeload stages each load by itself",
        "remove the line",
    ),
    "write.spark.accept-any-schema": (
        "switches off checks of columns; lakeload compares them before each load",
        "remove the line; `schema_changes` says what may change",
    ),
}

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
            f"`{name}` is lakeload's own: it remembers there what was loaded",
            "remove the line",
        )
    if lower in _OTHER_SETTING:
        why, hint = _OTHER_SETTING[lower]
        return f"`{name}` {why}", hint
    if lower in _BY_ICEBERG or lower in _BY_SPARK:
        maker = "Iceberg" if lower in _BY_ICEBERG else "Spark"
        return f"`{name}` is set by {maker} itself", "remove the line"
    plain = lower.startswith(_FOR_TABLES)
    if (not plain and _SECRET.search(name)) or _SECRET_VALUE.search(value):
        return (
            f"`{name}` looks like a secret, and whoever reads a table sees its properties",
            "secrets go under `credentials` and `iceberg.catalog`, as references",
        )
    if lower.startswith(_FOR_CATALOGS) or lower in _CATALOG_NAMES:
        return (
            f"`{name}` is a property of catalogs, and tables do not have it",
            "the settings of the catalog are under `iceberg.catalog`",
        )
    return None

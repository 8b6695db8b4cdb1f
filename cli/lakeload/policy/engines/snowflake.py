"""What Snowflake needs to read the Iceberg tables of a destination (F74, F75). Pure.

https://docs.snowflake.com/en/sql-reference/sql/create-external-volume,
…/create-catalog-integration-open-catalog, …/create-catalog-integration-rest and
…/create-iceberg-table-rest. Secrets are placeholders, each with the setting that holds its value.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lakeload.policy.engines.iceberg_queries import iceberg_queries
from lakeload.policy.engines.iceberg_words import snowflake_words
from lakeload.policy.engines.snowflake_access import (
    catalog_principal,
    check_bucket,
    external_volume,
    volume_principal,
)
from lakeload.policy.engines.snowflake_catalog import catalog_integration, check_catalog
from lakeload.policy.text.snippets import Snippet, name, snowflake_text, words
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec


def snowflake_setup(destination: DestinationSpec) -> tuple[Snippet, ...]:
    """Return volume, integration and what their DESC statements are for, in the order to run.

    Raises `InvalidInput` for a catalog or bucket that Snowflake cannot use.
    """
    check_catalog(destination.iceberg.catalog)
    check_bucket(destination)
    volume, integration = _volume_name(destination), _integration_name(destination)
    return (
        external_volume(destination, volume),
        *volume_principal(destination, volume),
        catalog_integration(destination, integration),
        *catalog_principal(destination, integration),
        Snippet(
            "check both",
            f"SELECT SYSTEM$VERIFY_EXTERNAL_VOLUME({snowflake_text(volume)});\n"
            f"SELECT SYSTEM$VERIFY_CATALOG_INTEGRATION({snowflake_text(integration)});\n"
            f"SELECT SYSTEM$LIST_ICEBERG_TABLES_FROM_CATALOG({snowflake_text(integration)});",
            "The last one lists the tables. For Open Catalog, SYSTEM$LIST_NAMESPACES_FROM_CATALOG "
            "may be empty although there are namespaces.",
        ),
    )


def snowflake_table(
    destination: DestinationSpec, table: TableSpec, tracking: Sequence[str], then: datetime
) -> tuple[Snippet, ...]:
    """Return the statements for one table, and queries over it.

    Names are upper case in quotes: what Snowflake makes of the same name without quotes, and
    right for reserved words such as `ORDER` too.
    """
    relation = name(table.schema.upper(), table.table.upper())
    schema = name(table.schema.upper())
    namespace = f"  CATALOG_NAMESPACE = {snowflake_text(table.schema)}\n" if table.schema else ""
    create = (
        f"CREATE ICEBERG TABLE IF NOT EXISTS {relation}\n"
        f"  EXTERNAL_VOLUME = {snowflake_text(_volume_name(destination))}\n"
        f"  CATALOG = {snowflake_text(_integration_name(destination))}\n"
        f"{namespace}"
        f"  CATALOG_TABLE_NAME = {snowflake_text(table.table)}\n"
        "  AUTO_REFRESH = TRUE;"
    )
    return (
        Snippet(
            f"{table.target}: the table in Snowflake",
            (f"CREATE SCHEMA IF NOT EXISTS {schema};\n" if schema else "") + create,
            "The table is read only; without quotes the names may be written in any case."
            + _deletes(destination, table),
        ),
        Snippet(
            f"{table.target}: see the latest load now",
            f"ALTER ICEBERG TABLE {relation} REFRESH;",
            "AUTO_REFRESH asks the catalog every 30 seconds or as REFRESH_INTERVAL_SECONDS of the "
            "integration says. `ALTER ICEBERG TABLE … SET AUTO_REFRESH = FALSE` leaves it to this.",
        ),
        *iceberg_queries(table, snowflake_words(relation, then), tracking),
    )


def _deletes(destination: DestinationSpec, table: TableSpec) -> str:
    """Say which row-level deletes a table has: Snowflake reads no equality deletes (F49).

    https://docs.snowflake.com/en/release-notes/2025/other/
    2025-10-17-position-row-level-deletes-externally-managed-iceberg-ga and
    …/2026/other/2026-05-07-iceberg-v3-ga.
    """
    if table.mode != "UPSERT":
        return ""
    kind = "position deletes" if destination.iceberg.format_version == 2 else "deletion vectors"
    return (
        f"\nLoads mark replaced rows with {kind}, which Snowflake reads. It refuses a table with "
        "equality deletes, which other writers make (error 091968)."
    )


def _volume_name(destination: DestinationSpec) -> str:
    return f"lakeload_{words(destination.bucket)}_volume"


def _integration_name(destination: DestinationSpec) -> str:
    return f"lakeload_{words(destination.bucket)}_catalog"

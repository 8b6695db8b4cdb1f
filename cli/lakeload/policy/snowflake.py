"""What Snowflake needs to read the Iceberg tables of a destination (F74, F75). Pure.

https://docs.snowflake.com/en/sql-reference/sql/create-external-volume,
…/create-catalog-integration-open-catalog, …/create-catalog-integration-rest and
…/create-iceberg-table-rest. Secrets are placeholders, each with the setting that holds its value.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from lakeload.policy.iam import PolicyOptions
from lakeload.policy.policy_set import needs_principal
from lakeload.policy.snippets import Snippet, name, snowflake_text, words
from lakeload.policy.snowflake_catalog import READER_ROLE, catalog_integration, check_catalog
from lakeload.policy.table_queries import shared_queries
from lakeload.policy.trust import Principal, trust_policy
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec

VOLUME_EXTERNAL_ID = "<VOLUME_EXTERNAL_ID>"

_VOLUME_PRINCIPAL = ("STORAGE_AWS_IAM_USER_ARN", "VOLUME_EXTERNAL_ID")
_CATALOG_PRINCIPAL = ("API_AWS_IAM_USER_ARN", "CATALOG_EXTERNAL_ID")
_OPEN_CATALOG_PRINCIPAL = ("OPEN_CATALOG_IAM_USER_ARN", "OPEN_CATALOG_EXTERNAL_ID")


def snowflake_setup(destination: DestinationSpec) -> tuple[Snippet, ...]:
    """Return volume, integration and what their DESC statements are for, in the order to run.

    Raises `InvalidInput` for Parquet files and for a catalog that Snowflake cannot use.
    """
    if destination.table_format != "ICEBERG":
        raise InvalidInput(
            "writing statements for Snowflake: the destination's `table_format` is `PARQUET`, and "
            "these statements are for Iceberg tables",
            hint="`--for athena` and `--for duckdb` write queries for Parquet files",
        )
    check_catalog(destination.iceberg.catalog)
    volume, integration = _volume_name(destination), _integration_name(destination)
    return (
        _volume(destination, volume),
        *_volume_principal(destination, volume),
        catalog_integration(destination, integration),
        *_catalog_principal(destination, integration),
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
    destination: DestinationSpec, table: TableSpec, tracking: Sequence[str]
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
            "The table is read only; without quotes the names may be written in any case.",
        ),
        Snippet(
            f"{table.target}: see the latest load now",
            f"ALTER ICEBERG TABLE {relation} REFRESH;",
            "AUTO_REFRESH asks the catalog every 30 seconds or as REFRESH_INTERVAL_SECONDS of the "
            "integration says. `ALTER ICEBERG TABLE … SET AUTO_REFRESH = FALSE` leaves it to this.",
        ),
        *shared_queries(table, relation, tracking),
    )


def _volume(destination: DestinationSpec, volume: str) -> Snippet:
    base = destination.iceberg.warehouse_location or "s3://" + "/".join(
        part for part in (destination.bucket, destination.prefix) if part
    )
    lines = [
        f"      NAME = {snowflake_text(words(destination.bucket))}",
        f"      STORAGE_PROVIDER = {snowflake_text(_provider(destination.region))}",
        f"      STORAGE_BASE_URL = {snowflake_text(base.rstrip('/') + '/')}",
        f"      STORAGE_AWS_ROLE_ARN = {snowflake_text(READER_ROLE)}",
        f"      STORAGE_AWS_EXTERNAL_ID = {snowflake_text(VOLUME_EXTERNAL_ID)}",
        *_encryption(destination),
    ]
    inner = "\n".join(lines)
    placed = destination.iceberg.catalog.type in ("GLUE", "NESSIE")
    elsewhere = (
        ""
        if placed
        else "\nThe catalog decides where its tables lie: if that is elsewhere in the bucket, "
        "write that place as STORAGE_BASE_URL."
    )
    return Snippet(
        "an external volume",
        f"CREATE EXTERNAL VOLUME IF NOT EXISTS {volume}\n"
        f"  STORAGE_LOCATIONS = (\n    (\n{inner}\n    )\n  )\n  ALLOW_WRITES = FALSE;",
        f"Replace {VOLUME_EXTERNAL_ID} by a secret of your choice, and {READER_ROLE} by a role "
        "that reads: `lakeload policy --read-only` writes its policies. The volume and "
        f"Snowflake's account should be in `{destination.region}`, as the bucket is." + elsewhere,
    )


def _volume_principal(destination: DestinationSpec, volume: str) -> tuple[Snippet, ...]:
    made = Snippet(
        "who reads the bucket",
        f"DESC EXTERNAL VOLUME {volume};",
        "STORAGE_AWS_IAM_USER_ARN and STORAGE_AWS_EXTERNAL_ID in its answer name a principal of "
        "Snowflake's compute. The trust policy of the role that reads has to name it:",
        commands=(_trust(destination, _VOLUME_PRINCIPAL),),
    )
    if destination.iceberg.catalog.type != "SNOWFLAKE_OPEN_CATALOG":
        return (made,)
    writer = Snippet(
        "who writes the catalog's metadata",
        "",
        "Open Catalog itself is another principal than Snowflake's compute, and writes table "
        "metadata to the bucket. The details of the catalog, in Open Catalog, show its IAM user "
        "ARN, its external id and its role; the trust policy of that role has to name it, beside "
        "whoever else assumes the same role:",
        commands=(_trust(destination, _OPEN_CATALOG_PRINCIPAL),),
    )
    return made, writer


def _catalog_principal(destination: DestinationSpec, integration: str) -> tuple[Snippet, ...]:
    """Return how to trust whoever asks the catalog, where AWS decides about that."""
    catalog = destination.iceberg.catalog
    if catalog.type != "GLUE" and catalog.sigv4 is None:
        return ()
    return (
        Snippet(
            "who asks the catalog",
            f"DESC CATALOG INTEGRATION {integration};",
            "API_AWS_IAM_USER_ARN and API_AWS_EXTERNAL_ID in its answer name the principal that "
            "asks the catalog. A role has one trust policy, so name both principals in it:",
            commands=(_trust(destination, _VOLUME_PRINCIPAL, _CATALOG_PRINCIPAL),),
        ),
    )


def _trust(destination: DestinationSpec, *principals: tuple[str, str]) -> str:
    """Return the command that writes the trust policy for ARNs and the variables that hold their
    external ids; of a destination without a role, the policy itself."""
    if needs_principal(destination, PolicyOptions()):
        options = [f"--principal '<{arn}>,external-id=env:{name}'" for arn, name in principals]
        return " \\\n  ".join(["lakeload policy DESTINATION --only trust", *options])
    trusted = [Principal(f"<{arn}>", f"<{name}>") for arn, name in principals]
    return json.dumps(trust_policy(trusted).as_json(), indent=2)


def _encryption(destination: DestinationSpec) -> list[str]:
    encryption = destination.encryption
    if encryption.type == "SSE_S3":
        return ["      ENCRYPTION = (TYPE = 'AWS_SSE_S3')"]
    if encryption.type != "SSE_KMS":
        return []
    # Snowflake takes the id of a key; it reads without one as well.
    named = encryption.kms_key_id and "alias/" not in encryption.kms_key_id
    key = f" KMS_KEY_ID = {snowflake_text(encryption.kms_key_id or '')}" if named else ""
    return [f"      ENCRYPTION = (TYPE = 'AWS_SSE_KMS'{key})"]


def _provider(region: str) -> str:
    return "S3GOV" if region.startswith("us-gov-") else "S3"


def _volume_name(destination: DestinationSpec) -> str:
    return f"lakeload_{words(destination.bucket)}_volume"


def _integration_name(destination: DestinationSpec) -> str:
    return f"lakeload_{words(destination.bucket)}_catalog"

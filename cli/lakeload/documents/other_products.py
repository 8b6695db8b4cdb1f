"""Names that settings have in other products, and where each is here (docs/migrating.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Literal

from lakeload.config.document import Branch, Items, Tree
from lakeload.config.secret_names import shown

PAGE = "docs/migrating.md"
_NAMED = 3
"""Settings of a pasted document that are named."""

_SETTINGS = {
    "s3_bucket_name": "destination.bucket",
    "bucket_name": "destination.bucket",
    "s3_bucket": "destination.bucket",
    "s3_bucket_region": "destination.region",
    "bucket_region": "destination.region",
    "aws_region": "destination.region",
    "s3_path_prefix": "destination.prefix",
    "s3_prefix": "destination.prefix",
    "bucket_path": "destination.prefix",
    "s3_bucket_path": "destination.prefix",
    "s3_endpoint": "destination.endpoint_url",
    "custom_s3_endpoint": "destination.endpoint_url",
    "iam_role_arn": "destination.credentials.role_arn",
    "external_id": "destination.credentials.external_id",
    "aws_access_key_id": "destination.credentials.access_key_id",
    "aws_secret_access_key": "destination.credentials.secret_access_key",
    "aws_session_token": "destination.credentials.session_token",
    "iceberg_catalog": "destination.iceberg.catalog.type",
    "catalog_type": "destination.iceberg.catalog.type",
    "catalog_endpoint": "destination.iceberg.catalog.uri",
    "catalog_uri": "destination.iceberg.catalog.uri",
    "server_uri": "destination.iceberg.catalog.uri",
    "access_token": "destination.iceberg.catalog.token",
    "oauth_server_uri": "destination.iceberg.catalog.oauth2_server_uri",
    "main_branch_name": "destination.iceberg.branch",
    "warehouse_location": "destination.iceberg.warehouse_location",
    "update_aws_glue_catalog": "destination.parquet.update_glue_catalog",
    "sync_schema_with_aws_glue_catalog": "destination.parquet.update_glue_catalog",
    "partition_strategy": "destination.parquet.partition_strategy",
    "file_name_pattern": "destination.parquet.file_name_pattern",
    "upload_parallelism": "destination.parquet.upload_parallelism",
    "database_name": "pipeline.namespace",
    "namespace": "pipeline.namespace",
    "destination_table_handling": "pipeline.table_handling",
    "sync_mode": "pipeline.tables[].mode",
    "destination_sync_mode": "pipeline.tables[].mode",
    "delta_updates": "pipeline.tables[].mode",
    "unique_key": "pipeline.tables[].primary_key",
    "cursor_field": "pipeline.tables[].cursor",
}
"""By their names in lower case, with `_` for what is no letter or digit."""

_WITHOUT = {
    "upload_interval": "a scheduler runs `lakeload sync`: remove the line",
    "flush_batch_size": "there are no batches, a job is one commit: remove the line",
    "normalize_column_names": "names are always normalized: remove the line",
}
"""Those that nothing here stands for."""

_VALUES = {
    ("Catalog", "type"): {
        "polaris": "a Polaris catalog is `REST`, and Snowflake's is `SNOWFLAKE_OPEN_CATALOG`",
        "iceberg_rest_server": "write `REST`",
        "iceberg_rest": "write `REST`",
        "rest_catalog": "write `REST`",
        "aws_glue": "write `GLUE`",
        "open_catalog": "write `SNOWFLAKE_OPEN_CATALOG`",
    },
    ("Table", "mode"): dict.fromkeys(
        (
            "append_dedup",
            "append_deduped",
            "incremental_append_deduped",
            "incremental_deduped_history",
            "overwrite_dedup",
            "overwrite_deduped",
            "full_refresh_overwrite_deduped",
            "merge",
            "dedup",
        ),
        "write `UPSERT`: of several versions of a row one is kept",
    )
    | {
        "full_refresh_append": "write `APPEND`",
        "incremental_append": "write `APPEND`, and `incremental: true` in `source`",
        "full_refresh_overwrite": "write `OVERWRITE`",
        "replace": "write `OVERWRITE`",
    },
}


def our_setting(name: str, document: Literal["destination", "pipeline"]) -> str | None:
    """Say where another product's setting is here, None for a name that none of them has.

    `document` is the kind of the file in which it was found.
    """
    plain = _plain(name)
    if without := _WITHOUT.get(plain):
        return without
    if (setting := _SETTINGS.get(plain)) is None:
        return None
    home, _, path = setting.partition(".")
    where = f"`{path}`" if home == document else f"`{path}` of the {home}"
    if plain == "delta_updates":
        return f"without delta updates it is {where}: `UPSERT`; with them `APPEND`, the default"
    return f"here it is {where} ({PAGE})"


def our_value(model: str, field: str, value: str) -> str | None:
    """Say what to write for another product's value; None where it is no such value."""
    return _VALUES.get((model, field), {}).get(_plain(value))


def pasted(tree: Tree) -> str | None:
    """Say where the first settings of another product's document are here; None for any other."""
    found = dict(islice(_settings(tree), _NAMED))
    if not found:
        return None
    named = ", ".join(f"`{shown(name)}` is `{setting}`" for name, setting in found.items())
    return f"{PAGE} has each of its settings: {named}; `lakeload init` writes both files"


def _settings(tree: Tree) -> Iterator[tuple[str, str]]:
    if isinstance(tree, Items):
        for item in tree.items:
            yield from _settings(item)
    if isinstance(tree, Branch):
        for name, entry in tree.entries.items():
            if setting := _SETTINGS.get(_plain(name)):
                yield name, setting
            yield from _settings(entry.value)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")

"""Settings and documents of other products: what is said leads to the right setting here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lakeload.documents.destination import Destination, Parquet
from lakeload.documents.explain import literals
from lakeload.documents.iceberg import Catalog
from lakeload.documents.other_products import our_setting, our_value, plain, products
from lakeload.documents.pipeline import Table
from tests.unit.documents.documents import DESTINATION, problems_of
from tests.unit.documents.test_migrating import SETTINGS, known, section

ICEBERG = f"{DESTINATION}table_format: ICEBERG\n"
REST = f"{ICEBERG}iceberg:\n  catalog:\n    type: REST\n    uri: https://c.example.com\n"
PIPELINE = """\
version: 1
name: shop
destination:
  version: 1
  bucket: lake
  region: us-east-1
  table_format: ICEBERG
  glue_database_prefix: x
source: {type: FILES, format: CSV}
tables:
  - table: orders
    path: orders.csv
"""


def hint_for(text: str, message: str, folder: Path) -> str:
    """Return the hint of the problem with this message."""
    found = {problem.message: problem.hint or "" for problem in problems_of(folder, text)}
    assert message in found, found
    return found[message]


@pytest.mark.parametrize(
    ("text", "key", "setting"),
    [
        *(
            (DESTINATION + f"{key}: x\n", key, setting)
            for key, setting in {
                "s3_bucket_name": "bucket",
                "s3_bucket_region": "region",
                "s3_path_prefix": "prefix",
                "iam_role_arn": "credentials.role_arn",
                "custom_s3_endpoint": "endpoint_url",
                "s3_endpoint": "endpoint_url",
                "aws_access_key_id": "credentials.access_key_id",
                "aws_secret_access_key": "credentials.secret_access_key",
                "update_aws_glue_catalog": "parquet.update_glue_catalog",
                "sync_schema_with_aws_glue_catalog": "parquet.update_glue_catalog",
                "main_branch_name": "iceberg.branch",
                "catalog_type": "iceberg.catalog.type",
                "iceberg_catalog": "iceberg.catalog.type",
                "catalog_endpoint": "iceberg.catalog.uri",
            }.items()
        ),
        (DESTINATION + '"S3 Bucket Name": x\n', "S3 Bucket Name", "bucket"),
        (REST + "    server_uri: https://x.example.com\n", "server_uri", "iceberg.catalog.uri"),
        (REST + "    access_token: x\n", "access_token", "iceberg.catalog.token"),
        (PIPELINE + "    unique_key: [id]\n", "unique_key", "tables[].primary_key"),
        (PIPELINE + "    cursor_field: id\n", "cursor_field", "tables[].cursor"),
        (PIPELINE + "    sync_mode: x\n", "sync_mode", "tables[].mode"),
        (PIPELINE + "destination_sync_mode: x\n", "destination_sync_mode", "tables[].mode"),
        (
            PIPELINE + "destination_table_handling: x\n",
            "destination_table_handling",
            "table_handling",
        ),
    ],
)
def test_setting_of_another_product_gets_the_lakeload_name(
    text: str, key: str, setting: str, tmp_path: Path
) -> None:
    hint = hint_for(text, f"unknown key `{key}`", tmp_path)
    assert hint == f"here it is `{setting}` (docs/migrating.md)"


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        (DESTINATION + "namespace: x\n", "namespace", "`namespace` of the pipeline"),
        (REST + "    database_name: x\n", "database_name", "`namespace` of the pipeline"),
        (DESTINATION + "upload_interval: PT5M\n", "upload_interval", "interval` of the pipeline"),
        (DESTINATION + "delta_updates: true\n", "delta_updates", "of the pipeline: `UPSERT`"),
        (PIPELINE + "    delta_updates: true\n", "delta_updates", "`tables[].mode`: `UPSERT`"),
        (DESTINATION + "normalize_column_names: true\n", "normalize_column_names", "remove"),
        (PIPELINE.replace("  bucket: lake\n", "  bucket: lake\n  s3_endpoint: x\n"),
         "s3_endpoint", "here it is `endpoint_url`"),
        (DESTINATION + "role_arn: x\n", "role_arn", "it belongs under `credentials`"),
    ],
)  # fmt: skip
def test_setting_of_the_other_file_or_without_equivalent_is_reported(
    text: str, key: str, words: str, tmp_path: Path
) -> None:
    assert words in hint_for(text, f"unknown key `{key}`", tmp_path)


@pytest.mark.parametrize(
    ("mode", "ours"),
    [
        ("append_dedup", "UPSERT"),
        ("APPEND_DEDUP", "UPSERT"),
        ("Incremental - Append + Deduped", "UPSERT"),
        ("Full Refresh - Overwrite + Deduped", "UPSERT"),
        ("overwrite_dedup", "UPSERT"),
        ("MERGE", "UPSERT"),
        ("full_refresh_overwrite", "OVERWRITE"),
        ("Full Refresh - Append", "APPEND"),
    ],
)
def test_mode_of_another_product_never_suggests_a_mode_that_duplicates_rows(
    mode: str, ours: str, tmp_path: Path
) -> None:
    hint = hint_for(f"{PIPELINE}    mode: {mode}\n", f"`mode` cannot be `{mode}`", tmp_path)
    assert hint.startswith(f"write `{ours}`")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("Iceberg REST Server", "write `REST`"),
        ("AWS Glue", "write `GLUE`"),
        ("POLARIS", "SNOWFLAKE_OPEN_CATALOG"),
    ],
)
def test_catalog_of_another_product_maps_to_a_catalog(
    kind: str, words: str, tmp_path: Path
) -> None:
    text = f"{ICEBERG}iceberg: {{catalog: {{type: {kind}}}}}\n"
    assert words in hint_for(text, f"`type` cannot be `{kind}`", tmp_path)


@pytest.mark.parametrize(("value", "ours"), [("Disabled", "false"), ("Enabled", "true")])
def test_switch_of_another_product_maps_to_a_boolean(value: str, ours: str, tmp_path: Path) -> None:
    text = f"{DESTINATION}parquet: {{update_glue_catalog: {value}}}\n"
    message = f"`update_glue_catalog` must be true or false, not `{value}`"
    assert hint_for(text, message, tmp_path) == f"write `{ours}`"


SUPAFLOW = """\
S3 Bucket Name: my-data-lake
Bucket Region: us-east-1
IAM Role ARN: arn:aws:iam::123456789012:role/SupaflowS3Role
External ID: 3f0c
Table Format: ICEBERG
"""
AIRBYTE = """\
{"s3_bucket_name": "lake", "s3_bucket_region": "us-east-1", "access_key_id": "x",
 "warehouse_location": "s3://lake/x", "main_branch_name": "main",
 "catalog_type": {"catalog_type": "NESSIE", "server_uri": "http://x", "namespace": "a"}}
"""
ESTUARY = """\
materializations:
  acme/lake:
    endpoint:
      connector:
        image: ghcr.io/estuary/materialize-s3-iceberg:v1
        config:
          aws_access_key_id: x
          aws_secret_access_key: y
          bucket: lake
          region: us-east-2
          catalog: {catalog_type: Iceberg REST Server, uri: https://x}
"""


AIRBYTE_API = f"""\
{{"destinationId": "18dccc91", "name": "lake", "destinationType": "s3-data-lake",
 "workspaceId": "744cc0ed", "configuration": {AIRBYTE}}}
"""
AIRBYTE_CONNECTION = """\
{"connectionId": "9924bcd0", "name": "shop", "sourceId": "95e66a59", "prefix": "air_",
 "configurations": {"streams": [{"name": "orders", "syncMode": "incremental_append",
                                 "cursorField": ["at"], "primaryKey": [["id"]]}]}}
"""
ESTUARY_CONFIG = """\
aws_access_key_id: x
aws_secret_access_key: y
bucket: lake
prefix: team
region: us-east-2
namespace: analytics
upload_interval: PT5M
catalog: {catalog_type: Iceberg REST Server, uri: https://x}
"""


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (AIRBYTE_API, "`s3_bucket_name` is `destination.bucket`"),
        (AIRBYTE_CONNECTION, "`syncMode` is `pipeline.tables[].mode`"),
        (ESTUARY_CONFIG, "`aws_access_key_id` is `destination.credentials.access_key_id`"),
        (SUPAFLOW, "`S3 Bucket Name` is `destination.bucket`"),
        (AIRBYTE, "`s3_bucket_region` is `destination.region`"),
        (ESTUARY, "`aws_access_key_id` is `destination.credentials.access_key_id`"),
    ],
)
def test_a_pasted_document_names_the_page_and_its_first_settings(
    text: str, named: str, tmp_path: Path
) -> None:
    hint = hint_for(text, "these are settings of another product", tmp_path)
    assert hint.startswith("`lakeload import FILE` converts it (docs/migrating.md): ")
    assert named in hint


def test_unknown_file_lists_the_expected_keys(tmp_path: Path) -> None:
    hint = hint_for("hello: 1\n", "this is neither a destination nor a pipeline", tmp_path)
    assert "a destination has `bucket`" in hint


@pytest.mark.parametrize("product", SETTINGS)
def test_the_page_and_the_hints_agree(product: str, tmp_path: Path) -> None:
    checked = 0
    for line in section(product).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 4 or "," in cells[0] or "(binding)" in cells[0]:
            continue
        label = re.sub(r"^\w+: |^/(?:catalog/)?| \(.*\)$", "", cells[0].strip("`"))
        found = problems_of(tmp_path, f'{DESTINATION}"{label}": x\n')
        hints = [problem.hint or "" for problem in found if problem.code == "unknown-key"]
        said = next((hint for hint in hints if hint.startswith("here it is")), "")
        if here := re.match(r"here it is `([^`]+)`(?: of the (\w+))?", said):
            home = here[2] or "destination"
            assert f"`{home}.{here[1]}`" in cells[1], (label, said)
            checked += 1
    assert checked >= 4


_NO_SETTING = {
    "Test & Save",
    "Full Refresh - Append",
    "Full Refresh - Overwrite",
    "Full Refresh - Overwrite + Deduped",
    "Incremental - Append",
    "Incremental - Append + Deduped",
}
"""Labels of the page that are buttons or values."""


@pytest.mark.parametrize(
    "label", sorted({label for labels in SETTINGS.values() for label in labels} - _NO_SETTING)
)
def test_every_setting_of_a_product_has_a_hint_in_either_document(label: str) -> None:
    name = label.rpartition(": ")[2].rpartition("/")[2]
    # `table` is a setting of lakeload, too, and means something else in most places.
    if plain(name) != "table":
        assert our_setting(name, "destination")
        assert our_setting(name, "pipeline")


def test_every_mapped_setting_exists() -> None:
    names = known("destination") | known("pipeline")
    for product in products().values():
        for setting in product.settings.values():
            assert bool(setting.here) != bool(setting.without)
            assert setting.here in names or setting.without
        for setting in product.tables.values():
            assert f"pipeline.tables[].{setting.here}" in names or setting.without
        assert {f"destination.{path}" for path in product.defaults} <= names


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("Catalog.type", ["REST", "GLUE", "NESSIE", "POLARIS", "AWS Glue", "Iceberg REST Server",
                          "SNOWFLAKE_OPEN_CATALOG", "Snowflake Open Catalog"]),
        ("Table.mode", ["append", "overwrite", "append_dedup", "overwrite_dedup", "full_refresh",
                        "incremental", "full_refresh_append", "full_refresh_overwrite",
                        "full_refresh_overwrite_deduped", "incremental_append",
                        "incremental_deduped_history"]),
        ("Destination.table_format", ["PARQUET", "ICEBERG", "Apache Iceberg"]),
        ("Parquet.partition_strategy", ["NONE", "DAY", "HOUR", "SYNC_ID"]),
    ],
)  # fmt: skip
def test_every_value_of_a_product_maps_to_a_value(field: str, values: list[str]) -> None:
    owner, name = field.split(".")
    models = {model.__name__: model for model in (Catalog, Table, Destination, Parquet)}
    allowed = literals(models[owner].model_fields[name].annotation)
    for value in values:
        found = our_value(owner, name, value)
        ours = found.here if found else value.upper().replace(" ", "_")
        assert ours in allowed, value

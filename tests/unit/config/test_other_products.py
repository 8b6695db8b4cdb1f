"""Settings and documents of other products: what is said leads to the right setting here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.config.documents import DESTINATION, problems_of
from tests.unit.config.test_migrating import SETTINGS, section

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
def test_a_setting_of_another_product_is_told_where_it_is_here(
    text: str, key: str, setting: str, tmp_path: Path
) -> None:
    hint = hint_for(text, f"unknown key `{key}`", tmp_path)
    assert hint == f"here it is `{setting}` (docs/migrating.md)"


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        (DESTINATION + "namespace: x\n", "namespace", "`namespace` of the pipeline"),
        (REST + "    database_name: x\n", "database_name", "`namespace` of the pipeline"),
        (DESTINATION + "upload_interval: PT5M\n", "upload_interval", "a scheduler runs"),
        (DESTINATION + "delta_updates: true\n", "delta_updates", "of the pipeline: `UPSERT`"),
        (PIPELINE + "    delta_updates: true\n", "delta_updates", "`tables[].mode`: `UPSERT`"),
        (DESTINATION + "normalize_column_names: true\n", "normalize_column_names", "remove"),
        (PIPELINE.replace("  bucket: lake\n", "  bucket: lake\n  s3_endpoint: x\n"),
         "s3_endpoint", "here it is `endpoint_url`"),
        (DESTINATION + "role_arn: x\n", "role_arn", "it belongs under `credentials`"),
    ],
)  # fmt: skip
def test_a_setting_that_is_another_documents_or_none_is_told_so(
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
def test_a_mode_of_another_product_is_never_met_with_one_that_doubles_rows(
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
def test_a_catalog_of_another_product_is_one_of_ours(kind: str, words: str, tmp_path: Path) -> None:
    text = f"{ICEBERG}iceberg: {{catalog: {{type: {kind}}}}}\n"
    assert words in hint_for(text, f"`type` cannot be `{kind}`", tmp_path)


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


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (SUPAFLOW, "`S3 Bucket Name` is `destination.bucket`"),
        (AIRBYTE, "`s3_bucket_region` is `destination.region`"),
        (ESTUARY, "`aws_access_key_id` is `destination.credentials.access_key_id`"),
    ],
)
def test_a_pasted_document_names_the_page_and_its_first_settings(
    text: str, named: str, tmp_path: Path
) -> None:
    hint = hint_for(text, "these are settings of another product", tmp_path)
    assert hint.startswith("docs/migrating.md has each of its settings: ")
    assert named in hint


def test_a_document_of_no_product_is_told_what_ours_have(tmp_path: Path) -> None:
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

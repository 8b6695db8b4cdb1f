"""The two documents of the demo, and the environment its commands run in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from lakeload.demo.aws import SeededLake
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec, EndpointsSpec

EXTERNAL_ID_VARIABLE = "LAKELOAD_EXTERNAL_ID"
DATABASE_PREFIX = "demo"
"""The first part of the names of the Iceberg demo's databases in Glue."""


def destination_document(lake: SeededLake, endpoint: str) -> str:
    """Return destination.yml: what a user would write, and the endpoints of the embedded AWS."""
    return f"{_plain_destination(lake, endpoint)}addressing_style: PATH\n"


def _plain_destination(lake: SeededLake, endpoint: str) -> str:
    return f"""\
version: 1
bucket: {lake.bucket}
region: {lake.region}
prefix: {lake.prefix}
credentials:
  role_arn: {lake.role_arn}
  external_id: {{env: {EXTERNAL_ID_VARIABLE}}}
endpoints:                # of the embedded AWS; the real one needs none
  s3: {endpoint}
  sts: {endpoint}
"""


def iceberg_destination_document(lake: SeededLake, endpoint: str) -> str:
    """Return destination.yml of Iceberg tables in Glue."""
    return f"""\
{_plain_destination(lake, endpoint)}\
  glue: {endpoint}
addressing_style: PATH
table_format: ICEBERG     # and with it the catalog is Glue
glue_database_prefix: {DATABASE_PREFIX}
"""


def destination_spec(lake: SeededLake, endpoint: str) -> DestinationSpec:
    """Return what destination.yml says, for the demo's own look at the lake."""
    external_id = SecretReference("env", EXTERNAL_ID_VARIABLE)
    return DestinationSpec(
        bucket=lake.bucket,
        region=lake.region,
        prefix=lake.prefix,
        credentials=CredentialsSpec(role_arn=lake.role_arn, external_id=external_id),
        endpoints=EndpointsSpec(s3=endpoint, sts=endpoint),
        addressing_style="PATH",
    )


def iceberg_destination_spec(lake: SeededLake, endpoint: str) -> DestinationSpec:
    """Return what destination.yml of Iceberg tables says."""
    return replace(
        destination_spec(lake, endpoint),
        endpoints=EndpointsSpec(s3=endpoint, sts=endpoint, glue=endpoint),
        table_format="ICEBERG",
        glue_database_prefix=DATABASE_PREFIX,
    )


def pipeline_document() -> str:
    """Return pipeline.yml: three tables of three formats."""
    return """\
version: 1
name: shop
destination: destination.yml
namespace: shop
source:
  type: FILES
  format: CSV
  options: {header: true}
tables:
  - table: orders
    path: export/orders.csv
    columns:
      types: {"Prix €": "decimal(12,2)", "Bestellt am": timestamp}
  - table: visits
    path: export/visits.ndjson
    format: NDJSON
  - table: payments
    path: export/payments.parquet
    format: PARQUET
"""


def iceberg_pipeline_document() -> str:
    """Return pipeline.yml: one table that changes, and one that grows."""
    return """\
version: 1
name: shop
destination: destination.yml
namespace: shop
source:
  type: FILES
  format: CSV
  options: {header: true}
tables:
  - table: orders
    path: export/orders.csv
    mode: UPSERT
    primary_key: [id]
    deleted_when: storniert   # cancelled
    deletes: DELETE
    columns:
      types:
        "Prix €": decimal(12,2)
        Bestellt am: timestamp
        storniert: boolean
  - table: payments
    path: export/payments.parquet
    format: PARQUET
    partition_by: [day(value date)]
"""


def demo_environment(
    outer: Mapping[str, str], lake: SeededLake, folder: Path
) -> dict[str, str | None]:
    """Return what to set in the environment, and what to unset (None), for the demo's commands.

    The user's own AWS settings must not reach the embedded AWS, nor its keys the real one.
    """
    nowhere = str(folder / "no-aws-settings")
    changes: dict[str, str | None] = {
        name: None for name in outer if name.startswith(("AWS_", "LAKELOAD_"))
    }
    changes |= {
        "AWS_ACCESS_KEY_ID": lake.base_key.access_key_id,
        "AWS_SECRET_ACCESS_KEY": lake.base_key.secret_access_key,
        "AWS_CONFIG_FILE": nowhere,
        "AWS_SHARED_CREDENTIALS_FILE": nowhere,
        "AWS_EC2_METADATA_DISABLED": "true",
        EXTERNAL_ID_VARIABLE: lake.external_id,
        "LAKELOAD_RUN_DIR": str(folder / "runs"),
    }
    if cache := outer.get("LAKELOAD_CACHE_DIR"):
        changes["LAKELOAD_CACHE_DIR"] = cache
    for name in ("NO_PROXY", "no_proxy"):
        given = outer.get(name)
        changes[name] = f"{given},127.0.0.1" if given else "127.0.0.1"
    return changes

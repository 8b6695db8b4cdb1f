"""The two documents of the demo, and the environment its commands run in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lakeload.demo.aws import SeededLake

EXTERNAL_ID_VARIABLE = "LAKELOAD_EXTERNAL_ID"
DATABASE_PREFIX = "demo"
"""The first part of the names of the Iceberg demo's databases in Glue."""


_THREE_TABLES = """\
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
"""Of three formats."""
_CHANGING_TABLES = """\
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
"""One table that changes, and one that grows."""


def parquet_documents(lake: SeededLake, endpoint: str) -> dict[str, str]:
    """Return the documents that a user would write, and the endpoints of the embedded AWS."""
    destination = f"{_destination(lake, endpoint)}addressing_style: PATH\n"
    return {"destination.yml": destination, "pipeline.yml": _THREE_TABLES}


def iceberg_documents(lake: SeededLake, endpoint: str) -> dict[str, str]:
    """Return the documents of Iceberg tables in Glue."""
    destination = f"""\
{_destination(lake, endpoint)}\
  glue: {endpoint}
addressing_style: PATH
table_format: ICEBERG     # and with it the catalog is Glue
glue_database_prefix: {DATABASE_PREFIX}
"""
    return {"destination.yml": destination, "pipeline.yml": _CHANGING_TABLES}


def _destination(lake: SeededLake, endpoint: str) -> str:
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

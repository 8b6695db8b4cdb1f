"""What tests of `lakeload init` choose, and how they run it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

from typer.testing import CliRunner, Result

from lakeload.app import app
from lakeload.init.documents import Answers, documents
from lakeload.init.interview import interview

ROLE = "arn:aws:iam::123456789012:role/lake"
REQUIRED = {"bucket": "my-data-lake", "region": "us-east-1", "path": "data/orders/*.csv"}
FLAGS = [f"--{name}={value}" for name, value in REQUIRED.items()]
CATALOGS: dict[str, dict[str, str]] = {
    "PARQUET": {},
    "PARQUET in Glue": {"glue": "YES"},
    "PARQUET in Glue without prefix": {"glue": "YES", "glue_prefix": ""},
    "GLUE": {"table_format": "ICEBERG"},
    "GLUE by key": {"table_format": "ICEBERG", "mode": "upsert", "primary_key": "id, line no,"},
    "SNOWFLAKE_OPEN_CATALOG": {
        "table_format": "ICEBERG",
        "catalog": "SNOWFLAKE_OPEN_CATALOG",
        "catalog_uri": "https://org-lake.snowflakecomputing.com/polaris/api/catalog",
        "catalog_name": "production lake",
    },
    **{
        f"REST {auth}": {
            "table_format": "iceberg",
            "catalog": "rest",
            "catalog_uri": "https://catalog.example.com/api/catalog",
            "catalog_auth": auth,
            "warehouse": "w" if auth == "TOKEN" else "",
        }
        for auth in ("CREDENTIAL", "TOKEN", "SIGV4", "NONE")
    },
    **{
        f"NESSIE {auth}": {
            "table_format": "ICEBERG",
            "catalog": "NESSIE",
            "catalog_uri": "http://nessie:19120/iceberg",
            "catalog_auth": auth,
        }
        for auth in ("NONE", "TOKEN")
    },
}
IDENTITIES: dict[str, dict[str, str]] = {
    "default chain": {},
    "role": {"role_arn": ROLE},
    "role by a profile": {"role_arn": ROLE, "profile": "data platform"},
    "profile": {"profile": "base"},
    "keys": {"credentials": "keys", "endpoint_url": "https://objects.example.com"},
}
SOURCES = [
    {"path": f"{place}orders/*{ending}"}
    for place, ending in itertools.product(
        ("data/", "s3://raw-orders/2026/"),
        (".csv", ".json", ".ndjson.gz", ".parquet", ".orc", ".avro"),
    )
]


def write(folder: Path, choices: Mapping[str, str]) -> Answers:
    answers = interview({**REQUIRED, **choices}, {"name": "shop"}, None)
    for name, text in documents(answers).items():
        (folder / name).write_text(text, encoding="utf-8")
    return answers


def init(*flags: str) -> Result:
    return CliRunner().invoke(app, ["init", *flags])

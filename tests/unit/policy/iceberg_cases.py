"""Readers of Iceberg tables: destinations of each catalog, and what is asked for them.

`python -m tests.unit.policy.iceberg_cases` writes all answers of tests/cases/queries anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lakeload.policy.recipes import RecipeRequest
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CatalogSpec, EndpointsSpec, IcebergSpec, SigV4Spec
from tests.unit.policy import recipe_cases
from tests.unit.policy.recipe_cases import (
    ANSWERS,
    ICEBERG,
    NOW,
    ONE,
    OPEN_CATALOG,
    ORDERS,
    RESERVED,
    REST,
    TABLES,
    VISITS,
    Case,
    answer,
    with_catalog,
)

UPSERTED = replace(ORDERS, mode="UPSERT", deleted_when="gone")
REPLACED = replace(VISITS, schema="Shop", mode="OVERWRITE", deleted_when="gone")
CHANGING = replace(ONE, tables=(UPSERTED, REPLACED))
SIGNED = replace(
    with_catalog(
        CatalogSpec(
            "REST",
            uri="https://glue.eu-west-1.amazonaws.com/iceberg",
            warehouse="123456789012",
            sigv4=SigV4Spec("glue", "eu-west-1"),
            access_delegation="NONE",
        )
    ),
    endpoints=EndpointsSpec(s3="http://minio:9000"),
)
NATIVE = replace(
    with_catalog(
        CatalogSpec(
            "NESSIE",
            uri="https://nessie.example.com/api/v1",
            api="NATIVE",
            ref="etl",
            token=SecretReference("aws_parameter", "/lake/nessie"),
        )
    ),
    addressing_style="VIRTUAL",
    endpoints=EndpointsSpec(s3="https://store.example.com"),
)
AUDITED = replace(NATIVE, iceberg=replace(NATIVE.iceberg, branch="audit"))
NOBODY = replace(
    ICEBERG,
    iceberg=IcebergSpec(
        CatalogSpec("REST", uri="https://catalog.example.com", access_delegation="NONE"),
        format_version=3,
    ),
)

ICEBERG_CASES: Mapping[str, Case] = {
    "athena-iceberg-changing.sql": Case(
        replace(ICEBERG, iceberg=IcebergSpec(format_version=3)), "athena", CHANGING, "athena"
    ),
    "duckdb-glue.sql": Case(ICEBERG, "duckdb", ONE, "duckdb"),
    "duckdb-open-catalog.sql": Case(with_catalog(OPEN_CATALOG), "duckdb", CHANGING, "duckdb"),
    "duckdb-rest.sql": Case(with_catalog(REST), "duckdb", RecipeRequest(NOW), "duckdb"),
    "duckdb-rest-signed.sql": Case(SIGNED, "duckdb", RecipeRequest(NOW), "duckdb"),
    "duckdb-rest-nobody.sql": Case(NOBODY, "duckdb", RecipeRequest(NOW), "duckdb"),
    "duckdb-nessie-native.sql": Case(NATIVE, "duckdb", ONE, "duckdb"),
    "spark-glue.txt": Case(ICEBERG, "spark", replace(ONE, tables=(RESERVED,)), "spark"),
    "spark-open-catalog.txt": Case(with_catalog(OPEN_CATALOG), "spark", CHANGING, "spark"),
    "spark-rest.conf": Case(with_catalog(REST), "spark", RecipeRequest(NOW), "spark"),
    "spark-rest-signed.conf": Case(SIGNED, "spark", RecipeRequest(NOW), "spark"),
    "spark-nessie-native.txt": Case(AUDITED, "spark", ONE, "spark"),
    "trino-glue.txt": Case(ICEBERG, "trino", replace(ONE, tables=(RESERVED,)), "trino"),
    "trino-open-catalog.txt": Case(with_catalog(OPEN_CATALOG), "trino", CHANGING, "trino"),
    "trino-rest.properties": Case(with_catalog(REST), "trino", RecipeRequest(NOW), "trino"),
    "trino-rest-signed.properties": Case(SIGNED, "trino", RecipeRequest(NOW), "trino"),
    "trino-nessie-native.txt": Case(AUDITED, "trino", ONE, "trino"),
    "pyiceberg-glue.py.txt": Case(ICEBERG, "pyiceberg", TABLES),
    "pyiceberg-open-catalog.py.txt": Case(with_catalog(OPEN_CATALOG), "pyiceberg", CHANGING),
    "pyiceberg-rest.py.txt": Case(with_catalog(REST), "pyiceberg", RecipeRequest(NOW)),
    "pyiceberg-rest-signed.py.txt": Case(SIGNED, "pyiceberg", RecipeRequest(NOW)),
    "pyiceberg-nessie-native.py.txt": Case(AUDITED, "pyiceberg", ONE),
    "snowflake-glue-changing.sql": Case(ICEBERG, "snowflake", CHANGING, "snowflake"),
}

CASES: Mapping[str, Case] = {**recipe_cases.CASES, **ICEBERG_CASES}

if __name__ == "__main__":
    for file_name, case in CASES.items():
        (ANSWERS / file_name).write_text(answer(case), encoding="utf-8")

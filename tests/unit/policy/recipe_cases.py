"""Destinations and what is asked for them; tests/cases/queries holds the answers.

`python -m tests.unit.policy.iceberg_cases` writes the answers anew; read the difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from lakeload.policy.recipes import Engine, RecipeRequest, recipes
from lakeload.policy.templates import Snippet
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    ColumnsSpec,
    CredentialsSpec,
    DestinationSpec,
    EncryptionSpec,
    EndpointsSpec,
    FilesInput,
    IcebergSpec,
    ParquetSpec,
    SigV4Spec,
    TableSpec,
)

ANSWERS = Path(__file__).parents[2] / "cases" / "queries"
NOW = datetime(2026, 11, 21, 14, 30, tzinfo=UTC)

_INPUT = FilesInput("CSV", ("/data/orders.csv",), {})
ORDERS = TableSpec("orders", "supaflow_shop", "orders", _INPUT, "", primary_key=("id",))
VISITS = TableSpec("visits", "supaflow_shop", "visits", _INPUT, "")
_ROLE = CredentialsSpec(
    role_arn="arn:aws:iam::123456789012:role/lake",
    external_id=SecretReference("env", "LAKELOAD_EXTERNAL_ID"),
)
PLAIN = DestinationSpec("my-data-lake", "eu-central-1", "data/production", credentials=_ROLE)
HOURS = replace(PLAIN, parquet=ParquetSpec(update_glue_catalog=True))
JOBS = replace(
    PLAIN,
    parquet=ParquetSpec("SYNC_ID", update_glue_catalog=True, partition_projection=True),
)
ICEBERG = replace(PLAIN, table_format="ICEBERG")
OPEN_CATALOG = CatalogSpec(
    "SNOWFLAKE_OPEN_CATALOG",
    uri="https://org-account.snowflakecomputing.com/polaris/api/catalog",
    warehouse="lake",
    client_id=SecretReference("env", "OPEN_CATALOG_ID"),
    client_secret=SecretReference("aws_secret", "open-catalog"),
    scope="PRINCIPAL_ROLE:ALL",
)
REST = CatalogSpec(
    "REST",
    uri="https://catalog.example.com/iceberg",
    warehouse="ware'house",
    credential=SecretReference("file", "/run/secrets/rest"),
    oauth2_server_uri="https://login.example.com/token",
    headers={"X-Tenant": SecretReference("env", "TENANT")},
)


def with_catalog(catalog: CatalogSpec) -> DestinationSpec:
    """Return the Iceberg destination with another catalog."""
    return replace(ICEBERG, iceberg=IcebergSpec(catalog))


@dataclass(frozen=True)
class Case:
    """One answer. `dialect` is sqlglot's word for its SQL, '' where it is none."""

    destination: DestinationSpec
    engine: Engine
    asked: RecipeRequest
    dialect: str = ""

    @property
    def snippets(self) -> tuple[Snippet, ...]:
        """What is answered."""
        return recipes(self.destination, self.engine, self.asked)


TABLES = RecipeRequest(NOW, tables=(ORDERS, VISITS))
ONE = RecipeRequest(NOW, tables=(ORDERS,))
_TYPED = replace(
    ORDERS,
    schema="Shop",
    columns=ColumnsSpec(
        include=("id", "Größe", "tags"),
        rename={"id": "order id"},
        types={"id": "bigint", "Größe": "decimal(9,2)", "tags": "array<string>"},
    ),
)
RESERVED = replace(ORDERS, table="order", schema="select")

CASES: Mapping[str, Case] = {
    "athena-hour.sql": Case(HOURS, "athena", TABLES, "athena"),
    "athena-sync-id-projected.sql": Case(JOBS, "athena", ONE, "athena"),
    "athena-sync-id.sql": Case(
        replace(PLAIN, parquet=ParquetSpec("SYNC_ID", update_glue_catalog=True)),
        "athena",
        ONE,
        "athena",
    ),
    "athena-no-partitions.sql": Case(
        replace(PLAIN, parquet=ParquetSpec("NONE", update_glue_catalog=True)),
        "athena",
        replace(ONE, tables=(RESERVED,)),
        "athena",
    ),
    "athena-two-tracking-columns.sql": Case(
        HOURS, "athena", replace(ONE, tracking=("_supa_id", "_supa_synced")), "athena"
    ),
    "athena-without-glue.sql": Case(PLAIN, "athena", ONE, "athena"),
    "athena-without-glue-typed.sql": Case(
        replace(PLAIN, prefix="", parquet=ParquetSpec("SYNC_ID")),
        "athena",
        replace(ONE, tables=(_TYPED,), nested="JSON"),
        "athena",
    ),
    "athena-iceberg.sql": Case(ICEBERG, "athena", ONE, "athena"),
    "duckdb-hour.sql": Case(HOURS, "duckdb", ONE, "duckdb"),
    "duckdb-other-store.sql": Case(
        replace(
            PLAIN,
            endpoints=EndpointsSpec(s3="http://minio:9000"),
            parquet=ParquetSpec("SYNC_ID"),
        ),
        "duckdb",
        replace(ONE, tables=(replace(ORDERS, schema=""),)),
        "duckdb",
    ),
    "snowflake-open-catalog.sql": Case(with_catalog(OPEN_CATALOG), "snowflake", ONE, "snowflake"),
    "snowflake-glue.sql": Case(
        replace(ICEBERG, encryption=EncryptionSpec("SSE_KMS", "alias/lake")),
        "snowflake",
        replace(ONE, tables=(RESERVED,)),
        "snowflake",
    ),
    "snowflake-rest.sql": Case(with_catalog(REST), "snowflake", RecipeRequest(NOW), "snowflake"),
    "snowflake-rest-signed.sql": Case(
        replace(
            with_catalog(
                CatalogSpec(
                    "REST",
                    uri="https://x.execute-api.eu-central-1.amazonaws.com/prod",
                    sigv4=SigV4Spec("execute-api", "eu-west-1"),
                    access_delegation="NONE",
                )
            ),
            credentials=CredentialsSpec(),
        ),
        "snowflake",
        RecipeRequest(NOW),
        "snowflake",
    ),
    "snowflake-nessie.sql": Case(
        with_catalog(
            CatalogSpec(
                "NESSIE",
                uri="https://nessie.example.com/iceberg/main",
                api="REST",
                token=SecretReference("env", "NESSIE_TOKEN"),
            )
        ),
        "snowflake",
        ONE,
        "snowflake",
    ),
    "snowflake-other-store.sql": Case(
        replace(
            with_catalog(
                CatalogSpec(
                    "NESSIE", uri="https://n", api="REST", token=SecretReference("env", "T")
                )
            ),
            endpoints=EndpointsSpec(s3="https://store.example.com:9443"),
        ),
        "snowflake",
        RecipeRequest(NOW),
        "snowflake",
    ),
    "lake-formation.sh": Case(HOURS, "lake-formation", RecipeRequest(NOW)),
    "lake-formation-databases.sh": Case(HOURS, "lake-formation", replace(TABLES, reset=True)),
    "lake-formation-readers.sh": Case(
        ICEBERG,
        "lake-formation",
        replace(ONE, read_only=True, principals=("arn:aws:iam::123456789012:user/ana",)),
    ),
    "lake-formation.tf": Case(
        replace(HOURS, encryption=EncryptionSpec("SSE_KMS", "alias/lake")),
        "lake-formation",
        replace(ONE, form="terraform"),
    ),
    "lake-formation-create.tf": Case(HOURS, "lake-formation", RecipeRequest(NOW, form="terraform")),
    "lake-formation.json": Case(HOURS, "lake-formation", replace(ONE, form="json")),
    "lake-formation-readers.json": Case(
        replace(HOURS, credentials=CredentialsSpec()),
        "lake-formation",
        replace(ONE, read_only=True, form="json"),
    ),
}


def answer(case: Case) -> str:
    """Return the answer as a file holds it."""
    return "\n\n".join(snippet.commented for snippet in case.snippets) + "\n"

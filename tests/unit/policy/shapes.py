"""Destinations whose policies are written out in tests/cases/policy, and judged by many tests."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lakeload.policy.iam import PolicyOptions
from lakeload.policy.policy_set import Asked, PolicySet, compose
from lakeload.policy.principals import ExternalId, Principal
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    CredentialsSpec,
    DestinationSpec,
    EncryptionSpec,
    EndpointsSpec,
    FilesInput,
    IcebergSpec,
    JdbcInput,
    ParquetSpec,
    SigV4Spec,
    TableSpec,
)

ROLE = "arn:aws:iam::123456789012:role/SupaflowS3Role"
USER = Principal("arn:aws:iam::111122223333:user/loader", "<EXTERNAL_ID>")
EXTERNAL_ID = ExternalId("EXTERNAL_ID", SecretReference("file", "/run/secrets/external id"))


@dataclass(frozen=True)
class Shape:
    """A destination, the tables of a pipeline, and what is asked about them."""

    destination: DestinationSpec
    asked: Asked = field(default_factory=lambda: _asked(USER))
    tables: tuple[TableSpec, ...] = ()

    def compose(self, only: str | None = None) -> PolicySet:
        """Return the documents."""
        return compose(self.destination, self.tables, replace(self.asked, only=only))


def _role(arn: str = ROLE, **settings: object) -> CredentialsSpec:
    given: dict[str, object] = {"role_arn": arn, "external_id": EXTERNAL_ID.reference, **settings}
    return CredentialsSpec(**given)  # type: ignore[arg-type]


def _table(*paths: str, credentials: CredentialsSpec | None = None) -> TableSpec:
    read = FilesInput("CSV", paths, {}, credentials=credentials)
    return TableSpec("orders", "shop", "orders", read, fingerprint="")


def _database(host: str, **login: object) -> TableSpec:
    place = ("POSTGRESQL", host, 5432, "shop", "public", "orders")
    read = JdbcInput(*place, user="loader", **login)  # type: ignore[arg-type]
    return TableSpec("orders", "shop", "orders", read, fingerprint="")


def _iceberg(**catalog: object) -> DestinationSpec:
    return DestinationSpec(
        "my-data-lake",
        "eu-west-1",
        "lake",
        _role(),
        table_format="ICEBERG",
        glue_database_prefix="supaflow",
        iceberg=IcebergSpec(CatalogSpec(**catalog)),  # type: ignore[arg-type]
    )


def _asked(*principals: Principal, **options: object) -> Asked:
    chosen = PolicyOptions(**options)  # type: ignore[arg-type]
    held = EXTERNAL_ID.placeholder in [one.external_id for one in principals]
    return Asked(chosen, principals, (EXTERNAL_ID,) if held else ())


_PLAIN = DestinationSpec("my-data-lake", "us-east-1", "data-lake/production", _role())
_GLUE = replace(
    _PLAIN, parquet=ParquetSpec(update_glue_catalog=True), glue_database_prefix="supaflow"
)
_KEY = "arn:aws:kms:us-east-1:999988887777:key/0f3c7f5a-1111-2222-3333-444455556666"
_TOKEN = SecretReference("aws_secret", "lake/nessie-token")
_SNOWFLAKE = (
    Principal("arn:aws:iam::444455556666:user/open-catalog", "<OPEN_CATALOG_ID>"),
    Principal("arn:aws:iam::777788889999:user/compute", "<SNOWFLAKE_ID>"),
)

SHAPES = {
    "parquet": Shape(_PLAIN),
    "parquet-root-account": Shape(
        replace(_PLAIN, prefix="", credentials=CredentialsSpec(role_arn=ROLE)),
        _asked(Principal("arn:aws:iam::123456789012:root")),
    ),
    "parquet-glue": Shape(_GLUE),
    "parquet-glue-reset": Shape(_GLUE, _asked(USER, reset=True)),
    "parquet-glue-read-only": Shape(
        replace(_GLUE, encryption=EncryptionSpec("SSE_KMS", _KEY)), _asked(read_only=True)
    ),
    "parquet-projection-china": Shape(
        DestinationSpec(
            "my-data-lake",
            "cn-north-1",
            "lake",
            _role("arn:aws-cn:iam::123456789012:role/etl/loader", session_duration=7200),
            encryption=EncryptionSpec("SSE_KMS", "alias/lake"),
            parquet=ParquetSpec(update_glue_catalog=True, partition_projection=True),
        ),
        _asked(Principal("arn:aws-cn:iam::123456789012:role/etl/worker", "<EXTERNAL_ID>")),
    ),
    "parquet-key-of-another-account": Shape(
        replace(
            _PLAIN,
            encryption=EncryptionSpec("SSE_KMS", _KEY),
            credentials=_role(session_tags={"team": "finance"}),
        )
    ),
    "parquet-gov-without-role": Shape(
        DestinationSpec(
            "my-data-lake",
            "us-gov-west-1",
            "lake",
            CredentialsSpec(profile="loader"),
            encryption=EncryptionSpec("SSE_KMS", "0f3c7f5a-1111-2222-3333-444455556666"),
        ),
        _asked(Principal("arn:aws-us-gov:iam::123456789012:user/loader")),
    ),
    "parquet-compatible-store": Shape(
        DestinationSpec(
            "my-data-lake",
            "us-east-1",
            credentials=CredentialsSpec(access_key_id=SecretReference("env", "KEY")),
            endpoints=EndpointsSpec(s3="https://s3.example.com"),
        ),
        _asked(),
    ),
    "parquet-source-and-secrets": Shape(
        replace(
            _PLAIN,
            prefix="a$b/c",
            credentials=_role(external_id=SecretReference("aws_parameter", "/lake/external-id")),
        ),
        asked=_asked(USER, reset=True),
        tables=(
            _table("s3://raw/2026/*/*.csv", "s3://raw/2026/late/x.csv", "s3://raw/old/"),
            _table("s3://other/*.csv", "data/orders.csv"),
            _table("s3://foreign/x.csv", credentials=CredentialsSpec(profile="other")),
        ),
    ),
    "parquet-databases": Shape(
        replace(_PLAIN, credentials=_role(external_id=SecretReference("aws_secret", "id"))),
        tables=(
            _database("db.example.com", password=SecretReference("aws_secret", "shop/db")),
            _database("db.example.com", password=SecretReference("aws_secret", "shop/db")),
            _database("db2.example.com", password=SecretReference("aws_parameter", "/shop/db")),
            _database("shop.c9.eu-west-1.rds.amazonaws.com", iam_authentication=True),
            _database("shop.proxy-c9.us-east-1.rds.amazonaws.com", iam_authentication=True),
        ),
    ),
    "iceberg-glue-read-only": Shape(_iceberg(type="GLUE"), _asked(read_only=True)),
    "iceberg-glue-maintain": Shape(_iceberg(type="GLUE"), _asked(USER, maintain=True)),
    "iceberg-glue": Shape(_iceberg(type="GLUE", glue_id="222233334444")),
    "iceberg-glue-over-rest": Shape(
        replace(
            _iceberg(
                type="REST", uri="https://glue.eu-west-1.amazonaws.com/iceberg", sigv4=SigV4Spec()
            ),
            glue_database_prefix="",
        )
    ),
    "iceberg-rest-own-credentials": Shape(
        _iceberg(type="REST", uri="https://catalog", access_delegation="NONE")
    ),
    "iceberg-rest-vending": Shape(
        replace(_iceberg(type="REST", uri="https://catalog"), credentials=CredentialsSpec()),
        _asked(Principal("arn:aws:iam::444455556666:role/polaris", "<EXTERNAL_ID>")),
    ),
    "iceberg-nessie": Shape(_iceberg(type="NESSIE", uri="https://nessie", token=_TOKEN)),
    "iceberg-open-catalog": Shape(
        _iceberg(type="SNOWFLAKE_OPEN_CATALOG", uri="https://o.example", warehouse="lake"),
        Asked(
            principals=_SNOWFLAKE,
            external_ids=(
                ExternalId("OPEN_CATALOG_ID", SecretReference("env", "OPEN_CATALOG_ID")),
                ExternalId("SNOWFLAKE_ID", SecretReference("aws_secret", "snowflake")),
            ),
        ),
    ),
}

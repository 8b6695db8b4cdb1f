"""Destinations of every shape that needs a policy of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lakeload.demo.aws import ACCOUNT_ID
from lakeload.policy.iam import role_policies, source_policy
from lakeload.policy.model import PolicyDocument
from lakeload_jobs.contract.spec import (
    CredentialsSpec,
    DestinationSpec,
    EncryptionSpec,
    FilesInput,
    ParquetSpec,
    TableSpec,
)

GLUE = ParquetSpec(update_glue_catalog=True)
KEY = "1234abcd-12ab-34cd-56ef-1234567890ab"
SOURCE = "exports/day 1/*.csv"
"""Where the shape with a source in S3 reads, in the destination's bucket."""


@dataclass(frozen=True)
class Shape:
    """A destination but for its bucket and role. `source` reads from S3 with the same role."""

    prefix: str = "data-lake/test"
    changes: Mapping[str, Any] = field(default_factory=dict)
    source: bool = False
    loads: bool = True

    def destination(self, bucket: str, role_arn: str, **changes: Any) -> DestinationSpec:
        """Return the destination; `changes` come on top of those of the shape."""
        plain = DestinationSpec(
            bucket=bucket,
            region="us-east-1",
            prefix=self.prefix,
            credentials=CredentialsSpec(role_arn=role_arn),
        )
        return replace(plain, **{**self.changes, **changes})

    def policies(self, destination: DestinationSpec) -> tuple[PolicyDocument, ...]:
        """Return what lakeload says the role needs."""
        found = role_policies(destination)
        path = f"s3://{destination.bucket}/{SOURCE}"
        table = TableSpec("orders", "shop", "orders", FilesInput("CSV", (path,), {}), "")
        source = source_policy(destination, [table]) if self.source else None
        return (*found, *([source] if source else []))


SHAPES = {
    "no-prefix": Shape(prefix=""),
    "prefix": Shape(),
    "special-characters": Shape(prefix="Größe & Co/a+b (1)=$x/'y'"),
    "glue": Shape(changes={"parquet": GLUE, "glue_database_prefix": "supaflow"}),
    "glue-projection": Shape(
        changes={
            "parquet": replace(GLUE, partition_projection=True),
            "glue_database_prefix": "supaflow",
        }
    ),
    "glue-none-no-prefix": Shape(
        prefix="",
        changes={
            "parquet": replace(GLUE, partition_strategy="NONE"),
            "glue_database_prefix": "My Company",
        },
    ),
    "kms": Shape(changes={"encryption": EncryptionSpec("SSE_KMS", KEY)}),
    "kms-alias-glue": Shape(
        changes={
            "encryption": EncryptionSpec("SSE_KMS", "alias/lake"),
            "parquet": GLUE,
            "glue_database_prefix": "supaflow",
        }
    ),
    "s3-source": Shape(source=True),
    "iceberg-glue": Shape(
        changes={"table_format": "ICEBERG", "glue_database_prefix": "supaflow"}, loads=False
    ),
}

_ROLE = f"arn:aws:iam::{ACCOUNT_ID}:role/loader"


def example_policies(shape: Shape) -> tuple[PolicyDocument, ...]:
    """Return the policies of the shape for a bucket and a role of any name."""
    return shape.policies(shape.destination("lake-of-no-test", _ROLE))


def actions(policies: tuple[PolicyDocument, ...]) -> list[str]:
    """Return every action that is granted, each once, in order."""
    found = (a for p in policies for statement in p.statements for a in statement.actions)
    return list(dict.fromkeys(found))

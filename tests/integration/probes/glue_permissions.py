"""What the Glue probes ask for, action by action, and the policies that published guides give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lakeload.demo.aws import ACCOUNT_ID, loader_policy
from tests.servers.ministack import Lake

PREFIX = "supaflow"
CATALOG, DATABASE, TABLE = ("catalog", f"database/{PREFIX}*", f"table/{PREFIX}*/*")
FUNCTION = f"userDefinedFunction/{PREFIX}*/*"


@dataclass(frozen=True)
class Denial:
    """One action that a role lacks, the probe that says so, and the probes that depend on it."""

    action: str
    probe: str
    resources: tuple[str, ...] = (TABLE, DATABASE, CATALOG)
    warning: bool = False
    skips: tuple[str, ...] = ()


DENIALS = [
    Denial("GetDatabase", "glue-get-database", (DATABASE, CATALOG)),
    Denial("GetTable", "glue-get-table", skips=("glue-update-table",)),
    Denial("GetPartition", "glue-get-partition"),
    Denial("DeleteTable", "glue-delete-table", warning=True, skips=("glue-create-database",)),
    Denial(
        "DeleteDatabase",
        "glue-delete-database",
        (TABLE, FUNCTION, DATABASE, CATALOG),
        warning=True,
        skips=("glue-create-database",),
    ),
    Denial("CreateDatabase", "glue-create-database", (DATABASE, CATALOG)),
    Denial("CreateTable", "glue-create-table"),
    Denial("UpdateTable", "glue-update-table"),
    Denial("BatchCreatePartition", "glue-add-partitions"),
    Denial("BatchUpdatePartition", "glue-update-partitions", warning=True),
]
ALL_ACTIONS = tuple(denial.action for denial in DENIALS)
GLUE_PROBES = ["glue", *(denial.probe for denial in DENIALS)]

_TABLES = (
    *("GetDatabase", "GetDatabases", "CreateDatabase", "UpdateDatabase"),
    *("GetTable", "GetTables", "CreateTable", "UpdateTable"),
    *("GetPartition", "GetPartitions", "CreatePartition", "BatchCreatePartition"),
)
_RESET = ("DeleteTable", "BatchDeleteTable", "DeleteDatabase")
_CATALOG = ("GetCatalog", "GetCatalogs", "GetCatalogImportStatus")
_AIRBYTE = (
    *("TagResource", "UnTagResource", "BatchCreatePartition", "BatchDeletePartition"),
    *("BatchDeleteTable", "BatchGetPartition", "CreateDatabase", "CreateTable", "CreatePartition"),
    *("DeletePartition", "DeleteTable", "GetDatabase", "GetPartition", "GetPartitions"),
    *("GetTable", "GetTables", "UpdateDatabase", "UpdatePartition", "UpdateTable"),
)


def use(lake: Lake, *statements: dict[str, object]) -> None:
    """Give the lake's role what a load needs of S3, and these statements on Glue."""
    seeded = lake.seeded
    policy: dict[str, Any] = dict(loader_policy(seeded.bucket, seeded.prefix))
    lake.server.admin.put_role_policy(
        seeded.role, {**policy, "Statement": [*policy["Statement"], *statements]}
    )


def allow(actions: Sequence[str], *resources: str) -> dict[str, object]:
    """Return a statement that allows actions of Glue on resources of it, or on whole ARNs."""
    # Where AWS checks a call on a database against that database, the emulator looks for a table
    # of its name.
    also = [f"table/{r.removeprefix('database/')}" for r in resources if r.startswith("database/")]
    return {
        "Effect": "Allow",
        "Action": [f"glue:{action}" for action in actions],
        "Resource": [r if r.startswith("arn:") else glue_arn(r) for r in (*resources, *also)],
    }


def glue_arn(resource: str) -> str:
    """Return the ARN of a resource of Glue in the emulator's account."""
    return f"arn:aws:glue:us-east-1:{ACCOUNT_ID}:{resource}"


def supaflow_statements(*, legacy: bool = False) -> list[dict[str, object]]:
    """Return the Glue policy of Supaflow's S3 guides; the legacy one knows less of the catalog."""
    own = (CATALOG, DATABASE, TABLE)
    return [
        allow(_CATALOG[2:] if legacy else _CATALOG, CATALOG),
        allow(_TABLES, *own),
        allow(_RESET, *own),
    ]


def airbyte_statement(bucket: str) -> dict[str, object]:
    """Return the Glue half of Airbyte's policy: its resources are S3's, which Glue never has."""
    return allow(_AIRBYTE, f"arn:aws:s3:::{bucket}/*", f"arn:aws:s3:::{bucket}")

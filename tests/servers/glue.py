"""Glue of the emulator as its administrator sees it, and roles that may use it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import boto3

from lakeload.demo.aws import ACCOUNT_ID, loader_policy
from tests.servers.ministack import Lake

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient

LOAD_ACTIONS = (
    "GetDatabase",
    "CreateDatabase",
    "GetTable",
    "CreateTable",
    "UpdateTable",
    "GetPartition",
    "BatchCreatePartition",
)
"""What a load asks of Glue: no more than the published policies allow."""


def glue_of(lake: Lake) -> GlueClient:
    """Return Glue as the administrator of the lake's account and region."""
    return boto3.client(
        "glue",
        endpoint_url=lake.server.endpoint,
        region_name=lake.seeded.region,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )


def allow_glue(
    lake: Lake, actions: Sequence[str] = LOAD_ACTIONS, *, databases: str = "supaflow*"
) -> None:
    """Give the lake's role what a load needs of S3, and these actions of Glue."""
    seeded = lake.seeded
    arn = f"arn:aws:glue:{seeded.region}:{ACCOUNT_ID}"
    glue = {
        "Effect": "Allow",
        "Action": [f"glue:{action}" for action in actions],
        "Resource": [
            f"{arn}:catalog",
            f"{arn}:database/{databases}",
            f"{arn}:table/{databases}/*",
            # Where AWS checks a call on a database against that database, the emulator looks for
            # a table of its name.
            f"{arn}:table/{databases}",
        ],
    }
    policy: dict[str, Any] = dict(loader_policy(seeded.bucket, seeded.prefix))
    statements = [*policy["Statement"], *([glue] if actions else [])]
    lake.server.admin.put_role_policy(seeded.role, {**policy, "Statement": statements})

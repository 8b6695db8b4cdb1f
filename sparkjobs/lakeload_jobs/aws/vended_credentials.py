"""S3 client with the credentials that a catalog vends for one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from lakeload_jobs.aws.errors import aws_call
from lakeload_jobs.contract.secrets import Secret

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@dataclass(frozen=True)
class HandedKeys:
    """Keys for a part of a bucket, and where the store is; None is AWS's own endpoint."""

    access_key_id: str
    secret_access_key: Secret
    session_token: Secret | None
    region: str
    endpoint: str | None
    path_style: bool


def s3_with(keys: HandedKeys, *, connect_timeout: float, read_timeout: float) -> S3Client:
    """Return an S3 client of these keys; time-outs in seconds. Raises `AwsError`."""
    with aws_call("preparing the client for the catalog's credentials"):
        return boto3.client(
            "s3",
            aws_access_key_id=keys.access_key_id,
            aws_secret_access_key=keys.secret_access_key.reveal(),
            aws_session_token=keys.session_token.reveal() if keys.session_token else None,
            region_name=keys.region,
            endpoint_url=keys.endpoint,
            config=Config(
                connect_timeout=connect_timeout,
                read_timeout=read_timeout,
                retries={"mode": "standard", "total_max_attempts": 2},
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                s3={"addressing_style": "path" if keys.path_style else "auto"},
            ),
        )

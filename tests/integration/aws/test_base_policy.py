"""The base identity with the policy that `lakeload policy` writes for it, and nothing else."""

from __future__ import annotations

import json
import secrets
from typing import Any

import boto3
import pytest

from lakeload.demo.aws import ACCOUNT_ID
from lakeload.policy.iam import base_policy
from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    CredentialsSpec,
    DestinationSpec,
    EndpointsSpec,
    IcebergSpec,
)
from tests.servers.ministack import Lake


def test_base_policy_allows_assuming_the_role_and_reading_its_secrets(
    lake: Lake, base_identity: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeded, place = lake.seeded, lake.server.endpoint
    for name in ("SECRETS_MANAGER", "SSM"):
        monkeypatch.setenv(f"AWS_ENDPOINT_URL_{name}", place)
    mark = secrets.token_hex(4)
    held, other = f"lake/{mark}/external-id", f"lake/{mark}/other"
    parameter = f"/lake/{mark}/token"
    for name, value in ((held, seeded.external_id), (other, "not ours")):
        _administrator(lake, "secretsmanager").create_secret(Name=name, SecretString=value)
    _administrator(lake, "ssm").put_parameter(Name=parameter, Value="a token", Type="SecureString")
    destination = DestinationSpec(
        seeded.bucket,
        seeded.region,
        seeded.prefix,
        CredentialsSpec(role_arn=seeded.role_arn, external_id=SecretReference("aws_secret", held)),
        EndpointsSpec(s3=place, sts=place),
        table_format="ICEBERG",
        iceberg=IcebergSpec(
            CatalogSpec("NESSIE", token=SecretReference("aws_parameter", parameter))
        ),
    )
    document = base_policy(destination, account=ACCOUNT_ID, assumes=True)
    assert document is not None
    lake.server.admin.put_user_policy(seeded.user, json.loads(json.dumps(document.as_json())))

    session = AwsSession(destination)
    session.assume()
    assert session.resolve(SecretReference("aws_parameter", parameter)).reveal() == "a token"
    with pytest.raises(AwsError) as refused:
        session.resolve(SecretReference("aws_secret", other))
    assert refused.value.denied


def _administrator(lake: Lake, service: str) -> Any:
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    place: dict[str, Any] = {
        "endpoint_url": lake.server.endpoint,
        "region_name": lake.seeded.region,
        **keys,
    }
    client: Any = boto3.client(service, **place)  # type: ignore[call-overload]
    return client

"""Executors on a real standalone cluster are processes, with identities of their own."""

from __future__ import annotations

from pathlib import Path

import boto3
import pytest

from lakeload.demo.aws import allow_assume_role
from tests.e2e.command import sync
from tests.servers.ministack import Lake
from tests.servers.standalone_spark import ON_A_CLUSTER, StandaloneSpark

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

ROWS = 500


def keep_external_id(lake: Lake) -> str:
    """Keep the ExternalId in AWS, where the base identity may read it from any machine; return the
    secret's name."""
    name = f"lakeload/{lake.seeded.role}"
    administrator = boto3.client(
        "secretsmanager",
        endpoint_url=lake.server.endpoint,
        region_name=lake.seeded.region,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    arn = administrator.create_secret(Name=name, SecretString=lake.seeded.external_id)["ARN"]
    assume = allow_assume_role(lake.seeded.role_arn)["Statement"]
    assert isinstance(assume, list)
    read = {"Effect": "Allow", "Action": "secretsmanager:GetSecretValue", "Resource": arn}
    lake.server.admin.put_user_policy(
        lake.seeded.user, {"Version": "2012-10-17", "Statement": [*assume, read]}
    )
    return name


def test_executor_with_own_identity_loads_and_without_one_fails_with_a_hint(
    lake: Lake, standalone_spark: StandaloneSpark, tmp_path: Path
) -> None:
    lines = "".join(f"{number},name {number}\n" for number in range(ROWS))
    (tmp_path / "orders.csv").write_text("id,name\n" + lines)
    lake.write_pipeline(
        tmp_path,
        tables=[{"table": "orders", "path": str(tmp_path / "orders.csv")}],
        destination={
            "credentials": {
                "role_arn": lake.seeded.role_arn,
                "external_id": {"aws_secret": keep_external_id(lake)},
            }
        },
    )
    secrets_endpoint = {"AWS_ENDPOINT_URL_SECRETS_MANAGER": lake.server.endpoint}
    # Instance metadata would be an identity where the tests run on AWS.
    empty = {"AWS_EC2_METADATA_DISABLED": "true", **secrets_endpoint}
    own = {
        **empty,
        "AWS_ACCESS_KEY_ID": lake.seeded.base_key.access_key_id,
        "AWS_SECRET_ACCESS_KEY": lake.seeded.base_key.secret_access_key,
    }
    arguments = ("--master", standalone_spark.master, *ON_A_CLUSTER)

    standalone_spark.add_worker("own", own)
    loaded = sync(lake, tmp_path, *arguments, "--job-id", "own", **secrets_endpoint)
    assert loaded.code == 0, loaded.stdout + loaded.stderr
    assert loaded.tables["orders"]["rows"] == ROWS
    before = lake.data_keys()
    assert len(before) == 1

    standalone_spark.stop_worker("own")
    standalone_spark.add_worker("empty", empty)
    refused = sync(lake, tmp_path, *arguments, "--job-id", "empty", **secrets_endpoint)
    assert refused.code == 1, refused.stdout + refused.stderr
    error = refused.tables["orders"]["error"]
    assert "this executor finds no AWS identity" in error["message"]
    assert "its own base identity" in error["hint"]
    assert lake.data_keys() == before
    assert lake.uploads() == []

"""`lakeload policy` without --principal: STS says who may assume the role."""

from __future__ import annotations

import json
from pathlib import Path

import boto3
import pytest
from typer.testing import CliRunner

from lakeload.app import app
from lakeload.demo.aws import ACCOUNT_ID
from tests.servers.ministack import Lake


def principal_of(lake: Lake, folder: Path) -> tuple[str, str]:
    """Run the command; return the trust policy's principal, and what was said besides."""
    document = {
        "version": 1,
        "bucket": lake.seeded.bucket,
        "region": lake.seeded.region,
        "credentials": {"role_arn": lake.seeded.role_arn},
        "endpoints": {"sts": lake.server.endpoint},
    }
    path = folder / "destination.yml"
    path.write_text(json.dumps(document))
    done = CliRunner().invoke(app, ["policy", str(path), "--only", "trust"])
    assert done.exit_code == 0, done.output
    arn: str = json.loads(done.stdout)["Statement"][0]["Principal"]["AWS"]
    return arn, " ".join(done.stderr.split())


def test_policy_of_a_user_trusts_the_user(base_identity: Lake, tmp_path: Path) -> None:
    arn, _ = principal_of(base_identity, tmp_path)
    assert arn == f"arn:aws:iam::{ACCOUNT_ID}:user/{base_identity.seeded.user}"


def test_policy_of_a_role_session_trusts_the_role(
    base_identity: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeded = base_identity.seeded
    sts = boto3.client("sts", endpoint_url=base_identity.server.endpoint, region_name=seeded.region)
    keys = sts.assume_role(
        RoleArn=seeded.role_arn, RoleSessionName="me", ExternalId=seeded.external_id
    )["Credentials"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", keys["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", keys["SecretAccessKey"])
    monkeypatch.setenv("AWS_SESSION_TOKEN", keys["SessionToken"])
    arn, said = principal_of(base_identity, tmp_path)
    assert arn == seeded.role_arn
    assert "was made of the ARN of a session" in said

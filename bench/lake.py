"""The lake lakeload writes to: an AWS emulator that enforces IAM, outside every measured group.

ministack on loopback with AUTH=true. The base user may only assume the role; the role's trust
policy demands the ExternalId; the role may use the bucket. This is what a user's set-up looks like.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

ACCOUNT = "123456789012"
BUCKET = "lakeload-bench"
REGION = "us-east-1"
ROLE_ARN = f"arn:aws:iam::{ACCOUNT}:role/lakeload-bench"
START_SECONDS = 30.0


@dataclass(frozen=True)
class Lake:
    """A running emulator with the bucket, the base user's keys and the role's ExternalId."""

    endpoint: str
    access_key_id: str
    secret_access_key: str
    external_id: str

    def destination(self, prefix: str) -> dict[str, Any]:
        """The destination document for one run under its own prefix."""
        return {
            "version": 1,
            "bucket": BUCKET,
            "region": REGION,
            "prefix": prefix,
            "credentials": {
                "role_arn": ROLE_ARN,
                "external_id": {"env": "LAKELOAD_EXTERNAL_ID"},
            },
            "endpoints": {"s3": self.endpoint, "sts": self.endpoint, "glue": self.endpoint},
            "addressing_style": "PATH",
        }

    def environment(self) -> dict[str, str]:
        """The base identity and the ExternalId, as a user would export them."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
            "AWS_EC2_METADATA_DISABLED": "true",
            "LAKELOAD_EXTERNAL_ID": self.external_id,
        }

    def download(self, prefix: str, folder: Path) -> list[Path]:
        """Copy every Parquet object under `prefix` into `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        files = []
        for number, key in enumerate(_keys(admin(self.endpoint), f"{prefix}/")):
            if key.endswith(".parquet"):
                files.append(folder / f"{number:05d}.parquet")
                admin(self.endpoint).download_file(BUCKET, key, str(files[-1]))
        return files

    def clear(self) -> None:
        """Delete every object: the emulator keeps them in memory."""
        client = admin(self.endpoint)
        for key in list(_keys(client, "")):
            client.delete_object(Bucket=BUCKET, Key=key)


@contextlib.contextmanager
def running_lake(log: Path) -> Iterator[Lake]:
    """Start the emulator, make bucket, user and role, and stop it at the end."""
    port = _free_port()
    endpoint = f"http://127.0.0.1:{port}"
    settings = {
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "IOT_MTLS_PORT": "0",
        "AUTH": "true",
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "ministack"],
            env={**os.environ, **settings},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_until_healthy(endpoint, process)
        yield _furnish(endpoint)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(10)


def admin(endpoint: str) -> S3Client:
    """An S3 client of the emulator's administrator."""
    return boto3.client("s3", **_admin(endpoint))


def _admin(endpoint: str) -> dict[str, Any]:
    return {
        "endpoint_url": endpoint,
        "region_name": REGION,
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
    }


def _keys(client: S3Client, prefix: str) -> Iterator[str]:
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix):
        for entry in page.get("Contents", []):
            yield entry["Key"]


def _furnish(endpoint: str) -> Lake:
    external_id = secrets.token_hex(16)
    admin(endpoint).create_bucket(Bucket=BUCKET)
    iam = boto3.client("iam", **_admin(endpoint))
    user = iam.create_user(UserName="lakeload-bench")["User"]["Arn"]
    keys = iam.create_access_key(UserName="lakeload-bench")["AccessKey"]
    iam.put_user_policy(
        UserName="lakeload-bench",
        PolicyName="assume",
        PolicyDocument=_policy({"Action": "sts:AssumeRole", "Resource": ROLE_ARN}),
    )
    trust = {
        "Action": "sts:AssumeRole",
        "Principal": {"AWS": user},
        "Condition": {"StringEquals": {"sts:ExternalId": external_id}},
    }
    iam.create_role(RoleName="lakeload-bench", AssumeRolePolicyDocument=_policy(trust))
    bucket = f"arn:aws:s3:::{BUCKET}"
    iam.put_role_policy(
        RoleName="lakeload-bench",
        PolicyName="lake",
        PolicyDocument=_policy({"Action": "s3:*", "Resource": [bucket, f"{bucket}/*"]}),
    )
    return Lake(endpoint, keys["AccessKeyId"], keys["SecretAccessKey"], external_id)


def _policy(statement: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **statement}]})


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_healthy(endpoint: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{endpoint}/_ministack/health", timeout=2).close()  # noqa: S310
            return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError("the AWS emulator did not start; see its log in the benchmark folder")

"""The lake lakeload writes to: an AWS emulator that enforces IAM, outside every measured group.

It is the embedded AWS of `lakeload demo` on loopback: signatures are checked, the base user may
only assume the role, whose trust policy demands the ExternalId. This is a careful user's set-up.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3

from lakeload.demo.aws import EmbeddedAws, SeededLake

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

BUCKET = "lakeload-bench"
PREFIX = "bench"


@dataclass(frozen=True)
class Lake:
    """A running emulator and the identities that may load into it."""

    endpoint: str
    seeded: SeededLake

    def destination(self, run: str) -> dict[str, Any]:
        """The destination document of one run, under a prefix of its own."""
        return {
            "version": 1,
            "bucket": BUCKET,
            "region": self.seeded.region,
            "prefix": f"{PREFIX}/{run}",
            "credentials": {
                "role_arn": self.seeded.role_arn,
                "external_id": {"env": "LAKELOAD_EXTERNAL_ID"},
            },
            "endpoints": {"s3": self.endpoint, "sts": self.endpoint},
            "addressing_style": "PATH",
        }

    def environment(self) -> dict[str, str]:
        """The base identity and the ExternalId, as a user would export them."""
        return {
            "AWS_ACCESS_KEY_ID": self.seeded.base_key.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.seeded.base_key.secret_access_key,
            "AWS_EC2_METADATA_DISABLED": "true",
            "LAKELOAD_EXTERNAL_ID": self.seeded.external_id,
        }

    def download(self, run: str, folder: Path) -> list[Path]:
        """Copy every Parquet object of a run into `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        client = self._admin()
        files: list[Path] = []
        for key in self._keys(client, f"{PREFIX}/{run}/"):
            if key.endswith(".parquet"):
                files.append(folder / f"{len(files):05d}.parquet")
                client.download_file(BUCKET, key, str(files[-1]))
        return files

    def clear(self) -> None:
        """Delete every object: the emulator keeps them in memory."""
        client = self._admin()
        for key in list(self._keys(client, "")):
            client.delete_object(Bucket=BUCKET, Key=key)

    def _keys(self, client: S3Client, prefix: str) -> Iterator[str]:
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix):
            for entry in page.get("Contents", []):
                yield entry["Key"]

    def _admin(self) -> S3Client:
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=self.seeded.region,
            aws_access_key_id="test",
            aws_secret_access_key="test",  # noqa: S106
        )


@contextlib.contextmanager
def running_lake(folder: Path) -> Iterator[Lake]:
    """Start the emulator, make bucket, user and role, and stop it at the end."""
    with EmbeddedAws(folder) as aws:
        yield Lake(aws.endpoint, aws.seed(bucket=BUCKET, prefix=PREFIX))

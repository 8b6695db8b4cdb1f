"""The AWS that enforces IAM: started here on a loopback port, or the one the environment names."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
import yaml

from lakeload.demo.aws import AwsAdmin, EmbeddedAws, SeededLake, seed_lake

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

ENDPOINT_VARIABLE = "LAKELOAD_TEST_AWS_ENDPOINT"
EXTERNAL_ID_VARIABLE = "LAKELOAD_EXTERNAL_ID"


@dataclass(frozen=True)
class AwsServer:
    """A running emulator and its administrator."""

    endpoint: str

    @property
    def admin(self) -> AwsAdmin:
        """The administrator of account 123456789012."""
        return AwsAdmin(self.endpoint)

    @cached_property
    def s3(self) -> S3Client:
        """S3 as the administrator, who may see everything."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )


@dataclass(frozen=True)
class Lake:
    """One test's bucket, base user and role, and what the test can see of them."""

    server: AwsServer
    seeded: SeededLake

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a process whose base identity may assume the role."""
        return {
            "AWS_ACCESS_KEY_ID": self.seeded.base_key.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.seeded.base_key.secret_access_key,
            EXTERNAL_ID_VARIABLE: self.seeded.external_id,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def keys(self, prefix: str = "") -> list[str]:
        """Return the keys of every visible object, sorted."""
        pages = self.server.s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.seeded.bucket, Prefix=prefix
        )
        return sorted(entry["Key"] for page in pages for entry in page.get("Contents", []))

    def data_keys(self) -> list[str]:
        """Return the keys of data files: everything outside `_lakeload/`."""
        return [key for key in self.keys() if "_lakeload/" not in key]

    def uploads(self) -> list[str]:
        """Return the keys of open multipart uploads, sorted."""
        answer = self.server.s3.list_multipart_uploads(Bucket=self.seeded.bucket)
        return sorted(upload["Key"] for upload in answer.get("Uploads", []))

    def uploads_left(self, seconds: float = 20) -> list[str]:
        """Return the same, when the tasks of a load that failed have had time to abort theirs."""
        deadline = time.monotonic() + seconds
        while (left := self.uploads()) and time.monotonic() < deadline:
            time.sleep(0.2)
        return left

    def read(self, key: str) -> bytes:
        """Return an object's bytes."""
        return self.server.s3.get_object(Bucket=self.seeded.bucket, Key=key)["Body"].read()

    def download(self, folder: Path) -> list[Path]:
        """Copy every data file below `folder`, keys as paths, and return the files."""
        files = []
        for key in self.data_keys():
            file = folder / key
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(self.read(key))
            files.append(file)
        return files

    def destination(self, *, endpoint: str | None = None, **changes: Any) -> dict[str, Any]:
        """Return destination.yml as data: assumes the role; `changes` replace, None removes."""
        place = endpoint or self.server.endpoint
        settings: dict[str, Any] = {
            "version": 1,
            "bucket": self.seeded.bucket,
            "region": self.seeded.region,
            "prefix": self.seeded.prefix,
            "credentials": {
                "role_arn": self.seeded.role_arn,
                "external_id": {"env": EXTERNAL_ID_VARIABLE},
            },
            "endpoints": {"s3": place, "sts": place},
            **changes,
        }
        return {name: value for name, value in settings.items() if value is not None}

    def write_destination(
        self, folder: Path, *, endpoint: str | None = None, **changes: Any
    ) -> Path:
        """Write `destination` as destination.yml of `folder` and return its path."""
        path = folder / "destination.yml"
        path.write_text(yaml.safe_dump(self.destination(endpoint=endpoint, **changes)))
        return path

    def write_pipeline(
        self,
        folder: Path,
        *,
        tables: list[dict[str, Any]],
        source: dict[str, Any] | None = None,
        endpoint: str | None = None,
        destination: dict[str, Any] | None = None,
        **changes: Any,
    ) -> Path:
        """Write destination.yml and a pipeline.yml of CSV files with a header; return the latter.

        `destination` changes the destination, `changes` the pipeline; None removes a setting.
        """
        self.write_destination(folder, endpoint=endpoint, **(destination or {}))
        settings: dict[str, Any] = {
            "version": 1,
            "name": "shop",
            "destination": "destination.yml",
            "destination_prefix": "shop",
            "source": source or {"type": "FILES", "format": "CSV", "options": {"header": True}},
            "tables": tables,
            **changes,
        }
        path = folder / "pipeline.yml"
        kept = {name: value for name, value in settings.items() if value is not None}
        path.write_text(yaml.safe_dump(kept, sort_keys=False))
        return path

    def empty(self) -> None:
        """Delete every object and upload: the emulator keeps them in memory."""
        for key in self.keys():
            self.server.s3.delete_object(Bucket=self.seeded.bucket, Key=key)
        answer = self.server.s3.list_multipart_uploads(Bucket=self.seeded.bucket)
        for upload in answer.get("Uploads", []):
            # A task of a load that failed may abort it between the listing and this request.
            with suppress(self.server.s3.exceptions.NoSuchUpload):
                self.server.s3.abort_multipart_upload(
                    Bucket=self.seeded.bucket, Key=upload["Key"], UploadId=upload["UploadId"]
                )


MakeLake = Callable[..., Lake]


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsServer]:
    """One enforcing emulator for the whole run."""
    if endpoint := os.environ.get(ENDPOINT_VARIABLE):
        yield AwsServer(endpoint)
        return
    with EmbeddedAws(tmp_path_factory.mktemp("aws")) as embedded:
        yield AwsServer(embedded.endpoint)


@pytest.fixture
def make_lake(aws: AwsServer) -> Iterator[MakeLake]:
    """Make lakes of a test's own: `make_lake(prefix=…, region=…)`."""
    made: list[Lake] = []

    def make(*, prefix: str = "data-lake/test", region: str = "us-east-1") -> Lake:
        bucket = f"lake-{secrets.token_hex(6)}"
        lake = Lake(aws, seed_lake(aws.admin, bucket=bucket, prefix=prefix, region=region))
        made.append(lake)
        return lake

    yield make
    for lake in made:
        lake.empty()


@pytest.fixture
def lake(make_lake: MakeLake) -> Lake:
    """One lake in us-east-1 under the prefix `data-lake/test`."""
    return make_lake()


@pytest.fixture
def base_identity(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """The lake, with its base identity and ExternalId in this process's environment."""
    for name, value in lake.environment.items():
        monkeypatch.setenv(name, value)
    return lake

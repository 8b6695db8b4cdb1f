"""SeaweedFS: an S3 store, and an Iceberg REST catalog with an OAuth2 of its own."""

from __future__ import annotations

import json
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.exceptions import BotoCoreError, ClientError

from tests.servers.free_ports import free_ports
from tests.servers.processes import PATIENCE_SECONDS, server
from tests.servers.sharing import Servers

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

KEY, SECRET = "admin", "adminsecret"
"""The S3 key pair of the administrator; the catalog takes it as client id and secret."""
READER_KEY, READER_SECRET = "reader", "readersecret"
TABLE_BUCKET = "warehouse"
BUCKETS = ("fixture", "nessie", "lake")

_IDENTITIES = {
    "identities": [
        {
            "name": KEY,
            "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        },
        {
            "name": READER_KEY,
            "credentials": [{"accessKey": READER_KEY, "secretKey": READER_SECRET}],
            "actions": ["Read", "List"],
        },
    ]
}


@dataclass(frozen=True)
class SeaweedFs:
    """A running server."""

    s3_endpoint: str
    catalog: str
    """The address of its REST catalog."""

    @property
    def warehouse(self) -> str:
        """The one warehouse of the catalog."""
        return f"s3://{TABLE_BUCKET}"

    @cached_property
    def s3(self) -> S3Client:
        """S3 as the administrator."""
        return boto3.client(
            "s3",
            endpoint_url=self.s3_endpoint,
            region_name="us-east-1",
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
        )

    def keys(self, bucket: str) -> list[str]:
        """Return the keys of every object of a bucket."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return sorted(entry["Key"] for page in pages for entry in page.get("Contents", []))


@pytest.fixture(scope="session")
def seaweedfs(servers: Servers) -> SeaweedFs:
    """One server for the whole run."""
    running: SeaweedFs = servers.get(start_seaweedfs)
    return running


@contextmanager
def start_seaweedfs(folder: Path, _: Servers) -> Iterator[SeaweedFs]:
    """Start a server whose files lie in `folder`."""
    identities = folder / "s3.json"
    identities.write_text(json.dumps(_IDENTITIES))
    (folder / "data").mkdir()
    master, volume, filer, s3, catalog, admin = free_ports(6, with_grpc=True)
    command = [
        str(Path(sys.executable).with_name("weed")),
        *("mini", f"-dir={folder / 'data'}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
        *(f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}"),
        *(f"-s3.port={s3}", f"-s3.port.iceberg={catalog}", "-s3.port.lance=0"),
        *(f"-s3.config={identities}", "-webdav=false", "-admin.ui=false"),
        *(f"-admin.port={admin}", "-master.telemetry=false"),
        *(f"-bucket={','.join(BUCKETS)}", f"-tableBucket={TABLE_BUCKET}"),
    ]
    environment = {"HOME": str(folder), "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    running = SeaweedFs(f"http://127.0.0.1:{s3}", f"http://127.0.0.1:{catalog}")
    ready = f"{running.catalog}/v1/config"
    with server(command, environment=environment, folder=folder, ready=ready):
        # Of its own, since clients are kept, and cannot be handed to another process.
        _wait_for_warehouse(replace(running))
        yield running


def _wait_for_warehouse(running: SeaweedFs) -> None:
    """The catalog answers before its warehouse and the buckets are there."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with suppress(OSError, BotoCoreError, ClientError):
            for bucket in BUCKETS:
                running.s3.head_bucket(Bucket=bucket)
            request = urllib.request.Request(  # noqa: S310
                f"{running.catalog}/v1/{TABLE_BUCKET}/namespaces",
                headers={"Authorization": f"Bearer {_token(running)}"},
            )
            with urllib.request.urlopen(request, timeout=5):  # noqa: S310
                return
        time.sleep(0.1)
    raise RuntimeError("SeaweedFS does not make its buckets")


def _token(running: SeaweedFs) -> str:
    form = {"grant_type": "client_credentials", "client_id": KEY, "client_secret": SECRET}
    data = urllib.parse.urlencode(form).encode()
    with urllib.request.urlopen(f"{running.catalog}/v1/oauth/tokens", data, timeout=5) as answer:  # noqa: S310
        return str(json.load(answer)["access_token"])

"""moto, the second AWS: its own implementation of S3, STS, IAM and Glue, on a loopback port.

It checks signatures and policies only when told to (`enforcing`), and not all that AWS checks:
tests/integration/permissions/known_differences.toml.
"""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3
import pytest

from lakeload.demo.aws import ACCOUNT_ID
from tests.servers.free_ports import free_ports
from tests.servers.processes import wait_until_ready

_PROGRAM = (
    "from lakeload.demo.embedded_server import end_with_parent; end_with_parent(); "
    "from moto.server import main; main()"
)


@dataclass(frozen=True)
class MotoServer:
    """A running moto."""

    endpoint: str

    def client(self, service: str) -> Any:
        """Return a client whose keys nobody looks at; not for use while enforcing."""
        make: Any = boto3.client  # typed overloads know only literal names
        return make(
            service,
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    @contextmanager
    def enforcing(self) -> Iterator[None]:
        """Check signatures and policies for the time being."""
        self._post("reset-auth", b"0")
        try:
            yield
        finally:
            self._post("reset-auth", b"inf")

    def _post(self, path: str, body: bytes) -> None:
        # Without a type of its own the body would be taken for a form's.
        request = urllib.request.Request(  # noqa: S310
            f"{self.endpoint}/moto-api/{path}", body, {"Content-Type": "text/plain"}
        )
        with urllib.request.urlopen(request, timeout=10):  # noqa: S310
            pass


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MotoServer]:
    """One moto for the whole run."""
    folder = tmp_path_factory.mktemp("moto")
    log = folder / "moto.log"
    (port,) = free_ports(1)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, "-H", "127.0.0.1", "-p", str(port)],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "MOTO_ACCOUNT_ID": ACCOUNT_ID},
            stdin=subprocess.PIPE,  # it ends when this closes
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        endpoint = f"http://127.0.0.1:{port}"
        wait_until_ready(process, f"{endpoint}/moto-api/", log)
        yield MotoServer(endpoint)
    finally:
        process.terminate()
        process.wait(timeout=10)

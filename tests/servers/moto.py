"""moto, the second AWS: its own implementation of S3, STS, IAM and Glue, on a loopback port.

It checks signatures and policies only when told to (`enforcing`), and not all that AWS checks:
tests/integration/permissions/known_differences.toml.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from lakeload.demo.aws import ACCOUNT_ID

START_SECONDS = 60
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
    port = _free_port()
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
        _wait_until_it_answers(process, port, log)
        yield MotoServer(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(timeout=10)


def _wait_until_it_answers(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/", timeout=5):
                return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"moto did not start:\n{log.read_text(errors='replace')[-2000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

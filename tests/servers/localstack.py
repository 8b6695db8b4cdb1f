"""LocalStack, the second S3: a process of this host on a loopback port, or the one of compose."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from localstack_client.session import Session

from tests.servers.free_ports import free_ports

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-localstack" / "bin" / "python"
ENDPOINT_VARIABLE = "LAKELOAD_TEST_LOCALSTACK_ENDPOINT"
START_SECONDS = 90
"""It takes one second on an idle machine; the rest is for a busy one."""


@contextmanager
def localstack(folder: Path) -> Iterator[str]:
    """Yield the endpoint of a LocalStack: the environment's, or one that lives in `folder`.

    Raises `RuntimeError` with the end of its log when it does not come up.
    """
    if endpoint := os.environ.get(ENDPOINT_VARIABLE):
        yield endpoint
        return
    if not PYTHON.is_file():
        raise RuntimeError(
            "LocalStack is not installed in .venv-localstack: run `make localstack`, "
            f"or name a running one in {ENDPOINT_VARIABLE}"
        )
    address = f"127.0.0.1:{free_ports(1)[0]}"
    log = folder / "localstack.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(PYTHON), "-m", "localstack.runtime.main"],
            env=_environment(address, folder),
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
    try:
        _wait_until_healthy(process, f"http://{address}", log)
        yield f"http://{address}"
    finally:
        _stop(process)


def session(endpoint: str) -> Session:
    """Return a session of localstack-client: clients that can reach nothing but `endpoint`."""
    return Session(localstack_host=urlsplit(endpoint).netloc)


def _environment(address: str, folder: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "FILESYSTEM_ROOT": str(folder / "root"),
        "TMPDIR": str(folder),
        "GATEWAY_LISTEN": address,
        # The default gateway, twisted, listens on every interface whatever GATEWAY_LISTEN says.
        "GATEWAY_SERVER": "hypercorn",
        "DNS_ADDRESS": "0",
        "DISABLE_EVENTS": "1",
        "SKIP_SSL_CERT_DOWNLOAD": "1",
        "SERVICES": "s3,sts",
    }


def _wait_until_healthy(process: subprocess.Popen[bytes], endpoint: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{endpoint}/_localstack/health", timeout=5):  # noqa: S310
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    ended = process.poll()
    happened = "did not answer in time" if ended is None else f"ended with status {ended}"
    tail = log.read_text(encoding="utf-8", errors="replace")[-2000:]
    raise RuntimeError(f"LocalStack at {endpoint} {happened}:\n{tail}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

"""The embedded AWS of `lakeload demo`: an emulator that enforces IAM, on a loopback port."""

from __future__ import annotations

import http.client
import importlib.util
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from lakeload.demo.aws_admin import AccessKey, AwsAdmin
from lakeload.demo.aws_policies import allow_assume_role, loader_policy, trust_policy
from lakeload_jobs.contract.errors import MachineLacks

ACCOUNT_ID = "123456789012"
START_SECONDS = 30.0
STOP_SECONDS = 5.0


@dataclass(frozen=True)
class SeededLake:
    """A bucket and the identities that may load into it; the base key may only assume the role."""

    bucket: str
    prefix: str
    region: str
    user: str
    base_key: AccessKey
    role: str
    role_arn: str
    external_id: str = field(repr=False)


class EmbeddedAws:
    """One emulator process of this process; it ends with it, however that ends.

    `folder` receives `aws.log`. Use as a context manager, or `start` and `stop`.
    """

    program: tuple[str, ...] = (sys.executable, "-P", "-m", "lakeload.demo.embedded_server")
    """What is started; it has to end when its standard input closes."""

    def __init__(self, folder: Path, *, account_id: str = ACCOUNT_ID) -> None:
        self._folder = folder
        self._account_id = account_id
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    @property
    def endpoint(self) -> str:
        """The one URL of every emulated service."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def log(self) -> Path:
        """What the emulator wrote."""
        return self._folder / "aws.log"

    def start(self) -> None:
        """Start the emulator and return once it answers.

        Raises `MachineLacks` when it is not installed or does not come up.
        """
        if importlib.util.find_spec("ministack") is None:
            raise MachineLacks(
                "the embedded AWS is not installed",
                hint="install it with `pip install 'lakeload[demo]'`",
            )
        for attempt in (1, 2, 3):  # another process may take the free port before the emulator
            self._port = _free_port()
            self._process = self._spawn()
            if self._answers():
                return
            self.stop()
            if attempt == 3:
                raise MachineLacks(
                    "the embedded AWS did not start",
                    hint=f"read its log `{self.log}`",
                )

    def stop(self) -> None:
        """Stop the emulator; everything it held is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def admin(self, *, access_key: str = "test") -> AwsAdmin:
        """Return the administrator of the emulated account."""
        return AwsAdmin(self.endpoint, access_key=access_key)

    def seed(self, *, bucket: str, prefix: str, region: str = "us-east-1") -> SeededLake:
        """Create a bucket, a base user and the role it may assume, as a careful owner would."""
        return seed_lake(self.admin(), bucket=bucket, prefix=prefix, region=region)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _spawn(self) -> subprocess.Popen[bytes]:
        # Only what a process needs to run: the user's own AWS settings would become the
        # emulator's, and a Docker engine is none of its business.
        environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        environment |= {
            "AUTH": "true",
            "BIND_HOST": "127.0.0.1",
            "DOCKER_HOST": "unix:///nonexistent",
            "GATEWAY_PORT": str(self._port),
            "HOME": str(self._folder),
            "IOT_MTLS_PORT": "0",
            "MINISTACK_ACCOUNT_ID": self._account_id,
            "TMPDIR": str(self._folder),
        }
        self._folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - our own module, no shell
                self.program,
                cwd=self._folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _answers(self) -> bool:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self._process is None or self._process.poll() is not None:
                return False
            if _is_healthy(self._port):
                return True
            time.sleep(0.05)
        return False


def seed_lake(
    admin: AwsAdmin, *, bucket: str, prefix: str, region: str = "us-east-1"
) -> SeededLake:
    """Create a bucket, a user who may only assume the role, and a least-privilege role."""
    mark = secrets.token_hex(4)
    user, role = f"lakeload-base-{mark}", f"lakeload-loader-{mark}"
    external_id = f"ext-{secrets.token_hex(12)}"
    role_arn = f"arn:aws:iam::{ACCOUNT_ID}:role/{role}"
    admin.create_bucket(bucket, region=region)
    base_key = admin.create_user(user, allow_assume_role(role_arn))
    role_arn = admin.create_role(
        role,
        trust=trust_policy(f"arn:aws:iam::{ACCOUNT_ID}:user/{user}", external_id),
        policy=loader_policy(bucket, prefix),
    )
    return SeededLake(bucket, prefix, region, user, base_key, role, role_arn, external_id)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _is_healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/_ministack/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()

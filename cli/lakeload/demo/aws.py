"""The embedded AWS of the demo: accounts, roles, policies."""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import urlencode, urlsplit

from lakeload.policy.iam import base_policy, role_policies
from lakeload.policy.iam import trust_policy as trust_document
from lakeload.policy.model import PolicyDocument
from lakeload.policy.principals import Principal
from lakeload_jobs.contract.errors import MachineNotReady, Refused
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec

Policy = Mapping[str, object]


@dataclass(frozen=True)
class AccessKey:
    """Keys of an emulated IAM user."""

    access_key_id: str
    secret_access_key: str = field(repr=False)


class AwsAdmin:
    """The administrator of the emulated account. Every method raises `Refused` when told no.

    A 12-digit access key makes it the administrator of the account of that number, so that
    roles can trust another account.
    """

    def __init__(
        self, endpoint: str, *, access_key: str = "test", region: str = "us-east-1"
    ) -> None:
        self._address = urlsplit(endpoint)
        self._access_key = access_key
        self._region = region

    def create_bucket(self, bucket: str, *, region: str | None = None) -> None:
        """Create an empty bucket in `region` (default: the administrator's)."""
        place = region or self._region
        body = ""
        if place != "us-east-1":  # S3 knows us-east-1 only as "no constraint"
            body = (
                "<CreateBucketConfiguration><LocationConstraint>"
                f"{place}</LocationConstraint></CreateBucketConfiguration>"
            )
        self._send("s3", "PUT", f"/{bucket}", body.encode(), region=place)

    def create_user(self, name: str, policy: Policy | None = None) -> AccessKey:
        """Create an IAM user with an inline policy and return its new access key."""
        self._iam("CreateUser", UserName=name)
        if policy is not None:
            self.put_user_policy(name, policy)
        return self.create_access_key(name)

    def create_access_key(self, user: str) -> AccessKey:
        """Return a new access key of an existing user."""
        answer = self._iam("CreateAccessKey", UserName=user)
        return AccessKey(_element(answer, "AccessKeyId"), _element(answer, "SecretAccessKey"))

    def put_user_policy(self, user: str, policy: Policy) -> None:
        """Replace the user's inline policy."""
        self._iam(
            "PutUserPolicy",
            UserName=user,
            PolicyName="lakeload",
            PolicyDocument=json.dumps(policy),
        )

    def create_role(self, name: str, *, trust: Policy, policy: Policy) -> str:
        """Create a role with a trust policy and an inline policy; return its ARN."""
        answer = self._iam("CreateRole", RoleName=name, AssumeRolePolicyDocument=json.dumps(trust))
        self.put_role_policy(name, policy)
        return _element(answer, "Arn")

    def put_role_policy(self, role: str, policy: Policy) -> None:
        """Replace the role's inline policy."""
        self._iam(
            "PutRolePolicy",
            RoleName=role,
            PolicyName="lakeload",
            PolicyDocument=json.dumps(policy),
        )

    def _iam(self, action: str, **parameters: str) -> str:
        form = {"Action": action, "Version": "2010-05-08", **parameters}
        return self._send("iam", "POST", "/", urlencode(form).encode(), region=self._region)

    def _send(self, service: str, method: str, path: str, body: bytes, *, region: str) -> str:
        scope = f"{self._access_key}/20260101/{region}/{service}/aws4_request"
        headers = {
            "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"
        }
        connection = http.client.HTTPConnection(self._address.netloc, timeout=30)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            text = response.read().decode("utf-8", "replace")
        except OSError as error:
            raise Refused(f"setting up the emulated AWS failed: {error}") from error
        finally:
            connection.close()
        if response.status >= 300:
            raise Refused(
                f"setting up the emulated AWS failed: `{method} {path}` returned "
                f"{response.status} {text}"
            )
        return text


def _element(answer: str, name: str) -> str:
    """Return the text of the first element of that name in the emulator's own answer."""
    found = re.search(f"<{name}>([^<]*)</{name}>", answer)
    if found is None:
        raise Refused(f"the emulated AWS sent a response without `{name}`")
    return found.group(1)


REGION = "us-east-1"


def allow_assume_role(role_arn: str) -> Policy:
    """Return the base identity's policy: nothing but sts:AssumeRole on the role."""
    credentials = CredentialsSpec(role_arn=role_arn)
    destination = DestinationSpec("any", REGION, credentials=credentials)
    document = base_policy(destination, account=None, assumes=True)
    return (document or PolicyDocument("base", ())).as_json()


def trust_policy(principal: str, external_id: str | None) -> Policy:
    """Return a trust policy for `principal`; with an ExternalId it demands it."""
    return trust_document([Principal(principal, external_id)]).as_json()


def loader_policy(bucket: str, prefix: str) -> Policy:
    """Return the least a Parquet load needs on S3: no deletion of data."""
    (document,) = role_policies(DestinationSpec(bucket, REGION, prefix))
    return document.as_json()


def destination_policy(destination: DestinationSpec) -> Policy:
    """Return everything that `lakeload policy` writes for the destination, as one document."""
    statements = (one for document in role_policies(destination) for one in document.statements)
    return PolicyDocument("all", tuple(statements)).as_json()


def embedded_policy(destination: DestinationSpec) -> Policy:
    """Return the same for the embedded AWS: where AWS checks a call on a database of Glue against
    that database, the emulator looks for a table of its name."""
    whole = dict(destination_policy(destination))
    table = f"arn:aws:glue:{destination.region}:*:table/{destination.glue_database_prefix}"
    quirks = [
        {"Effect": "Allow", "Action": "glue:GetDatabase", "Resource": f"{table}*"},
        {
            "Effect": "Allow",
            "Action": "glue:DeleteDatabase",
            "Resource": f"{table}_lakeload_probe_*",
        },
    ]
    statements = whole["Statement"]
    return {**whole, "Statement": [*(statements if isinstance(statements, list) else []), *quirks]}


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

    def __init__(self, folder: Path) -> None:
        self._folder = folder
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

        Raises `MachineNotReady` when it is not installed or does not come up.
        """
        if importlib.util.find_spec("ministack") is None:
            raise MachineNotReady(
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
                raise MachineNotReady(
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

    def seed(self, *, bucket: str, prefix: str) -> SeededLake:
        """Create a bucket, a base user and the role it may assume, as a careful owner would."""
        return seed_lake(self.admin(), bucket=bucket, prefix=prefix)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
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
            "MINISTACK_ACCOUNT_ID": ACCOUNT_ID,
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

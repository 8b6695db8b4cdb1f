"""Thirty-odd ways to get a destination wrong: how to cause each, and what must be said about it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from lakeload.demo.aws import ACCOUNT_ID
from lakeload.demo.aws_policies import allow_assume_role, loader_policy, trust_policy
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec, EndpointsSpec
from tests.servers.fault_proxy import FaultProxy, answer, delay, without_header
from tests.servers.ministack import EXTERNAL_ID_VARIABLE, Lake

EXTERNAL_ID = SecretReference("env", EXTERNAL_ID_VARIABLE)


@dataclass
class World:
    """What a misconfiguration may bend: the server, the environment, the destination."""

    lake: Lake
    proxy: FaultProxy
    environment: pytest.MonkeyPatch
    folder: Path
    cleanup: ExitStack
    destination: DestinationSpec = field(init=False)

    def __post_init__(self) -> None:
        """Begin with everything right."""
        seeded = self.lake.seeded
        self.destination = DestinationSpec(
            bucket=seeded.bucket,
            region=seeded.region,
            prefix=seeded.prefix,
            credentials=CredentialsSpec(role_arn=seeded.role_arn, external_id=EXTERNAL_ID),
            endpoints=EndpointsSpec(s3=self.proxy.endpoint, sts=self.proxy.endpoint),
        )

    def change(self, **changes: Any) -> None:
        """Change the destination."""
        self.destination = replace(self.destination, **changes)

    def credentials(self, **changes: Any) -> None:
        """Change the destination's credentials."""
        self.change(credentials=replace(self.destination.credentials, **changes))

    def endpoints(self, **changes: str) -> None:
        """Change the destination's endpoints."""
        self.change(endpoints=replace(self.destination.endpoints, **changes))

    def deny(self, *actions: str) -> None:
        """Take actions out of the role's policy."""
        seeded = self.lake.seeded
        allowed = loader_policy(seeded.bucket, seeded.prefix)
        denial = {"Effect": "Deny", "Action": list(actions), "Resource": "*"}
        statements = allowed["Statement"]
        assert isinstance(statements, list)
        policy = {**allowed, "Statement": [*statements, denial]}
        self.lake.server.admin.put_role_policy(seeded.role, policy)

    def trust(self, policy: Mapping[str, object]) -> None:
        """Use another role of this lake, with this trust policy."""
        seeded, admin = self.lake.seeded, self.lake.server.admin
        arn = admin.create_role(
            f"{seeded.role}-2", trust=policy, policy=loader_policy(seeded.bucket, seeded.prefix)
        )
        admin.put_user_policy(seeded.user, allow_assume_role(arn))
        self.credentials(role_arn=arn)

    def administrator(self) -> None:
        """Use the emulator's administrator, whose signature survives a changed header."""
        self.environment.setenv("AWS_ACCESS_KEY_ID", "test")
        self.environment.setenv("AWS_SECRET_ACCESS_KEY", "test")
        self.change(credentials=CredentialsSpec())

    def static_keys(self) -> None:
        """Use keys by reference instead of a role; the variables KEY_ID and KEY hold them."""
        self.environment.setenv("KEY_ID", self.lake.seeded.base_key.access_key_id)
        self.environment.setenv("KEY", self.lake.seeded.base_key.secret_access_key)
        self.change(
            credentials=CredentialsSpec(
                access_key_id=SecretReference("env", "KEY_ID"),
                secret_access_key=SecretReference("env", "KEY"),
            )
        )

    def silent_endpoint(self) -> str:
        """Return a URL that accepts connections and never answers."""
        listener = self.cleanup.enter_context(socket.create_server(("127.0.0.1", 0)))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


@dataclass(frozen=True)
class Case:
    """One misconfiguration; `says` must appear in the message, the causes or the hint. Those that
    wait for an answer get a `timeout` (seconds) in which a busy machine asks everything else."""

    name: str
    bend: Callable[[World], object]
    probe: str
    code: str
    says: str
    warning: bool = False
    timeout: float = 8.0


def _trailing_space(world: World) -> None:
    world.environment.setenv(EXTERNAL_ID_VARIABLE, world.lake.seeded.external_id + " ")


def _other_principal(world: World) -> None:
    principal = f"arn:aws:iam::{ACCOUNT_ID}:user/somebody-else"
    world.trust(trust_policy(principal, world.lake.seeded.external_id))


def _open_role(world: World) -> None:
    world.trust(trust_policy(f"arn:aws:iam::{ACCOUNT_ID}:user/{world.lake.seeded.user}", None))


def _wrong_prefix_in_policy(world: World) -> None:
    seeded = world.lake.seeded
    world.lake.server.admin.put_role_policy(
        seeded.role, loader_policy(seeded.bucket, seeded.prefix + "x")
    )


def _bucket_policy_denies(world: World) -> None:
    bucket = world.lake.seeded.bucket
    world.lake.server.s3.put_bucket_policy(
        Bucket=bucket,
        Policy='{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":'
        f'{{"AWS":"{world.lake.seeded.role_arn}"}},"Action":"s3:ListBucket",'
        f'"Resource":"arn:aws:s3:::{bucket}"}}]}}',
    )


def _no_identity(world: World) -> None:
    world.environment.delenv("AWS_ACCESS_KEY_ID")
    world.environment.delenv("AWS_SECRET_ACCESS_KEY")


def _unset_key(world: World) -> None:
    world.static_keys()
    world.environment.delenv("KEY")


def _foreign_token(world: World) -> None:
    world.static_keys()
    world.environment.setenv("TOKEN", "bm90IGEgdG9rZW4=")
    world.credentials(session_token=SecretReference("env", "TOKEN"))


def _put_ignores_condition(world: World) -> None:
    world.administrator()
    world.proxy.on("PutObject", without_header("If-None-Match"))


def _completion_ignores_condition(world: World) -> None:
    world.administrator()
    world.proxy.on("CompleteMultipartUpload", without_header("If-None-Match"))


def _proxy_down(world: World) -> None:
    world.environment.setenv("HTTP_PROXY", "http://127.0.0.1:9")


def _hangs_once_written(world: World) -> None:
    world.proxy.on("GetObject", delay(60))


CASES = [
    Case(
        "wrong external id",
        lambda world: world.environment.setenv(EXTERNAL_ID_VARIABLE, "another-id"),
        *("assume-role", "AccessDenied", "the ExternalId is not exactly the one"),
    ),
    Case(
        "external id with a space after it",
        _trailing_space,
        *("assume-role", "AccessDenied", "begins or ends with white space"),
    ),
    Case(
        "no external id for a role that demands one",
        lambda world: world.credentials(external_id=None),
        *("assume-role", "AccessDenied", "the destination has no `external_id`"),
    ),
    Case(
        "external id of one character",
        lambda world: world.environment.setenv(EXTERNAL_ID_VARIABLE, "x"),
        *("assume-role", "ParamValidationError", "check bucket, role_arn, external_id"),
    ),
    Case(
        "missing role",
        lambda world: world.credentials(role_arn=f"arn:aws:iam::{ACCOUNT_ID}:role/nobody"),
        *("assume-role", "AccessDenied", "the role does not exist"),
    ),
    Case(
        "role that trusts somebody else",
        _other_principal,
        *("assume-role", "AccessDenied", "does not name this base identity"),
    ),
    Case(
        "base identity without sts:AssumeRole",
        lambda world: world.lake.server.admin.put_user_policy(
            world.lake.seeded.user, allow_assume_role("arn:aws:iam::000000000000:role/other")
        ),
        *("assume-role", "AccessDenied", "no policy that allows sts:AssumeRole"),
    ),
    Case(
        "role that does not ask for the external id",
        _open_role,
        *("external-id-enforced", "ExternalIdNotEnforced", "sts:ExternalId"),
        warning=True,
    ),
    Case(
        "unknown access key",
        lambda world: world.environment.setenv("AWS_ACCESS_KEY_ID", "AKIAUNKNOWNUNKNOWN00"),
        *("identity", "InvalidClientTokenId", "misspelt, deactivated or deleted"),
    ),
    Case(
        "wrong secret key",
        lambda world: world.environment.setenv("AWS_SECRET_ACCESS_KEY", "wrong"),
        *("identity", "SignatureDoesNotMatch", "not the one of this access key id"),
    ),
    Case(
        "session token of other keys",
        _foreign_token,
        *("identity", "InvalidClientTokenId", "session token"),
        warning=True,
    ),
    Case(
        "expired base credentials",
        lambda world: world.proxy.on("GetCallerIdentity", answer(403, "ExpiredToken")),
        *("identity", "ExpiredToken", "log in again"),
    ),
    Case(
        "credentials that expire between STS and S3",
        lambda world: world.proxy.on("ListObjectsV2", answer(400, "ExpiredToken")),
        *("list", "ExpiredToken", "expired"),
    ),
    Case(
        "variable of the external id not set",
        lambda world: world.environment.delenv(EXTERNAL_ID_VARIABLE),
        *("credentials", "InvalidInput", f"export {EXTERNAL_ID_VARIABLE}=…"),
    ),
    Case(
        "variable of a key not set",
        _unset_key,
        *("credentials", "InvalidInput", "`KEY` is not set"),
    ),
    Case(
        "secret file that is not there",
        lambda world: world.credentials(
            external_id=SecretReference("file", str(world.folder / "external-id"))
        ),
        *("credentials", "InvalidInput", "create the file"),
    ),
    Case(
        "profile that does not exist",
        lambda world: world.credentials(profile="nobody"),
        *("credentials", "ProfileNotFound", "the profile's name is misspelt"),
    ),
    Case(
        "no identity at all",
        _no_identity,
        *("credentials", "NoCredentialsError", "AWS_PROFILE"),
    ),
    Case(
        "half an identity",
        lambda world: world.environment.delenv("AWS_SECRET_ACCESS_KEY"),
        *("credentials", "PartialCredentialsError", "`AWS_SECRET_ACCESS_KEY` is missing"),
    ),
    Case(
        "wrong region",
        lambda world: world.change(region="eu-central-1"),
        *("bucket", "RegionMismatch", "set `region: us-east-1`"),
    ),
    Case(
        "missing bucket",
        lambda world: world.change(bucket="no-such-bucket-here"),
        *("bucket", "NoSuchBucket", "create the bucket"),
    ),
    Case(
        "listing denied",
        lambda world: world.deny("s3:ListBucket"),
        *("list", "AccessDenied", "no policy of the role or user allows s3:ListBucket"),
    ),
    Case(
        "listing denied by the bucket's own policy",
        _bucket_policy_denies,
        *("list", "AccessDenied", "the bucket's own policy"),
    ),
    Case(
        "another prefix in the policy",
        _wrong_prefix_in_policy,
        *("list", "AccessDenied", "a condition on s3:prefix does not match `data-lake/test/*`"),
    ),
    Case(
        "listing uploads denied",
        lambda world: world.deny("s3:ListBucketMultipartUploads"),
        *("list-uploads", "AccessDenied", "which this action does not know"),
        warning=True,
    ),
    Case(
        "deleting denied",
        lambda world: world.deny("s3:DeleteObject"),
        *("delete", "AccessDenied", "allow `s3:DeleteObject`"),
    ),
    Case(
        "writing denied",
        lambda world: world.deny("s3:PutObject"),
        *("put", "AccessDenied", "no policy of the role or user allows s3:PutObject"),
    ),
    Case(
        "reading denied",
        lambda world: world.deny("s3:GetObject"),
        *("get", "AccessDenied", "no policy of the role or user allows s3:GetObject"),
    ),
    Case(
        "aborting denied",
        lambda world: world.deny("s3:AbortMultipartUpload"),
        *("abort-upload", "AccessDenied", "allow `s3:AbortMultipartUpload`"),
        warning=True,
    ),
    Case(
        "store whose PUT ignores If-None-Match",
        _put_ignores_condition,
        *("put-again", "ConditionalWritesUnsupported", "single_writer: true"),
    ),
    Case(
        "store whose completion ignores If-None-Match",
        _completion_ignores_condition,
        *("complete-upload", "ConditionalWritesUnsupported", "CompleteMultipartUpload"),
    ),
    Case(
        "store that does not implement If-None-Match",
        lambda world: world.proxy.on("PutObject", answer(501, "NotImplemented")),
        *("put", "NotImplemented", "no conditional writes"),
    ),
    Case(
        "nobody listens at the STS endpoint",
        lambda world: world.endpoints(sts="http://127.0.0.1:9"),
        *("identity", "EndpointConnectionError", "the server is down"),
    ),
    Case(
        "nobody listens at the S3 endpoint",
        lambda world: world.endpoints(s3="http://127.0.0.1:9"),
        *("bucket", "EndpointConnectionError", "the server is down"),
    ),
    Case(
        "host name that does not resolve",
        lambda world: world.endpoints(s3="http://s3.invalid"),
        *("bucket", "EndpointConnectionError", "misspelt or the region does not exist"),
    ),
    Case(
        "endpoint that never answers",
        lambda world: world.endpoints(s3=world.silent_endpoint()),
        *("bucket", "ReadTimeoutError", "does not answer"),
        timeout=15,
    ),
    Case(
        "store that stops answering half-way",
        _hangs_once_written,
        *("get", "TimedOut", "does not answer"),
        timeout=10,
    ),
    Case(
        "https to a server that speaks http",
        lambda world: world.endpoints(s3=world.proxy.endpoint.replace("http:", "https:")),
        *("bucket", "SSLError", "its server speaks http"),
    ),
    Case(
        "proxy that is down",
        _proxy_down,
        *("identity", "ProxyConnectionError", "HTTP_PROXY"),
    ),
    Case(
        "clock that is wrong, as S3 says it",
        lambda world: world.proxy.on("ListObjectsV2", answer(403, "RequestTimeTooSkewed")),
        *("list", "RequestTimeTooSkewed", "clock"),
    ),
    Case(
        "clock that is wrong, as STS says it",
        lambda world: world.proxy.on(
            "GetCallerIdentity",
            answer(403, "SignatureDoesNotMatch", "Signature expired: 1 is now earlier than 2"),
        ),
        *("identity", "SignatureDoesNotMatch", "compare `date -u`"),
    ),
    Case(
        "store that is busy all the time",
        lambda world: world.proxy.on("ListObjectsV2", answer(503, "SlowDown")),
        *("list", "SlowDown", "busy"),
    ),
]

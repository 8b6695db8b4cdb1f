"""Two AWS emulators behind one face, and cases that both can express."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import boto3

from lakeload.demo.aws import ACCOUNT_ID, allow_assume_role, trust_policy
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    CredentialsSpec,
    DestinationSpec,
    EncryptionSpec,
    EndpointsSpec,
    ParquetSpec,
)
from tests.integration.permissions.shapes import KEY, SHAPES, actions, example_policies


@dataclass(frozen=True)
class Emulator:
    """One of them. `enforcing` makes it check signatures and policies for a while."""

    name: str
    endpoint: str
    enforcing: Callable[[], AbstractContextManager[None]] = nullcontext

    def client(self, service: str) -> Any:
        """Return a client of the administrator; not for use while enforcing."""
        make: Any = boto3.client  # typed overloads know only literal names
        return make(
            service,
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )


@dataclass
class Place:
    """A bucket, a user, and a role that may do everything; a case changes what it is about."""

    emulator: Emulator
    folder: Path
    destination: DestinationSpec = field(init=False)
    role: str = field(init=False)
    user: str = field(init=False)
    external_id: str = "the-external-id"

    def __post_init__(self) -> None:
        """Make them, with nothing wrong and the user's keys in use."""
        mark, iam = secrets.token_hex(6), self.emulator.client("iam")
        self.role, self.user = f"loader-{mark}", f"user-{mark}"
        bucket = f"lake-{mark}"
        self.emulator.client("s3").create_bucket(Bucket=bucket)
        iam.create_user(UserName=self.user)
        key = iam.create_access_key(UserName=self.user)["AccessKey"]
        self.secret("key", key["AccessKeyId"])
        self.secret("secret", key["SecretAccessKey"])
        self.user_policy(_all_but())
        place = self.emulator.endpoint
        self.destination = DestinationSpec(
            bucket=bucket,
            region="us-east-1",
            prefix="data-lake/test",
            credentials=CredentialsSpec(
                access_key_id=self.reference("key"), secret_access_key=self.reference("secret")
            ),
            endpoints=EndpointsSpec(s3=place, sts=place, glue=place),
        )

    def reference(self, name: str) -> SecretReference:
        """Return where the value of `secret` is."""
        return SecretReference("file", str(self.folder / name))

    def secret(self, name: str, value: str) -> None:
        """Set a secret of the destination."""
        (self.folder / name).write_text(value)

    def change(self, **changes: Any) -> None:
        """Change the destination."""
        self.destination = replace(self.destination, **changes)

    def user_policy(self, policy: object) -> None:
        """Replace what the user may do."""
        self.emulator.client("iam").put_user_policy(
            UserName=self.user, PolicyName="lakeload", PolicyDocument=json.dumps(policy)
        )

    def use_role(self, *denied: str, principal: str | None = None, condition: bool = True) -> None:
        """Load through the role, which may do everything but what is denied."""
        iam, arn = self.emulator.client("iam"), f"arn:aws:iam::{ACCOUNT_ID}:role/{self.role}"
        trusted = principal or f"arn:aws:iam::{ACCOUNT_ID}:user/{self.user}"
        trust = trust_policy(trusted, self.external_id if condition else None)
        iam.create_role(RoleName=self.role, AssumeRolePolicyDocument=json.dumps(trust))
        iam.put_role_policy(
            RoleName=self.role, PolicyName="lakeload", PolicyDocument=json.dumps(_all_but(*denied))
        )
        self.user_policy(allow_assume_role(arn))
        self.secret("external-id", self.external_id)
        credentials = replace(
            self.destination.credentials,
            role_arn=arn,
            external_id=self.reference("external-id"),
        )
        self.change(credentials=credentials)

    def other_region(self) -> None:
        """Name a bucket that lies elsewhere."""
        bucket = f"{self.destination.bucket}-west"
        self.emulator.client("s3").create_bucket(
            Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"}
        )
        self.change(bucket=bucket)

    def wrong_external_id(self) -> None:
        """Send another ExternalId than the trust policy demands."""
        self.use_role()
        self.secret("external-id", "another-id")

    def no_external_id(self) -> None:
        """Send none where the trust policy demands one."""
        self.use_role()
        self.change(credentials=replace(self.destination.credentials, external_id=None))

    def no_role(self) -> None:
        """Name a role that does not exist."""
        self.use_role()
        credentials = self.destination.credentials
        self.change(credentials=replace(credentials, role_arn=f"{credentials.role_arn}-not"))


@dataclass(frozen=True)
class Case:
    """What is wrong, or special; `enforced` where it takes signatures and policies."""

    name: str
    bend: Callable[[Place], object] = lambda place: None
    enforced: bool = False
    about: tuple[str, ...] = ("",)
    """How the names of the probes begin that are asked."""


def _all_but(*denied: str) -> dict[str, object]:
    allow = {"Effect": "Allow", "Action": ["s3:*", "glue:*", "kms:*", "sts:*"], "Resource": "*"}
    deny = {"Effect": "Deny", "Action": list(denied), "Resource": "*"}
    return {"Version": "2012-10-17", "Statement": [allow, *([deny] if denied else [])]}


def _kms(place: Place) -> None:
    place.change(encryption=EncryptionSpec("SSE_KMS", KEY))


def _glue(place: Place, **parquet: Any) -> None:
    spec = ParquetSpec(update_glue_catalog=True, **parquet)
    place.change(parquet=spec, glue_database_prefix="supaflow")


_WHO = ("credentials", "identity", "assume-role", "external-id")


def _denied(place: Place, action: str) -> None:
    place.use_role(action)
    if action.startswith("glue:"):
        _glue(place)


def _denials() -> list[Case]:
    """Return one case for each action of the policy for a destination with Glue."""
    granted = actions(example_policies(SHAPES["glue"]))
    return [
        Case(
            f"{action} denied",
            partial(_denied, action=action),
            enforced=True,
            about=(*_WHO, "glue") if action.startswith("glue:") else ("",),
        )
        for action in granted
    ]


CASES = [
    Case("nothing wrong"),
    Case("no prefix", lambda place: place.change(prefix="")),
    Case("special characters", lambda place: place.change(prefix="Größe & Co/a+b (1)=$x/'y'")),
    Case("no such bucket", lambda place: place.change(bucket="lake-that-is-nowhere")),
    Case("bucket in another region", Place.other_region),
    Case("single writer", lambda place: place.change(single_writer=True)),
    Case("SSE-S3", lambda place: place.change(encryption=EncryptionSpec("SSE_S3"))),
    Case("SSE-KMS", _kms),
    Case("Glue", _glue),
    Case("Glue with projection", partial(_glue, partition_projection=True)),
    Case("a role", Place.use_role, enforced=True),
    Case("wrong secret key", lambda place: place.secret("secret", "wrong"), enforced=True),
    Case(
        "unknown access key", lambda place: place.secret("key", "AKIAUNKNOWN12345"), enforced=True
    ),
    Case("wrong ExternalId", Place.wrong_external_id, enforced=True),
    Case("missing ExternalId", Place.no_external_id, enforced=True),
    Case("role that does not exist", Place.no_role, enforced=True),
    Case(
        "role that trusts somebody else",
        lambda place: place.use_role(principal=f"arn:aws:iam::{ACCOUNT_ID}:user/somebody-else"),
        enforced=True,
    ),
    Case("role that demands no ExternalId", lambda p: p.use_role(condition=False), enforced=True),
    *_denials(),
]

"""A destination with everything right, and ways to bend it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from lakeload.demo.aws import ACCOUNT_ID, allow_assume_role, loader_policy
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    CredentialsSpec,
    DestinationSpec,
    EncryptionSpec,
    EndpointsSpec,
)
from tests.servers.fault_proxy import FaultProxy, answer
from tests.servers.ministack import EXTERNAL_ID_VARIABLE, Lake

EXTERNAL_ID = SecretReference("env", EXTERNAL_ID_VARIABLE)
KEY = f"arn:aws:kms:us-east-1:{ACCOUNT_ID}:key/11111111-2222-3333-4444-555555555555"


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
        kept = []
        for statement in self._statements():
            allowed = statement["Action"]
            rest = [one for one in _listed(allowed) if one not in actions]
            if rest:
                kept.append({**statement, "Action": rest})
        self._use(kept)

    def forbid(self, *actions: str) -> None:
        """Add a Deny of actions to the role's policy."""
        denial = {"Effect": "Deny", "Action": list(actions), "Resource": "*"}
        self._use([*self._statements(), denial])

    def _statements(self) -> list[dict[str, Any]]:
        statements = loader_policy(self.lake.seeded.bucket, self.lake.seeded.prefix)["Statement"]
        assert isinstance(statements, list)
        return statements

    def _use(self, statements: list[dict[str, Any]]) -> None:
        policy = {"Version": "2012-10-17", "Statement": statements}
        self.lake.server.admin.put_role_policy(self.lake.seeded.role, policy)

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

    def profile(self, settings: str) -> None:
        """Take the base identity from the profile `lake` of a file with these settings."""
        path = self.folder / "aws-config"
        path.write_text(f"[profile lake]\n{settings}\n")
        self.environment.setenv("AWS_CONFIG_FILE", str(path))
        self.credentials(profile="lake")

    def without_keys(self) -> None:
        """Take the base identity's keys out of the environment."""
        self.environment.delenv("AWS_ACCESS_KEY_ID")
        self.environment.delenv("AWS_SECRET_ACCESS_KEY")

    def encrypt(self, key: str = KEY) -> None:
        """Encrypt with a KMS key."""
        self.change(encryption=EncryptionSpec("SSE_KMS", key))

    def refuse(self, operation: str, action: str, why: str, resource: str = "arn") -> None:
        """Let AWS deny an operation in its own words."""
        user = f"User: arn:aws:sts::{ACCOUNT_ID}:assumed-role/loader/lakeload"
        text = f"{user} is not authorized to perform: {action} on resource: {resource} {why}"
        self.proxy.on(operation, answer(403, "AccessDenied", text))


@dataclass(frozen=True)
class Case:
    """One misconfiguration: how to cause it, and what must be said about it.

    `says` must appear in the message, the causes or the hint. Those that wait for an answer get a
    `timeout` (seconds) in which a busy machine asks everything else.
    """

    name: str
    bend: Callable[[World], object]
    probe: str
    code: str
    says: str
    warning: bool = False
    timeout: float = 20.0


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value

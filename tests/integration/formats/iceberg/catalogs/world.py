"""A destination with an Iceberg catalog, its probes, and what they leave."""

from __future__ import annotations

import tempfile
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from lakeload.checks import CheckStatus
from lakeload.probes.connection import ConnectionOptions, ConnectionTest
from lakeload.probes.runner import ConnectionVerdict, Failure, Probe
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    CredentialsSpec,
    DestinationSpec,
    EndpointsSpec,
    IcebergSpec,
)
from tests.servers.seaweedfs import KEY, SECRET, SeaweedFs

PREFIX = "team/lake"
_FOLDER = tempfile.TemporaryDirectory(prefix="lakeload-secrets-")


def secret(environment: pytest.MonkeyPatch, name: str, value: str) -> SecretReference:
    """Put a secret into the environment and return the reference to it."""
    environment.setenv(name, value)
    return SecretReference("env", name)


def secret_file(name: str, value: str) -> SecretReference:
    """Put a secret into a file and return the reference to it. Tasks read it too: the Python
    processes of a Spark session have the environment of its start."""
    path = Path(_FOLDER.name) / f"{name}-{uuid.uuid4().hex}"
    path.write_text(value)
    return SecretReference("file", str(path))


@dataclass
class World:
    """What a misconfiguration may bend: the destination and its catalog."""

    store: SeaweedFs
    environment: pytest.MonkeyPatch
    bucket: str
    catalog: CatalogSpec
    destination: DestinationSpec = field(init=False)

    def __post_init__(self) -> None:
        """Begin with everything right, and the store's administrator as the identity."""
        keys = CredentialsSpec(
            access_key_id=secret(self.environment, "STORE_KEY", KEY),
            secret_access_key=secret(self.environment, "STORE_SECRET", SECRET),
        )
        self.destination = DestinationSpec(
            bucket=self.bucket,
            region="us-east-1",
            prefix=PREFIX,
            credentials=keys,
            endpoints=EndpointsSpec(s3=self.store.s3_endpoint),
            table_format="ICEBERG",
            iceberg=IcebergSpec(catalog=self.catalog),
        )

    def change(self, **changes: Any) -> None:
        """Change the catalog's settings."""
        changed = replace(self.destination.iceberg.catalog, **changes)
        iceberg = replace(self.destination.iceberg, catalog=changed)
        self.destination = replace(self.destination, iceberg=iceberg)

    def move(self, bucket: str) -> None:
        """Change the destination's bucket."""
        self.destination = replace(self.destination, bucket=bucket)

    def secret(self, name: str, value: str) -> SecretReference:
        """Put a secret into the environment and return the reference to it."""
        return secret(self.environment, name, value)

    def ask(self, **options: Any) -> ConnectionVerdict:
        """Run the probes of the catalog, and what they need, to the end."""
        settings = {"timeout": 20.0, **options}
        everything = ConnectionTest(self.destination, ConnectionOptions(**settings)).probes
        names = {p.name for p in everything if p.name.startswith("catalog")}
        chosen = frozenset({"credentials", "assume-role", *names})
        test = ConnectionTest(self.destination, ConnectionOptions(only=chosen, **settings))
        for _ in test.run():
            pass
        return test.verdict()


def problems(verdict: ConnectionVerdict) -> dict[str, str]:
    """Return what became of each catalog probe that did not pass and has a point here."""
    return {
        result.probe.name: str(result.status)
        for result in verdict.results
        if result.status is not CheckStatus.PASSED and not result.probe.beside_the_point
    }


def first_failure(verdict: ConnectionVerdict) -> tuple[Probe, Failure]:
    """Return the first probe that failed or warned, and why."""
    result = next(result for result in verdict.results if result.failure is not None)
    assert result.failure is not None
    return result.probe, result.failure


def told(failure: Failure) -> str:
    """Return everything that is said about a failure."""
    return "\n".join([failure.message, *failure.causes, failure.hint or ""])

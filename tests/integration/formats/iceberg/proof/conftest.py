"""One JVM and every catalog, for all questions."""

from __future__ import annotations

from collections.abc import Iterator

import py4j.java_gateway
import py4j.protocol
import pytest

from tests.integration.formats.iceberg.proof.own_client import GLUE_BUCKET
from tests.integration.formats.iceberg.proof.places import (
    Place,
    Server,
    places,
    proxied,
)
from tests.servers.ministack import AwsServer
from tests.servers.nessie import Nessie
from tests.servers.seaweedfs import SeaweedFs


@pytest.fixture(scope="session")
def proxies(
    aws: AwsServer, seaweedfs: SeaweedFs, rest_backend: str, nessie: Nessie
) -> Iterator[dict[str, Server]]:
    """Every catalog behind a proxy, by name."""
    aws.s3.create_bucket(Bucket=GLUE_BUCKET)
    with proxied(aws, seaweedfs, rest_backend, nessie) as found:
        yield found


@pytest.fixture(scope="session")
def catalogs(
    proxies: dict[str, Server], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Place]]:
    """Every catalog by name, with Java's client."""
    with places(proxies, tmp_path_factory.mktemp("proof")) as found:
        yield found


@pytest.fixture(autouse=True)
def plain_exceptions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the exceptions of this package's own JVM as they are.

    A Spark session of the same process has py4j ask Spark's JVM what an exception says.
    """
    plain = py4j.protocol.get_return_value
    monkeypatch.setattr(py4j.java_gateway, "get_return_value", plain)

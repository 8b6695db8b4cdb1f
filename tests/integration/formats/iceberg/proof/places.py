"""Each catalog, and two ways to it: ours through a proxy that holds commits, and a stranger's."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaGateway

from lakeload_jobs.formats.iceberg.commits.errors import CommitRejected
from tests.integration.formats.iceberg.proof.client import NAMESPACE, Client
from tests.integration.formats.iceberg.proof.jvm import iceberg_jvm, open_catalog
from tests.integration.formats.iceberg.proof.own_client import GLUE_BUCKET, OwnClient, own_client
from tests.servers import nessie as nessie_server
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import FaultProxy, Forward, Response, Rule
from tests.servers.ministack import AwsServer
from tests.servers.nessie import Nessie
from tests.servers.oauth2_gate import CATALOG, Gate
from tests.servers.seaweedfs import KEY, SECRET, SeaweedFs

CATALOGS = ("GLUE", "REST", "SEAWEEDFS", "NESSIE", "NESSIE_NATIVE")

_COMMIT = re.compile(r"/namespaces/[^/?]+/tables/[^/?]+(\?|$)")
_CREATE = re.compile(r"/namespaces/[^/?]+/tables(\?|$)")
_NESSIE_COMMIT = re.compile(r"/trees/[^/?]+/history/commit")


def is_commit(request: Request) -> bool:
    """Whether a request changes a table, in the language of any of the catalogs."""
    if request.operation == "UpdateTable":
        return True
    if request.method != "POST":
        return False
    return any(shape.search(request.target) for shape in (_COMMIT, _NESSIE_COMMIT))


def is_create(request: Request) -> bool:
    """Whether a request makes a table."""
    if request.operation == "CreateTable":
        return True
    if request.method != "POST":
        return False
    return any(shape.search(request.target) for shape in (_COMMIT, _CREATE, _NESSIE_COMMIT))


@dataclass
class Place:
    """One catalog. `ours` goes through the proxy, `theirs` straight to the server."""

    name: str
    ours: Client | OwnClient
    theirs: Client | OwnClient
    proxy: FaultProxy
    _made: list[str] = field(default_factory=list)

    @property
    def java(self) -> Client:
        """Ours, for what Java's client alone can do."""
        assert isinstance(self.ours, Client)
        return self.ours

    def table(self, question: str, *files: str) -> str:
        """Make a table of this question and return its name."""
        name = self.name_of(question)
        self.theirs.create(name, *files)
        return name

    def name_of(self, question: str) -> str:
        """Return the name of a table that nobody has made yet."""
        # Both of Nessie's interfaces show one catalog, and places share their servers.
        name = f"{self.name}_{question}_{secrets.token_hex(4)}".lower()
        self._made.append(name)
        return name

    @property
    def last(self) -> str:
        """The name that was given last."""
        return self._made[-1]

    @contextmanager
    def commits(
        self,
        action: Callable[[Request, Forward], Response],
        *,
        which: Callable[[Request], bool] = is_commit,
        times: int = 1,
    ) -> Iterator[list[Request]]:
        """Let `action` handle our next commits; yields those that came."""
        seen: list[Request] = []

        def act(request: Request, forward: Forward) -> Response:
            if not which(request):
                return forward(request)
            seen.append(request)
            return action(request, forward) if len(seen) <= times else forward(request)

        rule = Rule("*", act)
        self.proxy.rules.append(rule)
        try:
            yield seen
        finally:
            self.proxy.rules.remove(rule)


@dataclass(frozen=True)
class Server:
    """Where a catalog is, behind a proxy and without it, and the store of its tables."""

    uri: str
    proxy: FaultProxy
    s3: str


@contextmanager
def proxied(
    aws: AwsServer, seaweedfs: SeaweedFs, rest: str, nessie: Nessie
) -> Iterator[dict[str, Server]]:
    """Put a proxy in front of every catalog."""
    with ExitStack() as stack:
        gate = stack.enter_context(Gate(rest))
        found = {}
        for name, uri in {
            "GLUE": aws.endpoint,
            "REST": gate.uri.removesuffix("/api/catalog"),
            "SEAWEEDFS": seaweedfs.catalog,
            "NESSIE": nessie.uri,
            "NESSIE_NATIVE": nessie.uri,
        }.items():
            proxy = FaultProxy(uri)
            proxy.start()
            stack.callback(proxy.stop)
            s3 = aws.endpoint if name == "GLUE" else seaweedfs.s3_endpoint
            found[name] = Server(uri, proxy, s3)
        yield found


@contextmanager
def places(servers: Mapping[str, Server], folder: Path) -> Iterator[dict[str, Place]]:
    """Open every catalog, twice, in one JVM."""
    with iceberg_jvm(folder) as gateway:
        found = {}
        for name, server in servers.items():
            ours = _client(gateway, name, server.proxy.endpoint, server.s3)
            theirs = _client(gateway, name, server.uri, server.s3)
            found[name] = Place(name, ours, theirs, server.proxy)
            _make_namespace(theirs)
        yield found


def own_place(name: str, server: Server, version: int, theirs: Client | None = None) -> Place:
    """Open a catalog with lakeload's own requests; the stranger is `theirs`, else another such
    writer."""
    namespace = NAMESPACE if theirs else f"{NAMESPACE}_own"
    ours = own_client(name, server.proxy.endpoint, server.s3, namespace, version=version)
    other = own_client(name, server.uri, server.s3, namespace, version=version)
    with suppress(CommitRejected):
        other.store.create_namespace(namespace, None)
    return Place(name, ours, theirs or other, server.proxy)


def _client(gateway: JavaGateway, name: str, server: str, s3: str) -> Client:
    properties = {**_properties(name, server), **_store(name, s3)}
    return Client(gateway, open_catalog(gateway, properties))


def _store(name: str, s3: str) -> dict[str, str]:
    key, secret = ("test", "test") if name == "GLUE" else (KEY, SECRET)
    return {
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "s3.endpoint": s3,
        "s3.path-style-access": "true",
        "s3.access-key-id": key,
        "s3.secret-access-key": secret,
        "client.region": "us-east-1",
    }


def _properties(name: str, server: str) -> dict[str, str]:
    if name == "GLUE":
        return {
            "type": "glue",
            "warehouse": f"s3://{GLUE_BUCKET}/lake",
            "glue.endpoint": server,
        }
    if name == "REST":
        return {
            "type": "rest",
            "uri": f"{server}/api/catalog",
            "warehouse": CATALOG,
            "oauth2-server-uri": f"{server}/api/catalog/v1/oauth/tokens",
            "credential": "loader-id:loader-secret",
            "scope": "PRINCIPAL_ROLE:ALL",
        }
    if name == "SEAWEEDFS":
        return {
            "type": "rest",
            "uri": server,
            "warehouse": "s3://warehouse",
            "oauth2-server-uri": f"{server}/v1/oauth/tokens",
            "credential": f"{KEY}:{SECRET}",
            "scope": "PRINCIPAL_ROLE:ALL",
        }
    if name == "NESSIE":
        return {"type": "rest", "uri": f"{server}/iceberg/main"}
    warehouse = f"s3://{nessie_server.BUCKET}/native"
    return {"type": "nessie", "uri": f"{server}/api/v2", "ref": "main", "warehouse": warehouse}


def _make_namespace(client: Client) -> None:
    identifier = client.identifier("any")
    spaces: Any = client.catalog
    if not spaces.namespaceExists(identifier.namespace()):
        spaces.createNamespace(identifier.namespace())
    assert NAMESPACE in str(identifier.namespace())

"""A destination for each kind of catalog on a real server, and an independent reader of its tables.

The reader is pyiceberg's own client with credentials of its own: nothing of the product takes part.
Each world has a namespace of its own, since the servers outlive a test.
"""

from __future__ import annotations

import json
import secrets
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import StaticTable, Table

from lakeload.demo.aws import seed_lake
from lakeload.demo.aws_policies import destination_policy
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    CredentialsSpec,
    DestinationSpec,
    EndpointsSpec,
    IcebergSpec,
    SigV4Spec,
)
from tests.integration.catalogs.world import PREFIX, secret
from tests.servers import nessie as nessie_server
from tests.servers.ministack import EXTERNAL_ID_VARIABLE, AwsServer, Lake
from tests.servers.nessie import Nessie
from tests.servers.oauth2_gate import CATALOG, Gate, Principal
from tests.servers.rest_catalog import BUCKET as REST_BUCKET
from tests.servers.seaweedfs import KEY, SECRET, TABLE_BUCKET, SeaweedFs

READER = Principal("reader", "reader-secret", {"reader_role": frozenset()})
ADMINISTRATOR = ("test", "test")
"""The emulator knows its administrator by this key pair."""

Reader = Callable[[str, str], Table]
"""Namespace and table → the table as it is now."""


@dataclass(frozen=True)
class CatalogWorld:
    """One catalog, ready to be loaded into."""

    name: str
    destination: DestinationSpec
    read: Reader
    gates: tuple[Gate, ...] = ()
    """The gates before it, which remember what they were asked."""
    schema: str = field(default="")

    def __post_init__(self) -> None:
        """Name the namespace after the world, with Glue's prefix."""
        if not self.schema:
            prefix = self.destination.glue_database_prefix
            plain = f"shop_{self.name}".replace("-", "_")
            object.__setattr__(self, "schema", f"{prefix}_{plain}" if prefix else plain)


def _store_settings(endpoint: str, key: str, secret_key: str) -> dict[str, str]:
    return {
        "s3.endpoint": endpoint,
        "s3.access-key-id": key,
        "s3.secret-access-key": secret_key,
        "s3.region": "us-east-1",
    }


def _client(store: dict[str, str], **settings: str) -> Reader:
    """Return a reader that opens the catalog anew for each table."""

    def read(namespace: str, table: str) -> Table:
        dotted = {name.replace("__", ".").replace("_", "-"): v for name, v in settings.items()}
        return load_catalog("reader", **{**store, **dotted}).load_table((namespace, table))

    return read


def store_keys(environment: pytest.MonkeyPatch) -> CredentialsSpec:
    """Return the SeaweedFS administrator's keys, as references into the environment."""
    return CredentialsSpec(
        access_key_id=secret(environment, "STORE_KEY", KEY),
        secret_access_key=secret(environment, "STORE_SECRET", SECRET),
    )


def _stored(
    store: SeaweedFs, environment: pytest.MonkeyPatch, bucket: str, catalog: CatalogSpec
) -> DestinationSpec:
    return DestinationSpec(
        bucket=bucket,
        region="us-east-1",
        prefix=PREFIX,
        credentials=store_keys(environment),
        endpoints=EndpointsSpec(s3=store.s3_endpoint),
        table_format="ICEBERG",
        iceberg=IcebergSpec(catalog=catalog),
    )


def exact_lake(server: AwsServer, environment: pytest.MonkeyPatch) -> Lake:
    """Return a lake on the AWS that checks what AWS checks; its base identity is this process's."""
    bucket = f"lake-{secrets.token_hex(6)}"
    lake = Lake(server, seed_lake(server.admin, bucket=bucket, prefix=PREFIX))
    for name, value in lake.environment.items():
        environment.setenv(name, value)
    return lake


def glue_destination(lake: Lake) -> DestinationSpec:
    """Return Glue on the emulator, reached with a role and its ExternalId."""
    seeded, place = lake.seeded, lake.server.endpoint
    return DestinationSpec(
        bucket=seeded.bucket,
        region=seeded.region,
        prefix=seeded.prefix,
        credentials=CredentialsSpec(
            role_arn=seeded.role_arn, external_id=SecretReference("env", EXTERNAL_ID_VARIABLE)
        ),
        endpoints=EndpointsSpec(s3=place, sts=place, glue=place),
        glue_database_prefix="lakes",
        table_format="ICEBERG",
    )


def glue_world(lake: Lake) -> CatalogWorld:
    """Glue, with AssumeRole, ExternalId and the generated policy."""
    destination = glue_destination(lake)
    lake.server.admin.put_role_policy(lake.seeded.role, destination_policy(destination))
    place = lake.server.endpoint
    key, secret_key = ADMINISTRATOR
    reader = _client(
        _store_settings(place, key, secret_key),
        type="glue",
        glue__endpoint=place,
        glue__region=lake.seeded.region,
        glue__access_key_id=key,
        glue__secret_access_key=secret_key,
    )
    return CatalogWorld("glue", destination, reader)


def _gate_reader(store: SeaweedFs, gate: Gate) -> Reader:
    gate.principals["reader-id"] = READER
    return _client(
        _store_settings(store.s3_endpoint, KEY, SECRET),
        type="rest",
        uri=gate.uri,
        warehouse=CATALOG,
        credential=f"reader-id:{READER.secret}",
        scope="PRINCIPAL_ROLE:ALL",
    )


@contextmanager
def rest_client_world(
    store: SeaweedFs, backend: str, environment: pytest.MonkeyPatch
) -> Iterator[CatalogWorld]:
    """A REST catalog whose tokens come from another server; the destination's own keys write."""
    with Gate(backend) as gate, Gate(backend, _tokens=gate._tokens) as tokens:
        catalog = CatalogSpec(
            type="REST",
            uri=gate.uri,
            warehouse=CATALOG,
            credential=secret(environment, "CREDENTIAL", "loader-id:loader-secret"),
            scope="PRINCIPAL_ROLE:loader_role",
            oauth2_server_uri=f"{tokens.uri}/v1/oauth/tokens",
            access_delegation="NONE",
            headers={"X-Tenant": secret(environment, "TENANT", "tenant-4711")},
        )
        destination = _stored(store, environment, REST_BUCKET, catalog)
        yield CatalogWorld("rest", destination, _gate_reader(store, gate), (gate, tokens))


@contextmanager
def rest_token_world(
    store: SeaweedFs, backend: str, environment: pytest.MonkeyPatch
) -> Iterator[CatalogWorld]:
    """A REST catalog that is given a token, and lends the keys that write."""
    with Gate(backend) as gate:
        form = {"client_id": "loader-id", "client_secret": "loader-secret"}
        _, answer = gate.token_for({**form, "scope": "PRINCIPAL_ROLE:ALL"})
        catalog = CatalogSpec(
            type="REST",
            uri=gate.uri,
            warehouse=CATALOG,
            token=secret(environment, "TOKEN", str(answer["access_token"])),
        )
        destination = _stored(store, environment, REST_BUCKET, catalog)
        yield CatalogWorld("rest-token", destination, _gate_reader(store, gate), (gate,))


@contextmanager
def open_catalog_world(
    store: SeaweedFs, backend: str, environment: pytest.MonkeyPatch
) -> Iterator[CatalogWorld]:
    """Open Catalog's stand-in: Polaris's answers, its scope, and keys that it lends."""
    with Gate(backend) as gate:
        catalog = CatalogSpec(
            type="SNOWFLAKE_OPEN_CATALOG",
            uri=gate.uri,
            warehouse=CATALOG,
            client_id=secret(environment, "CLIENT_ID", "loader-id"),
            client_secret=secret(environment, "CLIENT_SECRET", "loader-secret"),
            scope="PRINCIPAL_ROLE:loader_role",
            catalog_region="us-east-1",
        )
        destination = _stored(store, environment, REST_BUCKET, catalog)
        yield CatalogWorld("open-catalog", destination, _gate_reader(store, gate), (gate,))


def _seaweedfs_reader(store: SeaweedFs) -> Reader:
    return _client(
        _store_settings(store.s3_endpoint, KEY, SECRET),
        type="rest",
        uri=store.catalog,
        warehouse=store.warehouse,
        credential=f"{KEY}:{SECRET}",
        scope="PRINCIPAL_ROLE:ALL",
    )


def seaweedfs_world(store: SeaweedFs, environment: pytest.MonkeyPatch) -> CatalogWorld:
    """SeaweedFS's own catalog and OAuth2; it lends no keys."""
    catalog = CatalogSpec(
        type="REST",
        uri=store.catalog,
        warehouse=store.warehouse,
        credential=secret(environment, "CREDENTIAL", f"{KEY}:{SECRET}"),
        scope="PRINCIPAL_ROLE:ALL",
        access_delegation="NONE",
    )
    destination = _stored(store, environment, TABLE_BUCKET, catalog)
    return CatalogWorld("seaweedfs", destination, _seaweedfs_reader(store))


def sigv4_world(store: SeaweedFs, environment: pytest.MonkeyPatch) -> CatalogWorld:
    """SeaweedFS again, which checks AWS's signature as well."""
    catalog = CatalogSpec(
        type="REST",
        uri=store.catalog,
        warehouse=store.warehouse,
        sigv4=SigV4Spec(signing_name="s3tables"),
        access_delegation="NONE",
    )
    destination = _stored(store, environment, TABLE_BUCKET, catalog)
    return CatalogWorld("sigv4", destination, _seaweedfs_reader(store))


@contextmanager
def nessie_world(nessie: Nessie, environment: pytest.MonkeyPatch) -> Iterator[CatalogWorld]:
    """Nessie on a branch of the test's own, by its native interface: the other has no branches of
    tables, and nothing is loaded through it."""
    branch = "lakes"
    catalog = CatalogSpec(type="NESSIE", uri=nessie.uri, ref=branch, api="NATIVE")
    destination = _stored(nessie.store, environment, nessie_server.BUCKET, catalog)
    store = _store_settings(nessie.store.s3_endpoint, KEY, SECRET)

    def read(namespace: str, table: str) -> Table:
        path = f"trees/{branch}/contents/{namespace}.{table}"
        found = _nessie(nessie, "GET", path)["content"]["metadataLocation"]
        return StaticTable.from_metadata(found, store)

    main = _nessie(nessie, "GET", "trees/main")["reference"]
    _nessie(nessie, "POST", f"trees?name={branch}&type=BRANCH", main)
    try:
        yield CatalogWorld("nessie", destination, read)
    finally:
        head = _nessie(nessie, "GET", f"trees/{branch}")["reference"]["hash"]
        _nessie(nessie, "DELETE", f"trees/{branch}@{head}?type=BRANCH")


def _nessie(nessie: Nessie, method: str, path: str, body: Any = None) -> dict[str, Any]:
    request = urllib.request.Request(  # noqa: S310
        f"{nessie.uri}/api/v2/{path}",
        json.dumps(body).encode() if body else None,
        {"Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
        content = answer.read()
    found: dict[str, Any] = json.loads(content) if content else {}
    return found


WORLDS = ("glue", "rest", "open-catalog", "seaweedfs", "nessie")
"""Those that go through the whole of a table's life."""
VARIANTS = ("rest-token", "sigv4")
"""Other ways to be let in: the writing behind them is the same."""


@contextmanager
def worlds(
    request: pytest.FixtureRequest, environment: pytest.MonkeyPatch
) -> Iterator[Callable[[str], CatalogWorld]]:
    """Yield a maker of worlds by name; servers start when the first of their worlds is made."""
    with ExitStack() as stack:

        def server(fixture: str) -> Any:
            return request.getfixturevalue(fixture)

        def made(name: str) -> CatalogWorld:
            if name == "glue":
                return glue_world(exact_lake(server("exact_aws"), environment))
            if name == "seaweedfs":
                return seaweedfs_world(server("seaweedfs"), environment)
            if name == "sigv4":
                return sigv4_world(server("seaweedfs"), environment)
            if name == "nessie":
                return stack.enter_context(nessie_world(server("nessie"), environment))
            gated = {
                "rest": rest_client_world,
                "rest-token": rest_token_world,
                "open-catalog": open_catalog_world,
            }[name]
            return stack.enter_context(
                gated(server("seaweedfs"), server("rest_backend"), environment)
            )

        yield made

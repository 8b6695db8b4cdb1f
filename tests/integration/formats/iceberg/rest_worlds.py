"""REST catalogs on real servers: those behind a gate with Polaris's answers, and SeaweedFS's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lakeload_jobs.contract.spec import CatalogSpec, SigV4Spec
from tests.integration.formats.iceberg.catalog_world import (
    CatalogWorld,
    Reader,
    client,
    store_settings,
    stored_destination,
)
from tests.integration.formats.iceberg.catalogs.world import secret
from tests.servers.oauth2_gate import CATALOG, Gate, Principal
from tests.servers.rest_catalog import BUCKET as REST_BUCKET
from tests.servers.seaweedfs import KEY, SECRET, TABLE_BUCKET, SeaweedFs

READER = Principal("reader", "reader-secret", {"reader_role": frozenset()})


def _gate_reader(store: SeaweedFs, gate: Gate) -> Reader:
    gate.principals["reader-id"] = READER
    return client(
        store_settings(store.s3_endpoint, KEY, SECRET),
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
        destination = stored_destination(store, REST_BUCKET, catalog)
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
        destination = stored_destination(store, REST_BUCKET, catalog)
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
        destination = stored_destination(store, REST_BUCKET, catalog)
        yield CatalogWorld("open-catalog", destination, _gate_reader(store, gate), (gate,))


def _seaweedfs_reader(store: SeaweedFs) -> Reader:
    return client(
        store_settings(store.s3_endpoint, KEY, SECRET),
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
    destination = stored_destination(store, TABLE_BUCKET, catalog)
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
    destination = stored_destination(store, TABLE_BUCKET, catalog)
    return CatalogWorld("sigv4", destination, _seaweedfs_reader(store))

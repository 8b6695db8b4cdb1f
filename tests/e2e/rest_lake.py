"""A REST catalog behind Polaris's answers for the whole command, and its tables read back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyiceberg.catalog import Catalog, load_catalog

from tests.servers.ministack import Lake
from tests.servers.oauth2_gate import CATALOG, Gate, Principal
from tests.servers.rest_catalog import Store, started

CLIENT_SECRET = "canary-client-secret-77"
"""The secret of the client `loader-id`."""


@contextmanager
def gate_of(lake: Lake) -> Iterator[Gate]:
    """Start a catalog whose tables lie in the lake's bucket, below the lake's prefix."""
    seeded = lake.seeded
    warehouse = f"s3://{seeded.bucket}/{seeded.prefix}"
    store = Store(lake.server.endpoint, warehouse, "test", "test")
    with started(store) as backend, Gate(backend) as running:
        running.principals["loader-id"] = Principal(
            "loader", CLIENT_SECRET, {"loader_role": frozenset()}
        )
        running.principals["reader-id"] = Principal("reader", "r", {"reader_role": frozenset()})
        yield running


def iceberg_in(gate: Gate, uri: str | None = None) -> dict[str, Any]:
    """Return what a destination says of the catalog, which vends no keys: files are written with
    the destination's role. The secret is in the variable CREDENTIAL."""
    catalog = {
        "type": "REST",
        "uri": uri or gate.uri,
        "warehouse": CATALOG,
        "credential": {"env": "CREDENTIAL"},
        "scope": "PRINCIPAL_ROLE:ALL",
        "access_delegation": "NONE",
    }
    return {"table_format": "ICEBERG", "iceberg": {"catalog": catalog}}


def opened(gate: Gate, endpoint: str, credential: str = "reader-id:r") -> Catalog:
    """Return the catalog as another program opens it, with an administrator's keys to S3."""
    return load_catalog(
        "reader",
        **{
            "type": "rest",
            "uri": gate.uri,
            "warehouse": CATALOG,
            "credential": credential,
            "scope": "PRINCIPAL_ROLE:ALL",
            "s3.endpoint": endpoint,
            "s3.region": "us-east-1",
            "s3.access-key-id": "test",
            "s3.secret-access-key": "test",
        },
    )


def rows(lake: Lake, gate: Gate, table: str) -> list[dict[str, Any]]:
    """Return what pyiceberg reads as another principal, without tracking columns."""
    catalog = opened(gate, lake.server.endpoint)
    found = catalog.load_table(("shop", table)).scan().to_arrow().to_pylist()
    plain = [{k: v for k, v in one.items() if not k.startswith("_supa_")} for one in found]
    return sorted(plain, key=lambda one: one["id"])


def write_pipeline(lake: Lake, folder: Path, catalog: dict[str, Any], *tables: str) -> None:
    """Write documents whose tables are UPSERTs of CSV files."""
    lake.write_pipeline(
        folder,
        tables=[
            {"table": name, "path": f"{name}.csv", "mode": "UPSERT", "primary_key": ["id"]}
            for name in tables
        ],
        destination={"table_format": "ICEBERG", "iceberg": {"catalog": catalog}},
        destination_prefix=None,
        namespace="shop",
    )

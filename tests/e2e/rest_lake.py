"""A REST catalog behind Polaris's answers for the whole command, and its tables read back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.servers.ministack import Lake
from tests.servers.oauth2_gate import Gate, Principal, opened
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

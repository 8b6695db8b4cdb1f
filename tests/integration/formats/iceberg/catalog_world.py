"""A catalog to load into on a real server, and an independent reader of its tables.

The reader is pyiceberg's own client with credentials of its own: nothing of the product takes part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from lakeload_jobs.contract.spec import (
    CatalogSpec,
    CredentialsSpec,
    DestinationSpec,
    EndpointsSpec,
    IcebergSpec,
)
from tests.integration.formats.iceberg.catalogs.world import PREFIX, secret_file
from tests.servers.oauth2_gate import Gate
from tests.servers.seaweedfs import KEY, SECRET, SeaweedFs

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


def store_settings(endpoint: str, key: str, secret_key: str) -> dict[str, str]:
    """Return the settings with which pyiceberg reaches a store."""
    return {
        "s3.endpoint": endpoint,
        "s3.access-key-id": key,
        "s3.secret-access-key": secret_key,
        "s3.region": "us-east-1",
    }


def client(store: dict[str, str], **settings: str) -> Reader:
    """Return a reader that opens the catalog anew for each table."""

    def read(namespace: str, table: str) -> Table:
        dotted = {name.replace("__", ".").replace("_", "-"): v for name, v in settings.items()}
        return load_catalog("reader", **{**store, **dotted}).load_table((namespace, table))

    return read


def stored_destination(store: SeaweedFs, bucket: str, catalog: CatalogSpec) -> DestinationSpec:
    """Return a destination in a bucket of SeaweedFS, with its administrator's keys."""
    return DestinationSpec(
        bucket=bucket,
        region="us-east-1",
        prefix=PREFIX,
        credentials=_store_keys(),
        endpoints=EndpointsSpec(s3=store.s3_endpoint),
        table_format="ICEBERG",
        iceberg=IcebergSpec(catalog=catalog),
    )


def _store_keys() -> CredentialsSpec:
    """Return the SeaweedFS administrator's keys, as references to files."""
    return CredentialsSpec(
        access_key_id=secret_file("STORE_KEY", KEY),
        secret_access_key=secret_file("STORE_SECRET", SECRET),
    )

"""The catalogs of the campaign, each on servers of its own behind fault proxies."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import StaticTable, Table

from tests.faults.iceberg.world import World
from tests.servers.fault_proxy import FaultProxy
from tests.servers.ministack import AwsServer, Lake
from tests.servers.nessie import started as started_nessie
from tests.servers.oauth2_gate import Gate, iceberg_in, opened
from tests.servers.rest_catalog import Store, started

CREDENTIAL = "CREDENTIAL"
"""The variable that `iceberg_in` names."""


@contextmanager
def glue_world(aws: AwsServer, lake: Lake, folder: Path, seed: str) -> Iterator[World]:
    """Tables in the emulator's Glue."""
    with _proxy(aws.endpoint) as proxy:
        _allow_everything(lake)
        prefix = lake.seeded.bucket.replace("-", "_")
        place = proxy.endpoint
        destination = {
            "table_format": "ICEBERG",
            "glue_database_prefix": prefix,
            "endpoints": {"s3": place, "sts": place, "glue": place},
        }

        def direct() -> Catalog:
            keys = {"access-key-id": "test", "secret-access-key": "test", "region": "us-east-1"}
            settings = {"type": "glue", "glue.endpoint": aws.endpoint}
            settings |= {f"glue.{name}": value for name, value in keys.items()}
            return load_catalog("oracle", **settings, **_store(aws))

        yield World("glue", lake, (proxy,), destination, direct, folder, seed)


@contextmanager
def rest_world(aws: AwsServer, lake: Lake, folder: Path, seed: str) -> Iterator[World]:
    """Tables in a REST catalog behind a gate; data goes to the same emulator."""
    _allow_everything(lake)
    seeded = lake.seeded
    warehouse = f"s3://{seeded.bucket}/{seeded.prefix}"
    # Spark writes where a catalog gives other keys than those of the destination's role.
    store = Store(aws.endpoint, warehouse, "test", "test", tells_keys=False)
    with ExitStack() as stack:
        gate = stack.enter_context(Gate(stack.enter_context(started(store))))
        proxy = stack.enter_context(_proxy(aws.endpoint))
        to_catalog = stack.enter_context(_proxy(gate.uri.removesuffix("/api/catalog")))
        os.environ[CREDENTIAL] = "loader-id:loader-secret"
        stack.callback(os.environ.pop, CREDENTIAL, None)
        destination = {
            **iceberg_in(gate, f"{to_catalog.endpoint}/api/catalog"),
            "endpoints": {"s3": proxy.endpoint, "sts": proxy.endpoint},
        }
        direct = partial(opened, gate, aws.endpoint, os.environ[CREDENTIAL])
        yield World("rest", lake, (proxy, to_catalog), destination, direct, folder, seed)


@contextmanager
def nessie_world(aws: AwsServer, lake: Lake, folder: Path, seed: str) -> Iterator[World]:
    """Tables in Nessie by its native interface; all files are in the same emulator."""
    _allow_everything(lake)
    seeded = lake.seeded
    warehouse = f"s3://{seeded.bucket}/{seeded.prefix}"
    place = folder / "nessie"
    place.mkdir(parents=True)
    with ExitStack() as stack:
        uri = stack.enter_context(started_nessie(place, aws.endpoint, warehouse, "test", "test"))
        proxy = stack.enter_context(_proxy(aws.endpoint))
        to_catalog = stack.enter_context(_proxy(uri))
        catalog = {
            "type": "NESSIE",
            "uri": f"{to_catalog.endpoint}/api/v2",
            "api": "NATIVE",
            "ref": "main",
        }
        destination = {
            "table_format": "ICEBERG",
            "iceberg": {"catalog": catalog, "warehouse_location": warehouse},
            "endpoints": {"s3": proxy.endpoint, "sts": proxy.endpoint},
        }
        reader = _NessieReader(f"{uri}/api/v2/trees/main/contents", _store(aws))
        proxies = (proxy, to_catalog)
        yield World("nessie", lake, proxies, destination, lambda: reader, folder, seed)


@dataclass(frozen=True)
class _NessieReader:
    """Implements `Reader`: pyiceberg has no way to Nessie that knows branches of tables."""

    contents: str
    store: dict[str, str]

    def load_table(self, identifier: tuple[str, str]) -> Table:
        """Read a table's metadata file. Raises `NoSuchTableError`."""
        url = f"{self.contents}/{'.'.join(identifier)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310
                content = json.load(answer)["content"]
        except urllib.error.HTTPError as error:
            if error.code == HTTPStatus.NOT_FOUND:
                raise NoSuchTableError(url) from error
            raise
        return StaticTable.from_metadata(content["metadataLocation"], self.store)


WORLDS = {"glue": glue_world, "rest": rest_world, "nessie": nessie_world}


def _store(aws: AwsServer) -> dict[str, str]:
    return {
        "s3.endpoint": aws.endpoint,
        "s3.access-key-id": "test",
        "s3.secret-access-key": "test",
        "s3.region": "us-east-1",
    }


@contextmanager
def _proxy(upstream: str) -> Iterator[FaultProxy]:
    proxy = FaultProxy(upstream)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()


def _allow_everything(lake: Lake) -> None:
    """Permissions are not what is tested here."""
    everything = {"Effect": "Allow", "Action": ["s3:*", "glue:*"], "Resource": "*"}
    policy = {"Version": "2012-10-17", "Statement": [everything]}
    lake.server.admin.put_role_policy(lake.seeded.role, policy)

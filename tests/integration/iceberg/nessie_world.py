"""Nessie as a catalog, by its native interface; the reader is given the metadata's location."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyiceberg.table import StaticTable, Table

from lakeload_jobs.contract.spec import CatalogSpec
from tests.integration.iceberg.catalog_world import (
    CatalogWorld,
    store_settings,
    stored_destination,
)
from tests.servers.nessie import BUCKET, Nessie
from tests.servers.seaweedfs import KEY, SECRET


@contextmanager
def nessie_world(nessie: Nessie, environment: pytest.MonkeyPatch) -> Iterator[CatalogWorld]:
    """Nessie on a branch of the test's own, by its native interface: the other has no branches of
    tables, and nothing is loaded through it."""
    branch = "lakes"
    catalog = CatalogSpec(type="NESSIE", uri=nessie.uri, ref=branch, api="NATIVE")
    destination = stored_destination(nessie.store, environment, BUCKET, catalog)
    store = store_settings(nessie.store.s3_endpoint, KEY, SECRET)

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

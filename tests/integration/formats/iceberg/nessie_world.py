"""Nessie as a catalog, by its native interface; the reader is given the metadata's location."""

from __future__ import annotations

import json
import secrets
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyiceberg.table import StaticTable, Table

from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CatalogSpec
from tests.integration.formats.iceberg.catalog_world import (
    CatalogWorld,
    store_settings,
    stored_destination,
)
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import FaultProxy, Forward, Response, answer
from tests.servers.nessie import BUCKET, Nessie
from tests.servers.seaweedfs import KEY, SECRET

TOKEN = "LAKELOAD_TEST_NESSIE_TOKEN"
BRANCHES = "world-"
"""What the names of the branches of all these worlds begin with."""


@contextmanager
def nessie_world(nessie: Nessie, environment: pytest.MonkeyPatch) -> Iterator[CatalogWorld]:
    """Nessie on a branch of the test's own, by its native interface: the other has no branches of
    tables, and nothing is loaded through it."""
    branch = f"{BRANCHES}{secrets.token_hex(4)}"
    gate = FaultProxy(nessie.uri)
    gate.on("*", _with_token)
    gate.start()
    environment.setenv(TOKEN, "nessie-bearer")
    token = SecretReference("env", TOKEN)
    catalog = CatalogSpec(type="NESSIE", uri=gate.endpoint, ref=branch, api="NATIVE", token=token)
    destination = stored_destination(nessie.store, BUCKET, catalog)
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
        gate.stop()
        head = _nessie(nessie, "GET", f"trees/{branch}")["reference"]["hash"]
        _nessie(nessie, "DELETE", f"trees/{branch}@{head}?type=BRANCH")


def _with_token(request: Request, forward: Forward) -> Response:
    """Let pass who brings the bearer token; Nessie itself asks for none here."""
    if request.header("Authorization") != "Bearer nessie-bearer":
        return answer(401, "Unauthorized")(request, forward)
    return forward(request)


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

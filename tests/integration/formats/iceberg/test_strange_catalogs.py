"""Loads through REST catalogs that do not do what they should, or say that they cannot."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CatalogSpec, IcebergSpec
from tests.integration.formats.iceberg.conftest import Loads
from tests.integration.formats.iceberg.spark_catalog import open_in_spark
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import FaultProxy, Forward, MakeProxy, Response, drop_request
from tests.servers.oauth2_gate import CATALOG as GATED
from tests.servers.oauth2_gate import Gate
from tests.servers.uncompared import is_commit, without_requirements

REGION = "The bucket is in a different region than the catalog"


@pytest.fixture
def proxy(loads: Loads, rest_backend: str, make_proxy: MakeProxy) -> FaultProxy:
    """A proxy that the loads of the test go through."""
    made = make_proxy(rest_backend)
    catalog = CatalogSpec(type="REST", uri=made.endpoint, access_delegation="NONE")
    loads.destination = replace(loads.destination, iceberg=IcebergSpec(catalog=catalog))
    return made


def commits(proxy: FaultProxy) -> int:
    """Return how many commits came since the last look."""
    found = sum(is_commit(request) for request in proxy.requests)
    proxy.requests.clear()
    return found


def test_first_load_without_commit_validation_leaves_an_empty_table(
    loads: Loads, proxy: FaultProxy
) -> None:
    table = loads.table(loads.file([{"id": 1}]), primary_key=("id",), mode="UPSERT")
    rule = proxy.on("*", without_requirements)
    refused = loads.load(table)
    assert refused.error is not None
    assert refused.status == "FAILED"
    assert "accepted a commit" in refused.error.message
    assert "`requirements`" in (refused.error.hint or "")
    assert loads.read().metadata.refs == {}
    assert loads.rows() == []

    proxy.rules.remove(rule)
    commits(proxy)
    assert loads.loaded(table).rows == 1
    first = commits(proxy)
    loads.loaded(table)
    # The same steps but for the question: it is asked of a new table alone.
    assert commits(proxy) == first - 1
    assert loads.rows() == [{"id": 1}]


@pytest.mark.parametrize(("status", "kind"), [(400, "BadRequest"), (403, "Forbidden")])
def test_bucket_in_another_region_is_detected_from_the_catalog_error(
    status: int, kind: str, loads: Loads, proxy: FaultProxy
) -> None:
    def refuse(request: Request, forward: Forward) -> Response:
        if request.method != "POST" or not request.target.endswith("/tables"):
            return forward(request)
        error = {"message": REGION, "type": f"{kind}Exception", "code": status}
        return Response(status, (("Content-Type", "application/json"),), _json({"error": error}))

    proxy.on("*", refuse)
    refused = loads.load(loads.table(loads.file([{"id": 1}]), primary_key=("id",)))
    assert refused.error is not None
    assert REGION in refused.error.message
    assert (refused.error.hint or "").startswith("use a bucket of the catalog's region, or Glue")


TOKEN = SecretReference("env", "REST_CREDENTIAL")


@pytest.mark.parametrize("lost", [1, 1000])
def test_lost_requests_for_a_token_are_repeated_and_then_retryable(
    lost: int,
    loads: Loads,
    polaris: Gate,
    make_proxy: MakeProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(TOKEN.name, "loader-id:loader-secret")
    proxy = make_proxy(polaris.uri.removesuffix("/api/catalog"))
    proxy.on("*", drop_request, times=lost)  # the first is for a token
    catalog = CatalogSpec(
        type="REST",
        uri=f"{proxy.endpoint}/api/catalog",
        warehouse=GATED,
        credential=TOKEN,
        scope="PRINCIPAL_ROLE:ALL",
        access_delegation="NONE",
    )
    destination = replace(loads.destination, iceberg=IcebergSpec(catalog=catalog))
    own = loads.spark.newSession()
    if lost == 1:
        open_in_spark(own, destination)
        assert len(polaris.requests) == 2  # the token, and the configuration
        return
    with pytest.raises(LoadFailed, match="Spark cannot open the REST catalog") as refused:
        open_in_spark(own, destination)
    assert refused.value.retryable
    assert "loader-secret" not in str(refused.value)


def _json(document: object) -> bytes:
    return json.dumps(document).encode()

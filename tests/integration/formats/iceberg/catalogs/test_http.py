"""What odd servers answer: each becomes an error of our family, and no secret is in any."""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from lakeload.probes.iceberg import ProbeCatalog, catalog_causes
from lakeload.probes.runner import Deadline
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.spec import CatalogSpec, DestinationSpec, IcebergSpec, SigV4Spec
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError, Said
from lakeload_jobs.formats.iceberg.catalogs.http import HttpTimeouts
from lakeload_jobs.formats.iceberg.catalogs.nessie import NessieApi
from lakeload_jobs.formats.iceberg.catalogs.opening import open_catalog
from lakeload_jobs.formats.iceberg.catalogs.rest import RestConnection
from tests.integration.formats.iceberg.catalogs.world import secret
from tests.servers.scripted_catalog import CONFIG, Answer, Scripted, running

SECRET = "canary-3f9c"


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    """A running server."""
    with running() as server:
        yield server


def destination(server: Scripted, **settings: Any) -> DestinationSpec:
    """Return a destination whose catalog is the server."""
    spec = CatalogSpec(type="REST", uri=server.uri, **settings)
    return DestinationSpec(
        bucket="lake",
        region="eu-central-1",
        table_format="ICEBERG",
        iceberg=IcebergSpec(catalog=spec),
    )


def refused(server: Scripted, **settings: Any) -> CatalogError:
    """Open the catalog and return why that failed; nothing of it shows a secret."""
    wanted = destination(server, **settings)
    patience = HttpTimeouts(connect=1, read=1, attempts=2)
    with pytest.raises(LakeloadError) as caught:
        open_catalog(wanted, AwsSession(wanted), patience).namespaces()
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert isinstance(caught.value, CatalogError), caught.value.message
    return caught.value


@pytest.mark.parametrize(
    ("answer", "code", "status", "retryable"),
    [
        ((200, {}, b"<html>log in</html>"), "NotACatalog", None, False),
        ((200, {}, b'["a", "list"]'), "NotACatalog", None, False),
        ((404, {}, b"<html>not here</html>"), "NotACatalog", 404, False),
        ((405, {}, b""), "NotACatalog", 405, False),
        ((500, {}, b"oops"), "InternalServerError", 500, True),
        ((503, {}, b'{"error": {"type": "Busy", "message": "later"}}'), "Busy", 503, True),
        ((302, {"Location": "https://elsewhere.example.com/x"}, b""), "Redirected", None, False),
        ((418, {}, b'{"error": "teapot"}'), "teapot", 418, False),
        (None, "ConnectionClosedError", None, True),
    ],
    ids=lambda value: str(value)[:40],
)
def test_catalog_request_unexpected_response_gets_an_error_code(
    answer: Answer | None, code: str, status: int | None, retryable: bool, scripted: Scripted
) -> None:
    scripted.answer = lambda path: answer
    error = refused(scripted)
    assert (error.code, error.status, error.retryable) == (code, status, retryable)
    assert error.hint or error.status


def test_catalog_request_redirect_does_not_carry_the_secret(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted.answer = lambda path: (307, {"Location": f"{scripted.uri}/elsewhere"}, b"")
    refused(scripted, credential=secret(monkeypatch, "C", f"id:{SECRET}"))
    assert [path for path, _ in scripted.seen] == ["/catalog/v1/oauth/tokens"]


@pytest.mark.parametrize("status", [400, 404])
@pytest.mark.parametrize(
    ("settings", "value"),
    [
        ({"token": "T"}, SECRET),
        ({"headers": "T"}, SECRET),
        ({"credential": "T"}, f"id:{SECRET}"),
        ({"credential": "T"}, f"{SECRET}:{SECRET}-and-more"),
        ({"client_id": "T", "client_secret": "T"}, SECRET),
        ({"credential": "T"}, "id:whose-token-is-repeated"),
    ],
    ids=str,
)
def test_catalog_error_that_repeats_a_secret_is_masked(
    settings: dict[str, str],
    value: str,
    status: int,
    scripted: Scripted,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repeated = value.rpartition(":")[2] if SECRET in value else SECRET
    text = json.dumps({"error": {"type": "Odd", "message": f"bad value {repeated}!"}}).encode()
    token = {"access_token": "another" if SECRET in value else SECRET}
    good = {"config": CONFIG, "tokens": json.dumps(token).encode()}
    scripted.answer = lambda path: next(
        ((200, {}, body) for word, body in good.items() if word in path), (status, {}, text)
    )
    reference = secret(monkeypatch, "T", value)
    given = {name: {"X-A": reference} if name == "headers" else reference for name in settings}
    assert "bad value ****!" in refused(scripted, **given).message


def test_token_error_that_repeats_the_credential_is_masked(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"error": "invalid_client", "error_description": f"no client my-{SECRET} / {SECRET}"}
    scripted.answer = lambda path: (401, {}, json.dumps(told).encode())
    error = refused(scripted, credential=secret(monkeypatch, "C", f"my-{SECRET}:{SECRET}"))
    assert "no client **** / ****" in error.message


@pytest.mark.parametrize("setting", ["token", "headers"])
def test_a_secret_with_a_line_break_is_not_sent_and_not_shown(
    setting: str, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = secret(monkeypatch, "T", f"{SECRET}\nX")
    error = refused(scripted, **{setting: reference if setting == "token" else {"X-A": reference}})
    assert error.code == "InvalidHeader"
    assert scripted.seen == []


def test_token_response_without_a_token_is_not_shown(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted.answer = lambda path: (200, {}, json.dumps({"id_token": SECRET}).encode())
    error = refused(scripted, credential=secret(monkeypatch, "C", "id:x"))
    assert error.code == "NotACatalog"


def test_catalog_request_busy_server_is_retried(scripted: Scripted) -> None:
    answers: list[Answer] = [(503, {}, b""), (200, {}, CONFIG)]
    scripted.answer = lambda path: answers.pop(0) if answers else (200, {}, b'{"namespaces": []}')
    wanted = destination(scripted)
    assert open_catalog(wanted, AwsSession(wanted)).namespaces() == ()


def test_catalog_request_without_a_response_times_out(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    scripted.answer = lambda path: (over.wait(10), (200, {}, CONFIG))[1]
    wanted = destination(scripted)
    connection = RestConnection(wanted, AwsSession(wanted), HttpTimeouts(1, 0.2, 1))
    with pytest.raises(CatalogError) as caught:
        connection.reach()
    over.set()
    assert caught.value.code == "ReadTimeoutError"
    assert caught.value.may_have_acted


def test_catalog_requests_are_signed_with_sigv4(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a-token")
    wanted = destination(scripted, sigv4=SigV4Spec(signing_name="s3tables"), warehouse="arn:x/y")
    open_catalog(wanted, AwsSession(wanted))
    path, headers = scripted.seen[-1]
    assert path == "/catalog/v1/config?warehouse=arn%3Ax%2Fy"
    assert "/eu-central-1/s3tables/aws4_request" in headers["Authorization"]
    assert headers["X-Amz-Security-Token"] == "a-token"
    assert SECRET not in str(headers)


def test_nessie_with_another_token_is_checked_by_its_native_interface(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = {"status": 401, "errorCode": "UNAUTHORIZED", "message": f"not {SECRET}"}
    scripted.answer = lambda path: (401, {}, json.dumps(document).encode())
    token = secret(monkeypatch, "T", SECRET)
    spec = CatalogSpec(type="NESSIE", uri=scripted.uri, token=token, api="NATIVE")
    api = NessieApi(spec, AwsSession(destination(scripted)), HttpTimeouts(1, 1, 1))
    with pytest.raises(CatalogError) as caught:
        api.head("main")
    assert (caught.value.code, caught.value.status) == ("UNAUTHORIZED", 401)
    assert SECRET not in caught.value.message
    path, headers = scripted.seen[-1]
    assert (path, headers["Authorization"]) == ("/catalog/api/v2/trees/main", f"Bearer {SECRET}")


@pytest.mark.parametrize(("status", "left"), [(504, 1), (403, 0)])
def test_namespace_with_unknown_creation_is_reported(
    status: int, left: int, scripted: Scripted
) -> None:
    missing = json.dumps({"error": {"type": "NoSuchNamespaceException", "message": "no"}})
    answers: dict[str, Answer] = {
        "config": (200, {}, CONFIG),
        "lakeload": (404, {}, missing.encode()),
    }
    scripted.answer = lambda path: next(
        (answer for word, answer in answers.items() if word in path), (status, {}, b"")
    )
    wanted = destination(scripted)
    catalog = ProbeCatalog(wanted, AwsSession(wanted), HttpTimeouts(1, 1, 1))
    with pytest.raises(CatalogError):
        catalog.create_namespace()
    named = [
        told for told in catalog.remove_all(Deadline(5)) if "which may have been created" in told
    ]
    assert len(named) == left


def test_catalog_error_texts_are_matched_in_catalog_responses_only() -> None:
    said = (
        "Delegate access to table with user-specified write location is temporarily not supported."
    )
    error = CatalogError("creating", code="BadRequestException", status=400, said=said)
    assert Said.NO_LOCATION.in_(error)
    assert not Said.NO_VENDING.in_(error)
    assert not Said.NO_LOCATION.in_(ValueError(said))


@pytest.mark.parametrize(
    "body",
    [
        b'{"error": {"message": "not found", "type": "NoSuchWarehouseException", "code": 404}}',
        b'{"status": 404, "error": "Not Found", "path": "/api/v2/config"}',
        b"<html>nothing here</html>",
        b"",
    ],
)
def test_nessie_uri_of_another_server_is_not_reported_as_a_missing_branch(
    body: bytes, scripted: Scripted
) -> None:
    scripted.answer = lambda path: (404, {}, body)
    spec = CatalogSpec(type="NESSIE", uri=scripted.uri, api="NATIVE", ref="etl")
    wanted = destination(scripted)
    with pytest.raises(CatalogError) as caught:
        NessieApi(spec, AwsSession(wanted), HttpTimeouts(connect=1, read=1, attempts=1)).reach()
    assert (caught.value.code, caught.value.status) == ("NotACatalog", 404)
    assert "check `uri`" in (caught.value.hint or "")
    causes = catalog_causes(caught.value, spec)
    assert "`uri` is not that of a Nessie server" in causes[0]
    assert not [cause for cause in causes if "`ref`" in cause or "warehouse_location" in cause]

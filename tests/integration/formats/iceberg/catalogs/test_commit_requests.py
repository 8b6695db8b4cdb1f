"""Commits of ours to servers that answer as the test says: what is said, and what is sent again."""

from __future__ import annotations

import json
import ssl
import traceback
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme

from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    DestinationSpec,
    EndpointsSpec,
    IcebergSpec,
    SigV4Spec,
)
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.glue_tables import GlueTables
from lakeload_jobs.formats.iceberg.catalogs.http import HttpTimeouts
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable, TableStore
from lakeload_jobs.formats.iceberg.catalogs.tables import open_tables
from lakeload_jobs.formats.iceberg.commits.errors import (
    CommitRejected,
    CommitUnknown,
    Unsupported,
)
from lakeload_jobs.formats.iceberg.commits.metadata import Json, normalised, set_properties
from tests.integration.formats.iceberg.catalogs.bucket import Bucket
from tests.integration.formats.iceberg.catalogs.world import secret
from tests.servers.local_sockets import authority_file
from tests.servers.scripted_catalog import CONFIG, Answer, Scripted, running
from tests.unit.formats.iceberg.metadata import open_table

SECRET = "canary-3f9c"
TABLE = open_table()
UPDATES = [set_properties({"a": "b"})]
OP = "is not authorized for op "


def error(status: int, kind: str, message: str) -> Answer:
    """Return an error as REST catalogs write it."""
    return status, {}, json.dumps({"error": {"type": kind, "message": message}}).encode()


def read(**more: Any) -> Answer:
    """Return the answer to a load or a commit."""
    table: Json = {"metadata-location": TABLE.metadata_location, "metadata": dict(TABLE.metadata)}
    return 200, {}, json.dumps({**table, **more}).encode()


class Sent(list[str]):
    """The tokens of the requests for a table, in order."""


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    """A running server."""
    with running() as server:
        yield server


def store(server: Scripted, uri: str = "", **settings: Any) -> TableStore:
    """Return the tables of a catalog that is the server."""
    spec = CatalogSpec(type="REST", uri=uri or server.uri, **settings)
    given = DestinationSpec(
        bucket="lake", region="eu-central-1", table_format="ICEBERG", iceberg=IcebergSpec(spec)
    )
    return open_tables(given, AwsSession(given), HttpTimeouts(connect=1, read=1, attempts=2))


def answered(server: Scripted, *answers: Answer | None) -> Sent:
    """Let the server give these answers about the table, the last of them again and again."""
    sent, left, tokens = Sent(), list(answers), iter(range(1000))

    def answer(path: str) -> Answer | None:
        if path.partition("?")[0].endswith("/config"):
            return 200, {}, CONFIG
        if path.endswith("/tokens"):
            return 200, {}, json.dumps({"access_token": f"token-{next(tokens)}"}).encode()
        sent.append(server.seen[-1][1].get("Authorization", ""))
        return left.pop(0) if len(left) > 1 else left[0]

    server.answer = answer
    return sent


def commit(tables: TableStore) -> ReadTable:
    """Send a commit."""
    return tables.commit(TABLE, [], UPDATES)


CALLS: dict[str, Callable[[TableStore], object]] = {
    "committing to the table `shop.orders`": commit,
    "reading the table `shop.orders`": lambda tables: tables.load("shop", "orders"),
    "dropping the table `shop.orders`": lambda tables: tables.drop(TABLE),
    "creating the namespace `shop`": lambda tables: tables.create_namespace("shop", None),
    "reading the namespace `shop`": lambda tables: tables.namespace_location("shop"),
}


@pytest.mark.parametrize("doing", CALLS)
@pytest.mark.parametrize(
    ("answer", "says", "hint"),
    [
        (
            error(403, "ForbiddenException", f"'me' {OP}UPDATE_TABLE, {SECRET}"),
            f"access denied (`ForbiddenException`, HTTP 403): 'me' {OP}UPDATE_TABLE, ****",
            "grant TABLE_WRITE_PROPERTIES (or CATALOG_MANAGE_CONTENT) to a catalog role of this "
            "principal; run `lakeload test-connection`",
        ),
        (
            error(401, "NotAuthorizedException", "no such token"),
            "the catalog does not accept these credentials (`NotAuthorizedException`, HTTP 401)",
            "run `lakeload test-connection`, which shows the missing privilege",
        ),
        (
            error(400, "BadRequestException", "The bucket is in a different region"),
            "The bucket is in a different region",
            "use a bucket of the catalog's region, or Glue as the catalog",
        ),
    ],
    ids=["denied", "not accepted", "other region"],
)
def test_a_refusal_names_the_call_the_answer_and_what_to_do(
    answer: Answer,
    says: str,
    hint: str,
    doing: str,
    scripted: Scripted,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered(scripted, answer)
    tables = store(scripted, token=secret(monkeypatch, "T", SECRET))
    with pytest.raises(CatalogError) as caught:
        CALLS[doing](tables)
    assert caught.value.message.startswith(doing)
    assert f"the catalog `http://127.0.0.1:{scripted.server_port}`" in caught.value.message
    assert says in caught.value.message
    assert (caught.value.hint or "").startswith(hint)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("answer", "ends", "busy"),
    [
        (error(409, "CommitFailedException", "main has moved"), CommitRejected, False),
        (error(429, "TooManyRequests", "later"), CommitRejected, True),
        (error(500, "RuntimeException", "oops"), CommitUnknown, None),
        (error(503, "SlowDownException", "later"), CommitUnknown, None),
        (None, CommitUnknown, None),
    ],
    ids=["409", "429", "500", "503", "no answer"],
)
def test_a_commit_is_sent_once_whatever_the_answer(
    answer: Answer | None, ends: type[Exception], busy: bool | None, scripted: Scripted
) -> None:
    sent = answered(scripted, answer)
    with pytest.raises(ends) as caught:
        commit(store(scripted))
    assert len(sent) == 1
    assert getattr(caught.value, "busy", None) is busy


@pytest.mark.parametrize(
    ("answer", "ends"),
    [
        ((204, {}, b""), None),
        (error(404, "NoSuchTableException", "gone"), None),
        (error(403, "ForbiddenException", "no"), CatalogError),
        (error(500, "RuntimeException", "oops"), CommitUnknown),
        (None, CommitUnknown),
    ],
    ids=["204", "404", "403", "500", "no answer"],
)
def test_a_drop_is_sent_once_and_leaves_the_files(
    answer: Answer | None, ends: type[Exception] | None, scripted: Scripted
) -> None:
    sent = answered(scripted, answer)
    with pytest.raises(ends) if ends else nullcontext():
        store(scripted).drop(TABLE)
    assert len(sent) == 1
    path, _ = scripted.seen[-1]
    assert path.endswith("/namespaces/shop/tables/orders?purgeRequested=false")


@pytest.mark.parametrize("moved", [True, False])
def test_a_commit_that_is_a_bad_request_conflicts_where_the_table_has_moved(
    moved: bool, scripted: Scripted
) -> None:
    place = "s3://lake/shop/orders/metadata/4.metadata.json" if moved else TABLE.metadata_location
    bad = error(400, "BadRequestException", "invalid row lineage")
    sent = answered(scripted, bad, read(**{"metadata-location": place}))
    with pytest.raises(CommitRejected if moved else CatalogError, match="invalid row lineage"):
        commit(store(scripted))
    assert len(sent) == 2


@pytest.mark.parametrize("status", [401, 419])
def test_an_expired_token_is_renewed_once_for_a_commit(
    status: int, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    expired = error(status, "AuthenticationTimeoutException", "expired")
    tables = store(scripted, credential=secret(monkeypatch, "C", "id:x"))
    sent = answered(scripted, expired, read())
    assert commit(tables).metadata == normalised(TABLE.metadata)
    assert sent == ["Bearer token-0", "Bearer token-1"]
    # One that is not accepted either ends the commit: it is not in.
    sent = answered(scripted, expired)
    with pytest.raises(CatalogError):
        commit(tables)
    assert len(sent) == 2


def test_a_commit_has_the_headers_and_the_signature_of_its_body(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    answered(scripted, read())
    tenant = {"X-Tenant": secret(monkeypatch, "TENANT", "4711")}
    tables = store(scripted, sigv4=SigV4Spec(signing_name="glue"), headers=tenant)
    signed = []
    for value in ("b", "c"):
        tables.commit(TABLE, [], [set_properties({"a": value})])
        signed.append(scripted.seen[-1][1])
    assert {one["X-Tenant"] for one in signed} == {"4711"}
    assert all("/eu-central-1/glue/aws4_request" in one["Authorization"] for one in signed)
    assert len({one["x-amz-content-sha256"] for one in signed}) == 2


def test_a_commit_passes_the_proxy_of_the_environment(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered(scripted, read())
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{scripted.server_port}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    commit(store(scripted, "http://catalog.example.com/it"))
    path, headers = scripted.seen[-1]
    assert path == "http://catalog.example.com/it/v1/namespaces/shop/tables/orders"
    assert headers["Host"] == "catalog.example.com"


@pytest.mark.parametrize("trusted", [True, False])
def test_a_commit_checks_the_certificate_with_the_bundle_of_the_environment(
    trusted: bool, scripted: Scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sent = answered(scripted, read())
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    scripted.socket = context.wrap_socket(scripted.socket, server_side=True)
    bundle = authority_file(authority if trusted else trustme.CA(), tmp_path)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))
    tables = store(scripted, scripted.uri.replace("http:", "https:"))
    if trusted:
        commit(tables)
    else:
        with pytest.raises(LakeloadError, match="CertificateUntrusted"):
            commit(tables)
    assert len(sent) == trusted


@pytest.mark.parametrize("where", ["config", "storage-credentials"])
def test_what_the_catalog_vends_stays_with_the_table_after_a_commit(
    where: str, scripted: Scripted
) -> None:
    keys = {"s3.access-key-id": "AKIA", "s3.secret-access-key": SECRET}
    vended: Json = {"config": keys}
    if where != "config":
        vended = {where: [{"prefix": "s3://lake/shop", "config": keys}], "config": {}}
    answered(scripted, read(**vended), read())
    tables = store(scripted)
    found = tables.load("shop", "orders")
    assert found is not None
    now = tables.commit(found, [], UPDATES)
    assert (now.config, now.credentials) == (found.config, found.credentials)
    assert SECRET in str((now.config, now.credentials))


@pytest.mark.parametrize(
    ("settings", "keys", "refused"),
    [
        ({}, {}, True),
        ({}, {"s3.access-key-id": "AKIA", "s3.secret-access-key": "x"}, False),
        ({"access_delegation": "NONE"}, {}, False),
    ],
    ids=["signs alone", "vends as well", "own credentials"],
)
def test_a_table_whose_catalog_signs_requests_is_refused_before_anything_is_written(
    settings: dict[str, Any], keys: dict[str, str], refused: bool, scripted: Scripted
) -> None:
    answered(scripted, read(config={"s3.remote-signing-enabled": "true", **keys}))
    tables = store(scripted, **settings)
    if not refused:
        assert tables.load("shop", "orders") is not None
        return
    with pytest.raises(Unsupported, match="signs every request") as caught:
        tables.load("shop", "orders")
    assert "`access_delegation: NONE`" in (caught.value.hint or "")


def test_a_missing_branch_of_nessie_is_no_missing_table(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    given = DestinationSpec(
        bucket="lake",
        region="eu-central-1",
        table_format="ICEBERG",
        iceberg=IcebergSpec(CatalogSpec(type="NESSIE", uri=scripted.uri, api="NATIVE")),
    )
    tables = open_tables(given, AwsSession(given), HttpTimeouts(1, 1, 1))

    def nothing(code: str) -> Callable[[str], Answer]:
        body = json.dumps({"status": 404, "errorCode": code, "message": "no"}).encode()
        return lambda path: (404, {}, body)

    scripted.answer = nothing("CONTENT_NOT_FOUND")
    assert tables.load("shop", "orders") is None
    assert tables.namespace_location("shop") is None
    scripted.answer = nothing("REFERENCE_NOT_FOUND")
    with pytest.raises(CatalogError, match="REFERENCE_NOT_FOUND"):
        tables.load("shop", "orders")


def glue(server: Scripted, environment: pytest.MonkeyPatch, code: str) -> GlueTables:
    """Return the tables of a Glue that answers with an error of this code."""
    environment.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    environment.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    body = json.dumps({"__type": code, "Message": "no"}).encode()
    server.answer = lambda path: (400, {"Content-Type": "application/x-amz-json-1.1"}, body)
    given = DestinationSpec(
        bucket="lake",
        region="eu-central-1",
        endpoints=EndpointsSpec(glue=f"http://127.0.0.1:{server.server_port}"),
        table_format="ICEBERG",
        iceberg=IcebergSpec(CatalogSpec(glue_id="210987654321")),
    )
    return GlueTables(AwsSession(given, max_attempts=1), given, Bucket())


GLUE_TABLE = replace(TABLE, version={"VersionId": "7", "Parameters": {}})


def test_a_refusal_of_glue_names_the_action_and_its_resources(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = glue(scripted, monkeypatch, "AccessDeniedException")
    arn = "arn:aws:glue:eu-central-1:210987654321"
    calls: dict[str, tuple[Callable[[], object], str]] = {
        "CreateDatabase": (lambda: tables.create_namespace("shop", None), "database/shop"),
        "GetTable": (lambda: tables.load("shop", "orders"), "table/shop/orders"),
        "UpdateTable": (lambda: tables.commit(GLUE_TABLE, [], UPDATES), "table/shop/orders"),
    }
    for action, (call, resource) in calls.items():
        with pytest.raises(AwsError, match="access denied") as caught:
            call()
        hint = caught.value.hint or ""
        assert hint.startswith(f"allow `glue:{action}` on `{arn}:{resource}`"), hint
        assert "shop" in caught.value.message


@pytest.mark.parametrize(
    ("code", "commits", "creates"),
    [
        ("ConcurrentModificationException", CommitUnknown, CommitUnknown),
        ("OperationTimeoutException", CommitUnknown, CommitUnknown),
        ("ThrottlingException", CommitRejected, AwsError),
        ("AlreadyExistsException", AwsError, CommitRejected),
        ("ExpiredTokenException", AwsError, AwsError),
    ],
)
def test_what_became_of_a_change_of_glue_follows_from_the_code(
    code: str,
    commits: type[Exception],
    creates: type[Exception],
    scripted: Scripted,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables = glue(scripted, monkeypatch, code)
    with pytest.raises(commits) as caught:
        tables.commit(GLUE_TABLE, [], UPDATES)
    assert getattr(caught.value, "overtaken", False) == (code[:10] == "Concurrent")
    with pytest.raises(creates):
        tables.create_namespace("shop", None)

"""Answers to requests that change something: which of them say that nothing was done. After all
others a load has to look, for it would otherwise load rows twice or call a job failed that is in.

https://github.com/apache/iceberg/blob/main/open-api/rest-catalog-open-api.yaml
"""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trustme

from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    DestinationSpec,
    EndpointsSpec,
    IcebergSpec,
)
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.glue_tables import GlueTables
from lakeload_jobs.formats.iceberg.catalogs.http import HttpTimeouts
from lakeload_jobs.formats.iceberg.catalogs.nessie import NessieApi
from lakeload_jobs.formats.iceberg.catalogs.nessie_tables import NessieTables
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable, TableStore
from lakeload_jobs.formats.iceberg.catalogs.tables import open_tables
from lakeload_jobs.formats.iceberg.commits.definitions import UNSORTED, new_schema, partition_spec
from lakeload_jobs.formats.iceberg.commits.errors import (
    CommitRejected,
    CommitUnknown,
    Unsupported,
)
from lakeload_jobs.formats.iceberg.commits.metadata import (
    Json,
    NewTable,
    normalised,
    set_properties,
)
from tests.integration.formats.iceberg.catalogs.bucket import Bucket
from tests.servers.local_sockets import authority_file
from tests.servers.scripted_catalog import CONFIG, Answer, Raw, Scripted, running
from tests.unit.formats.iceberg.metadata import open_table

TABLE = open_table()
VERSIONS: dict[str, Any] = {
    "REST": None,
    "NESSIE": ({"type": "ICEBERG_TABLE", "id": "1"}, "abc"),
    "GLUE": {"VersionId": "7", "Parameters": {}},
}
SCHEMA = new_schema([{"id": 0, "name": "id", "required": False, "type": "long"}])
NEW = NewTable(SCHEMA, partition_spec(SCHEMA, ()), UNSORTED, {})

each_store = pytest.mark.parametrize("kind", VERSIONS)

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
LOST: dict[str, Raw | None] = {
    "no answer": None,
    "no status": Raw(b"what is this\r\n\r\n"),
    "headers break off": Raw(HEAD),
    "too many headers": Raw(HEAD + b"A: b\r\n" * 200 + b"\r\n"),
    "body breaks off": Raw(HEAD + b'Content-Length: 500\r\n\r\n{"metadata"'),
    "body breaks off within a chunk": Raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n50\r\n{"),
    "body breaks off between chunks": Raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"),
    "body does not go on": Raw(HEAD + b"Content-Length: 500\r\n\r\n{", stays=True),
    "status does not come": Raw(b"HTTP/1.1", stays=True),
    "body that is not packed as it says": Raw(
        HEAD + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}"
    ),
}
USELESS: dict[str, Answer] = {
    "nothing": (200, {}, b""),
    "a page": (200, {"Content-Type": "text/html"}, b"<html>log in</html>"),
    "half a document": (200, {}, b'{"metadata": '),
    "a list": (200, {}, b'["metadata"]'),
    "null": (200, {}, b"null"),
    "no text": (200, {}, b"\xff\xfe\x00"),
    "created": (201, {}, b""),
    "partial": (206, {}, b"<"),
}
FAILED: dict[str, Answer] = {
    f"{status} {'with' if body else 'without'} a body": (status, headers, body)
    for status, headers in {
        301: {"Location": "https://elsewhere.example.com/x"},
        302: {"Location": "/login"},
        303: {"Location": "/done"},
        304: {},
        307: {"Location": "/there"},
        308: {"Location": "/there"},
        408: {},
        500: {},
        502: {},
        503: {"Retry-After": "1"},
        504: {},
        520: {},
    }.items()
    for body in (b"", b"<html>the gateway says no</html>", b'["no"]')
    if body != b'["no"]' or status >= 500
}
"""The specification calls the state of a commit unknown after 500, 502 and 504."""


@pytest.fixture
def server() -> Iterator[Scripted]:
    """A running server."""
    with running() as found:
        yield found


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Callable[..., TableStore]:
    """Makes the tables of a catalog of some kind, at an address."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    def made(kind: str, uri: str) -> TableStore:
        spec = CatalogSpec() if kind == "GLUE" else CatalogSpec(type=kind, uri=uri)  # type: ignore[arg-type]
        if kind == "NESSIE":
            spec = replace(spec, api="NATIVE")
        given = DestinationSpec(
            bucket="lake",
            region="eu-central-1",
            endpoints=EndpointsSpec(glue=uri.removesuffix("/catalog")),
            table_format="ICEBERG",
            iceberg=IcebergSpec(spec),
        )
        session = AwsSession(given, connect_timeout=1, read_timeout=0.5, max_attempts=1)
        patience = HttpTimeouts(connect=1, read=0.5, attempts=3)
        if kind == "GLUE":
            return GlueTables(session, given, Bucket())
        if kind == "NESSIE":
            return NessieTables(NessieApi(spec, session, patience), "main", Bucket())
        return open_tables(given, session, patience)

    return made


def answering(server: Scripted, found: Answer | Raw | None) -> None:
    """Let the server give this answer to what changes something. What is read first is there."""
    reference = json.dumps({"reference": {"type": "BRANCH", "name": "main", "hash": "abc"}})

    def answer(path: str) -> Answer | Raw | None:
        if path.partition("?")[0].endswith("/config"):
            return 200, {}, CONFIG
        if path.endswith("/trees/main"):
            return 200, {}, reference.encode()
        if server.methods[-1] == "GET":
            # What Nessie is asked of a conflict.
            return 404, {}, b'{"errorCode": "CONTENT_NOT_FOUND"}'
        return found

    server.answer = answer
    server.methods.clear()


def commit(store: TableStore, kind: str) -> ReadTable:
    """Send a commit."""
    table = replace(TABLE, version=VERSIONS[kind])
    return store.commit(table, [], [set_properties({"a": "b"})])


CALLS: dict[str, Callable[[TableStore, str], object]] = {
    "commit": commit,
    "create": lambda store, kind: store.create(
        "shop", "orders", NEW, None if kind == "REST" else "s3://lake/shop/orders"
    ),
    "create namespace": lambda store, kind: store.create_namespace("shop", None),
    "drop": lambda store, kind: store.drop(replace(TABLE, version=VERSIONS[kind])),
}


def refusal(call: Callable[[], object]) -> CatalogError | AwsError:
    """Return how a call is refused."""
    try:
        call()
    except (CatalogError, AwsError) as error:
        return error
    pytest.fail("the call was not refused")


def sent(server: Scripted) -> int:
    """Return how often something was to be changed."""
    return len([method for method in server.methods if method != "GET"])


@each_store
@pytest.mark.parametrize("answer", [*LOST, *USELESS, *FAILED])
def test_change_without_a_clear_answer_is_unknown_and_sent_once(
    answer: str, kind: str, server: Scripted, tables: Callable[..., TableStore]
) -> None:
    every: dict[str, Answer | Raw | None] = {**LOST, **USELESS, **FAILED}
    store = tables(kind, server.uri)
    for call in CALLS.values():
        answering(server, every[answer])
        if kind == "GLUE" and answer == "body that is not packed as it says":
            # Glue packs nothing, and botocore unpacks nothing: the body is what it is.
            call(store, kind)
            continue
        with pytest.raises(CommitUnknown):
            call(store, kind)
        assert sent(server) == 1


@pytest.mark.parametrize("kind", ["REST", "NESSIE"])
@pytest.mark.parametrize("call", ["commit", "create"])
@pytest.mark.parametrize(
    "document",
    [
        {},
        {"message": "welcome"},
        {"metadata": "s3://lake/shop/orders/metadata/5.json"},
        {"metadata": {}},
        {"metadata": [], "reference": {"hash": None}, "targetBranch": "main"},
    ],
)
def test_change_with_a_document_of_another_kind_is_unknown(
    document: Json, call: str, kind: str, server: Scripted, tables: Callable[..., TableStore]
) -> None:
    answering(server, (200, {}, json.dumps(document).encode()))
    with pytest.raises(CommitUnknown):
        CALLS[call](tables(kind, server.uri), kind)
    assert sent(server) == 1


def test_commit_answered_with_another_table_is_unknown(
    server: Scripted, tables: Callable[..., TableStore]
) -> None:
    other = {**TABLE.metadata, "table-uuid": "00000000-0000-0000-0000-000000000000"}
    answering(server, (200, {}, json.dumps({"metadata": other}).encode()))
    with pytest.raises(CommitUnknown):
        commit(tables("REST", server.uri), "REST")


@pytest.mark.parametrize("call", CALLS)
def test_answer_without_content_is_the_success_of_what_returns_nothing_alone(
    call: str, server: Scripted, tables: Callable[..., TableStore]
) -> None:
    answering(server, (204, {}, b""))
    if call in ("create namespace", "drop"):
        CALLS[call](tables("REST", server.uri), "REST")
        return
    with pytest.raises(CommitUnknown):
        CALLS[call](tables("REST", server.uri), "REST")


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("body", [b"", b"{}"])
def test_answer_of_aws_that_is_empty_is_a_success(
    body: bytes, call: str, server: Scripted, tables: Callable[..., TableStore]
) -> None:
    answering(server, (200, {"x-amzn-RequestId": "1"}, body))
    CALLS[call](tables("GLUE", server.uri), "GLUE")
    assert sent(server) == 1


@pytest.mark.parametrize(
    "more",
    [
        {"config": {"s3.remote-signing-enabled": "true"}},
        {"config": "none", "storage-credentials": "none"},
        {"metadata": {**TABLE.metadata, "format-version": 4}},
        {"metadata": {**TABLE.metadata, "encryption-keys": [{"key-id": "1"}]}},
    ],
    ids=["signs", "settings of another kind", "version 4", "encryption"],
)
def test_commit_that_is_in_succeeds_whatever_else_the_answer_says(
    more: Json, server: Scripted, tables: Callable[..., TableStore]
) -> None:
    body: Json = {"metadata-location": "s3://lake/5.json", "metadata": dict(TABLE.metadata), **more}
    answering(server, (200, {}, json.dumps(body).encode()))
    store = tables("REST", server.uri)
    before = replace(TABLE, config={"a": "b"}, credentials=[("s3://lake", {"c": "d"})])
    now = store.commit(before, [], [set_properties({"a": "b"})])
    metadata = normalised(body["metadata"])
    assert (now.metadata, now.metadata_location) == (metadata, "s3://lake/5.json")
    assert (now.config, now.credentials) == (before.config, before.credentials)
    made = store.create("shop", "orders", NEW, None)
    assert made.metadata == metadata


def test_bad_request_of_a_table_that_cannot_be_read_any_more_stays_a_refusal(
    server: Scripted, tables: Callable[..., TableStore]
) -> None:
    metadata = {**TABLE.metadata, "format-version": 4}
    body = {"metadata-location": "s3://5", "metadata": metadata}
    now: Answer = 200, {}, json.dumps(body).encode()
    bad: Answer = 400, {}, b'{"error": {"type": "BadRequestException", "message": "no"}}'
    config: Answer = 200, {}, CONFIG
    server.answer = lambda path: (
        config if "config" in path else bad if server.methods[-1] == "POST" else now
    )
    with pytest.raises(CatalogError, match="BadRequestException"):
        commit(tables("REST", server.uri), "REST")


REFUSED = (400, 401, 403, 404, 405, 410, 412, 413, 422, 501)


@each_store
@pytest.mark.parametrize("status", REFUSED)
def test_change_that_is_refused_is_no_unknown_one(
    status: int, kind: str, server: Scripted, tables: Callable[..., TableStore]
) -> None:
    store = tables(kind, server.uri)
    for call in CALLS.values():
        answering(server, (status, {}, b""))
        assert not refusal(partial(call, store, kind)).may_have_acted
        # A token that has expired is renewed once.
        assert sent(server) == (2 if (kind, status) == ("REST", 401) else 1)


@each_store
def test_commit_that_is_throttled_is_not_in_and_may_be_sent_again(
    kind: str, server: Scripted, tables: Callable[..., TableStore]
) -> None:
    for body in (b"", b"<html>slow down</html>"):
        answering(server, (429, {"Retry-After": "1"}, body))
        with pytest.raises(CommitRejected) as caught:
            commit(tables(kind, server.uri), kind)
        assert caught.value.busy
        assert sent(server) == 1


def _free_address() -> str:
    """Return an address where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


@each_store
@pytest.mark.parametrize(
    "address", [_free_address, lambda: "catalog.invalid"], ids=["port", "host"]
)
def test_commit_that_never_left_is_no_unknown_one(
    address: Callable[[], str], kind: str, tables: Callable[..., TableStore]
) -> None:
    place = f"http://{address()}/catalog"
    error = refusal(lambda: commit(tables(kind, place), kind))
    assert error.code == "EndpointConnectionError"
    assert not error.may_have_acted


# Through a proxy, urllib3 has one error for a proxy that does not respond and for an answer that
# was lost.


@each_store
@pytest.mark.parametrize("answer", LOST)
def test_commit_whose_answer_is_lost_behind_a_proxy_is_unknown_and_sent_once(
    answer: str,
    kind: str,
    server: Scripted,
    tables: Callable[..., TableStore],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{server.server_port}")
    answering(server, LOST[answer])
    # As above, botocore unpacks nothing.
    known = (kind, answer) == ("GLUE", "body that is not packed as it says")
    with nullcontext() if known else pytest.raises(CommitUnknown):
        commit(tables(kind, "http://catalog.example.com/catalog"), kind)
    assert sent(server) == 1


@each_store
def test_commit_that_no_proxy_takes_is_no_unknown_one(
    kind: str, tables: Callable[..., TableStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://{_free_address()}")
    error = refusal(lambda: commit(tables(kind, "http://catalog.example.com/catalog"), kind))
    assert error.code == "ProxyConnectionError"
    assert not error.may_have_acted


@each_store
@pytest.mark.parametrize(
    "answer",
    [
        Raw(b"this is no TLS" * 10, bare=True),
        Raw(b"", bare=True),
        LOST["body breaks off"],
        None,
    ],
    ids=["no TLS any more", "nothing", "half a body", "no answer"],
)
def test_commit_whose_tls_breaks_after_the_request_is_unknown_and_sent_once(
    answer: Raw | None,
    kind: str,
    server: Scripted,
    tables: Callable[..., TableStore],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    for variable in ("REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE"):
        monkeypatch.setenv(variable, str(authority_file(authority, tmp_path)))
    answering(server, answer)
    with pytest.raises(CommitUnknown):
        commit(tables(kind, server.uri.replace("http:", "https:")), kind)
    assert sent(server) == 1


def test_table_of_a_store_that_chooses_no_place_needs_one(
    server: Scripted, tables: Callable[..., TableStore]
) -> None:
    for kind in ("NESSIE", "GLUE"):
        with pytest.raises(Unsupported, match="no location"):
            tables(kind, server.uri).create("shop", "orders", NEW, None)
    assert sent(server) == 0

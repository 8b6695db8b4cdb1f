"""Stores with conditional writes, without them, and those that only seem to have them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakeload.connections import Connections
from lakeload.probes.connection import ConnectionOptions, ConnectionTest, conditional_writes
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec
from lakeload_jobs.core.layout import conditional_writes_key
from lakeload_jobs.storage.objects import Completion, ConditionalWritesUnsupported, Objects
from tests.hints import follow, follows
from tests.integration.conftest import QUICK, make_destination
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import (
    Action,
    FaultProxy,
    Forward,
    Response,
    answer,
    without_header,
)
from tests.servers.ministack import Lake

IGNORED = without_header("If-None-Match")
KEY = "data-lake/test/some/object"


@pytest.fixture
def store(
    base_identity: Lake, fault_proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> DestinationSpec:
    """The bucket through the proxy as its administrator, whose requests may lose a header."""
    monkeypatch.setenv("LAKE_ADMIN_KEY", "test")
    key = SecretReference("env", "LAKE_ADMIN_KEY")
    credentials = CredentialsSpec(access_key_id=key, secret_access_key=key)
    return make_destination(base_identity, fault_proxy.endpoint, credentials=credentials)


def lacking(fault_proxy: FaultProxy, action: Action) -> None:
    """Make the store one that has no If-None-Match."""

    def unless_unconditional(request: Request, forward: Forward) -> Response:
        asked = any(name.lower() == "if-none-match" for name, _ in request.headers)
        return action(request, forward) if asked else forward(request)

    for operation in ("PutObject", "CompleteMultipartUpload"):
        fault_proxy.on(operation, unless_unconditional)


def test_a_store_with_conditional_writes_needs_one_request_from_the_second_time_on(
    store: DestinationSpec, fault_proxy: FaultProxy, lake: Lake
) -> None:
    assert conditional_writes(Connections(store, "test")) is None
    assert fault_proxy.count("PutObject") == 2
    assert lake.keys() == [conditional_writes_key(store.prefix)]

    assert conditional_writes(Connections(store, "test")) is None
    assert fault_proxy.count("PutObject") == 3


@pytest.mark.parametrize("action", [answer(501, "NotImplemented"), IGNORED], ids=["501", "ignored"])
def test_store_without_conditional_writes_is_rejected(
    store: DestinationSpec, fault_proxy: FaultProxy, action: Action
) -> None:
    lacking(fault_proxy, action)

    for _ in range(2):
        with pytest.raises(ConditionalWritesUnsupported, match="two concurrent writers") as caught:
            conditional_writes(Connections(store, "test"))
    hint = caught.value.hint or ""
    follows(__file__, "a store without conditional writes", hint)
    single = _followed(store, hint, "set `single_writer: true` in the destination")
    assert conditional_writes(Connections(single, "test")) is not None


def test_a_write_that_needs_a_condition_is_made_as_the_hint_says(
    store: DestinationSpec, fault_proxy: FaultProxy
) -> None:
    lacking(fault_proxy, answer(501, "NotImplemented"))
    with pytest.raises(ConditionalWritesUnsupported) as caught:
        Objects(AwsSession(store), store, waits=QUICK).put_if_absent(KEY, b"first")
    hint = caught.value.hint or ""
    follows(__file__, "a write without a condition", hint)
    single = _followed(store, hint, "set `single_writer: true`")

    assert Objects(AwsSession(single), single, waits=QUICK).put_if_absent(KEY, b"first")


def _followed(store: DestinationSpec, hint: str, clause: str) -> DestinationSpec:
    """Return the store as a destination that is changed as a clause of a hint says."""
    assert clause in hint
    changed = follow({"bucket": store.bucket}, clause, "bucket")
    return replace(store, single_writer=changed["single_writer"])


@pytest.mark.parametrize("action", [answer(501, "NotImplemented"), IGNORED], ids=["501", "ignored"])
def test_single_writer_without_conditional_writes_loads_with_a_warning(
    store: DestinationSpec, fault_proxy: FaultProxy, action: Action
) -> None:
    lacking(fault_proxy, action)
    single = replace(store, single_writer=True)
    objects = Objects(AwsSession(single), single, waits=QUICK)

    assert "lost or duplicated" in (conditional_writes(Connections(single, "test")) or "")
    assert objects.put_if_absent(KEY, b"first")
    assert not objects.put_if_absent(KEY, b"second")
    assert objects.get(KEY) == b"first"
    assert _complete(objects, KEY + "-2") is Completion.COMPLETED
    assert _complete(objects, KEY + "-2") is Completion.KEY_TAKEN


def test_a_single_writer_keeps_the_conditions_of_a_store_that_has_them(
    store: DestinationSpec, fault_proxy: FaultProxy
) -> None:
    single = replace(store, single_writer=True)
    objects = Objects(AwsSession(single), single, waits=QUICK)

    assert conditional_writes(Connections(single, "test")) is None
    assert objects.put_if_absent(KEY, b"first")
    assert not objects.put_if_absent(KEY, b"second")
    assert _complete(objects, KEY) is Completion.KEY_TAKEN

    asked = [
        any(name.lower() == "if-none-match" for name, _ in request.headers)
        for request in fault_proxy.requests
        if request.operation in ("PutObject", "CompleteMultipartUpload")
    ]
    assert all(asked)
    assert fault_proxy.count("ListObjectsV2") == 0


def test_the_connection_test_of_a_single_writer_leaves_nothing(
    store: DestinationSpec, lake: Lake
) -> None:
    options = ConnectionOptions(timeout=30)
    results = list(ConnectionTest(replace(store, single_writer=True), options).run())

    assert [result for result in results if result.failure is not None] == []
    assert lake.keys() == []


def _complete(objects: Objects, key: str) -> Completion:
    upload_id = objects.create_upload(key, {"attempt": "a"})
    part = objects.upload_part(key, upload_id, 1, b"x" * 10)
    return objects.complete_upload(key, upload_id, (part,))

"""Conditional writes and uploads, and what becomes of lost answers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.contract.spec import EncryptionSpec
from lakeload_jobs.storage.objects import (
    ChecksumsUnsupported,
    Completion,
    ConditionalWritesUnsupported,
    Objects,
    UnknownOutcome,
)
from tests.integration.conftest import QUICK, make_destination
from tests.servers.fault_proxy import (
    Action,
    FaultProxy,
    answer,
    drop_answer,
    drop_request,
    truncate,
    without_support,
)
from tests.servers.ministack import Lake

KEY = "data-lake/test/orders/part-0.gzip.parquet"


def test_concurrent_writers_create_an_object_once(objects: Objects) -> None:
    bodies = [f"writer {number}".encode() for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        created = list(pool.map(lambda body: objects.put_if_absent(KEY, body), bodies))
    assert created.count(True) == 1
    assert objects.get(KEY) == bodies[created.index(True)]


@pytest.mark.parametrize("lose", [drop_answer, drop_request, answer(503, "SlowDown")])
def test_write_without_a_response_is_retried(
    proxied: Objects, fault_proxy: FaultProxy, lose: Action
) -> None:
    rule = fault_proxy.on("PutObject", lose, times=1)
    # False when the first try arrived: the caller then reads whose object it is.
    assert proxied.put_if_absent(KEY, b"mine") is (lose is not drop_answer)
    assert rule.hits == 2
    assert proxied.get(KEY) == b"mine"


def test_write_without_any_response_is_unknown(proxied: Objects, fault_proxy: FaultProxy) -> None:
    fault_proxy.on("PutObject", drop_request)
    with pytest.raises(UnknownOutcome, match="state unknown") as caught:
        proxied.put_if_absent(KEY, b"mine")
    assert caught.value.retryable


def test_rejection_after_a_lost_response_is_unknown(
    proxied: Objects, fault_proxy: FaultProxy
) -> None:
    fault_proxy.on("PutObject", drop_answer, times=1)
    fault_proxy.on("PutObject", answer(403, "AccessDenied"))
    with pytest.raises(UnknownOutcome):
        proxied.put_if_absent(KEY, b"mine")


def test_rejected_write_is_not_retried(proxied: Objects, fault_proxy: FaultProxy) -> None:
    rule = fault_proxy.on("PutObject", answer(403, "AccessDenied"))
    with pytest.raises(AwsError) as caught:
        proxied.put_if_absent(KEY, b"mine")
    assert (caught.value.code, caught.value.status, rule.hits) == ("AccessDenied", 403, 1)
    assert "s3:PutObject" in (caught.value.hint or "")


def test_store_without_conditional_writes_is_detected(
    proxied: Objects, fault_proxy: FaultProxy
) -> None:
    fault_proxy.on("PutObject", without_support("if-none-match"))
    with pytest.raises(ConditionalWritesUnsupported, match="no conditional writes") as caught:
        proxied.put_if_absent(KEY, b"mine")
    assert "single_writer" in (caught.value.hint or "")


def _all_writes(fault_proxy: FaultProxy, action: Action) -> None:
    for operation in ("PutObject", "CreateMultipartUpload", "UploadPart"):
        fault_proxy.on(operation, action)


def test_store_without_checksums_is_told_from_one_without_conditional_writes(
    proxied: Objects, fault_proxy: FaultProxy
) -> None:
    _all_writes(fault_proxy, without_support("x-amz-checksum-"))
    with pytest.raises(ChecksumsUnsupported, match="does not accept checksums") as caught:
        proxied.has_conditional_writes()
    assert caught.value.hint == "set AWS_REQUEST_CHECKSUM_CALCULATION=WHEN_REQUIRED"
    assert list(proxied.list("data-lake/test/")) == []
    assert list(proxied.list_uploads("data-lake/test/")) == []


def test_store_that_rejects_every_write_is_not_told_what_it_lacks(
    proxied: Objects, fault_proxy: FaultProxy
) -> None:
    _all_writes(fault_proxy, answer(501, "NotImplemented"))
    with pytest.raises(AwsError) as caught:
        proxied.put_if_absent(KEY, b"mine")
    assert (caught.value.code, caught.value.status) == ("NotImplemented", 501)
    assert "conditional writes" not in caught.value.message


@pytest.mark.parametrize("place", ["variable", "profile"])
def test_uploads_carry_no_checksums_where_awss_settings_want_none(
    base_identity: Lake,
    fault_proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    place: str,
) -> None:
    if place == "variable":
        monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "WHEN_REQUIRED")
    else:
        (tmp_path / "config").write_text(
            "[default]\nrequest_checksum_calculation = when_required\n"
        )
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    _all_writes(fault_proxy, without_support("x-amz-checksum-"))
    destination = make_destination(base_identity, fault_proxy.endpoint)
    objects = Objects(AwsSession(destination), destination, waits=QUICK)

    assert objects.has_conditional_writes()
    assert objects.put_if_absent(KEY + "-1", b"mine")
    objects.put(KEY + "-2", b"mine")
    assert stage(objects, body=b"y" * 100)() is Completion.COMPLETED
    assert objects.get(KEY) == b"y" * 100


def test_single_writer_reads_before_it_writes(base_identity: Lake) -> None:
    destination = make_destination(base_identity, single_writer=True)
    objects = Objects(AwsSession(destination), destination, waits=QUICK)
    assert objects.put_if_absent(KEY, b"first")
    assert not objects.put_if_absent(KEY, b"second")
    assert objects.get(KEY) == b"first"


def stage(objects: Objects, key: str = KEY, body: bytes = b"x" * 100) -> Callable[[], Completion]:
    upload_id = objects.create_upload(key, {"attempt": "a"})
    part = objects.upload_part(key, upload_id, 1, body)
    return lambda: objects.complete_upload(key, upload_id, (part,))


def test_an_upload_is_invisible_until_it_is_completed(objects: Objects) -> None:
    complete = stage(objects)
    assert objects.find(KEY) is None
    assert [upload.key for upload in objects.list_uploads("data-lake/test/")] == [KEY]
    assert complete() is Completion.COMPLETED
    head = objects.head(KEY)
    assert head is not None
    assert head.metadata["attempt"] == "a"
    assert objects.get(KEY) == b"x" * 100


def test_completing_never_replaces_an_object(objects: Objects) -> None:
    complete = stage(objects)
    objects.put(KEY, b"somebody else's")
    assert complete() is Completion.KEY_TAKEN
    assert objects.get(KEY) == b"somebody else's"


def test_completing_an_aborted_upload_says_so(objects: Objects) -> None:
    upload_id = objects.create_upload(KEY, {})
    part = objects.upload_part(KEY, upload_id, 1, b"x")
    objects.abort_upload(KEY, upload_id)
    objects.abort_upload(KEY, upload_id)
    assert objects.complete_upload(KEY, upload_id, (part,)) is Completion.NO_SUCH_UPLOAD


def test_completion_without_a_response_is_retried(
    proxied: Objects, fault_proxy: FaultProxy
) -> None:
    complete = stage(proxied)
    fault_proxy.on("CompleteMultipartUpload", answer(409, "ConditionalRequestConflict"), times=1)
    fault_proxy.on("CompleteMultipartUpload", drop_answer, times=1)
    # Which of its three answers S3 gives the second time is not documented: all are safe.
    assert complete() in set(Completion)
    assert proxied.get(KEY) == b"x" * 100


def test_delete_keeps_an_object_that_changed(admin_objects: Objects) -> None:
    objects = admin_objects
    objects.put(KEY, b"one")
    entry = objects.find(KEY)
    assert entry is not None
    objects.put(KEY, b"two")
    assert not objects.delete(KEY, entry.etag)
    assert objects.get(KEY) == b"two"
    changed = objects.find(KEY)
    assert changed is not None
    assert objects.delete(KEY, changed.etag)
    assert objects.delete(KEY, changed.etag)
    assert objects.get(KEY) is None


def test_find_matches_the_exact_key_only(objects: Objects) -> None:
    objects.put(KEY + ".longer", b"x")
    assert objects.find(KEY) is None
    assert not objects.is_empty("data-lake/test/")
    assert objects.is_empty("data-lake/test/other/")


@pytest.mark.parametrize(
    ("encryption", "headers"),
    [
        (EncryptionSpec(), ("", "")),
        (EncryptionSpec("SSE_S3"), ("AES256", "")),
        (EncryptionSpec("SSE_KMS", "alias/lake"), ("aws:kms", "alias/lake")),
    ],
)
def test_every_upload_requests_the_encryption_of_the_destination(
    base_identity: Lake,
    fault_proxy: FaultProxy,
    encryption: EncryptionSpec,
    headers: tuple[str, str],
) -> None:
    destination = make_destination(base_identity, fault_proxy.endpoint, encryption=encryption)
    objects = Objects(AwsSession(destination), destination, waits=QUICK)
    objects.put(KEY + ".cache", b"x")
    objects.put_if_absent(KEY + ".once", b"x")
    objects.create_upload(KEY, {})
    sent = [
        (
            request.header("x-amz-server-side-encryption"),
            request.header("x-amz-server-side-encryption-aws-kms-key-id"),
        )
        for request in fault_proxy.requests
    ]
    assert sent == [headers] * 3


def test_every_write_carries_a_checksum_in_a_header(
    proxied: Objects, fault_proxy: FaultProxy
) -> None:
    stage(proxied)()
    proxied.put_if_absent(KEY + ".once", b"123456789")
    checksums = {
        request.operation: request.header("x-amz-checksum-crc32")
        for request in fault_proxy.requests
    }
    # CRC32 of "123456789" is CBF43926, the check value of the algorithm.
    assert checksums["PutObject"] == "y/Q5Jg=="
    assert checksums["UploadPart"]
    assert not any(request.header("x-amz-trailer") for request in fault_proxy.requests)


def test_truncated_body_is_read_again(proxied: Objects, fault_proxy: FaultProxy) -> None:
    proxied.put(KEY, b"x" * 1000)
    rule = fault_proxy.on("GetObject", truncate(10), times=2)
    assert proxied.get(KEY) == b"x" * 1000
    assert rule.hits == 3


def test_truncated_error_response_is_retried(proxied: Objects, fault_proxy: FaultProxy) -> None:
    rule = fault_proxy.on("GetObject", truncate(10), times=2)
    assert proxied.get("data-lake/test/missing") is None
    assert rule.hits == 3

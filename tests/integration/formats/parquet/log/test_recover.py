"""`recover_table`, `ManualResolution`: what they do, refuse and leave behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.contract.errors import InvalidInput, LakeloadError
from lakeload_jobs.formats.parquet.log.publish import RecordDamaged, UnexpectedObject
from lakeload_jobs.formats.parquet.log.records import EndMarker, LoadRecord, encode
from lakeload_jobs.formats.parquet.log.recovery import (
    ManualResolution,
    TableRecovery,
    recover_table,
)
from lakeload_jobs.formats.parquet.log.roll_forward import Settler
from lakeload_jobs.formats.parquet.log.table_log import Committed, NotYetPublished
from lakeload_jobs.storage.objects import Objects
from tests.integration.conftest import QUICK, make_destination
from tests.integration.formats.parquet.log.writer import LONG_AGO, Writer, commit_only
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import (
    Action,
    FaultProxy,
    Forward,
    Response,
    answer,
    drop_request,
)
from tests.servers.ministack import Lake


def silent(_: str) -> None:
    """Tell nobody."""


def recover(objects: Objects, *, dry_run: bool = False, **changes: Any) -> TableRecovery:
    """Recover the writers' table; every upload is old."""
    changes = {"abort_older_than": timedelta(0), "catalog": None, **changes}
    location = Writer(objects).location
    return recover_table(
        objects, location, parallelism=3, notify=silent, dry_run=dry_run, **changes
    )


def void(objects: Objects, job_id: str = "job-1", **changes: Any) -> str:
    """The operator's `--void`."""
    settler = Settler(objects, Writer(objects).location, parallelism=3)
    return ManualResolution(settler, job_id, **changes).void()


def accept(objects: Objects, job_id: str = "job-1", **changes: Any) -> str:
    """The operator's `--accept`."""
    settler = Settler(objects, Writer(objects).location, parallelism=3)
    return ManualResolution(settler, job_id, **changes).accept()


def damage(objects: Objects, job_id: str = "job-1", number: int = 1) -> LoadRecord:
    """Leave a job of three files half visible: the first is in, the second lost, the third open."""
    record = commit_only(objects, Writer(objects, job_id, files=3), number)
    first, second, _ = record.files
    objects.complete_upload(first.key, first.upload_id, first.parts)
    objects.abort_upload(second.key, second.upload_id)
    return record


def end(lake: Lake, objects: Objects, number: int = 1) -> dict[str, Any]:
    """Read a marker that is not simply done."""
    marker: dict[str, Any] = json.loads(lake.read(Writer(objects).location.end_key(number)))
    return marker


def rows(lake: Lake) -> list[str]:
    """What a reader sees: job and number of each row."""
    texts = [lake.read(key).decode().split() for key in lake.data_keys()]
    return sorted(f"{job} {number}" for job, _, number in texts)


def test_recover_of_a_complete_table_is_up_to_date(objects: Objects, lake: Lake) -> None:
    Writer(objects).run()
    before = lake.keys()
    assert recover(objects).nothing_to_do
    assert recover(objects, dry_run=True).nothing_to_do
    assert lake.keys() == before


def test_recover_publishes_cleans_and_removes_abandoned_uploads(
    objects: Objects, lake: Lake
) -> None:
    commit_only(objects, Writer(objects, "job-1"))
    lost = commit_only(objects, Writer(objects, "job-2"), 2)
    for file in lost.files:
        objects.abort_upload(file.key, file.upload_id)
    dead = Writer(objects, "job-3", files=1).stage()
    before = lake.keys()
    foreseen = recover(objects, dry_run=True)
    assert lake.keys() == before
    done = recover(objects)
    for report in (foreseen, done):
        assert [(job.job_id, job.action) for job in report.finished] == [
            ("job-1", "publish"),
            ("job-2", "void"),
        ]
        assert [upload.key for upload in report.stale_uploads] == [dead.files[0].key]
        assert (report.damaged, report.error, report.uploads_error) == ((), None, None)
    assert rows(lake) == ["job-1 0", "job-1 1"]
    assert lake.uploads() == []
    assert recover(objects).nothing_to_do


def test_recover_reports_a_damaged_record_and_finishes_the_others(
    objects: Objects, lake: Lake
) -> None:
    record = damage(objects)
    commit_only(objects, Writer(objects, "job-2"), 2)
    for report in (recover(objects, dry_run=True), recover(objects)):
        (found,) = report.damaged
        assert (found.number, found.pipeline, found.job_id, found.rows) == (1, "shop", "job-1", 3)
        assert (found.lost, found.lost_rows) == ((record.files[1].key,), 1)
        assert [job.job_id for job in report.finished] == ["job-2"]
        assert report.error is None
    # What could be published of it is visible, and nothing of it was aborted or removed.
    assert rows(lake) == ["job-1 0", "job-1 2", "job-2 0", "job-2 1"]
    with pytest.raises(RecordDamaged) as caught:
        Writer(objects, "job-3").open()
    assert "lakeload recover FILE --void job-1 --yes` deletes its 2" in (caught.value.hint or "")
    assert "--accept job-1` keeps them, without the 1 lost" in (caught.value.hint or "")


def test_recover_error_is_in_the_report(
    objects: Objects, admin_objects: Objects, lake: Lake
) -> None:
    record = commit_only(objects, Writer(objects))
    admin_objects.put(record.files[0].key, b"a stranger's")
    for dry_run in (True, False):
        report = recover(objects, dry_run=dry_run)
        # Foreseeing trusts the open uploads; only a completion meets the stranger.
        assert isinstance(report.error, UnexpectedObject) is not dry_run
    assert len(lake.uploads()) == 1


def test_recover_denied_listing_of_uploads_does_the_rest(
    proxied: Objects, fault_proxy: FaultProxy, lake: Lake
) -> None:
    fault_proxy.on("ListMultipartUploads", answer(403, "AccessDenied"))
    commit_only(proxied, Writer(proxied))
    for dry_run in (True, False):
        report = recover(proxied, dry_run=dry_run)
        assert [job.action for job in report.finished] == ["publish"]
        assert isinstance(report.uploads_error, AwsError)
        assert "s3:ListBucketMultipartUploads" in (report.uploads_error.hint or "")
    assert len(lake.data_keys()) == 2


def test_recover_denied_is_reported(proxied: Objects, fault_proxy: FaultProxy) -> None:
    fault_proxy.on("ListObjectsV2", answer(403, "AccessDenied"))
    report = recover(proxied)
    assert "denied" in str(report.error)


def test_a_damaged_job_can_be_voided_and_loaded_again_under_another_id(
    objects: Objects, admin_objects: Objects, lake: Lake
) -> None:
    damage(objects)
    assert void(admin_objects) == "void"
    assert lake.data_keys() == []
    assert lake.uploads() == []
    assert end(lake, objects)["outcome"] == "void"
    with pytest.raises(InvalidInput, match="the job id cannot be reused"):
        Writer(objects).open()
    assert isinstance(Writer(objects, "job-1b", files=3).run(), Committed)
    assert rows(lake) == ["job-1b 0", "job-1b 1", "job-1b 2"]
    assert void(objects) == "void"


def test_complete_unpublished_job_can_be_voided(objects: Objects, lake: Lake) -> None:
    commit_only(objects, Writer(objects))
    assert void(objects, pipeline="shop") == "void"
    assert (lake.data_keys(), lake.uploads()) == ([], [])
    assert Writer(objects, "job-2").open().settled == ()


def test_void_denied_deletion_names_the_action_and_the_next_run_finishes(
    objects: Objects, admin_objects: Objects, lake: Lake
) -> None:
    record = damage(objects)
    with pytest.raises(AwsError) as caught:
        void(objects)
    assert record.files[0].key in caught.value.message
    assert "s3:DeleteObject" in (caught.value.hint or "")
    assert end(lake, objects)["outcome"] == "void"
    assert objects.find(Writer(objects).location.clean_key(1)) is None
    # Until then no job comes in beside rows that count for nothing.
    with pytest.raises(AwsError, match="denied"):
        Writer(objects, "job-2").open()
    assert [job.action for job in recover(admin_objects).finished] == ["clean"]
    assert lake.data_keys() == []
    assert Writer(objects, "job-2").open().settled == ()


def test_recent_void_is_cleaned_once_no_completion_can_be_running(
    base_identity: Lake, objects: Objects, lake: Lake
) -> None:
    record = commit_only(objects, Writer(objects))
    now = [objects.waits.now()]
    waits = replace(QUICK, late_completion=900, now=lambda: now[0])
    destination = make_destination(base_identity)
    patient = Objects(AwsSession(destination), destination, waits=waits)
    assert void(patient) == "void"
    clean = Writer(objects).location.clean_key(1)
    assert objects.find(clean) is None
    for number in (2, 3):
        Writer(patient, f"job-{number}", files=0).run()
    # No checkpoint may cover it yet.
    assert objects.find(Writer(objects).location.checkpoint_key) is None
    assert [job.action for job in Writer(patient, "job-4").open().settled] == ["clean"]
    # S3 finishes only now what it was asked to complete before the void.
    first = record.files[0]
    upload_id = objects.create_upload(first.key, {"attempt": record.attempt_id})
    part = objects.upload_part(first.key, upload_id, 1, b"job-1 late 0")
    objects.complete_upload(first.key, upload_id, (part,))
    with pytest.raises(AwsError, match="denied"):
        Writer(patient, "job-4").open()
    lake.server.s3.delete_object(Bucket=lake.seeded.bucket, Key=first.key)
    now[0] += timedelta(minutes=31)
    Writer(patient, "job-4", files=0).run()
    assert objects.find(clean) is not None
    checkpoint = json.loads(lake.read(Writer(objects).location.checkpoint_key))
    assert checkpoint["number"] == 4


def test_damaged_job_can_be_accepted_without_its_lost_rows(objects: Objects, lake: Lake) -> None:
    record = damage(objects)
    assert accept(objects) == "partial"
    marker = end(lake, objects)
    assert (marker["outcome"], marker["lost"]) == ("partial", [record.files[1].key])
    assert rows(lake) == ["job-1 0", "job-1 2"]
    assert Writer(objects).open().already is not None
    assert isinstance(Writer(objects, "job-2").run(), Committed)
    assert recover(objects).nothing_to_do


@pytest.mark.parametrize("decide", [void, accept], ids=["void", "accept"])
def test_void_or_accept_of_a_finished_job_is_rejected(
    objects: Objects, lake: Lake, decide: Callable[..., str]
) -> None:
    Writer(objects, "job-1").run()
    checkpoint = Writer(objects).location.checkpoint_key
    for covered in (True, False):
        if not covered:
            lake.server.s3.delete_object(Bucket=lake.seeded.bucket, Key=checkpoint)
        with pytest.raises(InvalidInput, match="`job-1` is done") as caught:
            decide(objects)
        assert "lakeload reset" in (caught.value.hint or "")
    assert len(lake.data_keys()) == 2
    damage(objects, "job-2", 2)
    accept(objects, "job-2")
    with pytest.raises(InvalidInput, match="its remaining rows were accepted"):
        decide(objects, "job-2")


def test_accept_of_a_complete_job_publishes_it(objects: Objects, lake: Lake) -> None:
    commit_only(objects, Writer(objects))
    with pytest.raises(InvalidInput, match="is complete"):
        accept(objects)
    assert rows(lake) == ["job-1 0", "job-1 1"]
    assert lake.read(Writer(objects).location.end_key(1)) == b""


def test_accept_of_a_completely_lost_job_is_rejected(objects: Objects, lake: Lake) -> None:
    record = commit_only(objects, Writer(objects))
    for file in record.files:
        objects.abort_upload(file.key, file.upload_id)
    assert accept(objects) == "void"
    for number in range(2):
        with pytest.raises(InvalidInput, match="was discarded"):
            accept(objects)
        if not number:
            Writer(objects, "job-2").run()


@pytest.mark.parametrize("decide", [void, accept], ids=["void", "accept"])
def test_void_or_accept_of_an_unknown_job_is_rejected(
    objects: Objects, decide: Callable[..., str]
) -> None:
    with pytest.raises(InvalidInput, match="has no job `job-1`") as caught:
        decide(objects)
    assert "lakeload runs" in (caught.value.hint or "")
    Writer(objects, "job-0").run()
    damage(objects, number=2)
    with pytest.raises(InvalidInput, match="a job of pipeline `shop`, not of `other`"):
        decide(objects, pipeline="other")
    with pytest.raises(InvalidInput, match="a job of pipeline `shop`, not of `other`"):
        decide(objects, "job-0", pipeline="other")


@pytest.mark.parametrize("decide", [void, accept], ids=["void", "accept"])
def test_void_of_a_job_its_author_publishes_first_is_rejected(
    base_identity: Lake, objects: Objects, decide: Callable[..., str]
) -> None:
    author = Writer(objects)
    record = author.stage()
    objects.put_if_absent(author.location.record_key(1), encode(record))

    def author_finishes(_: float) -> None:
        for file in record.files:
            objects.complete_upload(file.key, file.upload_id, file.parts)
        objects.put_if_absent(author.location.end_key(1), b"")

    destination = make_destination(base_identity)
    waits = replace(QUICK, live_author=10, sleep=author_finishes)
    with pytest.raises(InvalidInput, match="is done"):
        decide(Objects(AwsSession(destination), destination, waits=waits))


def test_author_of_an_accepted_job_gets_an_error(objects: Objects) -> None:
    writer = Writer(objects)
    writer.open()
    accepted = EndMarker("lakeload test", LONG_AGO, "partial", "accepted", ("a/b",))
    objects.put_if_absent(writer.location.end_key(1), encode(accepted))
    with pytest.raises(LakeloadError, match="only a part"):
        writer.log.commit(writer.stage())


def _lifecycle_rule(lake: Lake) -> None:
    """Abort every open upload, as AbortIncompleteMultipartUpload does."""
    s3, bucket = lake.server.s3, lake.seeded.bucket
    for upload in s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []):
        s3.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])


@pytest.mark.parametrize("decision", ["void", "accept"])
def test_uploads_removed_during_publication_stop_the_table_until_void_or_accept(
    proxied: Objects, admin_objects: Objects, fault_proxy: FaultProxy, lake: Lake, decision: str
) -> None:
    Writer(proxied, "job-0", files=1).run()
    fault_proxy.on("CompleteMultipartUpload", drop_request, key="*-0000[12].*")
    writer = Writer(proxied, files=3)
    with pytest.raises(NotYetPublished):
        writer.run()
    fault_proxy.rules.clear()
    _lifecycle_rule(lake)
    visible = ["job-0 0", "job-1 0"]
    assert rows(lake) == visible

    def sync(job_id: str) -> LakeloadError | None:
        try:
            Writer(proxied, job_id, files=3).run()
        except LakeloadError as error:
            return error
        return None

    with ThreadPoolExecutor(2) as pool:
        for error in pool.map(sync, ["job-1", "job-2"]):
            assert isinstance(error, RecordDamaged)
            assert "2 of 3 rows are lost" in error.message
            assert all(f"part-job-1-0000{number}" in error.message for number in (1, 2))
    assert rows(lake) == visible
    assert lake.uploads() == []
    if decision == "void":
        assert void(admin_objects) == "void"
        assert rows(lake) == ["job-0 0"]
        assert sync("job-3") is None
        assert rows(lake) == ["job-0 0", "job-3 0", "job-3 1", "job-3 2"]
    else:
        assert accept(proxied) == "partial"
        assert sync("job-1") is None
        assert rows(lake) == visible
        # The operator loads the lost rows again: here two rows under another id.
        assert isinstance(Writer(proxied, "job-3", files=2).run(), Committed)
        assert rows(lake) == [*visible, "job-3 0", "job-3 1"]


def test_void_steps_run_in_the_order_of_the_protocol(
    proxied: Objects, fault_proxy: FaultProxy, admin_objects: Objects, lake: Lake
) -> None:
    record = commit_only(proxied, Writer(proxied, files=2))
    for file in record.files:
        admin_objects.complete_upload(file.key, file.upload_id, file.parts)
    fault_proxy.on("DeleteObject", as_administrator(lake))
    fault_proxy.requests.clear()
    void(proxied)
    sent = [(r.operation, r.key.rpartition(".")[2]) for r in fault_proxy.requests]
    order = [operation for operation, _ in sent]
    decided = sent.index(("PutObject", "end"))
    looked = [n for n, name in enumerate(order) if name == "HeadObject"]
    assert decided < order.index("AbortMultipartUpload")
    assert max(n for n, name in enumerate(order) if name == "AbortMultipartUpload") < looked[0]
    assert looked[0] < order.index("DeleteObject")
    assert sent[-1] == ("PutObject", "clean")
    deleted = [r for r in fault_proxy.requests if r.operation == "DeleteObject"]
    assert {request.key for request in deleted} == {file.key for file in record.files}
    assert all(request.header("If-Match") for request in deleted)
    assert lake.data_keys() == []


def as_administrator(lake: Lake) -> Action:
    """Carry a deletion out with the administrator's rights: the role has none."""

    def act(request: Request, forward: Forward) -> Response:
        lake.server.s3.delete_object(
            Bucket=request.bucket, Key=request.key, IfMatch=request.header("If-Match")
        )
        return Response(204, (), b"")

    return act

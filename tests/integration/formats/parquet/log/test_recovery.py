"""What the next run finds and does: lost uploads, strangers' objects, voids."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.formats.parquet.log.publish import RecordDamaged, UnexpectedObject
from lakeload_jobs.formats.parquet.log.records import EndMarker, encode
from lakeload_jobs.storage.objects import Objects
from tests.integration.conftest import QUICK, make_destination
from tests.integration.formats.parquet.log.writer import LONG_AGO, Writer, commit_only
from tests.servers.fault_proxy import FaultProxy, answer
from tests.servers.ministack import Lake


def end_text(lake: Lake, writer: Writer, number: int) -> str:
    return lake.read(writer.location.end_key(number)).decode()


def test_job_with_all_uploads_lost_becomes_void_and_its_id_is_rejected(
    objects: Objects, lake: Lake
) -> None:
    victim = Writer(objects)
    record = commit_only(objects, victim)
    for file in record.files:
        objects.abort_upload(file.key, file.upload_id)
    Writer(objects, "job-2").run()
    assert json.loads(end_text(lake, victim, 1))["outcome"] == "void"
    assert objects.get(victim.location.clean_key(1)) is not None
    assert len(lake.data_keys()) == 2
    with pytest.raises(InvalidInput, match="discarded or reset") as caught:
        Writer(objects).open()
    assert "another `--job-id`" in (caught.value.hint or "")


def test_partially_published_job_stops_the_table_and_names_the_lost_rows(
    objects: Objects, lake: Lake
) -> None:
    record = commit_only(objects, Writer(objects, files=3))
    first, lost, _ = record.files
    objects.complete_upload(first.key, first.upload_id, first.parts)
    objects.abort_upload(lost.key, lost.upload_id)
    for _ in range(2):
        with pytest.raises(RecordDamaged) as caught:
            Writer(objects, "job-2").open()
        assert lost.key in caught.value.message
        assert "1 of 3 rows" in caught.value.message
    assert len(lake.data_keys()) == 2


def test_partially_published_job_can_be_accepted(objects: Objects) -> None:
    writer = Writer(objects)
    record = commit_only(objects, writer)
    lost = record.files[0]
    objects.abort_upload(lost.key, lost.upload_id)
    accepted = EndMarker("lakeload test", LONG_AGO, "partial", "accepted", (lost.key,))
    objects.put_if_absent(writer.location.end_key(1), encode(accepted))
    assert Writer(objects, "job-2").open().settled == ()
    assert Writer(objects).open().already is not None


def test_object_of_another_writer_at_a_job_key_is_neither_replaced_nor_deleted(
    objects: Objects, admin_objects: Objects
) -> None:
    record = commit_only(objects, Writer(objects))
    key = record.files[0].key
    admin_objects.put(key, b"a stranger's")
    with pytest.raises(UnexpectedObject, match="part-job-1-00000"):
        Writer(objects, "job-2").open()
    assert objects.get(key) == b"a stranger's"
    # The operator declares the job void: still only our own objects go.
    void = EndMarker("lakeload test", LONG_AGO, "void", "by hand")
    admin_objects.put_if_absent(Writer(objects).location.end_key(1), encode(void))
    Writer(admin_objects, "job-2").run()
    assert objects.get(key) == b"a stranger's"
    assert objects.find(record.files[1].key) is None


def test_a_void_job_without_clean_is_cleaned_by_the_next_run(
    objects: Objects, admin_objects: Objects, lake: Lake
) -> None:
    writer = Writer(objects)
    record = commit_only(objects, writer)
    first = record.files[0]
    objects.complete_upload(first.key, first.upload_id, first.parts)
    void = EndMarker("lakeload test", LONG_AGO, "void", "by hand")
    objects.put_if_absent(writer.location.end_key(1), encode(void))
    opened = Writer(admin_objects, "job-2", table_handling="FAIL").open()
    assert [(pending.number, pending.action) for pending in opened.settled] == [(1, "clean")]
    assert lake.data_keys() == []
    assert lake.uploads() == []
    clean = json.loads(lake.read(writer.location.clean_key(1)))
    assert clean["deleted"] == [first.key]


def test_second_publisher_checks_the_object_before_it_reports_a_loss(
    objects: Objects, proxied: Objects, fault_proxy: FaultProxy, lake: Lake
) -> None:
    author = Writer(objects)
    for file in commit_only(objects, author).files:
        objects.complete_upload(file.key, file.upload_id, file.parts)
    # What S3 says of an upload that somebody else has completed; the emulator says 200.
    fault_proxy.on("CompleteMultipartUpload", answer(404, "NoSuchUpload"))
    Writer(proxied, "job-2").open()
    assert end_text(lake, author, 1) == ""
    assert len(lake.data_keys()) == 2


def test_void_end_marker_wins_over_a_late_publisher(admin_objects: Objects, lake: Lake) -> None:
    writer = Writer(admin_objects)
    writer.open()
    void = EndMarker("lakeload test", LONG_AGO, "void", "by hand")
    admin_objects.put_if_absent(writer.location.end_key(1), encode(void))
    with pytest.raises(LoadFailed, match="was discarded"):
        writer.log.commit(writer.stage())
    assert lake.data_keys() == []


def test_author_without_delete_permission_gets_the_void_error(objects: Objects) -> None:
    writer = Writer(objects)
    writer.open()
    void = EndMarker("lakeload test", LONG_AGO, "void", "by hand")
    objects.put_if_absent(writer.location.end_key(1), encode(void))
    with pytest.raises(LoadFailed, match=r"was discarded .* could not be removed") as caught:
        writer.log.commit(writer.stage())
    assert "s3:DeleteObject" in (caught.value.hint or "")


def test_recovery_waits_for_a_live_author(base_identity: Lake, objects: Objects) -> None:
    slept: list[float] = []
    author = Writer(objects)
    record = author.stage()
    objects.put_if_absent(author.location.record_key(1), encode(record))

    def author_finishes(seconds: float) -> None:
        slept.append(seconds)
        for file in record.files:
            objects.complete_upload(file.key, file.upload_id, file.parts)
        objects.put_if_absent(author.location.end_key(1), b"")

    destination = make_destination(base_identity)
    waits = replace(QUICK, live_author=10, sleep=author_finishes)
    patient = Writer(Objects(AwsSession(destination), destination, waits=waits), "job-2")
    assert patient.open().next_number == 2
    assert patient.notes == []
    assert len(slept) == 1


def test_missing_uploads_are_checked_again_after_the_longest_completion(
    base_identity: Lake, objects: Objects
) -> None:
    victim = Writer(objects)
    record = commit_only(objects, victim)
    for file in record.files:
        objects.abort_upload(file.key, file.upload_id)
    slept: list[float] = []

    def slow_s3_finishes(seconds: float) -> None:
        slept.append(seconds)
        for number, file in enumerate(record.files):
            metadata = {"attempt": victim.attempt_id, "seq": str(number)}
            upload_id = objects.create_upload(file.key, metadata)
            part = objects.upload_part(file.key, upload_id, 1, b"job-1 late 0")
            objects.complete_upload(file.key, upload_id, (part,))

    destination = make_destination(base_identity)
    waits = replace(QUICK, late_completion=900, sleep=slow_s3_finishes)
    patient = Writer(Objects(AwsSession(destination), destination, waits=waits), "job-2")
    patient.open()
    assert slept == [900]
    assert any("15 min" in note for note in patient.notes)
    assert base_identity.read(victim.location.end_key(1)) == b""

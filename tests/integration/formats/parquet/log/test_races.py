"""Two writers in one table: who commits, who gives way, and what each is told."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import InvalidInput, LakeloadError, LoadFailed
from lakeload_jobs.formats.parquet.log.admission import Conflict
from lakeload_jobs.formats.parquet.log.publish import RecordDamaged
from lakeload_jobs.formats.parquet.log.records import FenceRecord, encode
from lakeload_jobs.formats.parquet.log.table_log import Committed, NotYetPublished, OpenedLog
from lakeload_jobs.storage.objects import Objects, UnknownOutcome
from tests.integration.formats.parquet.log.writer import LONG_AGO, Writer
from tests.servers.fault_proxy import FaultProxy, answer, drop_answer, drop_request
from tests.servers.ministack import Lake

RECORD = "*/log/*.json"


def rows(lake: Lake) -> list[str]:
    """What a reader sees: job id and row of each file."""
    texts = [lake.read(key).decode().split() for key in lake.data_keys()]
    return sorted(f"{job} {number}" for job, _, number in texts)


def test_concurrent_jobs_of_different_ids_are_all_committed(objects: Objects, lake: Lake) -> None:
    writers = [Writer(objects, f"job-{number}", files=1) for number in range(6)]
    for writer in writers:
        writer.open()
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda writer: writer.log.commit(writer.stage()), writers))
    assert sorted(result.number for result in results) == [1, 2, 3, 4, 5, 6]
    assert rows(lake) == [f"job-{number} 0" for number in range(6)]


def test_concurrent_attempts_of_one_job_commit_it_once(objects: Objects, lake: Lake) -> None:
    writers = [Writer(objects) for _ in range(6)]
    for writer in writers:
        writer.open()
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda writer: writer.log.commit(writer.stage()), writers))
    assert [result.already for result in results].count(False) == 1
    assert len({result.record.attempt_id for result in results}) == 1
    assert rows(lake) == ["job-1 0", "job-1 1"]
    assert lake.uploads() == []


def test_the_same_job_again_reports_the_earlier_result(objects: Objects, lake: Lake) -> None:
    first = Writer(objects)
    first.run()
    again = Writer(objects).run()
    assert isinstance(again, OpenedLog)
    assert again.already is not None
    assert again.already.attempt_id == first.attempt_id
    assert again.already.rows == 2
    assert rows(lake) == ["job-1 0", "job-1 1"]


@pytest.mark.parametrize("lost", ["before", "after"])
def test_lost_commit_response_is_resolved(
    proxied: Objects, fault_proxy: FaultProxy, lake: Lake, lost: str
) -> None:
    fault_proxy.on(
        "PutObject", drop_answer if lost == "after" else drop_request, key=RECORD, times=1
    )
    result = Writer(proxied).run()
    assert isinstance(result, Committed)
    assert (result.number, result.already) == (1, False)
    assert rows(lake) == ["job-1 0", "job-1 1"]


def test_unknown_commit_leaves_all_uploads_for_the_next_run(
    proxied: Objects, fault_proxy: FaultProxy, objects: Objects, lake: Lake
) -> None:
    fault_proxy.on("PutObject", drop_answer, key=RECORD, times=1)
    fault_proxy.on("PutObject", answer(403, "AccessDenied"), key=RECORD)
    with pytest.raises(UnknownOutcome):
        Writer(proxied).run()
    assert len(lake.uploads()) == 2
    Writer(objects, "job-2").run()
    assert rows(lake) == ["job-1 0", "job-1 1", "job-2 0", "job-2 1"]


def test_unreadable_record_after_a_412_is_commit_state_unknown(
    proxied: Objects, fault_proxy: FaultProxy, lake: Lake
) -> None:
    fault_proxy.on("PutObject", drop_answer, key=RECORD, times=1)
    fault_proxy.on("GetObject", answer(403, "AccessDenied"), key="*/log/0*.json")
    with pytest.raises(UnknownOutcome, match="perhaps from this job"):
        Writer(proxied).run()
    assert len(lake.uploads()) == 2


def test_rejected_commit_aborts_its_uploads(
    proxied: Objects, fault_proxy: FaultProxy, lake: Lake
) -> None:
    fault_proxy.on("PutObject", answer(403, "AccessDenied"), key=RECORD)
    with pytest.raises(AwsError):
        Writer(proxied).run()
    assert lake.uploads() == []
    assert all("/pipeline-sources/" in key for key in lake.keys())  # noqa: SIM118


def test_outage_after_the_commit_reports_committed(
    proxied: Objects, fault_proxy: FaultProxy, objects: Objects, lake: Lake
) -> None:
    fault_proxy.on("CompleteMultipartUpload", answer(503, "SlowDown"))
    with pytest.raises(NotYetPublished, match="is committed \\(record 1\\)"):
        Writer(proxied).run()
    again = Writer(objects)
    opened = again.open()
    assert opened.already is not None
    assert [(p.number, p.action) for p in opened.settled] == [(1, "publish")]
    assert "did not finish" in again.notes[0]
    assert rows(lake) == ["job-1 0", "job-1 1"]


def test_success_is_reported_only_after_the_end_marker(
    proxied: Objects, fault_proxy: FaultProxy
) -> None:
    fault_proxy.on("PutObject", answer(500, "InternalError"), key="*.end")
    with pytest.raises(NotYetPublished):
        Writer(proxied).run()


def overtaken(
    objects: Objects, winner: Writer, loser: Writer, lake: Lake
) -> tuple[LakeloadError, list[str]]:
    """Let both open, the winner commit first; return the loser's error and the open uploads."""
    loser.open()
    record = loser.stage()
    winner.run()
    with pytest.raises(LakeloadError) as caught:
        loser.log.commit(record)
    return caught.value, lake.uploads()


def test_two_jobs_with_the_same_start_state_conflict(objects: Objects, lake: Lake) -> None:
    winner = Writer(objects, "job-1", state={"cursor": 2})
    loser = Writer(objects, "job-2", state={"cursor": 3})
    error, uploads = overtaken(objects, winner, loser, lake)
    assert isinstance(error, Conflict)
    assert error.retryable
    assert uploads == []
    assert Writer(objects, "job-3").open().state == {"cursor": 2}


def test_an_append_without_state_leaves_the_state_alone(objects: Objects) -> None:
    append = Writer(objects, "job-2")
    append.open()
    record = append.stage()
    Writer(objects, "job-1", state={"cursor": 2}).run()
    assert append.log.commit(record).number == 2
    assert Writer(objects, "job-3").open().state == {"cursor": 2}


def test_first_run_under_fail_after_a_concurrent_pipeline_is_rejected(
    objects: Objects, lake: Lake
) -> None:
    winner = Writer(objects, "job-1", pipeline="first", table_handling="FAIL")
    loser = Writer(objects, "job-2", pipeline="second", table_handling="FAIL")
    error, uploads = overtaken(objects, winner, loser, lake)
    assert isinstance(error, LoadFailed)
    assert "`first`" in error.message
    assert "`second`" in error.message
    assert uploads == []


def test_append_job_id_of_another_pipeline_is_rejected_on_conflict(
    objects: Objects, lake: Lake
) -> None:
    winner = Writer(objects, "job-1", pipeline="first")
    error, uploads = overtaken(objects, winner, Writer(objects, "job-1", pipeline="second"), lake)
    assert isinstance(error, InvalidInput)
    assert uploads == []


def test_append_job_with_other_settings_is_rejected_on_conflict(
    objects: Objects, lake: Lake
) -> None:
    error, uploads = overtaken(
        objects, Writer(objects), Writer(objects, fingerprint="0" * 64), lake
    )
    assert isinstance(error, InvalidInput)
    assert "ffffffffffff" in error.message
    assert "000000000000" in error.message
    assert uploads == []


@pytest.mark.parametrize("named", [True, False])
def test_a_fence_stops_the_attempts_it_names(objects: Objects, lake: Lake, named: bool) -> None:
    writer = Writer(objects)
    writer.open()
    record = writer.stage()
    attempts = (writer.attempt_id,) if named else ("somebody else",)
    fence = FenceRecord("lakeload test", datetime.now(UTC), attempts, "uploads older than 24 h")
    assert objects.put_if_absent(writer.location.record_key(1), encode(fence))
    if named:
        with pytest.raises(Conflict, match="uploads older than 24 h"):
            writer.log.commit(record)
        assert rows(lake) == []
    else:
        assert writer.log.commit(record).number == 2
        assert rows(lake) == ["job-1 0", "job-1 1"]
    assert lake.uploads() == []
    assert Writer(objects, "job-9").open().next_number == (2 if named else 3)


@pytest.mark.parametrize("hours", [11, 13])
def test_a_long_load_whose_uploads_were_aborted_is_not_committed(
    objects: Objects, lake: Lake, hours: int
) -> None:
    writer = Writer(objects)
    writer.open()
    record = writer.stage()
    record = replace(record, started_at=record.started_at - timedelta(hours=hours))
    lost = record.files[0]
    objects.abort_upload(lost.key, lost.upload_id)
    with pytest.raises(LoadFailed) as caught:
        writer.log.commit(record)
    if hours < 12:
        assert isinstance(caught.value, RecordDamaged)
        return
    assert "1 of 2 uploads" in caught.value.message
    assert lost.key in caught.value.message
    assert "AbortIncompleteMultipartUpload" in (caught.value.hint or "")
    assert objects.find(writer.location.record_key(1)) is None
    assert (lake.data_keys(), lake.uploads()) == ([], [])


def test_a_long_load_commits_when_its_uploads_are_there_or_cannot_be_listed(
    proxied: Objects, fault_proxy: FaultProxy
) -> None:
    for number in range(2):
        writer = Writer(proxied, f"job-{number}")
        writer.open()
        record = replace(writer.stage(), started_at=LONG_AGO)
        assert writer.log.commit(record).outcome == "done"
        fault_proxy.on("ListMultipartUploads", answer(403, "AccessDenied"))
    assert fault_proxy.count("ListMultipartUploads") == 2

"""Uploads of attempts that died: found, fenced off, aborted; those of records never."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log import stale_uploads, table_log
from lakeload_jobs.formats.parquet.log.admission import Conflict
from lakeload_jobs.formats.parquet.log.commit_log import CommitLog
from lakeload_jobs.formats.parquet.log.records import FenceRecord, decode_record, encode
from lakeload_jobs.formats.parquet.log.stale_uploads import StaleUploads, is_of_table
from lakeload_jobs.formats.parquet.log.table_log import Committed
from lakeload_jobs.storage.objects import Objects
from tests.integration.formats.parquet.log.writer import Writer, commit_only
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import FaultProxy, answer, before
from tests.servers.ministack import Lake

NOW = timedelta(0)


def cleaner(objects: Objects) -> StaleUploads:
    """A clean-up of the writers' table."""
    log = CommitLog(objects, Writer(objects).location)
    return StaleUploads(objects, log, parallelism=4)


def fence(lake: Lake, number: int) -> FenceRecord:
    """Read a record that must be a fence."""
    key = TableLocation("data-lake/test", "shop", "orders").record_key(number)
    record = decode_record(lake.read(key), key)
    assert isinstance(record, FenceRecord)
    return record


def test_uploads_without_a_record_are_fenced_off_and_aborted(objects: Objects, lake: Lake) -> None:
    Writer(objects, "job-1").run()
    dead = Writer(objects, "job-2").stage()
    found = cleaner(objects).find(NOW)
    assert {upload.key for upload in found} == {file.key for file in dead.files}
    assert len(lake.uploads()) == 2
    removed = cleaner(objects).remove(NOW)
    assert removed == found
    assert lake.uploads() == []
    assert set(fence(lake, 2).uploads) == {file.upload_id for file in dead.files}
    assert isinstance(Writer(objects, "job-3").run(), Committed)


def test_role_without_abort_permission_writes_no_fence(
    proxied: Objects, fault_proxy: FaultProxy, lake: Lake
) -> None:
    fault_proxy.on("AbortMultipartUpload", answer(403, "AccessDenied"))
    Writer(proxied).stage()
    with pytest.raises(AwsError, match="access denied"):
        cleaner(proxied).remove(NOW)
    assert len(lake.uploads()) == 2
    assert fault_proxy.count("PutObject") == 0


def test_recent_uploads_are_kept(objects: Objects, lake: Lake) -> None:
    Writer(objects).stage()
    assert cleaner(objects).remove(timedelta(hours=24)) == ()
    assert len(lake.uploads()) == 2
    now = objects.waits.now
    objects.waits = replace(objects.waits, now=lambda: now() + timedelta(hours=25))
    assert len(cleaner(objects).remove(timedelta(hours=24))) == 2


def test_a_slow_writer_that_was_fenced_off_cannot_commit(objects: Objects, lake: Lake) -> None:
    slow = Writer(objects)
    slow.open()
    record = slow.stage()
    cleaner(objects).remove(NOW)
    with pytest.raises(Conflict, match="fenced off") as caught:
        slow.log.commit(record)
    assert caught.value.retryable
    assert lake.data_keys() == []
    assert isinstance(Writer(objects).run(), Committed)


def test_slow_writer_behind_other_records_still_hits_the_fence(
    objects: Objects, lake: Lake
) -> None:
    slow = Writer(objects, "job-1")
    slow.open()
    record = slow.stage()
    Writer(objects, "job-2").run()
    cleaner(objects).remove(NOW)
    Writer(objects, "job-3").run()
    with pytest.raises(Conflict, match="fenced off"):
        slow.log.commit(record)
    assert len(lake.data_keys()) == 4


def test_fence_does_not_stop_other_attempts(objects: Objects) -> None:
    other = Writer(objects, "job-2")
    other.open()
    Writer(objects, "job-1").stage()
    cleaner(objects).remove(NOW)
    result = other.log.commit(other.stage())
    assert result.number == 2


def test_uploads_of_a_job_that_waits_for_publication_are_never_aborted(
    objects: Objects, lake: Lake
) -> None:
    waiting = commit_only(objects, Writer(objects, "job-1"))
    dead = Writer(objects, "job-2").stage()
    removed = cleaner(objects).remove(NOW)
    assert {upload.key for upload in removed} == {file.key for file in dead.files}
    assert lake.uploads() == sorted(file.key for file in waiting.files)
    assert Writer(objects, "job-3").open().settled[0].job_id == "job-1"
    assert len(lake.data_keys()) == 2


def test_a_commit_between_the_listing_and_the_fence_wins(
    proxied: Objects, objects: Objects, fault_proxy: FaultProxy, lake: Lake
) -> None:
    slow = Writer(objects, "job-1")
    slow.open()
    record = slow.stage()

    def commit_first(request: Request) -> None:
        fault_proxy.rules.clear()
        assert objects.put_if_absent(slow.location.record_key(1), encode(record))

    fault_proxy.on("PutObject", before(commit_first), key="*/log/*.json", times=1)
    assert cleaner(proxied).remove(NOW) == ()
    assert len(lake.uploads()) == 2
    assert slow.log.commit(record).outcome == "done"
    assert len(lake.data_keys()) == 2


def test_concurrent_writers_and_cleaners_leave_complete_jobs_or_none(
    objects: Objects, lake: Lake
) -> None:
    writers = [Writer(objects, f"job-{number}") for number in range(4)]
    for writer in writers:
        writer.open()
    records = [writer.stage() for writer in writers]

    def commit(number: int) -> str | None:
        try:
            writers[number].log.commit(records[number])
        except Conflict:
            return None
        return writers[number].job_id

    with ThreadPoolExecutor(6) as pool:
        cleaning = [pool.submit(cleaner(objects).remove, NOW) for _ in range(2)]
        done = [job for job in pool.map(commit, range(4)) if job]
        for task in cleaning:
            task.result()
    Writer(objects, "job-9").open()
    seen = sorted(lake.read(key).decode().split()[0] for key in lake.data_keys())
    assert seen == sorted(job for job in done for _ in range(2))


def test_many_uploads_take_several_fences(
    objects: Objects, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stale_uploads, "UPLOADS_PER_FENCE", 2)
    Writer(objects, files=5).stage()
    assert len(cleaner(objects).remove(NOW)) == 5
    assert [len(fence(lake, number).uploads) for number in (1, 2, 3)] == [2, 2, 1]
    assert lake.uploads() == []


def test_upload_that_survives_its_abort_is_aborted_again(
    proxied: Objects, fault_proxy: FaultProxy, lake: Lake
) -> None:
    Writer(proxied, files=1).stage()
    deaf = answer(204, "")
    fault_proxy.on("AbortMultipartUpload", deaf, times=1)
    cleaner(proxied).remove(NOW)
    assert lake.uploads() == []
    assert fault_proxy.count("AbortMultipartUpload") == 2


def test_sync_aborts_stale_uploads_at_every_sixteenth_record_and_continues(
    objects: Objects, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_log, "STALE_AFTER", NOW)
    monkeypatch.setattr(table_log, "CLEANING_EVERY", 3)
    Writer(objects, "job-0").stage()
    for number in (1, 2):
        Writer(objects, f"job-{number}").run()
        assert len(lake.uploads()) == 2
    result = Writer(objects, "job-3").run()
    assert isinstance(result, Committed)
    assert result.number == 4
    assert len(fence(lake, 3).uploads) == 2
    assert lake.uploads() == []


def test_sync_denied_listing_of_uploads_warns_and_loads(
    proxied: Objects, fault_proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_log, "CLEANING_EVERY", 1)
    fault_proxy.on("ListMultipartUploads", answer(403, "AccessDenied"))
    writer = Writer(proxied)
    assert isinstance(writer.run(), Committed)
    assert any("were not removed" in note and "denied" in note for note in writer.notes)


@pytest.mark.parametrize(
    ("schema", "rest", "ours"),
    [
        ("shop", "a.gzip.parquet", True),
        ("shop", "2026/11/21/a.gzip.parquet", True),
        ("shop", "2026/11/21/10/a.gzip.parquet", True),
        ("shop", "job-1/a.gzip.parquet", True),
        ("shop", "items/a.gzip.parquet", True),
        ("shop", "a.csv", False),
        ("shop", "x/y/a.gzip.parquet", False),
        ("", "2026/11/21/a.gzip.parquet", True),
        ("", "job-1/a.gzip.parquet", True),
        # Table `items` of a schema `orders`: its log is another one.
        ("", "items/a.gzip.parquet", False),
        ("", "items/2026/11/21/a.gzip.parquet", False),
    ],
)
def test_stale_uploads_of_other_tables_are_not_aborted(schema: str, rest: str, ours: bool) -> None:
    location = TableLocation("data-lake", schema, "orders")
    assert is_of_table(location, location.data_path + rest) is ours


def test_a_fence_that_cannot_be_written_aborts_nothing(
    proxied: Objects, fault_proxy: FaultProxy, lake: Lake
) -> None:
    Writer(proxied).stage()
    fault_proxy.on("PutObject", answer(403, "AccessDenied"), key="*/log/*.json")
    with pytest.raises(LakeloadError, match="denied"):
        cleaner(proxied).remove(NOW)
    assert len(lake.uploads()) == 2

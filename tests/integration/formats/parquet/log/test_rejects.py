"""Rejected records: one record names the uploads of a table and of its side table."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.formats.parquet.log.admission import Conflict
from lakeload_jobs.formats.parquet.log.commit_log import CommitLog
from lakeload_jobs.formats.parquet.log.publish import RecordDamaged
from lakeload_jobs.formats.parquet.log.records import LoadRecord
from lakeload_jobs.formats.parquet.log.recovery import ManualResolution, recover_table
from lakeload_jobs.formats.parquet.log.reset import LogInUse, Resetter, check_removable
from lakeload_jobs.formats.parquet.log.roll_forward import Settler
from lakeload_jobs.formats.parquet.log.run_history import read_runs, recent
from lakeload_jobs.formats.parquet.log.stale_uploads import StaleUploads
from lakeload_jobs.storage.objects import Objects
from tests.integration.formats.parquet.log.writer import LONG_AGO, Writer, commit_only
from tests.servers.ministack import Lake

NOW = timedelta(0)


def cleaner(objects: Objects) -> StaleUploads:
    return StaleUploads(objects, CommitLog(objects, Writer(objects).location), parallelism=4)


def keys(record: LoadRecord) -> list[str]:
    return sorted(file.key for file in record.uploads)


def test_load_with_rejects_publishes_table_and_side_table(objects: Objects, lake: Lake) -> None:
    Writer(objects, rejects=2).run()

    assert [key.split("/")[3] for key in lake.data_keys()] == [
        *["orders"] * 2,
        *["orders_rejected"] * 2,
    ]


@pytest.mark.parametrize("published", [0, 1, 2, 3])
def test_next_run_publishes_the_rest_of_table_and_side_table(
    objects: Objects, lake: Lake, published: int
) -> None:
    record = commit_only(objects, Writer(objects, rejects=1))
    for file in record.uploads[:published]:
        objects.complete_upload(file.key, file.upload_id, file.parts)

    opened = Writer(objects, "job-2").open()

    assert [(job.rows, job.files, job.action) for job in opened.settled] == [(3, 3, "publish")]
    assert lake.data_keys() == keys(record)


def test_load_of_rejects_only_is_committed(objects: Objects, lake: Lake) -> None:
    record = commit_only(objects, Writer(objects, files=0, rejects=1))

    Writer(objects, "job-2").open()

    assert lake.data_keys() == keys(record)
    assert Writer(objects).open().already == record


def test_void_removes_files_of_table_and_side_table(
    objects: Objects, admin_objects: Objects, lake: Lake
) -> None:
    record = commit_only(objects, Writer(objects, rejects=1))
    file = record.uploads[-1]
    objects.complete_upload(file.key, file.upload_id, file.parts)
    objects.abort_upload(record.files[0].key, record.files[0].upload_id)
    with pytest.raises(RecordDamaged, match="1 of 3 rows are lost"):
        Writer(objects, "job-2").open()

    location = Writer(objects).location
    outcome = ManualResolution(Settler(admin_objects, location), "job-1").void()

    assert outcome == "void"
    assert lake.data_keys() == lake.uploads() == []


def test_lost_rejects_make_a_job_damaged(objects: Objects) -> None:
    record = commit_only(objects, Writer(objects, rejects=1))
    lost = record.uploads[-1]
    objects.abort_upload(lost.key, lost.upload_id)
    location = Writer(objects).location

    foreseen = recover_table(
        objects, location, catalog=None, parallelism=4, notify=lambda _: None, dry_run=True
    )
    (run,), _ = read_runs(objects, recent(objects, location, 5), LONG_AGO)

    assert [job.lost for job in foreseen.damaged] == [(lost.key,)]
    assert (run.state, run.lost) == ("damaged", (lost,))


def test_stale_uploads_are_found_in_table_and_side_table(objects: Objects, lake: Lake) -> None:
    slow = Writer(objects, rejects=1)
    slow.open()
    record = slow.stage()

    removed = cleaner(objects).remove(NOW)

    assert sorted(upload.key for upload in removed) == keys(record)
    assert lake.uploads() == []
    with pytest.raises(Conflict, match="fenced off"):
        slow.log.commit(record)


def test_rejects_of_a_committed_job_are_not_stale(objects: Objects, lake: Lake) -> None:
    commit_only(objects, Writer(objects, rejects=1))

    assert cleaner(objects).remove(NOW) == ()
    assert len(lake.uploads()) == 3


def test_writer_with_fenced_rejects_cannot_commit(objects: Objects) -> None:
    slow = Writer(objects, files=0, rejects=1)
    slow.open()
    record = slow.stage()
    cleaner(objects).remove(NOW)

    with pytest.raises(Conflict, match="fenced off"):
        slow.log.commit(record)


def test_side_table_name_of_a_table_with_a_log_keeps_its_uploads(
    objects: Objects, lake: Lake
) -> None:
    other = Writer(objects, source="visits", table="orders_rejected")
    other.run()
    Writer(objects, "job-9", table="orders_rejected").stage()

    assert cleaner(objects).remove(NOW) == ()
    assert len(lake.uploads()) == 2
    with pytest.raises(InvalidInput, match="another table"):
        Writer(objects, "job-2", rejects=1).run()
    assert len(lake.uploads()) == 2


def test_a_long_load_that_lost_its_rejects_is_not_committed(objects: Objects, lake: Lake) -> None:
    writer = Writer(objects, rejects=1)
    writer.open()
    record = replace(writer.stage(), started_at=LONG_AGO)
    lost = record.uploads[-1]
    objects.abort_upload(lost.key, lost.upload_id)

    with pytest.raises(LoadFailed, match=r"1 of 3 uploads .* were aborted"):
        writer.log.commit(record)
    assert lake.uploads() == []


def test_reset_removes_table_and_side_table_and_keeps_the_log_while_uploads_remain(
    objects: Objects, admin_objects: Objects, lake: Lake
) -> None:
    writer = Writer(objects, rejects=1)
    writer.run()
    staged = Writer(objects, "job-2", files=0, rejects=1).stage()
    resetter = Resetter(
        admin_objects, writer.location, "shop", catalog=None, parallelism=4, notify=lambda _: None
    )

    assert (resetter.plan().rows, resetter.plan().strangers) == (3, ())
    assert resetter.run("test").objects == 3
    assert lake.data_keys() == []
    with pytest.raises(LogInUse, match="orders_rejected"):
        check_removable(objects, writer.location, "shop")
    objects.abort_upload(staged.uploads[0].key, staged.uploads[0].upload_id)
    check_removable(objects, writer.location, "shop")

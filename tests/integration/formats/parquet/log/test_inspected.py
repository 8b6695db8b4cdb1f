"""A load that goes on from what was inspected before it: what came in between is found."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace

import pytest

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.spec import AppendAgain
from lakeload_jobs.formats.parquet.log import table_log
from lakeload_jobs.formats.parquet.log.records import FenceRecord, encode
from lakeload_jobs.formats.parquet.log.table_log import MOST_JOBS, Committed
from lakeload_jobs.storage.objects import Objects
from tests.integration.formats.parquet.log.test_requests import grow
from tests.integration.formats.parquet.log.writer import LONG_AGO, Writer, commit_only
from tests.servers.ministack import Lake


def test_load_takes_the_number_after_a_record_that_came_in_between(
    objects: Objects, lake: Lake
) -> None:
    Writer(objects, "job-1", state={"at": 1}).run()
    writer = Writer(objects, "job-3", state={"at": 3}).after_inspection()
    Writer(objects, "job-2", state={"at": 2}).run()

    opened = writer.open()

    assert (opened.next_number, opened.state) == (3, {"at": 2})
    assert isinstance(result := writer.log.commit(writer.stage()), Committed)
    assert result.number == 3
    # The stored one was at 2, and that of the inspection at 1.
    stored = json.loads(lake.read(writer.location.checkpoint_key))
    assert stored["number"] == 3
    assert stored["pipelines"]["shop"]["done"] == {"job-1": 1, "job-2": 2, "job-3": 3}


def test_job_that_another_attempt_has_loaded_in_between_is_found(objects: Objects) -> None:
    first = Writer(objects, "job-1")
    again = replace(first, attempt_id=str(uuid.uuid4())).after_inspection()
    first.run()

    assert (already := again.open().already) is not None
    assert already.attempt_id == first.attempt_id


def test_unfinished_job_that_came_in_between_is_finished(objects: Objects, lake: Lake) -> None:
    writer = Writer(objects, "job-2").after_inspection()
    commit_only(objects, Writer(objects, "job-1"))
    assert lake.data_keys() == []

    opened = writer.open()

    assert [pending.job_id for pending in opened.settled] == ["job-1"]
    assert len(lake.data_keys()) == 2


def test_reset_that_came_in_between_is_seen(objects: Objects) -> None:
    Writer(objects, "job-1", state={"at": 1}).run()
    writer = Writer(objects, "job-2").after_inspection()
    fence = FenceRecord("lakeload test", LONG_AGO, (), "a reset", resets="shop")
    assert objects.put_if_absent(writer.location.record_key(2), encode(fence))

    with pytest.raises(LoadFailed, match="reset"):
        writer.open()


def test_first_run_is_rejected_when_another_pipeline_came_in_between(objects: Objects) -> None:
    writer = Writer(objects, "job-1", table_handling="FAIL").after_inspection()
    Writer(objects, "job-2", pipeline="other", source="others").run()

    with pytest.raises(LoadFailed):
        writer.open()


def test_first_run_is_rejected_when_its_source_was_claimed_in_between(
    objects: Objects, lake: Lake
) -> None:
    writer = Writer(objects, "job-1", table_handling="FAIL").after_inspection()
    Writer(objects, "job-2", table="elsewhere").run()
    writer.open()
    record = writer.stage()

    with pytest.raises(InvalidInput, match="elsewhere"):
        writer.log.commit(record)

    assert lake.uploads() == []
    assert objects.find(writer.location.record_key(1)) is None


def test_inspection_with_something_to_finish_is_not_gone_on_from(objects: Objects) -> None:
    commit_only(objects, Writer(objects, "job-1"))

    assert Writer(objects, "job-2").inspect().inspected is None


def test_inspection_of_many_uncovered_records_is_not_gone_on_from(
    objects: Objects, lake: Lake
) -> None:
    for number in range(1, 9):
        Writer(objects, f"job-{number}", files=0, state={"at": number}).run()
    key = Writer(objects).location.checkpoint_key
    lake.server.s3.delete_object(Bucket=lake.seeded.bucket, Key=key)

    assert Writer(objects, "job-9").inspect().inspected is None
    Writer(objects, "job-9").open()
    assert json.loads(lake.read(key))["number"] == 8
    assert Writer(objects, "job-9").inspect().inspected is not None


def test_inspection_of_a_table_with_many_jobs_is_not_gone_on_from(
    objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MOST_JOBS == 1000
    monkeypatch.setattr(table_log, "MOST_JOBS", 20)
    grow(objects, replace(Writer(objects).stage(), files=()), 21)

    assert Writer(objects, "job-1").inspect().inspected is None


def test_load_that_appends_again_warns_with_the_last_load(objects: Objects) -> None:
    again = AppendAgain("WARN", "set `cursor: xmin`")
    assert Writer(objects, append_again=again).open().warnings == ()
    Writer(objects, files=3).run()

    seen = Writer(objects, "job-2", append_again=again).inspect()

    [text] = seen.warnings
    assert "job `job-1` of this pipeline has loaded 3 rows of it at 20" in text
    assert Writer(objects, "job-2").inspect().warnings == ()
    assert Writer(objects, "job-1", append_again=again).inspect().warnings == ()
    writer = Writer(objects, "job-3", append_again=again).after_inspection()
    Writer(objects, "job-2", files=1).run()
    assert "job `job-2` of this pipeline has loaded 1 row of it" in writer.open().warnings[0]


def test_rows_that_may_be_appended_once_are_not_loaded_by_two_jobs(
    objects: Objects, lake: Lake
) -> None:
    once = AppendAgain("FAIL", "set `cursor: xmin`")
    first, second = (Writer(objects, job, append_again=once) for job in ("job-1", "job-2"))
    second.open()
    record = second.stage()
    first.run()

    with pytest.raises(
        LoadFailed, match=r"job `job-1` \(since .*\) of the same pipeline has loaded"
    ):
        second.log.commit(record)
    with pytest.raises(LoadFailed, match="would append all rows of `orders`"):
        Writer(objects, "job-3", append_again=once).open()
    assert lake.uploads() == []

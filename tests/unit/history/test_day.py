"""One day of the job history: what is kept of jobs, and the state of tables after them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from lakeload.history.day import (
    FORMAT,
    HistoryDay,
    bounded,
    decode,
    encode,
    merge,
    next_day,
    of_job,
)
from lakeload_jobs.contract.errors import LoadFailed, NewerFormat, Refused
from lakeload_jobs.contract.result import ErrorInfo, TableResult
from tests.unit.monitoring.documents import AT, FAILED, IDLE, LOADED, document, later

TARGETS = ("lake.orders",)


def day(*documents: dict[str, object]) -> HistoryDay:
    found = HistoryDay(FORMAT, "shop")
    for one in documents:
        found = merge(found, of_job(one, TARGETS))
    return found


def test_job_that_loaded_is_kept_with_its_table() -> None:
    found = day(document(LOADED))
    (job,) = found.jobs
    assert (job.job_id, job.exit_code, job.ended_at - AT) == ("job-1", 0, timedelta(seconds=4))
    assert [(one.target, one.rows, one.bytes) for one in job.tables] == [("lake.orders", 3, 90)]
    (state,) = found.tables
    assert state.succeeded_at == state.up_to_date_at == job.ended_at
    assert (state.failures, found.hours) == (0, ())


def test_jobs_without_news_are_summed_by_the_hour_and_keep_the_state_fresh() -> None:
    found = day(*(document(IDLE, at=later(minute)) for minute in (0, 5, 61)))
    assert found.jobs == ()
    assert [(hour.hour.hour, hour.jobs) for hour in found.hours] == [(12, 2), (13, 1)]
    assert found.tables[0].succeeded_at == later(61) + timedelta(seconds=4)


def test_failures_are_counted_across_jobs_and_end_with_a_success() -> None:
    failed = day(document(LOADED), document(FAILED, at=later(1)), document(FAILED, at=later(2)))
    (state,) = failed.tables
    assert (state.failures, state.error and state.error.type) == (2, "LoadFailed")
    assert state.succeeded_at == AT + timedelta(seconds=4)
    assert failed.health
    assert failed.health.failures == 2
    after = merge(failed, of_job(document(IDLE, at=later(3)), TARGETS))
    assert (after.tables[0].failures, after.tables[0].error) == (0, None)
    assert after.health
    assert after.health.failures == 0


def test_interrupted_job_is_neither_a_failure_nor_a_success() -> None:
    stopped = TableResult("orders", "lake.orders", "INTERRUPTED")
    found = day(document(FAILED), document(stopped, at=later(1)))
    assert (found.tables[0].failures, found.tables[0].error) == (
        1,
        day(document(FAILED)).tables[0].error,
    )


def test_job_that_failed_early_is_a_failure_of_each_of_its_tables() -> None:
    found = day(document(refused=Refused("no way to s3://shop")))
    assert found.jobs[0].tables == ()
    assert found.jobs[0].others == 1
    assert [(one.target, one.failures) for one in found.tables] == [("lake.orders", 1)]
    assert found.tables[0].error
    assert found.tables[0].error.message == "no way to s3://shop"


def test_table_with_more_to_load_is_loaded_and_not_up_to_date() -> None:
    (state,) = day(document(LOADED), document(replace(LOADED, more=True), at=later(1))).tables
    assert state.succeeded_at == later(1) + timedelta(seconds=4)
    assert state.up_to_date_at == AT + timedelta(seconds=4)


def test_messages_are_masked_and_cut() -> None:
    long = ErrorInfo("LoadFailed", "jdbc:x://u:hunter2@db " + "x" * 9999, 1)
    (job,) = day(document(replace(FAILED, error=long))).jobs
    assert job.tables[0].error
    assert "hunter2" not in job.tables[0].error.message
    assert len(job.tables[0].error.message) == 500


def test_merge_of_the_same_job_twice_keeps_one() -> None:
    one = of_job(document(LOADED), TARGETS)
    assert merge(merge(HistoryDay(FORMAT, "shop"), one), one).jobs == one.jobs


def test_merge_of_an_earlier_job_does_not_turn_the_state_back() -> None:
    late = of_job(document(FAILED), TARGETS)
    found = merge(day(document(LOADED, at=later(5))), late)
    assert [job.exit_code for job in found.jobs] == [1, 0]
    assert (found.tables[0].status, found.tables[0].failures) == ("LOADED", 0)


def test_full_day_sums_good_jobs_first_and_then_leaves_out_the_oldest() -> None:
    jobs = [document(LOADED, at=later(n), job=f"good-{n}") for n in range(30)]
    jobs += [document(FAILED, at=later(60 + n), job=f"bad-{n}") for n in range(10)]
    whole = day(*jobs)
    some = bounded(whole, 8000)
    assert len(json.dumps(json.loads(encode(some))["jobs"])) <= 8000
    assert [job.job_id for job in some.jobs if job.failed] == [f"bad-{n}" for n in range(10)]
    kept = [job.job_id for job in some.jobs if not job.failed]
    assert kept
    assert kept == [f"good-{n}" for n in range(30 - len(kept), 30)]
    (hour,) = some.hours
    assert (hour.jobs, hour.rows, some.dropped) == (30 - len(kept), 3 * (30 - len(kept)), 0)
    few = bounded(whole, 2000)
    assert few.hours[0].jobs == 30
    assert few.dropped == 10 - len(few.jobs) > 0
    assert few.jobs[-1].job_id == "bad-9"
    assert few.tables == whole.tables


def test_job_of_many_tables_names_those_that_failed() -> None:
    many = [replace(LOADED, table=f"t{n}", target=f"lake.t{n}") for n in range(500)]
    found = of_job(document(*many, FAILED), ())
    (job,) = found.jobs
    assert job.tables[0].target == "lake.orders"
    assert (len(job.tables), job.others, len(found.tables)) == (200, 301, 501)


def test_next_day_begins_with_the_state() -> None:
    found = day(document(LOADED), document(FAILED, at=later(1)))
    begun = next_day(found)
    assert (begun.jobs, begun.hours) == ((), ())
    assert (begun.tables, begun.health) == (found.tables, found.health)


def test_day_is_read_as_it_was_written() -> None:
    found = day(document(LOADED), document(FAILED, IDLE, at=later(1)), document(IDLE, at=later(2)))
    assert decode(encode(found), "s3://b/k") == found


def test_day_of_a_newer_format_or_of_something_else_is_an_error() -> None:
    newer = json.loads(encode(day(document(LOADED)))) | {"format": FORMAT + 1, "more": 1}
    with pytest.raises(NewerFormat, match="s3://b/k"):
        decode(json.dumps(newer).encode(), "s3://b/k")
    for body in (b"", b"[]", b'{"format": 1}', b"\xff"):
        with pytest.raises(LoadFailed, match="s3://b/k"):
            decode(body, "s3://b/k")

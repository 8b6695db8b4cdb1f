"""Which jobs an Iceberg table has: I4 to I6, and what a publish writes down."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.formats.iceberg.rules.admission import (
    JobFound,
    find_job,
    is_empty,
    open_table,
)
from lakeload_jobs.formats.iceberg.rules.facts import (
    JOBS,
    JOBS_REMEMBERED,
    SEQ,
    PipelineState,
    belongs,
    job_key,
    lineage,
    pipelines_of,
    publish_count,
    remembered_jobs,
    state_of,
)
from tests.unit.formats.iceberg.rules.table import Table, job


def _found(table: Table, job_id: str = "j1", pipeline: str = "shop") -> JobFound:
    return find_job(table.facts, "main", pipeline, job_id).found


def test_the_key_of_a_job_is_that_of_its_pipeline() -> None:
    assert job_key("shop", "j1") == hashlib.sha256(b"shop\0j1").hexdigest()[:16]
    assert len({job_key("shop", "j1"), job_key("shopj", "1"), job_key("web", "j1")}) == 3


def test_published_job_is_committed_and_others_are_not() -> None:
    table = Table()
    assert _found(table) is JobFound.NOT_IN
    number = table.publish()
    assert find_job(table.facts, "main", "shop", "j1").snapshot == number
    assert _found(table) is JobFound.IN
    assert _found(table, "j2") is JobFound.NOT_IN
    assert _found(table, pipeline="web") is JobFound.NOT_IN


def test_rolled_back_job_is_not_committed() -> None:
    table = Table()
    table.publish(marked=True)
    table.publish(job("j2"), marked=True)
    table.roll_back(1)
    assert (_found(table), _found(table, "j2")) == (JobFound.IN, JobFound.NOT_IN)
    table.roll_back(None)
    assert _found(table) is JobFound.NOT_IN


def test_a_job_counts_in_the_branch_that_is_loaded() -> None:
    table = Table()
    table.commit()
    table.refs["audit"] = 1
    table.publish()
    assert find_job(table.facts, "audit", "shop", "j1").found is JobFound.NOT_IN
    assert _found(table) is JobFound.IN


def test_branch_that_is_not_there_yet_has_the_jobs_that_it_begins_with() -> None:
    table = Table()
    number = table.publish(state={"cursor": 1})
    goes_on = replace(job("j2"), goes_on=True)
    start = open_table(table.facts, "audit", goes_on)

    assert find_job(table.facts, "audit", "shop", "j1").found is JobFound.IN
    assert not is_empty(table.facts, "audit")
    assert start.head == number
    table.roll_back(None)
    with pytest.raises(LoadFailed, match="rolled back"):
        open_table(table.facts, "audit", goes_on)


def test_rolled_back_job_after_a_cherry_pick_is_committed() -> None:
    table = Table()
    table.publish()
    picked = table.publish(job("j2"))
    table.roll_back(1)
    copy = table.commit({"source-snapshot-id": str(picked)})
    answer = find_job(table.facts, "main", "shop", "j2")
    assert (answer.found, answer.snapshot) == (JobFound.IN, copy)


def test_job_with_an_expired_snapshot_is_searched_in_the_data() -> None:
    table = Table()
    table.publish()
    table.commit()
    table.commit()
    table.expire([1, 2])
    answer = find_job(table.facts, "main", "shop", "j1")
    assert answer.found is JobFound.ASK_THE_DATA
    assert answer.without_the_data() is JobFound.IN


def test_parent_of_the_oldest_snapshot_is_committed() -> None:
    table = Table()
    table.publish()
    table.commit()
    table.expire([1])
    assert _found(table) is JobFound.IN


def test_a_rollback_is_seen_also_where_older_snapshots_are_expired() -> None:
    table = Table()
    table.commit()
    table.commit()
    lost = table.publish()
    table.roll_back(2)
    table.commit()
    table.expire([1])
    assert belongs(table.facts, "main", lost) is False
    assert _found(table) is JobFound.NOT_IN


def test_a_kept_snapshot_beyond_a_gap_may_be_an_ancestor_or_not() -> None:
    table = Table()
    tagged = table.publish()
    table.refs["release"] = tagged
    table.commit()
    table.commit()
    table.expire([2])
    assert lineage(table.facts, "main").ids == (3,)
    assert belongs(table.facts, "main", tagged) is None


def test_full_job_list_makes_a_missing_job_unknown() -> None:
    table = Table()
    for number in range(JOBS_REMEMBERED):
        table.publish(job(f"n{number}"))
    table.publish(job("last"))
    jobs = remembered_jobs(table.facts)
    assert len(jobs) == JOBS_REMEMBERED
    assert list(jobs)[-1] == job_key("shop", "last")
    assert publish_count(table.facts) == JOBS_REMEMBERED + 1
    assert _found(table, "n1") is JobFound.IN
    answer = find_job(table.facts, "main", "shop", "n0")
    assert answer.found is JobFound.ASK_THE_DATA
    assert answer.without_the_data() is JobFound.NOT_IN
    assert len(table.properties[JOBS]) < 40_000


def test_a_forgotten_job_is_found_in_the_summary_of_its_snapshot() -> None:
    table = Table()
    table.publish(job("old"), marked=True)
    del table.properties[JOBS]
    assert _found(table, "old") is JobFound.IN


def test_a_job_that_is_published_again_has_one_entry_the_newest() -> None:
    table = Table()
    table.publish()
    table.publish(job("j2"))
    table.roll_back(None)
    again = table.publish()
    assert list(remembered_jobs(table.facts).items())[-1] == (job_key("shop", "j1"), again)
    assert len(remembered_jobs(table.facts)) == 2


def test_states_of_pipelines_are_kept_apart_and_read_back() -> None:
    table = Table()
    table.publish(state={"cursor": 5})
    table.publish(job("j1", "web"), state=["a", "ü\u2028"])
    shop, web = state_of(table.facts, "shop"), state_of(table.facts, "web")
    assert shop is not None
    assert web is not None
    assert (shop.state, shop.snapshot) == ({"cursor": 5}, 1)
    assert (web.state, web.snapshot) == (["a", "ü\u2028"], 2)
    assert pipelines_of(table.facts) == ("shop", "web")
    assert state_of(table.facts, "other") is None


def test_a_load_without_a_state_leaves_the_state_where_it_belongs() -> None:
    table = Table()
    table.publish(state=5)
    table.publish(job("whole"))
    state = state_of(table.facts, "shop")
    assert state is not None
    assert (state.state, state.snapshot, state.job) == (5, 1, "j1")


def test_keys_of_a_later_version_in_a_state_are_passed_over() -> None:
    text = '{"source":"s","job":"j","snapshot":7,"fingerprint":"f","columns":{"a":"b"},"later":1}'
    assert PipelineState.from_property(text, "x") == PipelineState("s", "j", 7, "f", {"a": "b"})


_TEXT = '{"source":"s","job":"j","snapshot":"7","fingerprint":"f","columns":{}}'


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"source":"s"}', _TEXT])
def test_a_state_that_lakeload_did_not_write_stops_the_load(text: str) -> None:
    table = Table(properties={"lakeload.state.shop": text})
    with pytest.raises(LoadFailed, match=r"`lakeload\.state\.shop`"):
        state_of(table.facts, "shop")


@pytest.mark.parametrize("text", ["x", "0123456789abcdef", "0123456789abcdef:x", ","])
def test_a_list_of_jobs_that_lakeload_did_not_write_stops_the_load(text: str) -> None:
    with pytest.raises(LoadFailed, match=r"`lakeload\.jobs`"):
        find_job(Table(properties={JOBS: text}).facts, "main", "shop", "j1")


def test_a_count_that_lakeload_did_not_write_stops_the_load() -> None:
    with pytest.raises(LoadFailed, match=r"`lakeload\.seq` holds `many`"):
        publish_count(Table(properties={SEQ: "many"}).facts)

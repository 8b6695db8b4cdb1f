"""What the log says of pipelines and jobs, folded record by record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lakeload_jobs.contract.state import StateChange
from lakeload_jobs.formats.parquet.log import commit_log as module
from lakeload_jobs.formats.parquet.log.commit_log import History, Outcome
from lakeload_jobs.formats.parquet.log.records import Column, LoadRecord
from tests.unit.formats.parquet.log.test_codec import LOAD


def job(job_id: str, *, pipeline: str = "shop", state: Any = None, **changes: Any) -> LoadRecord:
    change = None if state is None else StateChange(None, state)
    return replace(LOAD, job_id=job_id, pipeline=pipeline, state=change, **changes)


def history(*records: tuple[LoadRecord, Outcome]) -> History:
    result = History()
    for number, (record, outcome) in enumerate(records, 1):
        result.add(number, record, outcome)
    return result


def test_the_state_is_that_of_the_newest_own_job_that_moved_it() -> None:
    known = history(
        (job("1", state={"at": 1}), "done"),
        (job("2", state={"at": 2}), "void"),
        (job("3", pipeline="other", state={"at": 3}), "done"),
        (job("4"), "done"),
    )
    assert (known.pipelines["shop"].state, known.pipelines["shop"].state_number) == ({"at": 1}, 1)
    assert known.pipelines["shop"].latest == 4
    assert known.pipelines["other"].state == {"at": 3}


def test_a_void_job_is_remembered_and_counts_for_nothing_else() -> None:
    known = history((job("1", columns=(Column("gone", "bigint"),)), "void"))
    found = known.find_job("1")
    assert found is not None
    assert (found.pipeline, found.number, found.void) == ("shop", 1, True)
    assert known.pipelines["shop"].latest is None
    assert known.columns == ()


def test_history_finds_a_job_of_any_pipeline_by_id() -> None:
    known = history((job("1"), "done"), (job("2", pipeline="other"), "partial"))
    found = known.find_job("2")
    assert found is not None
    assert (found.pipeline, found.number, found.void) == ("other", 2, False)
    assert known.find_job("3") is None


def test_columns_are_united_in_order_of_appearance() -> None:
    known = history(
        (job("1", columns=(Column("a", "bigint"), Column("b", "string"))), "done"),
        (job("2", columns=(Column("c", "date"), Column("a", "bigint"))), "done"),
    )
    assert [column.name for column in known.columns] == ["a", "b", "c"]


def test_records_are_taken_in_without_a_gap() -> None:
    known = History()
    known.pass_by(1)
    with pytest.raises(ValueError, match="record 3 does not follow record 1"):
        known.add(3, LOAD, "done")


def test_checkpoint_equals_the_records_it_covers() -> None:
    first = history((job("1", state={"at": 1}), "done"), (job("2"), "void"))
    again = History(first.checkpoint())
    again.add(3, job("3"), "done")
    straight = history((job("1", state={"at": 1}), "done"), (job("2"), "void"), (job("3"), "done"))
    assert again.checkpoint() == straight.checkpoint()
    # Going on from a checkpoint must not change what it was made from.
    assert first.checkpoint().number == 2
    assert "3" not in first.checkpoint().pipelines["shop"].done


def test_a_checkpoint_forgets_the_oldest_jobs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "JOBS_REMEMBERED", 3)
    known = history(
        (job("1", state={"at": 1}), "done"),
        (job("2", pipeline="other"), "done"),
        (job("3"), "void"),
        (job("4", pipeline="other"), "done"),
    )
    kept = known.checkpoint()
    assert kept.pipelines["shop"].done == {}
    assert kept.pipelines["shop"].void == {"3": 3}
    assert kept.pipelines["other"].done == {"2": 2, "4": 4}
    assert kept.pipelines["shop"].state == {"at": 1}

"""Rejected records of an Iceberg table: which attempts' stay, and which are removed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.formats.iceberg.rules import admission, rejects
from lakeload_jobs.formats.iceberg.rules.admission import Start
from lakeload_jobs.formats.iceberg.rules.facts import SUMMARY_BRANCH, SUMMARY_REJECTED
from lakeload_jobs.formats.iceberg.rules.publish import Decision, may_publish
from lakeload_jobs.formats.iceberg.rules.rejects import (
    PendingRejects,
    fate_of,
    find_rejected,
    is_forgotten,
    pending_rejects,
)
from tests.unit.formats.iceberg.rules.table import JOB, Table, job

_BRANCH = "lakeload_20261121t100000z_00000000000000000000000000000001"
_MINE = PendingRejects(_BRANCH, "a1", JOB.pipeline, JOB.job_id)


def _published() -> Table:
    table = Table()
    number = table.publish()
    table.snapshots[number] = replace(table.snapshots[number], summary={SUMMARY_BRANCH: _BRANCH})
    return table


def test_rejects_of_an_attempt_in_the_lineage_are_kept() -> None:
    table = _published()
    table.commit()
    assert fate_of(table.facts, _MINE) == "COUNTS"


def test_rejects_of_an_attempt_in_the_lineage_of_another_branch_are_kept() -> None:
    table = _published()
    table.refs = {"audit": table.refs["main"]}
    table.commit()
    assert fate_of(table.facts, _MINE) == "COUNTS"


def test_rejects_of_an_attempt_whose_rows_are_staged_are_pending() -> None:
    table = _published()
    table.refs = {_BRANCH: table.refs["main"]}
    assert fate_of(table.facts, _MINE) == "WAITS"


def test_rejects_of_another_round_or_attempt_are_removed() -> None:
    assert fate_of(_published().facts, replace(_MINE, branch=_BRANCH[:-1] + "2")) == "GONE"


def test_rejects_of_an_attempt_that_may_still_publish_are_pending() -> None:
    table = Table()
    table.refs[_BRANCH] = 7
    assert fate_of(table.facts, _MINE) == "WAITS"


def test_rejects_of_an_attempt_without_branch_and_snapshot_are_removed() -> None:
    table = Table()
    table.commit({SUMMARY_BRANCH: "another"})
    assert fate_of(table.facts, _MINE) == "GONE"
    assert fate_of(None, _MINE) == "GONE"


def test_rejects_of_a_rolled_back_job_are_removed() -> None:
    table = _published()
    table.roll_back(None)
    assert fate_of(table.facts, _MINE) == "GONE"


def test_rejects_with_an_expired_publisher_are_kept() -> None:
    table = _published()
    table.commit()
    table.expire([1])
    assert fate_of(table.facts, _MINE) == "COUNTS"


def test_pending_rejects_round_trip() -> None:
    side = Table()
    side.properties[_MINE.name] = _MINE.to_property()
    assert tuple(pending_rejects(side.facts)) == (_MINE,)
    side.properties[_MINE.name] = '{"attempt": "a1"}'
    with pytest.raises(LoadFailed, match=r"lakeload\.pending\.lakeload_"):
        tuple(pending_rejects(side.facts))


def test_a_round_that_names_another_one_is_damage() -> None:
    """The records of the round that it names would be removed."""
    side = Table()
    other = replace(_MINE, branch="lakeload_20261121T100000Z_other")
    side.properties[other.name] = _MINE.to_property()
    with pytest.raises(LoadFailed, match=r"lakeload\.pending\.lakeload_20261121T100000Z_other"):
        tuple(pending_rejects(side.facts))


def test_pending_round_is_kept_while_records_can_be_added() -> None:
    begun = datetime(2026, 11, 21, 10, tzinfo=UTC)
    assert not is_forgotten(_MINE, None, begun + timedelta(hours=23))
    assert is_forgotten(_MINE, None, begun + timedelta(hours=24))
    assert is_forgotten(_MINE, _BRANCH, begun)


def _status(table: Table, job_id: str = JOB.job_id) -> tuple[str, str]:
    found, _ = find_rejected(table.facts, "main", JOB.pipeline, job_id)
    return found.status, found.taken_by


def _with_rejects() -> Table:
    table = Table()
    number = table.publish(marked=True)
    marked = {**table.snapshots[number].summary, SUMMARY_REJECTED: "2", SUMMARY_BRANCH: _BRANCH}
    table.snapshots[number] = replace(table.snapshots[number], summary=marked)
    return table


def test_rejected_records_are_there_until_another_job_has_read_them() -> None:
    table = _with_rejects()
    assert find_rejected(table.facts, "main", JOB.pipeline, JOB.job_id)[1] == _BRANCH
    assert _status(table) == ("THERE", "")

    table.publish(job("j2", retries=JOB.job_id), marked=True)
    assert _status(table) == ("TAKEN", "j2")
    assert _status(table, "j2") == ("NONE", "")
    assert _status(table, "j3") == ("UNKNOWN", "")
    table.commit()
    table.expire([1, 2])
    assert _status(table) == ("TAKEN", "a later job")


def test_a_retry_that_was_rolled_back_has_read_nothing() -> None:
    table = _with_rejects()
    table.publish(job("j2", retries=JOB.job_id), marked=True)
    table.roll_back(1)
    assert _status(table) == ("THERE", "")
    table.roll_back(None)
    assert _status(table) == ("UNKNOWN", "")


def test_rejected_records_of_a_job_that_is_forgotten_are_not_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (admission, rejects):
        monkeypatch.setattr(module, "JOBS_REMEMBERED", 20)
    table = _with_rejects()
    assert _status(table) == ("THERE", "")
    for number in range(20):
        table.publish(job(f"k{number}"))
    assert _status(table) == ("UNKNOWN", "")


def test_a_second_retry_is_not_published() -> None:
    table = _with_rejects()
    second = job("j3", retries=JOB.job_id)
    start = Start(1, 1, None, first_run=False, uuid="u")
    table.publish(job("j2", retries=JOB.job_id))
    table.refs["b"] = 1

    def verdict() -> Decision:
        return may_publish(
            table.facts,
            "main",
            start,
            second,
            mode="append",
            base=1,
            staging_branch="b",
            sets_state=False,
        ).decision

    assert verdict() is Decision.RUN_AGAIN
    second = replace(second, retries="j2")
    assert verdict() is Decision.GO

"""Rejected records of an Iceberg table: which attempts' stay, and which are removed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.formats.iceberg.rules.facts import SUMMARY_BRANCH
from lakeload_jobs.formats.iceberg.rules.rejects import (
    PendingRejects,
    fate_of,
    is_forgotten,
    pending_rejects,
)
from tests.unit.rules.iceberg_table import JOB, Table

_BRANCH = "lakeload_20261121t100000z_00000000000000000000000000000001"
_MINE = PendingRejects(_BRANCH, "a1", JOB.pipeline, JOB.job_id)


def _published() -> Table:
    table = Table()
    number = table.publish()
    table.snapshots[number] = replace(table.snapshots[number], summary={SUMMARY_BRANCH: _BRANCH})
    return table


def test_those_of_an_attempt_in_the_lineage_count() -> None:
    table = _published()
    table.commit()
    assert fate_of(table.facts, "main", _MINE) == "COUNTS"


def test_those_of_another_round_or_attempt_at_the_same_job_go() -> None:
    assert fate_of(_published().facts, "main", replace(_MINE, branch=_BRANCH[:-1] + "2")) == "GONE"


def test_those_of_an_attempt_that_may_still_publish_wait() -> None:
    table = Table()
    table.refs[_BRANCH] = 7
    assert fate_of(table.facts, "main", _MINE) == "WAITS"


def test_those_of_an_attempt_without_branch_and_snapshot_go() -> None:
    table = Table()
    table.commit({SUMMARY_BRANCH: "another"})
    assert fate_of(table.facts, "main", _MINE) == "GONE"
    assert fate_of(None, "main", _MINE) == "GONE"


def test_those_of_a_job_that_was_rolled_back_go() -> None:
    table = _published()
    table.roll_back(None)
    assert fate_of(table.facts, "main", _MINE) == "GONE"


def test_nothing_is_removed_where_expiry_hides_who_brought_the_job_in() -> None:
    table = _published()
    table.commit()
    table.expire([1])
    assert fate_of(table.facts, "main", _MINE) == "COUNTS"


def test_what_is_pending_is_read_as_it_was_written() -> None:
    side = Table()
    side.properties[_MINE.name] = _MINE.to_property()
    assert tuple(pending_rejects(side.facts)) == (_MINE,)
    side.properties[_MINE.name] = '{"attempt": "a1"}'
    with pytest.raises(LoadFailed, match=r"lakeload\.pending\.lakeload_"):
        tuple(pending_rejects(side.facts))


def test_a_round_is_remembered_until_nobody_can_add_its_records() -> None:
    begun = datetime(2026, 11, 21, 10, tzinfo=UTC)
    assert not is_forgotten(_MINE, None, begun + timedelta(hours=23))
    assert is_forgotten(_MINE, None, begun + timedelta(hours=24))
    assert is_forgotten(_MINE, _BRANCH, begun)

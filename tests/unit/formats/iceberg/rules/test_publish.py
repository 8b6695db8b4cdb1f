"""Every reason for which a publish does not go ahead, each with the history it closes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.spec import AppendAgain
from lakeload_jobs.formats.iceberg.rules import publish as iceberg_publish
from lakeload_jobs.formats.iceberg.rules.admission import open_table
from lakeload_jobs.formats.iceberg.rules.facts import Snapshot, TableAttempt
from lakeload_jobs.formats.iceberg.rules.publish import (
    Decision,
    Verdict,
    after_drop,
    check_replaceable,
    has_landed,
    may_publish,
)
from tests.unit.formats.iceberg.rules.table import JOB, Table, job

_BRANCH = "lakeload_20261121t100000z_00000000000000000000000000000001"
_MINE = job("j9", attempt_id="mine", goes_on=True)


class _Load:
    """A load that has started, and staged snapshot 1000 on its branch."""

    def __init__(self, table: Table, own: TableAttempt = _MINE, **more: Any) -> None:
        self.table, self.own, self.more = table, own, more
        self.start = open_table(table.facts, "main", own)
        self.base = table.refs.get("main")
        table.refs[_BRANCH] = 1000
        table.snapshots[1000] = Snapshot(1000, self.base, 1_700_000_001_000, {})

    def ask(self, **more: Any) -> Verdict:
        given = {"mode": "append", "sets_state": True, **self.more, **more}
        return may_publish(
            self.table.facts,
            "main",
            self.start,
            self.own,
            base=self.base,
            staging_branch=_BRANCH,
            staged=1000,
            **given,
        )


def _table() -> Table:
    table = Table()
    table.publish(state=1)
    return table


def test_publish_without_a_concurrent_commit_proceeds() -> None:
    assert _Load(_table()).ask() == iceberg_publish.GO
    assert _Load(Table()).ask(mode="replace") == iceberg_publish.GO


def test_publish_after_other_commits_proceeds_for_appends_only() -> None:
    load = _Load(_table())
    load.table.commit()
    load.table.publish(job("x", "web", source="web.csv"), state=7)
    assert load.ask().decision is Decision.GO
    verdict = load.ask(mode="replace")
    assert verdict.decision is Decision.RUN_AGAIN
    assert "branch `main` of `db.orders` has moved" in verdict.reason


def test_publish_after_a_moved_state_conflicts() -> None:
    load = _Load(_table())
    load.table.publish(job("j2"), state=2)
    verdict = load.ask()
    assert verdict.decision is Decision.RUN_AGAIN
    assert "job `j2` of the same pipeline has advanced the state" in verdict.reason
    assert load.ask(sets_state=False).decision is Decision.GO


WHO = {"lakeload.author": "bob@etl-2 pid 4711", "lakeload.synced": "2026-11-21T10:15:30.000001Z"}
NAMED = "(bob@etl-2, process 4711, since 2026-11-21 10:15:30 UTC)"


@pytest.mark.parametrize(
    ("summary", "named"),
    [
        (WHO, f" {NAMED}"),
        ({**WHO, "lakeload.author": "bob@etl-2"}, " (bob@etl-2, since 2026-11-21 10:15:30 UTC)"),
        ({**WHO, "lakeload.synced": "yesterday"}, " (bob@etl-2, process 4711)"),
        ({}, ""),
    ],
    ids=["whole", "earlier program", "edited", "without"],
)
def test_conflict_names_the_process_that_won_as_far_as_its_snapshot_does(
    summary: dict[str, str], named: str
) -> None:
    load = _Load(_table())
    load.table.publish(job("j2"), state=2, marked=True, summary=summary)

    verdict = load.ask()
    assert verdict.reason.startswith(f"job `j2`{named} of the same pipeline has advanced")
    verdict = load.ask(sets_state=False, mode="replace")
    assert verdict.reason.endswith(f"has moved since the rows were staged, by job `j2`{named}")


def test_conflict_with_a_snapshot_that_has_expired_names_the_job_alone() -> None:
    load = _Load(_table())
    load.table.publish(job("j2"), state=2, marked=True, summary=WHO)
    load.table.commit()
    load.table.expire([2])
    load.start = replace(load.start, head=None)

    assert load.ask().reason.startswith("job `j2` of the same pipeline has advanced")


def test_publish_with_the_state_of_another_snapshot_conflicts() -> None:
    load = _Load(_table())
    load.table.publish(job("j2"), state=1)
    assert load.ask().decision is Decision.RUN_AGAIN


def test_publish_after_a_rollback_conflicts() -> None:
    table = _table()
    table.commit()
    load = _Load(table)
    table.roll_back(1)
    for more in ({}, {"sets_state": False}, {"mode": "replace"}):
        verdict = load.ask(**more)
        assert verdict.decision is Decision.RUN_AGAIN
        assert "no longer has snapshot 2" in verdict.reason


def test_publish_finds_the_first_snapshot_after_expired_ones() -> None:
    load = _Load(_table())
    load.table.commit()
    load.table.expire([1])
    assert load.ask().decision is Decision.GO
    load.table.commit()
    load.table.expire([2])
    assert load.ask().decision is Decision.RUN_AGAIN


def test_publish_after_another_attempt_reports_committed() -> None:
    load = _Load(_table())
    number = load.table.publish(job("j9"), state=2)
    assert load.ask() == Verdict(Decision.NO_OP, snapshot=number)


def test_publish_after_a_rolled_back_attempt_proceeds() -> None:
    load = _Load(_table(), replace(_MINE, goes_on=False), sets_state=False)
    load.table.publish(job("j9"))
    load.table.roll_back(1)
    assert load.ask().decision is Decision.GO


def test_publish_after_an_expired_attempt_searches_the_data() -> None:
    load = _Load(_table(), replace(_MINE, goes_on=False), sets_state=False)
    load.table.publish(job("j9"))
    load.table.commit()
    load.table.commit()
    load.start = replace(load.start, head=None)
    load.table.expire([1, 2, 3])
    verdict = load.ask()
    assert verdict.decision is Decision.RUN_AGAIN
    assert "published snapshot 2, which has expired since" in verdict.reason
    load.start = replace(load.start, listed=2)
    assert load.ask().decision is Decision.GO


def test_publish_with_a_full_job_list_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iceberg_publish, "JOBS_REMEMBERED", 2)
    load = _Load(_table(), replace(_MINE, goes_on=False), sets_state=False)
    load.table.publish(job("j2"))
    assert load.ask().decision is Decision.GO
    load.table.publish(job("j3"))
    verdict = load.ask()
    assert verdict.decision is Decision.RUN_AGAIN
    assert "2 jobs were published" in verdict.reason


def test_publish_after_a_property_reset_conflicts() -> None:
    load = _Load(_table())
    del load.table.properties["lakeload.seq"]
    assert "changed by hand" in load.ask().reason


def test_publish_without_its_staging_branch_is_rejected() -> None:
    load = _Load(_table())
    del load.table.refs[_BRANCH]
    assert load.ask().decision is Decision.RUN_AGAIN
    verdict = load.ask(unknown=55)
    assert verdict.decision is Decision.FAIL
    assert verdict.error is not None
    assert "commit state unknown" in str(verdict.error)
    assert "`--job-id j9`" in str(verdict.error.hint)


def test_publish_of_a_branch_with_other_commits_is_rejected() -> None:
    load = _Load(_table())
    load.table.refs[_BRANCH] = 7
    assert load.ask().decision is Decision.FAIL


def test_publish_to_another_table_uuid_is_rejected() -> None:
    load = _Load(_table())
    load.start = replace(load.start, uuid="earlier")
    verdict = load.ask()
    assert verdict.decision is Decision.FAIL
    assert "was dropped" in str(verdict.error)


def test_publish_of_two_first_runs_under_fail_commits_one() -> None:
    load = _Load(Table())
    load.table.publish(job("x", "web"))
    verdict = load.ask()
    assert isinstance(verdict.error, LoadFailed)
    assert "pipeline `web` loads into it" in str(verdict.error)
    load.own = replace(load.own, table_handling="APPEND")
    assert load.ask().decision is Decision.GO


def test_publish_of_a_first_run_under_fail_after_other_rows_is_rejected() -> None:
    load = _Load(Table())
    load.table.commit()
    assert "rows that lakeload did not write" in str(load.ask().error)


def test_publish_after_another_source_loaded_the_table_is_rejected() -> None:
    load = _Load(Table())
    load.table.publish(job("x", source="b.csv"))
    assert isinstance(load.ask().error, InvalidInput)


def test_publish_lost_response_is_resolved_by_reading_the_table() -> None:
    load = _Load(_table())
    assert load.ask(unknown=55).decision is Decision.GO
    number = load.table.publish(job("j9"), state=2)
    assert load.ask(unknown=number) == Verdict(Decision.LANDED, snapshot=number)
    load.table.roll_back(1)
    assert load.ask(unknown=number).decision is Decision.LANDED
    load.table.expire([number])
    assert has_landed(load.table.facts, "main", load.own, number)


def test_publish_lost_response_with_a_full_job_list_is_resolved_by_lineage() -> None:
    load = _Load(_table())
    number = load.table.publish(job("j9"), state=2)
    load.table.properties["lakeload.jobs"] = ""
    assert load.ask(unknown=number).decision is Decision.LANDED


def test_publish_unknown_outcome_is_reported_as_unknown() -> None:
    assert after_drop(dropped=True, unknown=True) == "NOTHING_COMMITTED"
    assert after_drop(dropped=False, unknown=False) == "NOTHING_COMMITTED"
    assert after_drop(dropped=False, unknown=True) == "UNKNOWN"


def test_publish_of_a_replaced_definition_under_another_load_conflicts() -> None:
    table = _table()
    table.refs[_BRANCH] = 1
    check_replaceable(table.facts, _BRANCH, JOB)
    table.refs["lakeload_20261121t110000z_00000000000000000000000000000002"] = 1
    with pytest.raises(LoadFailed, match="branch `lakeload_20261121t110000z_") as caught:
        check_replaceable(table.facts, _BRANCH, JOB)
    assert caught.value.retryable


def test_rows_that_may_be_appended_once_are_not_published_beside_another_job() -> None:
    once = job("j2", append_again=AppendAgain("FAIL", "set `mode: OVERWRITE`"))
    table, other = Table(), Table()
    first, second = _Load(table, once, sets_state=False), _Load(other, job("j2"), sets_state=False)
    table.publish(job("j3"))
    other.publish(job("j3"))

    assert first.ask().decision is Decision.RUN_AGAIN
    assert "job `j3` of the same pipeline" in first.ask().reason
    assert second.ask() == iceberg_publish.GO

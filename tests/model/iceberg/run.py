"""The rules under search: metadata as the rules read it, and what they answer, once for each."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from unittest.mock import patch
from uuid import UUID

from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.formats.base import ROUNDS
from lakeload_jobs.formats.iceberg.rules import admission as iceberg_admission
from lakeload_jobs.formats.iceberg.rules import admission as iceberg_jobs
from lakeload_jobs.formats.iceberg.rules import publish as iceberg_publish
from lakeload_jobs.formats.iceberg.rules import rejects as iceberg_rejects
from lakeload_jobs.formats.iceberg.rules.admission import (
    JobAnswer,
    JobFound,
    Start,
    find_job,
    next_properties,
    open_table,
)
from lakeload_jobs.formats.iceberg.rules.branches import orphans_before, staging_branch
from lakeload_jobs.formats.iceberg.rules.facts import (
    CREATED_BY,
    SUMMARY_BRANCH,
    SUMMARY_JOB,
    SUMMARY_PIPELINE,
    SUMMARY_REJECTED,
    SUMMARY_RETRIED,
    PipelineState,
    Snapshot,
    TableFacts,
    state_of,
)
from lakeload_jobs.formats.iceberg.rules.publish import Decision, Verdict, has_landed, may_publish
from lakeload_jobs.formats.iceberg.rules.rejects import Fate, PendingRejects, fate_of, find_rejected
from tests.model.iceberg.world import FOREIGN, Actor, Process, Round, Scenario, Snap, Table

_BEGUN = datetime(2026, 11, 1, tzinfo=UTC)


class Run:
    """One search: every metadata file it has met has a number, every question is asked once."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.rules = scenario.rules
        self.everybody = scenario.everybody
        self.tables: list[Table] = []
        self._numbers: dict[Table, int] = {}
        self._facts: dict[int, TableFacts] = {}
        self._starts: dict[tuple[int, int], Start | LakeloadError] = {}
        self._verdicts: dict[tuple[object, ...], Verdict] = {}
        self._properties: dict[tuple[int, int, Snap], Mapping[str, str]] = {}

    def number(self, table: Table) -> int:
        """Return the number of a metadata file."""
        found = self._numbers.setdefault(table, len(self.tables))
        if found == len(self.tables):
            self.tables.append(table)
        return found

    def facts(self, number: int) -> TableFacts:
        """Return a metadata file as the rules read it."""
        if number not in self._facts:
            self._facts[number] = self._read(self.tables[number])
        return self._facts[number]

    def by_spark(self, index: int) -> bool:
        """Whether Spark commits the rows of an attempt to its branch."""
        return self.scenario.by_spark or self.everybody[index].kind == "merge"

    def find(self, number: int, me: Process) -> JobAnswer:
        """Ask for the job of an attempt."""
        return find_job(self.facts(number), "main", me.pipeline, me.job_id)

    def is_there(self, number: int, me: Process) -> bool:
        """Whether the rejected records that an attempt reads again are there."""
        if me.retries is None:
            return True
        found, _ = find_rejected(self.facts(number), "main", me.pipeline, me.retries)
        return found.status == "THERE"

    def start(self, number: int, index: int) -> Start | LakeloadError:
        """Open the table, or say why not."""
        key = (number, index)
        if key not in self._starts:
            facts = self.facts(number) if number >= 0 else None
            try:
                self._starts[key] = open_table(facts, "main", self.everybody[index].job)
            except LakeloadError as error:
                self._starts[key] = error
        return self._starts[key]

    def verdict(self, number: int, index: int, actor: Actor) -> Verdict:
        """Ask whether an attempt may publish."""
        key = (number, index, actor.seen, actor.base, actor.staged, actor.sent, actor.round)
        if key not in self._verdicts:
            self._verdicts[key] = self._decide(number, index, actor)
        return self._verdicts[key]

    def landed(self, number: int, index: int, actor: Actor) -> bool:
        """Look for the commits that had no answer."""
        facts, job = self.facts(number), self.everybody[index].job
        return any(has_landed(facts, "main", job, snapshot) for snapshot in actor.sent)

    def state(self, number: int, me: Process) -> int:
        """Return the cursor of an attempt's pipeline."""
        state = state_of(self.facts(number), me.pipeline) if number >= 0 else None
        return int(state.state or 0) if state else 0

    def properties(self, base: int, index: int, snap: Snap) -> Mapping[str, str]:
        """Return what a publish based on a metadata file sets."""
        key = (base, index, snap)
        if key not in self._properties:
            self._properties[key] = self._next_properties(base, index, snap)
        return self._properties[key]

    def fate(self, number: int, one: Round) -> Fate:
        """Ask what becomes of the rejected records of a round."""
        me, facts = self.everybody[one[0]], self.facts(number)
        pending = PendingRejects(_name(one), me.name, me.pipeline, me.job_id)
        fate = fate_of(facts, pending)
        waits = self.rules.rejects_wait_for_the_branch
        return "GONE" if fate == "WAITS" and not waits else fate

    def _next_properties(self, base: int, index: int, snap: Snap) -> Mapping[str, str]:
        me, facts = self.everybody[index], self.facts(base)
        known = state_of(facts, me.pipeline)
        rows_job = me.job_id if snap.rows else (known.rows_job if known else None)
        sets_state, state = me.goes_on, snap.after if me.goes_on else None
        if not (sets_state or self.rules.state_stays_with_its_snapshot) and known:
            sets_state, state = True, known.state
        own = PipelineState("source", me.job_id, snap.id, "f", {}, state, rows_job=rows_job)
        return next_properties(
            facts,
            me.pipeline,
            me.job_id,
            snap.id,
            own,
            sets_state=sets_state,
            retries=me.retries,
        )

    def orphaned(self, table: Table) -> bool:
        """Whether files that a load wrote two days ago, after making its branch, are orphans."""
        refs = {_name(one): snapshot for one, snapshot in table.branches}
        refs = refs if self.rules.orphans_spare_loads else {}
        written = _BEGUN + timedelta(minutes=1)
        return written < orphans_before(refs, _BEGUN + timedelta(days=2))

    def _decide(self, number: int, index: int, actor: Actor) -> Verdict:
        me, facts = self.everybody[index], self.facts(number)
        start = self.start(actor.seen, index)
        if isinstance(start, LakeloadError):
            raise start
        if not self.rules.start_is_ancestor:
            start = replace(start, head=None)
        if not self.rules.first_run_check_at_publish:
            start = replace(start, first_run=False)
        replaces = me.kind in ("overwrite", "merge") and self.rules.exact_base
        looks = self.rules.lost_answers_are_looked_into
        if looks and self.landed(number, index, actor):
            return Verdict(Decision.LANDED)
        return may_publish(
            facts,
            "main",
            start,
            me.job,
            mode="replace" if replaces else "append",
            base=actor.base,
            staging_branch=_name((index, actor.round)),
            sets_state=me.goes_on and self.rules.one_writer_of_state,
            staged=actor.staged if self.by_spark(index) else actor.base or 0,
            unknown=actor.sent[-1] if actor.sent and looks else None,
        )

    def _read(self, table: Table) -> TableFacts:
        refs = {_name(one): snapshot for one, snapshot in table.branches}
        if table.head is not None:
            refs["main"] = table.head
        properties = dict(table.properties)
        if not self.rules.created_by:
            properties.pop(CREATED_BY, None)
        return TableFacts(
            location="s3://lake/db/t",
            uuid="u",
            properties=properties,
            refs=refs,
            snapshots={snap.id: self._snapshot(snap) for snap in table.held},
            columns={},
            required=frozenset(),
            identifiers=(),
            format_version=2,
            metadata_location=None,
        )

    def _snapshot(self, snap: Snap) -> Snapshot:
        summary = {"total-records": "1" if snap.filled else "0"}
        if snap.author != FOREIGN:
            me = self.everybody[snap.author]
            summary |= {SUMMARY_JOB: me.job_id, SUMMARY_PIPELINE: me.pipeline}
            summary[SUMMARY_REJECTED] = "1"
            if me.retries is not None:
                summary[SUMMARY_RETRIED] = me.retries
            summary[SUMMARY_BRANCH] = _name(snap.round)
        if snap.copy_of:
            summary["source-snapshot-id"] = str(snap.copy_of)
        return Snapshot(snap.id, snap.parent, 0, summary)


@contextmanager
def rules_of(scenario: Scenario) -> Iterator[None]:
    """Let the rules remember as many jobs as the scenario says, and take away what it takes."""
    rules = scenario.rules
    publishes = scenario.remembered if rules.count_of_publishes else 10**6
    with (
        patch.object(iceberg_jobs, "JOBS_REMEMBERED", scenario.remembered),
        patch.object(iceberg_rejects, "JOBS_REMEMBERED", scenario.remembered),
        patch.object(iceberg_publish, "JOBS_REMEMBERED", publishes),
    ):
        if not rules.job_in_lineage:
            with patch.object(iceberg_jobs, "belongs", _always):
                yield
        elif not rules.state_in_lineage:
            with patch.object(iceberg_admission, "belongs", _always):
                yield
        elif not rules.one_retry:
            with patch.object(iceberg_publish, "has_retry", _no):
                yield
        elif not rules.job_check_at_publish:
            with patch.object(iceberg_publish, "find_job", _never):
                yield
        else:
            yield


@functools.cache
def _name(one: Round) -> str:
    return staging_branch(_BEGUN, str(UUID(int=one[0] + 1)), ROUNDS - one[1])


def _always(*_: object) -> bool:
    return True


def _no(*_: object) -> bool:
    return False


def _never(*_: object) -> JobAnswer:
    return JobAnswer(JobFound.NOT_IN)

"""The publish: one commit that brings a staged snapshot, the job's id and the pipeline's state
into the branch, or none of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import LakeloadError, LoadFailed
from lakeload_jobs.contract.result import FileResult, RowChanges, SameKey
from lakeload_jobs.formats.base import RetryLoad
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.reading import facts_of
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable, now_ms
from lakeload_jobs.formats.iceberg.commits.errors import CommitRejected, CommitUnknown
from lakeload_jobs.formats.iceberg.commits.manifests import Manifest
from lakeload_jobs.formats.iceberg.commits.metadata import (
    Json,
    Metadata,
    add_snapshot,
    assert_ref,
    move_branch,
    ref,
    remove_ref,
    schema_of,
    set_properties,
    updated,
)
from lakeload_jobs.formats.iceberg.commits.snapshots import (
    Addition,
    added,
    again,
    moved,
    new_snapshot_id,
)
from lakeload_jobs.formats.iceberg.load.branches import drop_branch
from lakeload_jobs.formats.iceberg.load.catalog_tables import (
    CatalogTables,
    committable,
    dropped,
)
from lakeload_jobs.formats.iceberg.load.evolution import TableChanges, requirements
from lakeload_jobs.formats.iceberg.rules.admission import Start, next_properties
from lakeload_jobs.formats.iceberg.rules.facts import PipelineState, TableAttempt, TableFacts
from lakeload_jobs.formats.iceberg.rules.publish import (
    Decision,
    Verdict,
    after_drop,
    has_landed,
    may_publish,
    unknown_outcome,
)
from lakeload_jobs.rows.balance import Balance
from lakeload_jobs.rows.counting import NO_ROWS, RowsReport
from lakeload_jobs.storage.backoff import pause

logger = logging.getLogger(__name__)

_LOST_TRIES = 200
_UNKNOWN_TRIES = 8


@dataclass(frozen=True)
class NewFiles:
    """Data files that no snapshot has yet, in manifests that every try to publish them names:
    always by a snapshot of the same id, which they have in them."""

    snapshot_id: int
    manifests: tuple[Manifest, ...]
    replaces: bool
    """Every row of the table is replaced."""


@dataclass(frozen=True)
class Committed:
    """A snapshot that Spark has committed: to the staging branch, or to a table with the changes of
    this load, which only the load sees (`private`)."""

    snapshot: Json
    private: bool


@dataclass(frozen=True)
class Changes:
    """Changes of the table that the publish makes, and the `definition` with them that the rows
    were staged for."""

    changes: TableChanges
    definition: Metadata


@dataclass(frozen=True)
class Staged:
    """Rows that wait for their publish. `branch` is at the snapshot `at`, and was made from the one
    of the branch that is loaded, which was at `base`."""

    branch: str
    base: int | None
    at: int
    rows: NewFiles | Committed
    mode: Literal["append", "replace"]
    schema: Json
    """The columns that the rows were written for."""
    summary: Mapping[str, str]
    """What the published snapshot says of itself."""
    has_rows: bool
    balance: Balance
    merged: RowChanges | None = None
    """What a MERGE did; None: the rows were not merged."""
    same_key: SameKey | None = None
    """Rows of an UPSERT that later ones of the load replaced."""
    report: RowsReport = NO_ROWS
    """What was found in the rows that were read."""
    files: tuple[FileResult, ...] | None = None
    """The files with the rows, where it is known without reading the snapshot."""
    changes: Changes | None = None


@dataclass(frozen=True)
class Publish:
    """Everything a publish is decided by. `schema.table` is loaded at `branch`."""

    tables: CatalogTables
    schema: str
    table: str
    branch: str
    job: TableAttempt
    start: Start
    staged: Staged
    state: Callable[[int], PipelineState]
    """The pipeline's state, for the snapshot that is published."""
    sets_state: bool


@dataclass(frozen=True)
class Published:
    """What became of it: the snapshot that is in, or the reason to run again."""

    outcome: Literal["IN", "NO_OP", "AGAIN"]
    snapshot: int | None
    facts: TableFacts
    table: ReadTable
    """The table as it was read last, or as the catalog has returned it with the commit."""
    reason: str = ""


def publish(given: Publish) -> Published:
    """Commit, however often others come first, and say what is in.

    Unless it is in, the staging branch is gone afterwards. Raises `LoadFailed` or `InvalidInput`
    when it may not be published, when the catalog refuses it, and when nobody can say whether it
    came in.
    """
    sent: list[int] = []
    unanswered = 0
    for tries in range(_LOST_TRIES):
        try:
            # Read again for every attempt: a retry on old metadata would conflict forever.
            table = _read(given)
        except (AwsError, CatalogError) as error:
            # Only reading failed: nothing is in doubt unless a commit was sent before.
            unanswered += 1
            if unanswered > _UNKNOWN_TRIES or not error.retryable:
                raise (unknown_outcome(given.job) if sent else error) from None
            pause(tries)
            continue
        facts = facts_of(table)
        # Only a commit without a response is in doubt. A conflict proves that it was not applied.
        doubt = bool(sent and unanswered)
        verdict = _verdict(given, facts, sent, unknown=doubt)
        # The rules are evaluated on the metadata that the commit will be compared with.
        if verdict.decision is not Decision.GO:
            return _stop(given, verdict, table, unknown=doubt)
        try:
            commit = _prepared(given, table, facts, unknown=doubt)
        except RetryLoad as retry:
            return Published("AGAIN", None, facts, table, str(retry))
        sent.append(commit.snapshot)
        try:
            now = given.tables.store.commit(table, commit.requirements, commit.updates)
        except CommitRejected:
            # The normal case of optimistic concurrency.
            pause(tries)
        except CommitUnknown as error:
            # Where the table has moved, the next read tells.
            unanswered += not error.overtaken
            if unanswered > _UNKNOWN_TRIES:
                return _last_look(given, sent, _silent(given, error), unknown=True)
            pause(tries)
        except LakeloadError as error:
            # A refusal is a response: the commit was not applied, and a retry cannot help.
            return _last_look(given, sent, _refused(given, error), unknown=doubt)
        else:
            return Published("IN", commit.snapshot, facts, now)
    return _stop(given, _exhausted(given), table, unknown=bool(unanswered))


def _read(given: Publish) -> ReadTable:
    table = given.tables.read(given.schema, given.table)
    if table is None:
        raise dropped(given.job.target)
    return table


@dataclass(frozen=True)
class _Commit:
    """One try: the snapshot that it brings in, and what is sent."""

    snapshot: int
    requirements: list[Json]
    updates: list[Json]


def _prepared(given: Publish, table: ReadTable, facts: TableFacts, *, unknown: bool) -> _Commit:
    """Prepare the commit; what fails here fails before anything was sent."""
    try:
        with committable(given.job.target):
            return _prepare(given, table, facts)
    except (LakeloadError, RetryLoad):
        _give_up(given, unknown=unknown)
        raise


def _verdict(given: Publish, facts: TableFacts, sent: list[int], *, unknown: bool) -> Verdict:
    try:
        # An earlier commit may have arrived although its response was lost: never commit twice.
        for snapshot in sent:
            if has_landed(facts, given.branch, given.job, snapshot):
                return Verdict(Decision.LANDED, snapshot=snapshot)
        return may_publish(
            facts,
            given.branch,
            given.start,
            given.job,
            mode=given.staged.mode,
            base=given.staged.base,
            staging_branch=given.staged.branch,
            sets_state=given.sets_state,
            staged=given.staged.at,
            unknown=sent[-1] if unknown else None,
        )
    except LakeloadError as error:
        # Such as of properties that a newer lakeload has written since.
        return Verdict(Decision.FAIL, error=error)


def _prepare(given: Publish, table: ReadTable, facts: TableFacts) -> _Commit:
    """Return the commit of every step, whose manifests are in the bucket."""
    staged, metadata = given.staged, table.metadata
    head = ref(metadata, given.branch)
    # Fails if another job comes first, or if maintenance or recovery drops the staging branch.
    required = [assert_ref(given.branch, head), assert_ref(staged.branch, staged.at)]
    updates: list[Json] = []
    if staged.changes is not None:
        waiting = staged.changes
        updates = waiting.changes.publish(metadata, staged.branch, waiting.definition)
        required += requirements(metadata, updates)
        metadata = updated(metadata, updates, replaces=None, now_ms=now_ms())
    elif (name := _now_required(staged.schema, schema_of(metadata))) is not None:
        raise RetryLoad(
            f"the column `{name}` of `{given.job.target}` requires a value since the rows were read"
        )
    snapshot = _snapshot(given, table, metadata, head)
    number = staged.at
    if snapshot is not None:
        number = snapshot["snapshot-id"]
        updates.append(add_snapshot(snapshot))
    # What else is set of the branch, such as the age of its snapshots, stays.
    updates.append(move_branch(table.metadata, given.branch, number))
    # In the same commit, so a published job never leaves a branch for recovery to judge.
    updates.append(remove_ref(staged.branch))
    # State and job id commit together with the rows: this makes a rerun idempotent.
    properties = next_properties(
        facts,
        given.job.pipeline,
        given.job.job_id,
        number,
        given.state(number),
        sets_state=given.sets_state,
        retries=given.job.retries,
    )
    updates.append(set_properties(properties))
    return _Commit(number, required, updates)


def _now_required(before: Json, now: Json) -> str | None:
    """Return a column in which rows that were written `before` may have nulls, and the table may
    not have them any more; None for none."""
    required = {field["id"] for field in before["fields"] if field["required"]}
    found = (one for one in now["fields"] if one["required"] and one["id"] not in required)
    return next((str(field["name"]) for field in found), None)


def _snapshot(
    given: Publish, table: ReadTable, metadata: Metadata, head: int | None
) -> Json | None:
    """Return the snapshot that is added, with its list of manifests in the bucket; None where the
    one of the staging branch becomes the head as it is."""
    staged, rows, files = given.staged, given.staged.rows, given.tables.files(table)
    # A branch that is not there yet begins where the staging branch does.
    parent = staged.at if head is None else head
    if isinstance(rows, NewFiles):
        addition = Addition(rows.snapshot_id, parent, rows.manifests, staged.summary, rows.replaces)
        return added(files, metadata, addition, now_ms=now_ms())
    number = rows.snapshot["snapshot-id"]
    if staged.mode == "append" and (rows.private or head not in (None, staged.base)):
        summary, own = dict(staged.summary), number
        if not rows.private:
            # Without this link, expiring the staged snapshot would delete files of the table.
            summary["source-snapshot-id"] = str(number)
            own = new_snapshot_id()
        return again(files, metadata, rows.snapshot, parent, own, summary, now_ms=now_ms())
    if rows.private:
        schema = metadata["current-schema-id"]
        return moved(files, metadata, rows.snapshot, schema_id=schema, now_ms=now_ms())
    return None


def _stop(given: Publish, verdict: Verdict, table: ReadTable, *, unknown: bool) -> Published:
    facts = facts_of(table)
    if verdict.decision is Decision.LANDED:
        return Published("IN", verdict.snapshot, facts, table)
    # From here on the rows are not published by this attempt, so its branch has to go.
    try:
        _give_up(given, unknown=unknown)
    except LakeloadError:
        if verdict.decision is not Decision.NO_OP:
            raise
        # The job is loaded, by another attempt: what fails now must not say that it is not. A
        # commit of this one that still arrives asserts where the branch was before that.
        logger.warning("the staging branch %s is left", given.staged.branch, exc_info=True)
    if verdict.decision is Decision.NO_OP:
        return Published("NO_OP", verdict.snapshot, facts, table)
    if verdict.decision is Decision.RUN_AGAIN:
        return Published("AGAIN", None, facts, table, verdict.reason)
    raise verdict.error or LoadFailed(f"`{given.job.target}` was not published")


def _give_up(given: Publish, *, unknown: bool) -> None:
    """Drop the branch. Raises `LoadFailed` when a commit without an answer may have come in."""
    try:
        # Dropping is also the fence: a commit that still arrives finds its branch gone and fails.
        gone = drop_branch(given.tables, given.schema, given.table, given.staged.branch)
    except LakeloadError as error:
        if unknown:
            raise unknown_outcome(given.job) from error
        raise
    if after_drop(dropped=gone, unknown=unknown) == "UNKNOWN":
        raise unknown_outcome(given.job)


def _last_look(given: Publish, sent: list[int], failure: LoadFailed, *, unknown: bool) -> Published:
    """Fence the commits off, and look once more whether one came in before. Raises `failure` where
    none did, and `LoadFailed` where that is `unknown`."""
    try:
        # Fence first, read second: in the other order a late commit could follow the read.
        gone = drop_branch(given.tables, given.schema, given.table, given.staged.branch)
        table = None if gone else _read(given)
    except LakeloadError:
        raise (unknown_outcome(given.job) if unknown else failure) from None
    if table is not None:
        facts = facts_of(table)
        # What was lost, or was no answer of a catalog, may have been a success.
        for snapshot in sent:
            if has_landed(facts, given.branch, given.job, snapshot):
                return Published("IN", snapshot, facts, table)
    if after_drop(dropped=gone, unknown=unknown) == "UNKNOWN":
        raise unknown_outcome(given.job)
    raise failure


def _silent(given: Publish, error: CommitUnknown) -> LoadFailed:
    """Return the error of a commit that the catalog has not answered for long."""
    return LoadFailed(
        f"the catalog did not confirm the commit to `{given.job.target}`: {error}",
        hint="run again: nothing was committed",
        retryable=True,
    )


def _refused(given: Publish, error: LakeloadError) -> LoadFailed:
    """Return the error of a commit that the catalog has clearly refused."""
    doing = f"committing to `{given.job.target}`"
    if isinstance(error, CatalogError) and error.said:
        return LoadFailed(f"{doing}: the catalog rejects it: {error.said}", hint=error.hint)
    return LoadFailed(f"{doing}: {error.message}", hint=error.hint)


def _exhausted(given: Publish) -> Verdict:
    error = LoadFailed(
        f"`{given.job.target}` was not published: {_LOST_TRIES} attempts conflicted with "
        "other commits",
        hint="run again when fewer loads commit to the table: nothing was committed",
        retryable=True,
    )
    return Verdict(Decision.FAIL, error=error)

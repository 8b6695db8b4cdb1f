"""The publish: one transaction that brings a staged snapshot, the job's id and the pipeline's state
into the branch, or none of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from lakeload_jobs.contract.errors import LakeloadError, LoadFailed
from lakeload_jobs.contract.result import FileResult, RowChanges, SameKey
from lakeload_jobs.formats.base import RetryLoad
from lakeload_jobs.formats.iceberg.load.branches import LOST, assert_branch, drop_branch
from lakeload_jobs.formats.iceberg.load.table_changes import TableChanges
from lakeload_jobs.formats.iceberg.load.tables import (
    Java,
    add_files,
    added_files,
    catalog_rejection,
    caused_by,
    changed_files,
    facts_of,
    load,
    repeat_changes,
    sentence,
)
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

_LOST_TRIES = 200
_UNKNOWN_TRIES = 8


@dataclass(frozen=True)
class Uncommitted:
    """A snapshot that waits in a table which has the `changes`, and which only this load sees."""

    changes: TableChanges
    java_table: Java
    snapshot: int
    replaces: bool
    """Every row of the table is replaced."""


@dataclass(frozen=True)
class Staged:
    """A snapshot that waits on a branch of its own. `base` is where the branch began."""

    branch: str
    base: int | None
    snapshot: int
    mode: Literal["append", "replace"]
    summary: Mapping[str, str]
    """What the published snapshot says of itself, should it have to be made anew."""
    has_rows: bool
    balance: Balance
    changes: RowChanges | None = None
    """What a MERGE did; None: the rows were not merged."""
    same_key: SameKey | None = None
    """Rows of an UPSERT that later ones of the load replaced."""
    report: RowsReport = NO_ROWS
    """What was found in the rows that were read."""
    files: tuple[FileResult, ...] | None = None
    """The files with the rows, where it is known without reading the snapshot."""
    uncommitted: Uncommitted | None = None
    """Where the rows wait if the table changes with them: the branch is then where it began."""


@dataclass(frozen=True)
class Publish:
    """Everything a publish is decided by. `schema.table` is loaded at `branch`."""

    spark: SparkSession
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
    reason: str = ""
    java_table: Java | None = None
    """The table as the catalog has returned it with the commit; None where it has to be read."""


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
            java_table, transaction = _begin(given)
            facts = facts_of(given.spark, transaction.startMetadata())
        except Py4JJavaError as error:
            # Only reading failed: nothing is in doubt unless a commit was sent before.
            unanswered += 1
            if unanswered > _UNKNOWN_TRIES:
                raise (unknown_outcome(given.job) if sent else error) from None
            pause(tries)
            continue
        # An earlier commit may have arrived although its response was lost: never commit twice.
        if landed := next((s for s in sent if has_landed(facts, given.branch, given.job, s)), None):
            return Published("IN", landed, facts)
        # Only a commit without a response is in doubt. A conflict proves that it was not applied.
        doubt = bool(sent and unanswered)
        verdict = _verdict(given, facts, sent[-1] if doubt else None)
        # The rules are evaluated on the metadata that the transaction will be compared with.
        if verdict.decision is not Decision.GO:
            return _stop(given, verdict, facts, unknown=doubt)
        try:
            sent.append(_prepared(given, transaction, facts, unknown=doubt))
        except RetryLoad as again:
            return Published("AGAIN", None, facts, str(again))
        try:
            transaction.commitTransaction()
        except Py4JJavaError as error:
            # A rejection is a response: the commit was not applied, and a retry cannot help.
            if failure := catalog_rejection(error, f"committing to `{given.job.target}`"):
                _give_up(given, unknown=doubt)
                raise failure from None
            # A conflict is the normal case of optimistic concurrency, retried `_LOST_TRIES` times.
            # Everything else counts as a missing response.
            unanswered += not caused_by(error, *LOST)
            if unanswered > _UNKNOWN_TRIES:
                return _last_look(given, sent, error)
            pause(tries)
        else:
            return Published("IN", sent[-1], facts, java_table=java_table)
    return _stop(given, _exhausted(given), facts, unknown=bool(unanswered))


def _begin(given: Publish) -> tuple[Java, Java]:
    """Return the table, and a transaction on its metadata as it is now."""
    # Read again for every attempt: a retry on old metadata would conflict forever.
    java_table = load(given.spark, given.schema, given.table)
    if java_table is None:
        raise _dropped(given)
    return java_table, java_table.newTransaction()


def _prepared(given: Publish, transaction: Java, facts: TableFacts, *, unknown: bool) -> int:
    """Prepare the transaction; what fails here fails before anything was sent."""
    try:
        return _prepare(given, transaction, facts)
    except (Py4JJavaError, LakeloadError, RetryLoad):
        _give_up(given, unknown=unknown)
        raise


def _verdict(given: Publish, facts: TableFacts, unknown: int | None) -> Verdict:
    return may_publish(
        facts,
        given.branch,
        given.start,
        given.job,
        mode=given.staged.mode,
        base=given.staged.base,
        staging_branch=given.staged.branch,
        sets_state=given.sets_state,
        staged=given.staged.snapshot,
        unknown=unknown,
    )


def _prepare(given: Publish, transaction: Java, facts: TableFacts) -> int:
    """Put every step into the transaction, and return the snapshot it will publish."""
    staged, waiting = given.staged, given.staged.uncommitted
    if waiting is not None:
        waiting.changes.publish(transaction, staged.branch, waiting.java_table)
    # Fails the commit if maintenance or recovery has dropped the staging branch meanwhile.
    assert_branch(transaction, staged.branch)
    head = facts.refs.get(given.branch)
    if waiting is not None:
        _add_with_changes(given, transaction, waiting)
    elif head not in (None, staged.base):
        # Another writer committed, which only an append survives: `may_publish` sends a replacement
        # back.
        _add_again(given, transaction)
    elif head is None:
        # First rows of the branch: it begins at the staged snapshot.
        transaction.manageSnapshots().createBranch(given.branch, staged.snapshot).commit()
    else:
        # No other commit came in between: the staged snapshot becomes the head unchanged.
        transaction.manageSnapshots().fastForwardBranch(given.branch, staged.branch).commit()
    snapshot = int(transaction.table().refs().get(given.branch).snapshotId())
    # In the same transaction, so a published job never leaves a branch for recovery to judge.
    transaction.manageSnapshots().removeBranch(staged.branch).commit()
    # State and job id commit together with the rows: this makes a rerun idempotent.
    update = transaction.updateProperties()
    properties = next_properties(
        facts,
        given.job.pipeline,
        given.job.job_id,
        snapshot,
        given.state(snapshot),
        sets_state=given.sets_state,
        retries=given.job.retries,
    )
    for name, value in properties.items():
        update.set(name, value)
    update.commit()
    return snapshot


def _add_again(given: Publish, transaction: Java) -> None:
    """Add the staged files to the head as it is now: a cherry-pick, without writing a data file.

    Iceberg's own cherry-pick knows the branch `main` alone, and takes no summary. The link to the
    staged snapshot tells expiry that its files are in use (docs/design-notes.md).
    """
    table = transaction.table()
    picked = table.snapshot(given.staged.snapshot)
    files = added_files(given.spark, table, picked)
    # Without this link, expiring the staged snapshot would delete files of the table.
    link = {"source-snapshot-id": str(given.staged.snapshot)}
    summary = {**given.staged.summary, **link}
    add_files(given.spark, transaction, given.branch, files, summary, replaces=False)


def _add_with_changes(given: Publish, transaction: Java, waiting: Uncommitted) -> None:
    """Add the files that wait in a table with the changes, now that the transaction has them."""
    spark, branch, base = given.spark, given.branch, given.staged.base
    staged = waiting.java_table.snapshot(waiting.snapshot)
    told = {str(name): str(value) for name, value in dict(staged.summary()).items()}
    # What Spark says of a MERGE, of which Iceberg knows the files alone.
    summary = {name: value for name, value in told.items() if name.startswith("spark.")}
    summary |= given.staged.summary
    files = changed_files(spark, waiting.java_table, staged)
    if staged.operation() == "append" or waiting.replaces:
        added, replaces = files.addedDataFiles(), waiting.replaces
        add_files(spark, transaction, branch, added, summary, replaces=replaces)
    else:
        repeat_changes(spark, transaction, branch, files, summary, base=base)


def _stop(given: Publish, verdict: Verdict, facts: TableFacts, *, unknown: bool) -> Published:
    if verdict.decision is Decision.LANDED:
        return Published("IN", verdict.snapshot, facts)
    # From here on the rows are not published by this attempt, so its branch has to go.
    _give_up(given, unknown=unknown)
    if verdict.decision is Decision.NO_OP:
        return Published("NO_OP", verdict.snapshot, facts)
    if verdict.decision is Decision.RUN_AGAIN:
        return Published("AGAIN", None, facts, verdict.reason)
    raise verdict.error or LoadFailed(f"`{given.job.target}` was not published")


def _give_up(given: Publish, *, unknown: bool) -> None:
    """Drop the branch. Raises `LoadFailed` when a commit without an answer may have come in."""
    # Dropping is also the fence: a commit that still arrives finds its branch gone and fails.
    dropped = drop_branch(given.spark, given.schema, given.table, given.staged.branch)
    if after_drop(dropped=dropped, unknown=unknown) == "UNKNOWN":
        raise unknown_outcome(given.job)


def _last_look(given: Publish, sent: list[int], error: Py4JJavaError) -> Published:
    """The catalog has not answered for long: fence the commits off, and look once more."""
    try:
        # Fence first, read second: in the other order a late commit could follow the read.
        dropped = drop_branch(given.spark, given.schema, given.table, given.staged.branch)
        _, transaction = _begin(given)
        facts = facts_of(given.spark, transaction.startMetadata())
    except Py4JJavaError:
        raise unknown_outcome(given.job) from None
    # The lost response may have been a success.
    for snapshot in sent:
        if has_landed(facts, given.branch, given.job, snapshot):
            return Published("IN", snapshot, facts)
    if after_drop(dropped=dropped, unknown=True) == "UNKNOWN":
        raise unknown_outcome(given.job)
    raise LoadFailed(
        f"the catalog rejected the commit of `{given.job.target}`: {sentence(error)}",
        hint="run again: nothing was committed",
        retryable=True,
    )


def _exhausted(given: Publish) -> Verdict:
    error = LoadFailed(
        f"`{given.job.target}` was not published: {_LOST_TRIES} attempts conflicted with "
        "other commits",
        hint="run again when fewer loads commit to the table: nothing was committed",
        retryable=True,
    )
    return Verdict(Decision.FAIL, error=error)


def _dropped(given: Publish) -> LoadFailed:
    return LoadFailed(
        f"the table `{given.job.target}` was dropped during the load",
        hint="run again to create it",
        retryable=True,
    )

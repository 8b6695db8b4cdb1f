"""Staging branches of a table: making one, and dropping one so that it counts (I7, I9)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.formats.iceberg.load.tables import (
    Java,
    catalog_rejection,
    caused_by,
    facts_of,
    jvm,
    load,
)
from lakeload_jobs.formats.iceberg.rules.facts import lineage
from lakeload_jobs.storage.backoff import pause

LOST = ("CommitFailedException", "CherrypickAncestorCommitException")
"""Clear answers: somebody else's commit came first, and ours did not happen."""

UNSURE = (
    "CommitStateUnknownException",
    "RESTException",
    "ServiceFailureException",
    "ServiceUnavailableException",
    "NessieInternalServerException",
    "NessieUnavailableException",
)
"""No answer, or one that says nothing: ours happened, or it did not (docs/protocol-iceberg.md)."""

REF_AGE = timedelta(days=1)
_TRIES = 60
_KEPT = 1
"""`min-snapshots-to-keep` of a staging branch. Iceberg makes a branch that was dropped anew when a
commit names it, and gives it no settings."""

_T = TypeVar("_T")


def create_branch(spark: SparkSession, schema: str, table: str, name: str, of: str) -> int | None:
    """Make a branch from where the branch `of` is now, and return that snapshot.

    None where `of` has no snapshot: the new branch then begins with an empty one. Raises
    `LoadFailed`.
    """

    def once() -> int | None:
        java_table = _needed(load(spark, schema, table), f"{schema}.{table}")
        operations = java_table.operations()
        now = operations.current()
        facts = facts_of(spark, now)
        head = facts.refs.get(of)
        if (begun := facts.refs.get(name)) is not None:
            # An earlier try came in unheard, and `of` may have moved since.
            return begun if lineage(facts, of).has(begun) else None
        if head is not None:
            # No transaction, which would read the metadata again before it begins.
            iceberg = jvm(spark).org.apache.iceberg
            branch = iceberg.SnapshotRef.branchBuilder(head).minSnapshotsToKeep(_KEPT).build()
            after = iceberg.TableMetadata.buildFrom(now).setRef(name, branch).build()
            operations.commit(now, after)
        else:
            transaction = java_table.newTransaction()
            transaction.newFastAppend().toBranch(name).commit()
            transaction.manageSnapshots().setMinSnapshotsToKeep(name, _KEPT).commit()
            transaction.commitTransaction()
        return head

    return until_committed(once, f"creating the staging branch of `{schema}.{table}`")


def drop_branch(spark: SparkSession, schema: str, table: str, name: str) -> bool:
    """Drop a branch; return whether it was there.

    The drop asserts the branch, as a publish does: when it succeeds, no publish of that branch has
    come in or ever will. Raises `LoadFailed`.
    """

    def once() -> bool:
        java_table = load(spark, schema, table)
        if java_table is None:
            return False
        transaction = java_table.newTransaction()
        if name not in facts_of(spark, transaction.startMetadata()).refs:
            return False
        assert_branch(transaction, name)
        transaction.manageSnapshots().removeBranch(name).commit()
        transaction.commitTransaction()
        return True

    return until_committed(once, f"dropping the branch `{name}` of `{schema}.{table}`")


def assert_branch(transaction: Java, name: str) -> None:
    """Make the transaction fail if the branch is not where it is now.

    REST catalogs compare only references that a commit sets; removing one compares nothing. An
    operation of its own, because within one the last change of a reference is all that is sent.
    """
    milliseconds = REF_AGE // timedelta(milliseconds=1)
    transaction.manageSnapshots().setMaxRefAgeMs(name, milliseconds).commit()


def is_marked(java_table: Java, name: str) -> bool:
    """Whether the branch is there with the setting that `create_branch` gave it."""
    found = java_table.refs().get(name)
    return found is not None and found.minSnapshotsToKeep() == _KEPT


def branch_is_gone(target: str, name: str) -> LoadFailed:
    """Return the error of a load whose staging branch is not there before its publish."""
    return LoadFailed(
        f"the catalog reports that `{target}` has no branch `{name}`, in which the rows of this "
        "load were staged: it was dropped, or the catalog does not keep branches",
        hint=(
            "run again: nothing was committed (if it fails again, the catalog does not keep "
            "branches)"
        ),
        retryable=True,
    )


def until_committed(once: Callable[[], _T], doing: str) -> _T:
    """Repeat what others' commits made fail; `once` looks anew each time, also for what an earlier
    try may have done. Raises `LoadFailed`."""
    for tries in range(_TRIES):
        try:
            return once()
        except Py4JJavaError as error:
            if failure := catalog_rejection(error, doing):
                raise failure from None
            last = tries == _TRIES - 1
            if last or not caused_by(error, *LOST, *UNSURE):
                raise
        pause(tries)
    raise LoadFailed(f"{doing}: conflicts with other commits each time", retryable=True)


def _needed(java_table: Java | None, name: str) -> Java:
    if java_table is None:
        raise LoadFailed(f"the table `{name}` was dropped during the load", retryable=True)
    return java_table

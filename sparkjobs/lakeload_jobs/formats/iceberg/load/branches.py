"""Staging branches of a table: making one, and dropping one so that it counts (I7, I9)."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from lakeload_jobs.contract.errors import LakeloadError, LoadFailed
from lakeload_jobs.contract.spec import CatalogSpec
from lakeload_jobs.contract.traits import Compares, catalog_traits
from lakeload_jobs.formats.iceberg.catalogs.changes import until_committed
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.reading import facts_of
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable, now_ms
from lakeload_jobs.formats.iceberg.commits.errors import CommitRejected, CommitUnknown
from lakeload_jobs.formats.iceberg.commits.metadata import (
    MAIN,
    Metadata,
    add_snapshot,
    assert_ref,
    ref,
    remove_ref,
    set_branch,
    snapshot_of,
)
from lakeload_jobs.formats.iceberg.commits.snapshots import Addition, added, new_snapshot_id
from lakeload_jobs.formats.iceberg.load.catalog_tables import (
    CatalogTables,
    committable,
    dropped,
)
from lakeload_jobs.formats.iceberg.rules.catalogs import took_false_commit
from lakeload_jobs.formats.iceberg.rules.facts import lineage

logger = logging.getLogger(__name__)

_KEPT = 1
"""`min-snapshots-to-keep` of a staging branch. Spark makes a branch that was dropped anew when a
commit names it, and gives it no settings."""


@dataclass(frozen=True)
class StagingBranch:
    """A branch that was made at the snapshot `at`: that of the branch that is loaded, where it has
    one (`base`). `table` is the table with it."""

    table: ReadTable
    base: int | None
    at: int

    @property
    def before(self) -> int | None:
        """The snapshot with the rows that are there; None for none."""
        if self.base is not None:
            return self.base
        # One that adds nothing to what `main` has.
        begun = snapshot_of(self.table.metadata, self.at)
        return None if begun is None else begun.get("parent-snapshot-id")


def create_branch(
    tables: CatalogTables,
    schema: str,
    table: str,
    name: str,
    of: str,
    known: ReadTable | None = None,
) -> StagingBranch:
    """Make a branch from where the branch `of` is now, or was when the table was last read
    (`known`), if nobody has committed since.

    Where `of` has no snapshot the new branch begins with one that adds nothing. Raises
    `LoadFailed`.
    """
    target = f"{schema}.{table}"
    first = iter([known])

    def once() -> StagingBranch:
        now = next(first, None) or _needed(tables, schema, table)
        metadata = now.metadata
        head, begun = ref(metadata, of), ref(metadata, name)
        if begun is not None:
            # An earlier try came in unheard, and `of` may have moved since.
            base = begun if lineage(facts_of(now), of).has(begun) else None
            return StagingBranch(now, base, begun)
        requirements, updates, at = [assert_ref(name, None)], [], head
        if at is None:
            # A branch that is not there yet begins with what `main` has.
            empty = Addition(new_snapshot_id(), ref(metadata, MAIN), (), {})
            snapshot = added(tables.files(now), metadata, empty, now_ms=now_ms())
            updates, at = [add_snapshot(snapshot)], empty.snapshot_id
            # Its numbers are taken once another job is in, which is a conflict then.
            requirements.append(assert_ref(MAIN, empty.head))
        updates.append(set_branch(name, at, min_snapshots_to_keep=_KEPT))
        try:
            made = tables.store.commit(now, requirements, updates)
        except CatalogError as error:
            if now is not known:
                raise
            # A snapshot that has expired since makes the request a bad one.
            raise CommitRejected(error.message) from error
        if ref(made.metadata, name) is None:
            raise branch_is_gone(target, name)
        return StagingBranch(made, head, at)

    with committable(target):
        return until_committed(once, f"creating the staging branch of `{target}`")


def drop_branch(tables: CatalogTables, schema: str, table: str, name: str) -> bool:
    """Drop a branch; return whether it was there.

    The drop asserts the branch, as a publish does: when it succeeds, no publish of that branch has
    come in or ever will. Raises `LoadFailed`.
    """

    def once() -> bool:
        now = tables.read(schema, table)
        at = None if now is None else ref(now.metadata, name)
        if now is None or at is None:
            return False
        tables.store.commit(now, [assert_ref(name, at)], [remove_ref(name)])
        return True

    return until_committed(once, f"dropping the branch `{name}` of `{schema}.{table}`")


def check_compares(
    tables: CatalogTables, branch: StagingBranch, name: str, catalog: CatalogSpec
) -> None:
    """Raise `LoadFailed` when a REST catalog takes a commit that it has to refuse.

    The commit sets a branch to where it is, and asserts that there is no such branch: taken, it
    changes nothing. Any other answer says nothing; the commits of the load will be told more.
    """
    if catalog_traits(catalog).compares is not Compares.REFERENCES:
        return
    target = branch.table.target
    again = set_branch(name, branch.at, min_snapshots_to_keep=_KEPT)
    try:
        tables.store.commit(branch.table, [assert_ref(name, None)], [again])
    except CommitRejected:
        return
    except (CommitUnknown, LakeloadError):
        logger.warning(
            "it is not known whether the catalog validates commits to %s", target, exc_info=True
        )
        return
    message, hint = took_false_commit(target, name)
    raise LoadFailed(f"nothing is loaded through this catalog: {message}", hint=hint)


def is_marked(metadata: Metadata, name: str) -> bool:
    """Whether the branch is there with the setting that `create_branch` gave it."""
    found = metadata.get("refs", {}).get(name, {})
    return bool(found.get("min-snapshots-to-keep") == _KEPT)


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


def _needed(tables: CatalogTables, schema: str, table: str) -> ReadTable:
    found = tables.read(schema, table)
    if found is None:
        raise dropped(f"{schema}.{table}")
    return found

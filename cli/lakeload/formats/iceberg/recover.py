"""What killed runs leave in Iceberg tables: branches that nobody will publish (DESIGN section 6).

Nothing of a job is visible before its one commit and everything after it, so there is nothing to
finish. A branch may go at any time: an attempt that still works on it asserts it when it publishes,
fails cleanly, and nothing is lost but its work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lakeload.formats.parquet.recover import code_of_errors
from lakeload.formats.tables import UpkeepTable, for_each
from lakeload_jobs.contract.errors import ExitCode, LakeloadError
from lakeload_jobs.formats.iceberg.catalogs import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.catalog import IcebergCatalog, read_facts
from lakeload_jobs.formats.iceberg.orphan_branches import LeftBranch, left_branches

_TRIES = 4
"""Commits of others come first now and then; each try looks again."""


@dataclass(frozen=True)
class BranchRecovery:
    """One table after its recovery, or in a dry run before it.

    `dropped` are the branches of dead attempts that went, or would go; `younger` those that may
    still be somebody's work.
    """

    target: str
    exists: bool = True
    dropped: tuple[LeftBranch, ...] = ()
    younger: tuple[LeftBranch, ...] = ()
    error: LakeloadError | None = None
    dry_run: bool = False

    @property
    def status(self) -> str:
        """IN_STEP, RECOVERED or FAILED; in a dry run UNFINISHED stands for RECOVERED."""
        if self.error is not None:
            return "FAILED"
        if not self.dropped:
            return "IN_STEP"
        return "UNFINISHED" if self.dry_run else "RECOVERED"


def recover_branches(
    catalog: IcebergCatalog,
    tables: Sequence[UpkeepTable],
    *,
    abort_older_than: timedelta,
    dry_run: bool,
) -> tuple[BranchRecovery, ...]:
    """Drop the left branches of each table, several tables at a time; trouble with one leaves the
    others alone."""
    before = datetime.now(UTC) - abort_older_than

    def work(table: UpkeepTable) -> BranchRecovery:
        try:
            return _recover(catalog, table, before, dry_run=dry_run)
        except LakeloadError as error:
            return BranchRecovery(table.target, error=error, dry_run=dry_run)

    return tuple(for_each(tables, work))


def exit_code_of(tables: Sequence[BranchRecovery]) -> ExitCode:
    """Return OK, or what the worst of the tables asks for."""
    return code_of_errors(table.error for table in tables)


def _recover(
    catalog: IcebergCatalog, table: UpkeepTable, before: datetime, *, dry_run: bool
) -> BranchRecovery:
    place = table.location
    for attempt in range(_TRIES):
        facts = read_facts(catalog, place.schema, place.table)
        if facts is None:
            return BranchRecovery(table.target, exists=False, dry_run=dry_run)
        found = left_branches(facts)
        old = tuple(branch for branch in found if branch.created_at <= before)
        young = tuple(branch for branch in found if branch.created_at > before)
        if old and not dry_run:
            try:
                gone = catalog.drop_branches(place.schema, place.table, [b.name for b in old])
            except CatalogError as error:
                # Another commit came first, or nobody knows: the next look tells.
                if attempt + 1 < _TRIES and (error.retryable or error.may_have_acted):
                    continue
                raise
            old = tuple(branch for branch in old if branch.name in gone)
        return BranchRecovery(table.target, True, old, young, dry_run=dry_run)
    raise AssertionError("the last try returns or raises")

"""Recovery of Iceberg tables: drop the staging branches of abandoned attempts, abort their uploads
and remove their files.

Nothing of a job is visible before its one commit and everything after it, so there is nothing to
finish. A branch may go at any time: an attempt that still works on it asserts it when it publishes,
fails cleanly, and nothing is lost but its work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from lakeload.formats.iceberg.tables import IcebergTables, open_tables
from lakeload.formats.reports import (
    Decision,
    RecoveredTable,
    RecoveryReport,
    RecoveryStatus,
    ResolutionReport,
    exit_code_of,
)
from lakeload.formats.tables import TableRef, TablesRequest, each_table
from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import InvalidInput, LakeloadError
from lakeload_jobs.contract.traits import catalog_traits, vends
from lakeload_jobs.core.sizes import counted, minute
from lakeload_jobs.formats.iceberg.catalogs import changes
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles, bucket_and_key
from lakeload_jobs.formats.iceberg.catalogs.reading import facts_of, read_table, supported
from lakeload_jobs.formats.iceberg.catalogs.table_stores import TableStore
from lakeload_jobs.formats.iceberg.left_files import find_left_files, remove_left_files
from lakeload_jobs.formats.iceberg.left_rejects import settle_rejects
from lakeload_jobs.formats.iceberg.left_uploads import abort_left_uploads, find_left_uploads
from lakeload_jobs.formats.iceberg.load.catalog_tables import CatalogTables
from lakeload_jobs.formats.iceberg.rules.branches import StagingBranch, staging_branches
from lakeload_jobs.formats.iceberg.rules.facts import SUMMARY_PIPELINE, TableFacts
from lakeload_jobs.formats.iceberg.rules.rejects import (
    SettledRejects,
)
from lakeload_jobs.storage.objects import ObjectEntry, Objects, OpenUpload


@dataclass(frozen=True)
class BranchRecovery:
    """The branches of one table.

    `dropped` are those of dead attempts that went, or would go; `younger` those that may still be
    somebody's work.
    """

    target: str
    exists: bool = True
    dropped: tuple[StagingBranch, ...] = ()
    younger: tuple[StagingBranch, ...] = ()
    rejects: tuple[SettledRejects, ...] = ()
    uploads: tuple[OpenUpload, ...] = ()
    """Those of data files that were aborted, or would be."""
    uploads_denied: LakeloadError | None = None
    """The error with which they could not be listed. Committed jobs are not affected."""
    files: tuple[ObjectEntry, ...] = ()
    """Those that no snapshot names and that were removed, or would be."""
    files_denied: LakeloadError | None = None
    """Why some could not be found or removed: loads may not delete. No reader sees them."""
    error: LakeloadError | None = None


def recover(
    request: TablesRequest, *, abort_older_than: timedelta, dry_run: bool
) -> RecoveryReport:
    """Drop what dead attempts have left in the tables, several at a time; one that fails leaves
    the others alone."""
    recovery = _Recovery(open_tables(request), abort_older_than, dry_run)
    found = each_table(
        recovery.lake.tables,
        recovery.table,
        lambda table, error: BranchRecovery(table.target, error=error),
    )
    return report(found, dry_run=dry_run)


def report(found: Sequence[BranchRecovery], *, dry_run: bool) -> RecoveryReport:
    """Return what became of the tables."""
    return RecoveryReport(
        tuple(_recovered(table, dry_run=dry_run) for table in found),
        dry_run,
        "an Iceberg table shows a whole job or none of it: only branches, uploads and files can be "
        "left",
    )


def drop_branches(
    tables: TableStore, table: TableRef, age: timedelta, *, dry_run: bool
) -> BranchRecovery:
    """Drop the branches of a table that are older than an age."""
    place, before = table.location, datetime.now(UTC) - age

    def once() -> BranchRecovery:
        opened = read_table(tables, place.schema, place.table)
        if opened is None:
            return BranchRecovery(table.target, exists=False)
        found = staging_branches(facts_of(opened).refs)
        old = tuple(branch for branch in found if branch.created_at <= before)
        young = tuple(branch for branch in found if branch.created_at > before)
        if old and not dry_run:
            gone = changes.drop_branches(tables, opened, [branch.name for branch in old])
            old = tuple(branch for branch in old if branch.name in gone)
        return BranchRecovery(table.target, True, old, young)

    doing = f"dropping branches of the table `{table.target}`"
    with supported(doing):
        return changes.until_committed(once, doing)


@dataclass(frozen=True)
class _Recovery:
    """The steps of a recovery in each table."""

    lake: IcebergTables
    age: timedelta
    dry_run: bool

    def table(self, table: TableRef) -> BranchRecovery:
        """Take the steps in a table; after one that fails there is none."""
        found = drop_branches(self.lake.store, table, self.age, dry_run=self.dry_run)
        for step in (self._with_rejects, self._with_uploads, self._with_files):
            if not found.exists or found.error is not None:
                break
            try:
                found = step(table, found)
            except LakeloadError as error:
                found = replace(found, error=error)
        return found

    def _facts(self, table: TableRef) -> TableFacts | None:
        place = table.location
        found = read_table(self.lake.store, place.schema, place.table)
        return None if found is None else facts_of(found)

    def _with_rejects(self, table: TableRef, found: BranchRecovery) -> BranchRecovery:
        """Settle what dead attempts have left in the side table, now that their branches are
        gone."""
        place, lake = table.location, self.lake
        if len(place.with_side_table) == 1:
            return found
        settled = settle_rejects(
            CatalogTables(lake.store, lake.destination, lake.session),
            place.schema,
            place.table,
            {SUMMARY_PIPELINE: lake.pipeline},
            dropped={left.name for left in found.dropped},
            dry_run=self.dry_run,
        )
        return replace(found, rejects=settled)

    def _with_uploads(self, table: TableRef, found: BranchRecovery) -> BranchRecovery:
        """Abort the uploads that dead attempts have left open."""
        destination = self.lake.destination
        if vends(destination.iceberg.catalog):
            return found
        objects = Objects(self.lake.session, destination)
        try:
            left = find_left_uploads(
                objects,
                destination.bucket,
                lambda: self._facts(table),
                datetime.now(UTC),
                self.age,
                dropped=[branch.name for branch in found.dropped],
            )
        except AwsError as error:
            return replace(found, uploads_denied=_denied(error))
        if not self.dry_run:
            abort_left_uploads(objects, left)
        return replace(found, uploads=left)

    def _with_files(self, table: TableRef, found: BranchRecovery) -> BranchRecovery:
        """Remove the data files that dead attempts have completed and not committed."""
        destination, place = self.lake.destination, table.location
        if vends(destination.iceberg.catalog):
            return found
        files = LakeFiles(self.lake.session, destination)
        try:
            left = find_left_files(
                Objects(self.lake.session, destination),
                destination.bucket,
                lambda: read_table(self.lake.store, place.schema, place.table),
                files,
                datetime.now(UTC),
                self.age,
                dropped=[branch.name for branch in found.dropped],
                shared=catalog_traits(destination.iceberg.catalog).keeps_history,
            )
        except AwsError as error:
            return replace(found, files_denied=_denied(error))
        if self.dry_run or not left:
            return replace(found, files=left)
        removal = remove_left_files(files, destination.bucket, left)
        stay = {bucket_and_key(one)[1] for one in removal.left}
        found = replace(found, files=tuple(one for one in left if one.key not in stay))
        if isinstance(removal.error, AwsError) and removal.error.denied:
            return replace(found, files_denied=_undeletable(removal.left, removal.error))
        return replace(found, error=removal.error)


def _denied(error: AwsError) -> AwsError:
    """Return the error of a request that this identity may not send. Raises any other one."""
    if not error.denied:
        raise error
    return error


def _undeletable(left: Sequence[str], error: AwsError) -> AwsError:
    """Return the warning that files stay which this identity may not delete."""
    return AwsError(
        f"{counted(len(left), 'file')} of abandoned attempts could not be removed: access denied "
        f"to `{left[0]}` (`s3:DeleteObject`)",
        code=error.code,
        status=error.status,
        request_id=error.request_id,
        operation=error.operation,
        hint="no reader sees them, and loads need not delete: `lakeload maintain PIPELINE --only "
        "orphans --apply` removes them, with a role that has the policy of `lakeload policy "
        "DESTINATION --with maintain`",
    )


def _recovered(table: BranchRecovery, *, dry_run: bool) -> RecoveredTable:
    fates = [(left, "would go" if dry_run else "gone") for left in table.dropped]
    fates += [(left, "stays: it is too new") for left in table.younger]
    status: RecoveryStatus = "UNFINISHED" if dry_run else "RECOVERED"
    removed = table.dropped or table.rejects or table.uploads or table.files
    if table.error is not None or not removed:
        status = "FAILED" if table.error else "UP_TO_DATE"
    return RecoveredTable(
        table.target,
        status,
        exit_code_of([table.error]),
        (_action(table, dry_run=dry_run),),
        {
            "exists": table.exists,
            "branches": table.dropped,
            "younger_branches": table.younger,
            "rejected": table.rejects,
            "uploads": table.uploads,
            "files": [
                {"key": one.key, "bytes": one.size, "modified": one.modified} for one in table.files
            ],
        },
        remarks=tuple(
            line
            for left, fate in fates
            for line in (
                f"{table.target}: branch of {minute(left.created_at)}: {fate}",
                f"  attempt {left.attempt_id}",
            )
        ),
        errors=(table.error,) if table.error else (),
        warnings=tuple(one for one in (table.uploads_denied, table.files_denied) if one),
    )


def _action(table: BranchRecovery, *, dry_run: bool) -> str:
    if table.error is not None:
        return "could not be recovered"
    if not table.exists:
        return "there is no such table yet"
    done = []
    if table.dropped:
        branches = f"{len(table.dropped):,} branch" + "es" * (len(table.dropped) != 1)
        done.append(f"{'would drop' if dry_run else 'dropped'} {branches} of abandoned attempts")
    if removed := sum(not one.stay for one in table.rejects):
        verb = "would remove" if dry_run else "removed"
        done.append(f"{verb} the rejected records of {counted(removed, 'abandoned attempt')}")
    if stay := sum(one.stay for one in table.rejects):
        done.append(f"the rejected records of {counted(stay, 'load')} stay: it is committed")
    for left, what in ((table.uploads, "upload"), (table.files, "file")):
        if left:
            verb = "would remove" if dry_run else "removed"
            done.append(f"{verb} {counted(len(left), what)} of abandoned attempts")
    return "; ".join(done) or "nothing to do"


def resolve(
    _request: TablesRequest, decision: Decision, _job_id: str, *, act: bool
) -> ResolutionReport:
    """Raise `InvalidInput`: no job of an Iceberg table waits for a person."""
    del act
    raise InvalidInput(
        f"`--{decision}`: a job of an Iceberg table is committed as a whole or not at all, "
        "so there is nothing to resolve",
        hint="leave it out; to undo a snapshot, roll the table back in Spark: "
        "`CALL lake.system.rollback_to_snapshot`",
    )

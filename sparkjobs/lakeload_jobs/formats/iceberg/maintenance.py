"""Maintenance of an Iceberg table without Spark, one function a step: changes of metadata alone.

`rewrites` has the other steps.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import CommitConflict, LoadFailed
from lakeload_jobs.contract.events import Step
from lakeload_jobs.contract.maintain import LISTED, MaintainSpec, StepResult, StepStatus
from lakeload_jobs.contract.spec import TableSpec
from lakeload_jobs.contract.traits import catalog_traits, vends
from lakeload_jobs.formats.iceberg.catalogs.changes import commit, until_committed
from lakeload_jobs.formats.iceberg.catalogs.changes import drop_branches as drop_refs
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.reading import facts_of
from lakeload_jobs.formats.iceberg.catalogs.table_files import remove_files
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable, now_ms
from lakeload_jobs.formats.iceberg.commits.errors import CommitUnknown
from lakeload_jobs.formats.iceberg.commits.expiry import (
    Expired,
    FreedFiles,
    expired,
    freed_files,
    with_earlier,
)
from lakeload_jobs.formats.iceberg.commits.expiry import requirements as expiry_requirements
from lakeload_jobs.formats.iceberg.commits.expiry import updates as expiry_updates
from lakeload_jobs.formats.iceberg.commits.manifests import (
    ManifestLists,
    metadata_folder,
)
from lakeload_jobs.formats.iceberg.commits.metadata import Metadata, updated
from lakeload_jobs.formats.iceberg.left_rejects import settle_rejects
from lakeload_jobs.formats.iceberg.left_uploads import abort_left_uploads, find_left_uploads
from lakeload_jobs.formats.iceberg.load.catalog_tables import CatalogTables, committable
from lakeload_jobs.formats.iceberg.rules.branches import (
    left_branches,
    staging_branches,
)
from lakeload_jobs.formats.iceberg.rules.facts import (
    TableFacts,
    keeps_files,
    lineage,
    pipelines_of,
    state_of,
)
from lakeload_jobs.storage.objects import Objects

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class Work:
    """One table, and what is to be done with it."""

    tables: CatalogTables
    of: TableSpec
    spec: MaintainSpec
    summary: Mapping[str, str]
    """What snapshots of this run say of it."""

    @property
    def branch(self) -> str:
        """The branch that is loaded."""
        return self.tables.destination.iceberg.branch

    @property
    def target(self) -> str:
        """`schema.table`, for messages."""
        return self.of.target

    def read(self) -> ReadTable:
        """Read the table's metadata anew."""
        return self.existing(self.tables.read(self.of.schema, self.of.table))

    def facts(self) -> TableFacts:
        """Read the table's metadata anew."""
        return facts_of(self.read())

    def why_files_stay(self, table: ReadTable) -> str | None:
        """Return why no file of the table may be removed, None when it may."""
        shared = catalog_traits(self.tables.destination.iceberg.catalog).keeps_history
        return keeps_files(table.properties, shared=shared)

    def existing(self, found: T | None) -> T:
        """Return what was found. Raises `LoadFailed` where it is gone."""
        if found is None:
            raise dropped(self.target)
        return found

    def now(self) -> datetime:
        """Return the present instant, UTC."""
        return datetime.now(UTC)


def dropped(target: str) -> LoadFailed:
    """Return the error of a table that is gone."""
    return LoadFailed(
        f"the table `{target}` was dropped during its maintenance",
        hint="run it again when the table is there",
    )


Stepper = Callable[[Work], StepResult]


def nothing(step: Step, *notes: str) -> StepResult:
    """Return the result of a step that found nothing to do."""
    return StepResult(step, "NOTHING_TO_DO", notes=notes)


def not_possible(step: Step, why: str) -> StepResult:
    """Return the result of a step that this table does not allow."""
    return StepResult(step, "UNSUPPORTED", notes=(why,))


def shown(items: list[str]) -> tuple[str, ...]:
    """Return the names that a result holds."""
    return tuple(items[:LISTED])


def check_deleting(work: Work) -> None:
    """Raise `LoadFailed`, naming action and key, where an object of the table may not be deleted.

    The object does not exist: S3 looks at permissions first, and deleting nothing is no error. Its
    name is that of a manifest: a bucket for tables alone denies all but Iceberg's.
    """
    table = work.read()
    key = f"{metadata_folder(table.metadata)}/{uuid.uuid4()}-m0.avro"
    try:
        work.tables.files(table).delete(key)
    except AwsError as error:
        if error.denied:
            raise denied(work.target, key, table.location) from error
        raise


def denied(target: str, key: str, location: str) -> LoadFailed:
    """Return the error of an identity that may not delete."""
    bucket, _, path = location.partition("://")[2].partition("/")
    return LoadFailed(
        f"removing files of `{target}`: access denied to `{key}` (`s3:DeleteObject`)",
        hint=f"allow `s3:DeleteObject` on `arn:aws:s3:::{bucket}/{path}/*`: `lakeload policy` with "
        "`--with maintain` writes the policy",
    )


MAIN = "main"


STATES_KEPT = timedelta(days=30)
"""A pipeline that has not loaded for longer does not keep a table's history."""


def kept_snapshots(facts: TableFacts, branch: str, now: datetime) -> frozenset[int]:
    """Return the snapshots of `branch` that have to stay: all from its head back to the oldest of

    - the snapshot of each pipeline's state, unless it is older than `STATES_KEPT`;
    - the one that each staging branch was made from: its load publishes only while the head it
      began with is still an ancestor (I2).

    Without those in between, an old snapshot could not be told from one that was rolled back.
    """
    own = lineage(facts, branch).ids
    oldest_kept = (now - STATES_KEPT).timestamp() * 1000
    needed = {
        state.snapshot
        for name in pipelines_of(facts)
        if (state := state_of(facts, name)) is not None
        and state.snapshot in facts.snapshots
        and facts.snapshots[state.snapshot].timestamp_ms >= oldest_kept
    }
    for staged in staging_branches(facts.refs):
        base = next((number for number in lineage(facts, staged.name).ids if number in own), None)
        if base is not None:
            needed.add(base)
    depth = max((own.index(number) for number in needed if number in own), default=-1)
    return frozenset(own[: depth + 1])


@dataclass(frozen=True)
class Expiry:
    """What is to expire, and how many old snapshots stay because loads need them."""

    gone: Expired
    kept: int


def expire(work: Work) -> StepResult:
    """Expire old snapshots, or say how many, with the files that they alone refer to."""
    table = work.read()
    if why := work.why_files_stay(table):
        return not_possible("expire", why)
    with committable(work.target):
        found = _old(work, table)
    notes = (_kept_note(found.kept),) if found.kept else ()
    if not found.gone.snapshots:
        return nothing("expire", *notes)
    files = work.tables.files(table)
    # A list is read once, before the commit and whatever number of tries it takes.
    lists = ManifestLists(files)
    if not work.spec.apply:
        with committable(work.target):
            number, size = _total(_freed(lists, table, found.gone))
        snapshots = len(found.gone.snapshots)
        return StepResult(
            "expire", "WOULD_DO", files=number, bytes=size, snapshots=snapshots, notes=notes
        )
    check_deleting(work)
    doing = f"expiring snapshots of `{work.target}`"
    unknown: list[Metadata] = []
    with committable(work.target):
        before, after = until_committed(
            lambda: _expire(work, lists, unknown), doing, CommitConflict
        )
        there = {one["snapshot-id"] for one in after.get("snapshots", ())}
        gone = [one for one in before.get("snapshots", ()) if one["snapshot-id"] not in there]
        if not gone:
            return nothing("expire", *notes)
        number, size = _remove(work, files, freed_files(lists, before, after))
    return StepResult("expire", "DONE", files=number, bytes=size, snapshots=len(gone), notes=notes)


def _old(work: Work, table: ReadTable) -> Expiry:
    """Return what is old by the retention of the table, but for what loads need."""
    now, age = work.now(), work.spec.older_than
    old = expired(
        table.metadata,
        int(now.timestamp() * 1000),
        older_than_ms=None if age is None else int((now.timestamp() - age) * 1000),
        retain_last=work.spec.retain_last,
    )
    needed = kept_snapshots(facts_of(table), work.branch, now)
    left = tuple(number for number in old.snapshots if number not in needed)
    return Expiry(replace(old, snapshots=left), len(old.snapshots) - len(left))


def _freed(lists: ManifestLists, table: ReadTable, gone: Expired) -> Iterator[FreedFiles]:
    """Yield the files that would go. Nothing is written."""
    changes = expiry_updates(lists, table.metadata, gone)
    after = updated(table.metadata, changes, replaces=None, now_ms=now_ms())
    return freed_files(lists, table.metadata, after)


def _expire(work: Work, lists: ManifestLists, unknown: list[Metadata]) -> tuple[Metadata, Metadata]:
    """Commit, and return the metadata before and after. `unknown` is that of earlier tries of which
    nobody knows the end: they may be in by now."""
    # What is old is asked anew: a try that lost may have lost to an expiry.
    table = work.read()
    before = with_earlier(table.metadata, unknown)
    gone = _old(work, table).gone
    if not gone.snapshots:
        return before, table.metadata
    ids = set(gone.snapshots)
    try:
        now = commit(
            work.tables.store,
            table,
            expiry_requirements(table.metadata),
            expiry_updates(lists, table.metadata, gone),
            lambda now: not any(one["snapshot-id"] in ids for one in now.metadata["snapshots"]),
        )
    except CommitUnknown:
        unknown.append(table.metadata)
        raise
    return before, now.metadata


def _total(freed: Iterable[FreedFiles]) -> tuple[int, int]:
    """Return how many files there are and their bytes, without the bytes of manifest lists."""
    files = size = 0
    for one in freed:
        files += len(one.files) + len(one.lists)
        size += sum(one.files.values())
    return files, size


def _remove(work: Work, place: LakeFiles, freed: Iterator[FreedFiles]) -> tuple[int, int]:
    """Delete files as they are found, and return their total. Raises `LoadFailed` when some could
    not be deleted."""
    files, size = 0, 0
    left: list[str] = []
    for one in freed:
        more, bytes_ = _total([one])
        files, size = files + more, size + bytes_
        removal = remove_files(place, [*one.files, *one.lists])
        left += removal.left
        error = removal.error
        if error is not None:
            logger.warning("files of %s are left: %s", work.target, removal.left, exc_info=error)
    if left:
        raise LoadFailed(
            f"{len(left)} of {files} files of expired snapshots of `{work.target}` could not be "
            "deleted",
            hint="no snapshot has them: the step `orphans` removes them",
            retryable=True,
        )
    return files, size


def _kept_note(kept: int) -> str:
    noun = "snapshot stays" if kept == 1 else "snapshots stay"
    return f"{kept} old {noun}: the latest or a running load of a pipeline needs them"


def drop_branches(work: Work) -> StepResult:
    """Drop the staging branches that are older than `abort_older_than`, and settle the rejected
    records that they leave, or say which branches."""
    found = _left(work)
    if found and not work.spec.apply:
        return StepResult("branches", "WOULD_DO", items=shown(found))
    gone: list[str] = []
    if found:
        doing = f"dropping branches of `{work.target}`"
        with committable(work.target):
            gone = until_committed(lambda: _drop(work), doing, CommitConflict)
    if work.spec.apply:
        settle_rejects(work.tables, work.of.schema, work.of.table, work.summary)
    return StepResult("branches", "DONE", items=shown(gone)) if gone else nothing("branches")


def _left(work: Work) -> list[str]:
    age = timedelta(seconds=work.spec.abort_older_than)
    return list(left_branches(work.facts().refs, work.now(), age))


def _drop(work: Work) -> list[str]:
    # Found anew each time: a slow load may have published and removed its branch meanwhile.
    table = work.read()
    age = timedelta(seconds=work.spec.abort_older_than)
    found = left_branches(facts_of(table).refs, work.now(), age)
    return list(drop_refs(work.tables.store, table, found))


def abort_uploads(work: Work) -> StepResult:
    """Abort the uploads of dead attempts, or say which."""
    destination = work.tables.destination
    if vends(destination.iceberg.catalog):
        return nothing("uploads")
    age = timedelta(seconds=work.spec.abort_older_than)
    objects = Objects(work.tables.aws, destination)
    left: tuple[str, ...] = ()
    if "branches" in work.spec.steps and not work.spec.apply:
        # The step before this one would have dropped them.
        left = left_branches(work.facts().refs, work.now(), age)
    try:
        found = find_left_uploads(objects, destination.bucket, work.facts, work.now(), age, left)
    except AwsError as error:
        if not error.denied:
            raise
        return not_possible("uploads", f"{error.message}: `lakeload policy` grants it")
    if not found:
        return nothing("uploads")
    if work.spec.apply:
        abort_left_uploads(objects, found)
    status: StepStatus = "DONE" if work.spec.apply else "WOULD_DO"
    keys = [upload.key for upload in found]
    # What parts an upload has, a list of uploads does not tell.
    return StepResult("uploads", status, files=len(keys), bytes=None, items=shown(keys))


STEPS: Mapping[Step, Stepper] = {
    "branches": drop_branches,
    "uploads": abort_uploads,
    "expire": expire,
}
"""Those that need no Spark: they change metadata and remove files."""

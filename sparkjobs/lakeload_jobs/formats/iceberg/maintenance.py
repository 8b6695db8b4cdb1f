"""Maintenance of an Iceberg table: one function a step.

Spark's actions rewrite and list files. What changes metadata alone is a commit without Java.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.events import Step
from lakeload_jobs.contract.maintain import LISTED, MaintainSpec, StepResult
from lakeload_jobs.contract.spec import TableSpec
from lakeload_jobs.contract.traits import catalog_traits
from lakeload_jobs.formats.base import CommitConflict
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
    each_of,
    metadata_folder,
)
from lakeload_jobs.formats.iceberg.commits.metadata import Metadata, int_property, updated
from lakeload_jobs.formats.iceberg.load.catalog_settings import SparkCatalog
from lakeload_jobs.formats.iceberg.load.catalog_tables import CatalogTables, committable
from lakeload_jobs.formats.iceberg.load.tables import (
    Java,
    caused_by,
    jvm,
    load,
    spark_name,
)
from lakeload_jobs.formats.iceberg.rules.branches import (
    left_branches,
    orphans_before,
    staging_branches,
)
from lakeload_jobs.formats.iceberg.rules.facts import (
    TableFacts,
    keeps_files,
    lineage,
    pipelines_of,
    state_of,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")

TRIES = 3
"""Each has Iceberg's own retries of the commit in it; what is left takes the work anew."""

_RACES = ("CommitFailedException", "ValidationException")


def until_won(work: Work, act: Callable[[], T], or_else: str = "") -> T:
    """Return what `act` returns, which plans and commits with Java's table as it is now, and is
    tried anew when another commit came first.

    Raises `CommitConflict`, whose hint ends with `or_else`; every other error of Java as it is.
    """
    for number in range(1, TRIES + 1):
        work.refresh()
        try:
            return act()
        except Py4JJavaError as error:
            if not caused_by(error, *_RACES):
                raise
            logger.info(
                "attempt %d of %d conflicted with another commit", number, TRIES, exc_info=True
            )
    raise CommitConflict(
        f"{TRIES} attempts conflicted with other commits to `{work.target}`",
        hint=f"run it again when fewer loads run{or_else}",
        retryable=True,
    )


@dataclass(frozen=True)
class Work:
    """One table, and what is to be done with it. Spark opens the catalog where a step needs it."""

    spark: SparkSession
    tables: CatalogTables
    catalog: SparkCatalog
    of: TableSpec
    spec: MaintainSpec

    @cached_property
    def table(self) -> Java:
        """`org.apache.iceberg.Table`, for the steps that rewrite or list files."""
        self.catalog.open_in(self.spark, self.target, "Spark rewrites and lists its files")
        return self._existing(load(self.spark, self.of.schema, self.of.table))

    def refresh(self) -> None:
        """Have Java's table as it is now: other steps, and loads, may have changed it since."""
        try:
            self.table.refresh()
        except Py4JJavaError as error:
            if caused_by(error, "NoSuchTableException"):
                raise _dropped(self.target) from error
            raise

    @property
    def branch(self) -> str:
        """The branch that is loaded."""
        return self.tables.destination.iceberg.branch

    @property
    def java(self) -> Java:
        """The packages of the JVM."""
        return jvm(self.spark)

    @property
    def actions(self) -> Java:
        """Iceberg's actions, bound to the session: a new object each time."""
        actions = self.java.org.apache.iceberg.spark.actions.SparkActions
        return actions.get(self.spark._jsparkSession)

    @property
    def target(self) -> str:
        """`schema.table`, for messages."""
        return self.of.target

    @property
    def identifier(self) -> str:
        """The table in Spark SQL."""
        return spark_name(self.of.schema, self.of.table)

    def read(self) -> ReadTable:
        """Read the table's metadata anew."""
        return self._existing(self.tables.read(self.of.schema, self.of.table))

    def facts(self) -> TableFacts:
        """Read the table's metadata anew."""
        return facts_of(self.read())

    def why_files_stay(self, table: ReadTable) -> str | None:
        """Return why no file of the table may be removed, None when it may."""
        shared = catalog_traits(self.tables.destination.iceberg.catalog).keeps_history
        return keeps_files(table.properties, shared=shared)

    def _existing(self, found: T | None) -> T:
        if found is None:
            raise _dropped(self.target)
        return found

    def head(self) -> Java:
        """Return the newest snapshot of the branch, None when it has none."""
        return self.table.snapshot(self.branch)

    def now(self) -> datetime:
        """Return the present instant, UTC."""
        return datetime.now(UTC)


def _dropped(target: str) -> LoadFailed:
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


def metadata_table(work: Work, table: Java, kind: str) -> DataFrame:
    """Return the rows of a metadata table, such as `ALL_FILES`, of `table` as it is in memory."""
    iceberg = work.java.org.apache.iceberg
    of = iceberg.MetadataTableType.valueOf(kind)
    rows = iceberg.spark.SparkTableUtil.loadMetadataTable(work.spark._jsparkSession, table, of)
    return DataFrame(rows, work.spark)


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
_MAX_FILES = "max-files-to-rewrite"
_REWRITE_LESS = ", or rewrite less at once with `--where` or `--max-bytes`"


def compact(work: Work) -> StepResult:
    """Rewrite the files that are worth it, within `where` and `max_bytes`, or say how many."""
    return until_won(work, lambda: _compact(work), _REWRITE_LESS)


def _compact(work: Work) -> StepResult:
    if work.head() is None:
        return nothing("compact")
    if work.table.currentSnapshot() is None:
        why = f"Iceberg compacts `{work.branch}` only once the branch `{MAIN}` has a snapshot too"
        return not_possible("compact", why)
    expression = _filter(work)
    groups = _plan(work, expression, {})
    options: dict[str, str] = {}
    if work.spec.max_bytes is not None and groups:
        files = files_within(_sizes(groups), work.spec.max_bytes)
        if files < 2:
            return nothing("compact", "no two files together are within `--max-bytes`")
        options = {_MAX_FILES: str(files)}
        groups = _plan(work, expression, options)
    if not groups:
        return nothing("compact")
    if not work.spec.apply:
        return StepResult(
            "compact",
            "WOULD_DO",
            files=sum(group.inputFileNum() for group in groups),
            files_after=sum(group.expectedOutputFiles() for group in groups),
            bytes=sum(group.inputFilesSizeInBytes() for group in groups),
        )
    result = _rewrite(work, expression, options)
    if not result.rewrittenDataFilesCount() and not result.removedDeleteFilesCount():
        return nothing("compact")
    return StepResult(
        "compact",
        "DONE",
        files=result.rewrittenDataFilesCount(),
        files_after=result.addedDataFilesCount(),
        delete_files=result.removedDeleteFilesCount(),
        bytes=result.rewrittenBytesCount(),
    )


def files_within(sizes: Sequence[int], max_bytes: int) -> int:
    """Return how many of the files, whichever they are, are no more than `max_bytes` together.

    Iceberg's rewrite takes a number of files and chooses them itself, in no certain order.
    """
    total = 0
    for number, size in enumerate(sorted(sizes, reverse=True)):
        total += size
        if total > max_bytes:
            return number
    return len(sizes)


def _filter(work: Work) -> Java:
    """Return `where` as Iceberg's expression. Raises `InvalidInput` where it is none."""
    if work.spec.where is None:
        return work.java.org.apache.iceberg.expressions.Expressions.alwaysTrue()
    converter = work.java.org.apache.spark.sql.execution.datasources.SparkExpressionConverter
    session = work.spark._jsparkSession
    try:
        resolved = converter.collectResolvedSparkExpression(
            session, work.identifier, work.spec.where
        )
        return converter.convertToIcebergExpression(resolved)
    except PySparkException as error:
        raise InvalidInput(
            f"`--where {work.spec.where}` is not a filter for `{work.target}`: {_sentence(error)}",
            hint="write a Spark SQL condition on the columns of the target, with constant values",
        ) from error


def _sentence(error: PySparkException) -> str:
    """Return what Spark says, without its condition, its state and the query."""
    said = str(error).strip().partition("\n")[0].partition(" SQLSTATE:")[0]
    return said.partition("] ")[2] or said


def _plan(work: Work, expression: Java, options: dict[str, str]) -> list[Java]:
    actions = work.java.org.apache.iceberg.actions
    snapshot = work.head().snapshotId()
    planner = actions.BinPackRewriteFilePlanner(work.table, expression, snapshot, True)
    return _groups(planner, options)


def _groups(planner: Java, options: dict[str, str]) -> list[Java]:
    planner.init(options)
    groups = planner.plan().groups()
    try:
        return list(groups.iterator())
    finally:
        groups.close()


def _sizes(groups: Sequence[Java]) -> list[int]:
    return [task.file().fileSizeInBytes() for group in groups for task in group.fileScanTasks()]


def _rewrite(work: Work, expression: Java, options: dict[str, str]) -> Java:
    action = work.actions.rewriteDataFiles(work.table).toBranch(work.branch).filter(expression)
    return action.options({**options, "remove-dangling-deletes": "true"}).execute()


_GRANULARITY = "write.delete.granularity"
_DELETION_VECTORS = 3
"""The format version from which deletes are vectors, one for each data file."""


def rewrite_deletes(work: Work) -> StepResult:
    """Rewrite position deletes where that leaves fewer files, or say how many."""
    if work.branch != MAIN:
        return not_possible("deletes", "Iceberg rewrites deletes only of the branch `main`")
    return until_won(work, lambda: _rewrite_deletes(work))


def _rewrite_deletes(work: Work) -> StepResult:
    if work.head() is None:
        return nothing("deletes")
    groups = _deletes_plan(work)
    before = sum(group.inputFileNum() for group in groups)
    after = _files_after(work, groups)
    if after >= before:
        return nothing("deletes")
    if not work.spec.apply:
        return StepResult(
            "deletes",
            "WOULD_DO",
            files=before,
            files_after=after,
            bytes=sum(group.inputFilesSizeInBytes() for group in groups),
        )
    result = work.actions.rewritePositionDeletes(work.table).execute()
    return StepResult(
        "deletes",
        "DONE",
        files=result.rewrittenDeleteFilesCount(),
        files_after=result.addedDeleteFilesCount(),
        bytes=result.rewrittenBytesCount(),
    )


def _deletes_plan(work: Work) -> list[Java]:
    iceberg = work.java.org.apache.iceberg
    everything = iceberg.expressions.Expressions.alwaysTrue()
    planner = iceberg.actions.BinPackRewritePositionDeletePlanner(work.table, everything, True)
    return _groups(planner, {})


def _files_after(work: Work, groups: Sequence[Java]) -> int:
    """Return how many files a rewrite of these groups leaves.

    Spark writes deletes one file for each data file, unless the table says `partition`: then a
    rewrite of what has that shape already would change nothing, each time anew.
    https://iceberg.apache.org/docs/latest/configuration/ (`write.delete.granularity`)
    """
    version = int(work.java.org.apache.iceberg.TableUtil.formatVersion(work.table))
    by_partition = str(work.table.properties().get(_GRANULARITY)).lower() == "partition"
    if by_partition and version < _DELETION_VECTORS:
        return sum(int(group.expectedOutputFiles()) for group in groups)
    files = [task.file() for group in groups for task in group.fileScanTasks()]
    referenced = work.java.org.apache.iceberg.util.ContentFileUtil.referencedDataFileLocation
    data_files = [referenced(file) for file in files]
    if None not in data_files:
        return len(set(data_files))
    return _referenced(work, [str(file.location()) for file in files])


def _referenced(work: Work, files: Sequence[str]) -> int:
    """Return how many data files that are in the table such delete files name, by reading them."""
    deletes = metadata_table(work, work.table, "POSITION_DELETES")
    named = deletes.where(sql.col("delete_file_path").isin(list(files))).select("file_path")
    living: DataFrame = metadata_table(work, work.table, "DATA_FILES").select("file_path")
    return named.distinct().join(living, "file_path", "left_semi").count()


FEWEST = 5
"""Fewer manifests are not worth a snapshot of their own."""

_TARGET_SIZE = "commit.manifest.target-size-bytes"
_DEFAULT_TARGET_SIZE = 8 << 20


def rewrite_manifests(work: Work) -> StepResult:
    """Rewrite the manifests when at least half of them would go, or say how many."""
    if work.branch != MAIN:
        return not_possible("manifests", "Iceberg rewrites manifests only of the branch `main`")
    return until_won(work, lambda: _rewrite_manifests(work))


def _rewrite_manifests(work: Work) -> StepResult:
    snapshot = work.head()
    if snapshot is None:
        return nothing("manifests")
    spec, io = work.table.spec().specId(), work.table.io()
    kinds = [
        # The rewrite takes those of the present partition spec alone.
        [manifest.length() for manifest in manifests if manifest.partitionSpecId() == spec]
        for manifests in (snapshot.dataManifests(io), snapshot.deleteManifests(io))
    ]
    # A single one that is small enough stays as it is.
    kinds = [sizes for sizes in kinds if len(sizes) > 1]
    given = {_TARGET_SIZE: work.table.properties().get(_TARGET_SIZE) or _DEFAULT_TARGET_SIZE}
    with committable(work.target):
        target = int_property({"properties": given}, _TARGET_SIZE, _DEFAULT_TARGET_SIZE)
    before = sum(len(sizes) for sizes in kinds)
    after = sum(manifests_after(sizes, target) for sizes in kinds)
    if before < FEWEST or after * 2 > before:
        return nothing("manifests")
    size = sum(sum(sizes) for sizes in kinds)
    if not work.spec.apply:
        return StepResult("manifests", "WOULD_DO", files=before, files_after=after, bytes=size)
    result = work.actions.rewriteManifests(work.table).execute()
    rewritten = list(result.rewrittenManifests())
    return StepResult(
        "manifests",
        "DONE",
        files=len(rewritten),
        files_after=len(list(result.addedManifests())),
        bytes=sum(manifest.length() for manifest in rewritten),
    )


def manifests_after(sizes: Sequence[int], target: int) -> int:
    """Return how many manifests a rewrite leaves of those of one kind."""
    return -(-sum(sizes) // target)


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
            hint="no snapshot has them: the step `orphans` removes them; spark.log lists them",
            retryable=True,
        )
    return files, size


def _kept_note(kept: int) -> str:
    noun = "snapshot stays" if kept == 1 else "snapshots stay"
    return f"{kept} old {noun}: the latest or a running load of a pipeline needs them"


def drop_branches(work: Work) -> StepResult:
    """Drop the staging branches that are older than `abort_older_than`, or say which."""
    found = _left(work)
    if not found:
        return nothing("branches")
    if not work.spec.apply:
        return StepResult("branches", "WOULD_DO", items=shown(found))
    doing = f"dropping branches of `{work.target}`"
    with committable(work.target):
        dropped = until_committed(lambda: _drop(work), doing, CommitConflict)
    return StepResult("branches", "DONE", items=shown(dropped)) if dropped else nothing("branches")


def _left(work: Work) -> list[str]:
    age = timedelta(seconds=work.spec.abort_older_than)
    return list(left_branches(work.facts().refs, work.now(), age))


def _drop(work: Work) -> list[str]:
    # Found anew each time: a slow load may have published and removed its branch meanwhile.
    table = work.read()
    age = timedelta(seconds=work.spec.abort_older_than)
    found = left_branches(facts_of(table).refs, work.now(), age)
    return list(drop_refs(work.tables.store, table, found))


MEASURED = 1000
"""Orphans whose sizes are asked for: each takes a request."""


def remove_orphans(work: Work) -> StepResult:
    """Remove the files that belong to nobody, or name them.

    Older than `orphans_older_than`, and than every staging branch: the files of a load that runs
    for longer are in no snapshot yet (I10).
    """
    # In this order: a load that begins after `now` has younger files, the branch of one that has
    # begun is among the references or gone, and then the files are in the table as it is after.
    now = work.now()
    table = work.read()
    if why := work.why_files_stay(table):
        return not_possible("orphans", why)
    age = timedelta(seconds=work.spec.orphans_older_than)
    before = orphans_before(facts_of(table).refs, now, age)
    work.refresh()
    found = _find(work, int(before.timestamp() * 1000))
    if not found:
        return nothing("orphans")
    size = _bytes(work, found)
    if work.spec.apply:
        check_deleting(work)
        _delete(work, found)
    return StepResult(
        "orphans",
        "DONE" if work.spec.apply else "WOULD_DO",
        files=len(found),
        bytes=size,
        items=shown(found),
    )


def _find(work: Work, before_ms: int) -> list[str]:
    """Return what Iceberg's own action would delete: it hands each file to a list instead."""
    found = work.java.java.util.Collections.synchronizedList(work.java.java.util.ArrayList())
    action = work.actions.deleteOrphanFiles(work.table).usePrefixListing(True)
    action.olderThan(before_ms).deleteWith(_adder(work, found)).execute()
    return sorted(str(location) for location in found)


def _adder(work: Work, found: Java) -> Java:
    """Return a Java consumer that adds to a Java list: a Python function cannot be called there."""
    java = work.java.java
    invoke = java.lang.invoke
    loader = java.lang.Thread.currentThread().getContextClassLoader()
    kinds = {
        name: java.lang.Class.forName(f"java.{name}", True, loader)
        for name in ("lang.Object", "util.List", "util.function.Consumer")
    }
    signature = invoke.MethodType.methodType(java.lang.Boolean.TYPE, kinds["lang.Object"])
    add = invoke.MethodHandles.publicLookup().findVirtual(kinds["util.List"], "add", signature)
    bound = add.bindTo(found)
    return invoke.MethodHandleProxies.asInterfaceInstance(kinds["util.function.Consumer"], bound)


def _bytes(work: Work, found: Sequence[str]) -> int | None:
    if len(found) > MEASURED:
        return None
    io = work.table.io()
    return sum(each_of(lambda location: int(io.newInputFile(location).getLength()), found))


def _delete(work: Work, found: Sequence[str]) -> None:
    """Delete them. Raises `LoadFailed` when some could not be."""
    io = work.table.io()
    try:
        io.deleteFiles(list(found))
    except Py4JJavaError as error:
        if not caused_by(error, "BulkDeletionFailureException"):
            raise
        raise LoadFailed(
            f"some of {len(found)} orphans of `{work.target}` could not be deleted",
            hint="run it again; spark.log lists them",
            retryable=True,
        ) from error


STEPS: Mapping[Step, Stepper] = {
    "branches": drop_branches,
    "compact": compact,
    "deletes": rewrite_deletes,
    "manifests": rewrite_manifests,
    "expire": expire,
    "orphans": remove_orphans,
}

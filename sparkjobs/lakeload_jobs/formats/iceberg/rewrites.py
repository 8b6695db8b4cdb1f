"""The steps of the maintenance of an Iceberg table that Spark's actions do: they rewrite and list
files."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from lakeload_jobs.contract.errors import CommitConflict, InvalidInput, LoadFailed
from lakeload_jobs.contract.events import Step
from lakeload_jobs.contract.maintain import StepResult
from lakeload_jobs.formats.iceberg import maintenance
from lakeload_jobs.formats.iceberg.catalogs.reading import facts_of
from lakeload_jobs.formats.iceberg.commits.manifests import each_of
from lakeload_jobs.formats.iceberg.commits.metadata import int_property
from lakeload_jobs.formats.iceberg.load.catalog_settings import SparkCatalog
from lakeload_jobs.formats.iceberg.load.catalog_tables import committable
from lakeload_jobs.formats.iceberg.load.tables import Java, caused_by, jvm, load, spark_name
from lakeload_jobs.formats.iceberg.maintenance import (
    MAIN,
    Work,
    check_deleting,
    dropped,
    not_possible,
    nothing,
    shown,
)
from lakeload_jobs.formats.iceberg.rules.branches import orphans_before

logger = logging.getLogger(__name__)

T = TypeVar("T")

TRIES = 3
"""Each has Iceberg's own retries of the commit in it; what is left takes the work anew."""

_RACES = ("CommitFailedException", "ValidationException")


def until_won(work: SparkWork, act: Callable[[], T], or_else: str = "") -> T:
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
class SparkWork(Work):
    """One table with Spark, which opens the catalog where a step needs it."""

    spark: SparkSession
    catalog: SparkCatalog

    @cached_property
    def table(self) -> Java:
        """`org.apache.iceberg.Table`, for the steps that rewrite or list files."""
        self.catalog.open_in(self.spark, self.target, "Spark rewrites and lists its files")
        return self.existing(load(self.spark, self.of.schema, self.of.table))

    def refresh(self) -> None:
        """Have Java's table as it is now: other steps, and loads, may have changed it since."""
        try:
            self.table.refresh()
        except Py4JJavaError as error:
            if caused_by(error, "NoSuchTableException"):
                raise dropped(self.target) from error
            raise

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
    def identifier(self) -> str:
        """The table in Spark SQL."""
        return spark_name(self.of.schema, self.of.table)

    def head(self) -> Java:
        """Return the newest snapshot of the branch, None when it has none."""
        return self.table.snapshot(self.branch)


def metadata_table(work: SparkWork, table: Java, kind: str) -> DataFrame:
    """Return the rows of a metadata table, such as `ALL_FILES`, of `table` as it is in memory."""
    iceberg = work.java.org.apache.iceberg
    of = iceberg.MetadataTableType.valueOf(kind)
    rows = iceberg.spark.SparkTableUtil.loadMetadataTable(work.spark._jsparkSession, table, of)
    return DataFrame(rows, work.spark)


_MAX_FILES = "max-files-to-rewrite"
_REWRITE_LESS = ", or rewrite less at once with `--where` or `--max-bytes`"


def compact(work: SparkWork) -> StepResult:
    """Rewrite the files that are worth it, within `where` and `max_bytes`, or say how many."""
    return until_won(work, lambda: _compact(work), _REWRITE_LESS)


def _compact(work: SparkWork) -> StepResult:
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


def _filter(work: SparkWork) -> Java:
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


def _plan(work: SparkWork, expression: Java, options: dict[str, str]) -> list[Java]:
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


def _rewrite(work: SparkWork, expression: Java, options: dict[str, str]) -> Java:
    action = work.actions.rewriteDataFiles(work.table).toBranch(work.branch).filter(expression)
    return action.options({**options, "remove-dangling-deletes": "true"}).execute()


_GRANULARITY = "write.delete.granularity"
_DELETION_VECTORS = 3
"""The format version from which deletes are vectors, one for each data file."""


def rewrite_deletes(work: SparkWork) -> StepResult:
    """Rewrite position deletes where that leaves fewer files, or say how many."""
    if work.branch != MAIN:
        return not_possible("deletes", "Iceberg rewrites deletes only of the branch `main`")
    return until_won(work, lambda: _rewrite_deletes(work))


def _rewrite_deletes(work: SparkWork) -> StepResult:
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


def _deletes_plan(work: SparkWork) -> list[Java]:
    iceberg = work.java.org.apache.iceberg
    everything = iceberg.expressions.Expressions.alwaysTrue()
    planner = iceberg.actions.BinPackRewritePositionDeletePlanner(work.table, everything, True)
    return _groups(planner, {})


def _files_after(work: SparkWork, groups: Sequence[Java]) -> int:
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


def _referenced(work: SparkWork, files: Sequence[str]) -> int:
    """Return how many data files that are in the table such delete files name, by reading them."""
    deletes = metadata_table(work, work.table, "POSITION_DELETES")
    named = deletes.where(sql.col("delete_file_path").isin(list(files))).select("file_path")
    living: DataFrame = metadata_table(work, work.table, "DATA_FILES").select("file_path")
    return named.distinct().join(living, "file_path", "left_semi").count()


FEWEST = 5
"""Fewer manifests are not worth a snapshot of their own."""

_TARGET_SIZE = "commit.manifest.target-size-bytes"
_DEFAULT_TARGET_SIZE = 8 << 20


def rewrite_manifests(work: SparkWork) -> StepResult:
    """Rewrite the manifests when at least half of them would go, or say how many."""
    if work.branch != MAIN:
        return not_possible("manifests", "Iceberg rewrites manifests only of the branch `main`")
    return until_won(work, lambda: _rewrite_manifests(work))


def _rewrite_manifests(work: SparkWork) -> StepResult:
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


MEASURED = 1000
"""Orphans whose sizes are asked for: each takes a request."""


def remove_orphans(work: SparkWork) -> StepResult:
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


def _find(work: SparkWork, before_ms: int) -> list[str]:
    """Return what Iceberg's own action would delete: it hands each file to a list instead."""
    found = work.java.java.util.Collections.synchronizedList(work.java.java.util.ArrayList())
    action = work.actions.deleteOrphanFiles(work.table).usePrefixListing(True)
    action.olderThan(before_ms).deleteWith(_adder(work, found)).execute()
    return sorted(str(location) for location in found)


def _adder(work: SparkWork, found: Java) -> Java:
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


def _bytes(work: SparkWork, found: Sequence[str]) -> int | None:
    if len(found) > MEASURED:
        return None
    io = work.table.io()
    return sum(each_of(lambda location: int(io.newInputFile(location).getLength()), found))


def _delete(work: SparkWork, found: Sequence[str]) -> None:
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


STEPS: Mapping[Step, Callable[[SparkWork], StepResult]] = {
    **maintenance.STEPS,
    "compact": compact,
    "deletes": rewrite_deletes,
    "manifests": rewrite_manifests,
    "orphans": remove_orphans,
}

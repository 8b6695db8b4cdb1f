"""Compaction of data files, delete files and manifests."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.maintain import StepResult
from lakeload_jobs.formats.iceberg.load.tables import Java
from lakeload_jobs.formats.iceberg.maintain.work import (
    Work,
    metadata_table,
    not_possible,
    nothing,
    until_won,
)

MAIN = "main"
_MAX_FILES = "max-files-to-rewrite"


def compact(work: Work) -> StepResult:
    """Rewrite the files that are worth it, within `where` and `max_bytes`, or say how many."""
    work.table.refresh()
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
    result = until_won(work, lambda: _rewrite(work, expression, options))
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
            f"`--where {work.spec.where}` is no filter of `{work.target}`: {_sentence(error)}",
            hint="write Spark SQL over the columns of the target, with values that are constant",
        ) from error


def _sentence(error: PySparkException) -> str:
    """Return what Spark says, without its condition, its state and the query."""
    said = str(error).strip().partition("\n")[0].partition(" SQLSTATE:")[0]
    return said.partition("] ")[2] or said


def _plan(work: Work, expression: Java, options: dict[str, str]) -> list[Java]:
    actions = work.java.org.apache.iceberg.actions
    snapshot = work.head().snapshotId()
    planner = actions.BinPackRewriteFilePlanner(work.table, expression, snapshot, True)
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
        return not_possible("deletes", "Iceberg rewrites deletes of the branch `main` alone")
    work.table.refresh()
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
    result = until_won(work, lambda: work.actions.rewritePositionDeletes(work.table).execute())
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
    planner.init({})
    groups = planner.plan().groups()
    try:
        return list(groups.iterator())
    finally:
        groups.close()


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
        return not_possible("manifests", "Iceberg rewrites manifests of the branch `main` alone")
    work.table.refresh()
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
    target = int(work.table.properties().get(_TARGET_SIZE) or _DEFAULT_TARGET_SIZE)
    before = sum(len(sizes) for sizes in kinds)
    after = sum(manifests_after(sizes, target) for sizes in kinds)
    if before < FEWEST or after * 2 > before:
        return nothing("manifests")
    size = sum(sum(sizes) for sizes in kinds)
    if not work.spec.apply:
        return StepResult("manifests", "WOULD_DO", files=before, files_after=after, bytes=size)
    result = until_won(work, lambda: work.actions.rewriteManifests(work.table).execute())
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

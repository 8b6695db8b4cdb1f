"""Small data files, and those with many deleted rows, rewritten into files of the target size.

Which files, Iceberg's own planner says, in a dry run as in the rewrite: smaller than 75 % or larger
than 180 % of the target size, or 30 % of the rows deleted; in a partition at least five of them, or
enough for a whole file. https://iceberg.apache.org/docs/latest/spark-procedures/#rewrite_data_files
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import PySparkException

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.maintain import StepResult
from lakeload_jobs.formats.iceberg.load.java import Java
from lakeload_jobs.formats.iceberg.maintain.races import until_won
from lakeload_jobs.formats.iceberg.maintain.work import Work, not_possible, nothing

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

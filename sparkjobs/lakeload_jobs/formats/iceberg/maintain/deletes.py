"""Many small files of deleted positions, rewritten into few; those of no living row go away.

https://iceberg.apache.org/docs/latest/spark-procedures/#rewrite_position_delete_files
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from lakeload_jobs.contract.maintain import StepResult
from lakeload_jobs.formats.iceberg.load.java import Java
from lakeload_jobs.formats.iceberg.maintain.compact import MAIN
from lakeload_jobs.formats.iceberg.maintain.races import until_won
from lakeload_jobs.formats.iceberg.maintain.work import Work, metadata_table, not_possible, nothing

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
    groups = _plan(work)
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


def _plan(work: Work) -> list[Java]:
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

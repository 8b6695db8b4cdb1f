"""Many small files of deleted positions, rewritten into few; those of no living row go away.

https://iceberg.apache.org/docs/latest/spark-procedures/#rewrite_position_delete_files
"""

from __future__ import annotations

from lakeload_jobs.contract.maintain import StepResult
from lakeload_jobs.iceberg.java import Java
from lakeload_jobs.iceberg.maintain.compact import MAIN
from lakeload_jobs.iceberg.maintain.races import until_won
from lakeload_jobs.iceberg.maintain.work import Work, not_possible, nothing


def rewrite_deletes(work: Work) -> StepResult:
    """Rewrite position deletes, or say how many files."""
    if work.branch != MAIN:
        return not_possible("deletes", "Iceberg rewrites deletes of the branch `main` alone")
    if work.head() is None:
        return nothing("deletes")
    groups = _plan(work)
    if not groups:
        return nothing("deletes")
    if not work.spec.apply:
        return StepResult(
            "deletes",
            "WOULD_DO",
            files=sum(group.inputFileNum() for group in groups),
            files_after=sum(group.expectedOutputFiles() for group in groups),
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

"""A person's word on a job that recovery cannot finish: void it, or accept what there is of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lakeload.formats.parquet.recover import recover_logs
from lakeload.formats.parquet.tables import ParquetTables, open_tables
from lakeload.formats.reports import Decision, Resolution, ResolutionReport
from lakeload.formats.tables import TableRef, TablesRequest, about, each_table
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.maintain import DEAD_AFTER
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.formats.parquet.log.commit_log import CommitLog, Outcome
from lakeload_jobs.formats.parquet.log.records import LoadRecord
from lakeload_jobs.formats.parquet.log.recovery import TableRecovery, accept_job, void_job


def resolve(
    request: TablesRequest, decision: Decision, job_id: str, *, act: bool
) -> ResolutionReport:
    """Find the tables in which a job waits for this decision, and with `act` write it.

    Of the tables of a pipeline only its jobs count. Raises `InvalidInput` when no job waits, the
    error of a log that could not be read, `AwsError`.
    """
    lake = open_tables(request)
    seen = recover_logs(lake, abort_older_than=DEAD_AFTER, dry_run=True)
    found: list[Resolution] = []
    for table, recovery in zip(lake.tables, seen, strict=True):
        numbers = _numbers(recovery, decision, job_id, lake.pipeline)
        found += [_waiting(lake, table, recovery, number) for number in numbers]
    if not found:
        raise next(
            (one.error for one in seen if one.error), _no_such_job(lake, seen, decision, job_id)
        )
    return ResolutionReport(decision, decide(lake, found, decision) if act else tuple(found), act)


def decide(
    lake: ParquetTables, waiting: Sequence[Resolution], decision: Decision
) -> tuple[Resolution, ...]:
    """Write the decision into each log; an error stays with its table."""
    by_table = {one.table: one for one in waiting}
    return each_table(
        list(by_table),
        lambda table: replace(
            by_table[table], outcome=_decide(lake, table, by_table[table], decision)
        ),
        lambda table, error: replace(by_table[table], error=error),
    )


def _decide(lake: ParquetTables, table: TableRef, job: Resolution, decision: Decision) -> Outcome:
    notify = about(table, lake.notify)
    if decision == "void":
        return void_job(
            lake.objects,
            table.location,
            job.job_id,
            pipeline=job.pipeline,
            parallelism=lake.parallelism,
            notify=notify,
        )
    return accept_job(
        lake.objects,
        table.location,
        job.job_id,
        pipeline=job.pipeline,
        catalog=lake.catalog,
        parallelism=lake.parallelism,
        notify=notify,
    )


def _numbers(
    recovery: TableRecovery, decision: Decision, job_id: str, pipeline: str | None
) -> list[int]:
    """Return the records of this job: damaged ones; whole ones may be voided as well."""
    found = {job.number: job.pipeline for job in recovery.damaged if job.job_id == job_id}
    if decision == "void":
        waiting = (job for job in recovery.finished if job.action == "publish")
        found |= {job.number: job.pipeline for job in waiting if job.job_id == job_id}
    return sorted(n for n, owner in found.items() if pipeline is None or owner == pipeline)


def _waiting(
    lake: ParquetTables, table: TableRef, recovery: TableRecovery, number: int
) -> Resolution:
    record = CommitLog(lake.objects, table.location).record(number)
    assert isinstance(record, LoadRecord), "only jobs are damaged"  # noqa: S101
    keys = {key for job in recovery.damaged if job.number == number for key in job.lost_keys}
    return Resolution(
        table,
        number,
        record.pipeline,
        record.job_id,
        lost=tuple(file for file in record.files if file.key in keys),
        left=tuple(file for file in record.files if file.key not in keys),
    )


def _no_such_job(
    lake: ParquetTables, seen: Sequence[TableRecovery], decision: Decision, job_id: str
) -> InvalidInput:
    damaged = sorted({job.job_id for recovery in seen for job in recovery.damaged})
    many = len(lake.tables)
    where = f"`{lake.tables[0].target}`" if many == 1 else f"any of the {many} tables"
    hint = did_you_mean(job_id, damaged)
    if hint is None and damaged:
        hint = "damaged are " + ", ".join(f"`{job}`" for job in damaged[:10])
    return InvalidInput(
        f"`--{decision} {job_id}`: no job of this id is damaged in {where}",
        hint=hint or "no job is damaged: `lakeload recover` without this flag is enough",
    )

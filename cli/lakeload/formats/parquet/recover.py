"""Recovery of Parquet tables, and manual resolution of damaged jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from lakeload.config.document import quoted
from lakeload.formats.parquet.tables import ParquetTables, open_tables
from lakeload.formats.reports import (
    DamagedJob,
    Decision,
    RecoveredTable,
    RecoveryReport,
    RecoveryStatus,
    Resolution,
    ResolutionReport,
)
from lakeload.formats.tables import TableRef, TablesRequest, about, each_table, for_each
from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import ExitCode, InvalidInput, LakeloadError
from lakeload_jobs.contract.maintain import DEAD_AFTER
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.core.sizes import counted
from lakeload_jobs.formats.parquet.log.commit_log import CommitLog, Outcome
from lakeload_jobs.formats.parquet.log.records import LoadRecord
from lakeload_jobs.formats.parquet.log.recovery import (
    Damaged,
    ManualResolution,
    TableRecovery,
    recover_table,
)
from lakeload_jobs.formats.parquet.log.roll_forward import Settler

_DONE = {
    "publish": "published {files} of job {job}: {rows}",
    "clean": "removed the remains of discarded job {job}",
    "void": "discarded job {job}: all its uploads were gone",
    "catalog": "updated the catalog for job {job}",
}
_WOULD = {
    "publish": "would publish {files} of job {job}: {rows}",
    "clean": "would remove the remains of discarded job {job}",
    "void": "would discard job {job}: all its uploads are gone",
    "catalog": "would update the catalog for job {job}",
}


def recover(
    request: TablesRequest, *, abort_older_than: timedelta, dry_run: bool
) -> RecoveryReport:
    """Finish what killed runs have left in the tables."""
    lake = open_tables(request)
    found = recover_logs(lake, abort_older_than=abort_older_than, dry_run=dry_run)
    tables = zip(lake.tables, found, strict=True)
    return RecoveryReport(
        tuple(recovered(table.target, one, dry_run=dry_run) for table, one in tables), dry_run
    )


def recover_logs(
    lake: ParquetTables, *, abort_older_than: timedelta, dry_run: bool
) -> list[TableRecovery]:
    """Recover each table, several at a time; one that cannot be leaves the others alone."""

    def work(table: TableRef) -> TableRecovery:
        return recover_table(
            lake.objects,
            table.location,
            catalog=lake.catalog,
            parallelism=lake.parallelism,
            notify=about(table, lake.notify),
            abort_older_than=abort_older_than,
            dry_run=dry_run,
        )

    return for_each(lake.tables, work)


def recovered(target: str, found: TableRecovery, *, dry_run: bool = False) -> RecoveredTable:
    """Return what became of one table. Rights that only removing uploads takes are no failure."""
    denied = isinstance(found.uploads_error, AwsError) and found.uploads_error.denied
    uploads_error = None if denied else found.uploads_error
    errors = tuple(filter(None, (found.error, uploads_error, found.catalog_error)))
    return RecoveredTable(
        target,
        _status(found, uploads_error, dry_run=dry_run),
        _exit_code(found, uploads_error),
        tuple(_actions(found, dry_run=dry_run)) or ("nothing to do",),
        {
            "finished": found.finished,
            "damaged": found.damaged,
            "uploads": found.stale_uploads,
        },
        damaged=tuple(map(_damaged, found.damaged)),
        errors=errors,
        warnings=(found.uploads_error,) if denied and found.uploads_error else (),
    )


def _status(
    found: TableRecovery, uploads_error: LakeloadError | None, *, dry_run: bool
) -> RecoveryStatus:
    """Return the worst that applies."""
    if found.error is not None:
        return "FAILED"
    if found.damaged:
        return "DAMAGED"
    if uploads_error is not None:
        return "FAILED"
    if found.catalog_error is not None:
        return "CATALOG_OUT_OF_DATE"
    if replace(found, uploads_error=None).nothing_to_do:
        return "UP_TO_DATE"
    return "UNFINISHED" if dry_run else "RECOVERED"


def _exit_code(found: TableRecovery, uploads_error: LakeloadError | None) -> ExitCode:
    """Return TABLE_FAILED where a person is needed, REFUSED, FOLLOW_UP_FAILED, or OK."""
    codes = {error.exit_code for error in (found.error, uploads_error) if error}
    if found.damaged or codes - {ExitCode.REFUSED}:
        return ExitCode.TABLE_FAILED
    if codes:
        return ExitCode.REFUSED
    return ExitCode.FOLLOW_UP_FAILED if found.catalog_error else ExitCode.OK


def _actions(found: TableRecovery, *, dry_run: bool) -> Sequence[str]:
    words = _WOULD if dry_run else _DONE
    lines = [
        words[job.action].format(
            files=counted(job.files, "file"), rows=counted(job.rows, "row"), job=job.job_id
        )
        for job in found.finished
    ]
    lines += [f"job {job.job_id} is damaged" for job in found.damaged]
    if uploads := len(found.stale_uploads):
        verb = "would remove" if dry_run else "removed"
        lines.append(f"{verb} {counted(uploads, 'upload')} of abandoned attempts")
    if found.error is not None and not lines:
        lines.append("could not be recovered")
    return lines


def _damaged(job: Damaged) -> DamagedJob:
    return DamagedJob(
        job.job_id,
        f"job {job.job_id} of pipeline {job.pipeline} (record {job.number}) has lost "
        f"{job.lost_rows:,} of {counted(job.rows, 'row')}: its multipart uploads were "
        "aborted from outside",
        job.lost,
    )


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
    settler = Settler(
        lake.objects,
        table.location,
        catalog=lake.catalog,
        parallelism=lake.parallelism,
        notify=about(table, lake.notify),
    )
    resolution = ManualResolution(settler, job.job_id, job.pipeline)
    return resolution.void() if decision == "void" else resolution.accept()


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
    keys = {key for job in recovery.damaged if job.number == number for key in job.lost}
    return Resolution(
        table,
        number,
        record.pipeline,
        record.job_id,
        lost=tuple(file for file in record.uploads if file.key in keys),
        left=tuple(file for file in record.uploads if file.key not in keys),
    )


def _no_such_job(
    lake: ParquetTables, seen: Sequence[TableRecovery], decision: Decision, job_id: str
) -> InvalidInput:
    damaged = sorted({job.job_id for recovery in seen for job in recovery.damaged})
    many = len(lake.tables)
    where = f"`{lake.tables[0].target}`" if many == 1 else f"any of the {many} tables"
    hint = did_you_mean(job_id, damaged)
    if hint is None and damaged:
        hint = f"the damaged jobs are {quoted(damaged[:10])}"
    return InvalidInput(
        f"`--{decision} {job_id}`: no job of this id is damaged in {where}",
        hint=hint or "run `lakeload recover` without this option: no job is damaged",
    )

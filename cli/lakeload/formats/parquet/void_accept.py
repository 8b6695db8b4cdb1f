"""A person's word on a job that recovery cannot finish: void it, or accept what there is of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lakeload.formats.parquet.recover import Recovery, Tools, code_of_errors
from lakeload.formats.tables import UpkeepTable, about, for_each
from lakeload_jobs.contract.errors import ExitCode, InvalidInput, LakeloadError
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.formats.parquet.log.commit_log import CommitLog, Outcome
from lakeload_jobs.formats.parquet.log.records import LoadRecord, StagedFile
from lakeload_jobs.formats.parquet.log.recovery import accept_job, void_job

Decision = Literal["void", "accept"]


@dataclass(frozen=True)
class Case:
    """One job in one table: what of it is lost, what is left, and what became of it."""

    target: str
    table: UpkeepTable
    number: int
    pipeline: str
    job_id: str
    lost: tuple[StagedFile, ...]
    left: tuple[StagedFile, ...]
    outcome: Outcome | None = None
    error: LakeloadError | None = None

    @property
    def lost_rows(self) -> int:
        """Rows that nobody can bring back."""
        return sum(file.rows for file in self.lost)

    @property
    def left_rows(self) -> int:
        """Rows that are visible, or can still be made so."""
        return sum(file.rows for file in self.left)


def find_cases(
    tools: Tools,
    tables: Sequence[UpkeepTable],
    seen: Sequence[Recovery],
    decision: Decision,
    job_id: str,
    pipeline: str | None,
) -> tuple[Case, ...]:
    """Return the tables in which a job waits for this decision; `seen` is their dry run.

    With a `pipeline` only its jobs count. Raises `InvalidInput` when there is none, the error of
    a log that could not be read, `AwsError`.
    """
    cases: list[Case] = []
    for table, recovery in zip(tables, seen, strict=True):
        numbers = _numbers(recovery, decision, job_id, pipeline)
        cases += [_case(tools, table, recovery, number) for number in numbers]
    if cases:
        return tuple(cases)
    for recovery in seen:
        if recovery.found.error is not None:
            raise recovery.found.error
    raise _no_case(seen, decision, job_id)


def decide(tools: Tools, cases: Sequence[Case], decision: Decision) -> tuple[Case, ...]:
    """Write the decision into each log; an error stays with its table."""
    by_table = {case.target: case for case in cases}

    def work(table: UpkeepTable) -> Case:
        case = by_table[table.target]
        try:
            return replace(case, outcome=_decide(tools, case, decision))
        except LakeloadError as error:
            return replace(case, error=error)

    return tuple(for_each([case.table for case in by_table.values()], work))


def exit_code_of(cases: Sequence[Case]) -> ExitCode:
    """Return OK, or what the worst of the tables asks for."""
    return code_of_errors(case.error for case in cases)


def _decide(tools: Tools, case: Case, decision: Decision) -> Outcome:
    location = case.table.location
    if decision == "void":
        return void_job(
            tools.objects,
            location,
            case.job_id,
            pipeline=case.pipeline,
            parallelism=tools.parallelism,
            notify=about(case.table, tools.notify),
        )
    return accept_job(
        tools.objects,
        location,
        case.job_id,
        pipeline=case.pipeline,
        catalog=tools.catalog,
        parallelism=tools.parallelism,
        notify=about(case.table, tools.notify),
    )


def _numbers(
    recovery: Recovery, decision: Decision, job_id: str, pipeline: str | None
) -> list[int]:
    """Return the records of this job: damaged ones; whole ones may be voided as well."""
    found = {job.number: job.pipeline for job in recovery.found.damaged if job.job_id == job_id}
    if decision == "void":
        waiting = (job for job in recovery.found.finished if job.action == "publish")
        found |= {job.number: job.pipeline for job in waiting if job.job_id == job_id}
    return sorted(n for n, owner in found.items() if pipeline is None or owner == pipeline)


def _case(tools: Tools, table: UpkeepTable, recovery: Recovery, number: int) -> Case:
    record = CommitLog(tools.objects, table.location).record(number)
    assert isinstance(record, LoadRecord), "only jobs are damaged"  # noqa: S101
    keys = {key for job in recovery.found.damaged if job.number == number for key in job.lost_keys}
    return Case(
        target=table.target,
        table=table,
        number=number,
        pipeline=record.pipeline,
        job_id=record.job_id,
        lost=tuple(file for file in record.files if file.key in keys),
        left=tuple(file for file in record.files if file.key not in keys),
    )


def _no_case(seen: Sequence[Recovery], decision: Decision, job_id: str) -> InvalidInput:
    damaged = sorted({job.job_id for recovery in seen for job in recovery.found.damaged})
    where = f"`{seen[0].target}`" if len(seen) == 1 else f"any of the {len(seen)} tables"
    hint = did_you_mean(job_id, damaged)
    if hint is None and damaged:
        hint = "damaged are " + ", ".join(f"`{job}`" for job in damaged[:10])
    return InvalidInput(
        f"`--{decision} {job_id}`: no job of this id is damaged in {where}",
        hint=hint or "no job is damaged: `lakeload recover` without this flag is enough",
    )

"""Step 3 of DESIGN section 5: the record PUT that commits a job, and what may overtake it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import LakeloadError, Refused
from lakeload_jobs.formats.parquet.log.admission import Job, check_passed
from lakeload_jobs.formats.parquet.log.commit_log import CommitLog
from lakeload_jobs.formats.parquet.log.log_codec import LogDamaged, encode
from lakeload_jobs.formats.parquet.log.records import LoadRecord, Record
from lakeload_jobs.storage.responses import UnknownOutcome


@dataclass(frozen=True)
class Placed:
    """Where our record lies, or another attempt's record of the same job."""

    number: int
    by_other_attempt: LoadRecord | None = None


def place(
    log: CommitLog,
    record: LoadRecord,
    job: Job,
    *,
    number: int,
    first_run: bool,
    abandon: Callable[[], object],
) -> Placed:
    """PUT `record` under `number` or the next one that is free: the commit point.

    `abandon` aborts the job's uploads; it is called exactly where the record certainly is not and
    never will be in the log. `UnknownOutcome`: it may be there, so everything stays.
    """
    body = encode(record)
    uploads = frozenset(file.upload_id for file in record.files)
    while True:
        try:
            created = log.put_record(number, body)
        except Refused:
            # Every try was answered: earlier numbers by 412, this one by a refusal.
            abandon()
            raise
        if created:
            return Placed(number)
        winner = _winner(log, number)
        if isinstance(winner, LoadRecord):
            if winner.attempt_id == record.attempt_id:
                # An earlier try of ours arrived although its answer did not.
                return Placed(number)
            if (winner.pipeline, winner.job_id) == (job.pipeline, job.job_id):
                abandon()
                return Placed(number, winner)
        try:
            check_passed(
                job,
                winner,
                first_run=first_run,
                sets_state=record.state is not None,
                uploads=uploads,
            )
        except LakeloadError:
            abandon()
            raise
        number += 1


def _winner(log: CommitLog, number: int) -> Record:
    try:
        return log.record(number)
    except (AwsError, LogDamaged) as error:
        raise UnknownOutcome(
            f"record {number} is taken, perhaps by this very job, and cannot be read: {error}",
            hint=error.hint or "run again with the same --job-id",
            retryable=True,
        ) from error

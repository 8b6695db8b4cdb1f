"""What a writer is told when things go wrong after its commit point (DESIGN section 5)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.formats.parquet.log.records import LoadRecord
from lakeload_jobs.storage.responses import UnknownOutcome


class NotYetPublished(LoadFailed):
    """The job is committed and not yet wholly visible; loading it again would double it."""


@contextmanager
def committed(number: int, record: LoadRecord) -> Iterator[None]:
    """Say of an outage after the commit point what it means: raises `NotYetPublished`, or that the
    job is void and its files could not be deleted."""
    try:
        yield
    except (AwsError, UnknownOutcome) as error:
        # Only of a void job is anything deleted.
        if isinstance(error, AwsError) and error.operation == "DeleteObject":
            raise LoadFailed(
                f"job `{record.job_id}` was declared void while it was being published (record "
                f"{number}), and what is visible of it could not be removed: {error}",
                hint=f"{error.hint or 'run again'}; `lakeload recover` goes on with it",
            ) from error
        raise NotYetPublished(
            f"the job is committed (record {number}) and not all of it is visible yet: {error}",
            hint="run again with the same --job-id, which finishes it; no other id may load it",
            retryable=True,
        ) from error


def voided(number: int, record: LoadRecord) -> LoadFailed:
    """Return the error of a job that somebody declared void before its author published it."""
    return LoadFailed(
        f"job `{record.job_id}` was declared void while it was being published (record {number}): "
        "nothing of it is visible",
        hint="run again with another --job-id",
        retryable=True,
    )


def cut_short(number: int, record: LoadRecord) -> LoadFailed:
    """Return the error of a job that a person accepted as partial before its author was through."""
    return LoadFailed(
        f"job `{record.job_id}` was accepted as it was while it was being published (record "
        f"{number}): only a part of its {record.rows} rows is visible",
        hint="the record's end names the lost files; load their rows again under another --job-id",
    )

"""`lakeload recover`: step 0 on demand, and a person's word on a damaged record."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.admission import unfinished_reset
from lakeload_jobs.formats.parquet.log.catalog import Catalog
from lakeload_jobs.formats.parquet.log.catalog_sync import CatalogStep
from lakeload_jobs.formats.parquet.log.commit_log import CommitLog, LogView
from lakeload_jobs.formats.parquet.log.publish import Notify, Publisher, RecordDamaged
from lakeload_jobs.formats.parquet.log.records import LoadRecord, StagedFile
from lakeload_jobs.formats.parquet.log.roll_forward import Pending, Settled, Settler
from lakeload_jobs.formats.parquet.log.stale_uploads import STALE_AFTER, StaleUpload, StaleUploads
from lakeload_jobs.formats.parquet.log.void_accept import accept_job, void_job
from lakeload_jobs.storage.objects import Objects

__all__ = ["Damaged", "TableRecovery", "accept_job", "recover_table", "void_job"]


@dataclass(frozen=True)
class Damaged:
    """A committed job some of whose uploads are gone: `--void` or `--accept` decides."""

    number: int
    pipeline: str
    job_id: str
    rows: int
    lost_keys: tuple[str, ...]
    lost_rows: int


@dataclass(frozen=True)
class TableRecovery:
    """What became of one table; in a dry run, what would become of it."""

    location: TableLocation
    finished: tuple[Pending, ...] = ()
    damaged: tuple[Damaged, ...] = ()
    stale_uploads: tuple[StaleUpload, ...] = ()
    """Aborted, or in a dry run to be aborted."""
    error: LakeloadError | None = None
    """What stopped the recovery of this table, a damaged record apart."""
    catalog_error: LakeloadError | None = None
    """Why the catalog still lags behind: the data is in."""
    uploads_error: LakeloadError | None = None
    """Why open uploads could not be listed or removed; everything else was done."""

    @property
    def nothing_to_do(self) -> bool:
        """Whether the table was in order."""
        errors = (self.error, self.catalog_error, self.uploads_error)
        return not (self.finished or self.damaged or self.stale_uploads or any(errors))


def recover_table(
    objects: Objects,
    location: TableLocation,
    *,
    catalog: Catalog | None,
    parallelism: int,
    notify: Notify,
    abort_older_than: timedelta = STALE_AFTER,
    dry_run: bool = False,
) -> TableRecovery:
    """Settle every record of a table, bring the catalog into step, remove uploads of died attempts.

    A record that only a person can decide on does not keep the others from being settled. A dry
    run writes nothing. Never raises `LakeloadError`: it is in the result.
    """
    log = CommitLog(objects, location)
    publisher = Publisher(objects, log, parallelism=parallelism, notify=notify)
    step = CatalogStep(log, catalog)
    settler = Settler(log, publisher, objects.waits, notify, step)
    stale = StaleUploads(objects, log, parallelism=parallelism)
    try:
        view = log.read()
        if dry_run:
            found = _foresee(objects, log, settler, publisher, view)
        else:
            found = _settle(log, settler, view)
    except LakeloadError as error:
        return TableRecovery(location, error=error)
    try:
        uploads = stale.find(abort_older_than) if dry_run else stale.remove(abort_older_than)
    except LakeloadError as error:
        return replace(found, uploads_error=error)
    return replace(found, stale_uploads=uploads)


def _settle(log: CommitLog, settler: Settler, view: LogView) -> TableRecovery:
    damaged: list[Damaged] = []
    errors: list[LakeloadError] = []

    def stopped(number: int, record: LoadRecord, error: LakeloadError) -> None:
        if isinstance(error, RecordDamaged):
            damaged.append(_damaged(number, record, error.lost))
        else:
            errors.append(error)

    settled = settler.settle(view, stopped)
    errors += _resets(log, settled)
    # As for a job: the first record alone is not worth a checkpoint.
    if settled.covered.number > (view.checkpoint.number if view.checkpoint else 1):
        log.write_checkpoint(settled.covered.checkpoint())
    return TableRecovery(
        log.location,
        finished=settled.pending,
        damaged=tuple(damaged),
        error=errors[0] if errors else None,
        catalog_error=settled.catalog_error,
    )


def _foresee(
    objects: Objects, log: CommitLog, settler: Settler, publisher: Publisher, view: LogView
) -> TableRecovery:
    """Say what would be done. What is lost shows only where open uploads may be listed."""
    settled = settler.foresee(view)
    pending, first_error = settled.pending, next(_resets(log, settled), None)
    if not any(job.action == "publish" for job in pending):
        return TableRecovery(log.location, pending, error=first_error)
    try:
        uploads = {u.upload_id for u in objects.list_uploads(log.location.data_path)}
    except AwsError as error:
        return TableRecovery(log.location, pending, uploads_error=error)
    finished: list[Pending] = []
    damaged: list[Damaged] = []
    for job in pending:
        record = log.record(job.number)
        if job.action != "publish" or not isinstance(record, LoadRecord):
            finished.append(job)
            continue
        try:
            lost = publisher.lost(record, uploads)
        except LakeloadError as error:
            first_error = first_error or error
            continue
        if lost and len(lost) < len(record.files):
            damaged.append(_damaged(job.number, record, lost))
        else:
            finished.append(replace(job, action="void") if lost else job)
    return TableRecovery(log.location, tuple(finished), tuple(damaged), error=first_error)


def _resets(log: CommitLog, settled: Settled) -> Iterator[LakeloadError]:
    """Yield an error for each reset that has begun: only `reset` itself deletes a job's objects."""
    for pipeline, number in settled.history.resetting.items():
        yield unfinished_reset(pipeline, number, log.location.data_path)


def _damaged(number: int, record: LoadRecord, lost: Collection[StagedFile]) -> Damaged:
    return Damaged(
        number,
        record.pipeline,
        record.job_id,
        record.rows,
        tuple(file.key for file in lost),
        sum(file.rows for file in lost),
    )

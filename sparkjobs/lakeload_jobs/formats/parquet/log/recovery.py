"""Recovery: roll earlier jobs forward, or resolve a damaged record by hand."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import InvalidInput, LakeloadError
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.data_files.uploads import StagedFile
from lakeload_jobs.formats.parquet.log.admission import unfinished_reset
from lakeload_jobs.formats.parquet.log.commit_log import (
    CommitLog,
    History,
    LogEntry,
    LogView,
    Outcome,
)
from lakeload_jobs.formats.parquet.log.publish import Notify, RecordDamaged
from lakeload_jobs.formats.parquet.log.records import LoadRecord
from lakeload_jobs.formats.parquet.log.roll_forward import (
    ParquetCatalog,
    Pending,
    Settled,
    Settler,
)
from lakeload_jobs.formats.parquet.log.stale_uploads import (
    STALE_AFTER,
    StaleUploads,
    open_uploads,
)
from lakeload_jobs.storage.objects import Objects, OpenUpload

_NOTHING_TO_DECIDE = "no resolution is needed; `lakeload runs` shows how each job ended"


class ManualResolution:
    """An operator's decision on a committed job that is not done."""

    def __init__(self, settler: Settler, job_id: str, pipeline: str | None = None) -> None:
        self._settler = settler
        self._job_id = job_id
        self._pipeline = pipeline
        self._log, self._publisher = settler.log, settler.publisher

    def void(self) -> Outcome:
        """Declare the job void and remove what there is of it; its id is spent.

        A job whose uploads are whole may be voided too, as long as it is not done. Raises
        `InvalidInput` for a job that the log does not know, or that is done, and `AwsError` when
        the job's visible objects may not be deleted (`s3:DeleteObject`): it is void then, and the
        next run goes on with removing them.
        """
        found = self._find(self._log.read())
        if found is None:
            return "void"
        entry, record = found
        # A running author may be about to finish it; its end marker then decides.
        ending = self._settler.wait_for_author(entry.number, entry.modified)
        if ending == "open":
            outcome = self._publisher.void(entry.number, record, "discarded by an operator")
        else:
            outcome = self._publisher.after_end(entry.number, record, ending)
        # The rows became visible first: only a reset may remove them.
        if outcome != "void":
            raise self._ended(entry.number, outcome)
        return outcome

    def accept(self) -> Outcome:
        """Keep what there is of a damaged job and live without the rest: its end is "partial".

        Of a job whose uploads are all gone nothing can be kept: it becomes void. Raises
        `InvalidInput` for a job that the log does not know, that turns out to be whole (it is done
        then), or that has ended already.
        """
        view = self._log.read()
        found = self._find(view)
        if found is None:
            raise self._void_already()
        entry, record = found
        ending = self._settler.wait_for_author(entry.number, entry.modified)
        if ending == "void":
            self._publisher.after_end(entry.number, record, ending)
            raise self._void_already()
        if ending != "open":
            raise self._ended(entry.number, ending)
        # Publish what can be published before anything is declared lost.
        outcome = self._publisher.finish(entry.number, record, accept_loss=True)
        if outcome == "void":
            return outcome
        self._bring_into_step(view, entry.number, record)
        # Nothing was lost after all: say so instead of recording a loss.
        if outcome == "done":
            raise InvalidInput(
                f"job `{self._job_id}` is complete: all its {len(record.uploads)} files "
                "could be published, and it is done now",
                hint="there is nothing to accept",
            )
        return outcome

    def _find(self, view: LogView) -> tuple[LogEntry, LoadRecord] | None:
        """Return the job's record; None for a job that is void and clean."""
        # Records first, newest first; the checkpoint has only the outcome of older ones.
        for entry, record in reversed(list(self._log.records(view.entries))):
            if isinstance(record, LoadRecord) and record.job_id == self._job_id:
                self._check_pipeline(record.pipeline)
                return entry, record
        earlier = History(view.checkpoint).find_job(self._job_id)
        if earlier is None:
            raise InvalidInput(
                f"the log of `{self._log.location.data_path}` has no job `{self._job_id}`",
                hint="`lakeload runs` lists the jobs of each table",
            )
        self._check_pipeline(earlier.pipeline)
        # Under the checkpoint and not void: completely loaded.
        if not earlier.void:
            raise self._ended(earlier.number, "done")
        return None

    def _check_pipeline(self, pipeline: str) -> None:
        if self._pipeline is not None and pipeline != self._pipeline:
            raise InvalidInput(
                f"job `{self._job_id}` of `{self._log.location.data_path}` is a job of "
                f"pipeline `{pipeline}`, not of `{self._pipeline}`",
                hint="use the pipeline.yml of that pipeline",
            )

    def _ended(self, number: int, outcome: Outcome) -> InvalidInput:
        kept = (
            "all its rows are committed"
            if outcome == "done"
            else "its remaining rows were accepted"
        )
        return InvalidInput(
            f"job `{self._job_id}` is done in `{self._log.location.data_path}` (record {number}): "
            f"{kept}",
            hint=f"{_NOTHING_TO_DECIDE}; only `lakeload reset` removes committed rows",
        )

    def _void_already(self) -> InvalidInput:
        return InvalidInput(
            f"job `{self._job_id}` was discarded in `{self._log.location.data_path}`: "
            "nothing of it is visible, so nothing can be kept",
            hint=f"{_NOTHING_TO_DECIDE}; load its rows again under another --job-id",
        )

    def _bring_into_step(self, view: LogView, number: int, record: LoadRecord) -> None:
        """Step 6; what fails here is told, and done by the next run."""
        columns = self._settler.foresee(view).history.columns
        error = self._settler.catalog_step.bring_into_step({number: record}, columns).error
        if error is not None:
            self._settler.notify(f"the catalog is out of date: {error}")


@dataclass(frozen=True)
class Damaged:
    """A committed job some of whose uploads are gone: `--void` or `--accept` decides."""

    number: int
    pipeline: str
    job_id: str
    rows: int
    lost: tuple[str, ...]
    lost_rows: int


@dataclass(frozen=True)
class TableRecovery:
    """What became of one table; in a dry run, what would become of it."""

    location: TableLocation
    finished: tuple[Pending, ...] = ()
    damaged: tuple[Damaged, ...] = ()
    stale_uploads: tuple[OpenUpload, ...] = ()
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
    catalog: ParquetCatalog | None,
    parallelism: int,
    notify: Notify,
    abort_older_than: timedelta = STALE_AFTER,
    dry_run: bool = False,
) -> TableRecovery:
    """Settle every record of a table, bring the catalog into step, remove uploads of died attempts.

    A record that only a person can decide on does not keep the others from being settled. A dry
    run writes nothing. Never raises `LakeloadError`: it is in the result.
    """
    settler = Settler(objects, location, catalog=catalog, parallelism=parallelism, notify=notify)
    stale = StaleUploads(objects, settler.log, parallelism=parallelism)
    try:
        found = _foresee(objects, settler) if dry_run else _settle(settler)
    # One table that fails must not stop the others.
    except LakeloadError as error:
        return TableRecovery(location, error=error)
    try:
        uploads = stale.find(abort_older_than) if dry_run else stale.remove(abort_older_than)
    # Committed data does not depend on this step: published policies lack its permission.
    except LakeloadError as error:
        return replace(found, uploads_error=error)
    return replace(found, stale_uploads=uploads)


def _settle(settler: Settler) -> TableRecovery:
    """Roll forward every record that is not finished, and write a checkpoint where more than the
    first record is finished now. What is damaged or fails is in the result."""
    log = settler.log
    view = log.read()
    damaged: list[Damaged] = []
    errors: list[LakeloadError] = []

    def stopped(number: int, record: LoadRecord, error: LakeloadError) -> None:
        # Damage has its own report with the choice; other errors stop this table.
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


def _foresee(objects: Objects, settler: Settler) -> TableRecovery:
    """Say what would be done. What is lost shows only where open uploads may be listed."""
    log = settler.log
    settled = settler.foresee(log.read())
    pending, first_error = settled.pending, next(_resets(log, settled), None)
    if not any(job.action == "publish" for job in pending):
        return TableRecovery(log.location, pending, error=first_error)
    try:
        unpublished = [log.record(job.number) for job in pending if job.action == "publish"]
        uploads = open_uploads(
            objects,
            log.location,
            (f.key for one in unpublished if isinstance(one, LoadRecord) for f in one.uploads),
        )
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
            lost = settler.publisher.lost(record, uploads)
        except LakeloadError as error:
            first_error = first_error or error
            continue
        # A part is lost: an operator decides. All lost: a load would discard the job.
        if lost and len(lost) < len(record.uploads):
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
        record.all_rows,
        tuple(file.key for file in lost),
        sum(file.rows for file in lost),
    )

"""The log of one table as a load uses it: open, append the commit record, publish."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import InvalidInput, LakeloadError, LoadFailed, Refused
from lakeload_jobs.core.append_again import LastLoad, append_again_warnings
from lakeload_jobs.core.layout import TableLocation, log_root
from lakeload_jobs.formats.data_files.uploads import StagedFile
from lakeload_jobs.formats.parquet.log import admission
from lakeload_jobs.formats.parquet.log.admission import LoadAttempt, check_passed
from lakeload_jobs.formats.parquet.log.commit_log import (
    Checkpoint,
    CommitLog,
    History,
    LogView,
    Outcome,
    PipelineHistory,
)
from lakeload_jobs.formats.parquet.log.publish import Notify, tell_nobody
from lakeload_jobs.formats.parquet.log.records import (
    Column,
    FenceRecord,
    LoadRecord,
    LogDamaged,
    Record,
    encode,
)
from lakeload_jobs.formats.parquet.log.roll_forward import (
    Cataloged,
    ParquetCatalog,
    Pending,
    Settled,
    Settler,
    union,
)
from lakeload_jobs.formats.parquet.log.stale_uploads import (
    STALE_AFTER,
    StaleUploads,
    open_uploads,
)
from lakeload_jobs.formats.parquet.log.target_claims import Bindings
from lakeload_jobs.storage.objects import Objects, UnknownOutcome


@dataclass(frozen=True)
class InspectedLog:
    """What an inspection has read of a log: the load that follows reads only what came since.

    `checkpoint` is one that was not stored: the same rules say what it covers, and that it may lag
    behind. `first_run`: the path and the claim of a first run were found as they have to be.
    """

    checkpoint: Checkpoint
    first_run: bool
    last: LastLoad | None = None
    """The pipeline's newest load, where it was asked for."""


@dataclass(frozen=True)
class OpenedLog:
    """What a job must know before it loads. `already` set: report it and stop."""

    next_number: int
    already: LoadRecord | None
    first_run: bool
    column_map: dict[str, str]
    """Source name → target name as this pipeline recorded it; empty on the first run."""
    columns: tuple[Column, ...]
    """All columns the table has, of all pipelines."""
    state: Any = None
    settled: tuple[Pending, ...] = ()
    """Unfinished jobs of others that were brought to an end just now."""
    catalog_error: LakeloadError | None = None
    """Why the catalog still lags behind some job that is done; the next run tries again."""
    warnings: tuple[str, ...] = ()
    """What is allowed and may not be meant."""
    last: LastLoad | None = None
    """The pipeline's newest load, where this one appends its rows again."""
    inspected: InspectedLog | None = None
    """Of an inspection: what the load need not read again."""


@dataclass(frozen=True)
class Committed:
    """A job that is in: `already` when another attempt of the same job brought it in."""

    number: int
    record: LoadRecord
    already: bool
    outcome: Outcome
    catalog_error: LakeloadError | None = None
    """Step 6 failed: the data is in, the catalog does not show all of it yet."""


LONG = timedelta(hours=12)
"""Half of the shortest lifecycle rule there is: below it none can have acted."""


def check_uploads_are_open(objects: Objects, location: TableLocation, record: LoadRecord) -> None:
    """Raise `LoadFailed` when a long load lost uploads: committed, it would be damaged.

    Asks nothing of a shorter load, and nothing can be told where open uploads may not be listed.
    """
    if not record.uploads or objects.waits.now() - record.started_at < LONG:
        return
    try:
        left = open_uploads(objects, location, (file.key for file in record.uploads))
    except AwsError:
        return
    lost = [file for file in record.uploads if file.upload_id not in left]
    if lost:
        raise LoadFailed(
            f"{len(lost)} of {len(record.uploads)} uploads of job `{record.job_id}` were aborted "
            f"before it could commit, such as that of `{objects.url(lost[0].key)}`; nothing of it "
            "is visible",
            hint="make the bucket's lifecycle rule AbortIncompleteMultipartUpload longer than the "
            "longest load, then run again",
            retryable=True,
        )


def check_side_table(objects: Objects, location: TableLocation, record: LoadRecord) -> None:
    """Raise `InvalidInput` when the side table's name is that of a table with a log of its own."""
    if record.rejected is None or objects.is_empty(location.side_table.log_path):
        return
    side = location.side_table.table
    raise InvalidInput(
        f"the rejected records of `{location.table}` would go to `{side}`, which is another "
        "table; nothing was loaded",
        hint="give one of the two another `name` or `namespace`",
    )


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
                f"job `{record.job_id}` was discarded while it was being published (record "
                f"{number}), and its visible rows could not be removed: {error}",
                hint=f"{error.hint or 'run again'}; `lakeload recover` continues the removal",
            ) from error
        raise NotYetPublished(
            f"the job is committed (record {number}) but not all of its rows are visible "
            f"yet: {error}",
            hint=(
                "run again with the same `--job-id`, which finishes it (do not load it "
                "under another id)"
            ),
            retryable=True,
        ) from error


def voided(number: int, record: LoadRecord) -> LoadFailed:
    """Return the error of a job that somebody declared void before its author published it."""
    return LoadFailed(
        f"job `{record.job_id}` was discarded while it was being published (record {number}): "
        "nothing of it is visible",
        hint="run again with another `--job-id`",
        retryable=True,
    )


def cut_short(number: int, record: LoadRecord) -> LoadFailed:
    """Return the error of a job that a person accepted as partial before its author was through."""
    return LoadFailed(
        f"job `{record.job_id}` was accepted as it was while it was being published (record "
        f"{number}): only a part of its {record.all_rows} rows is visible",
        hint="load the lost rows again under another `--job-id`; the end marker lists their files",
    )


@dataclass(frozen=True)
class Placed:
    """Where our record lies, or another attempt's record of the same job."""

    number: int
    by_other_attempt: LoadRecord | None = None


def place(
    log: CommitLog,
    record: LoadRecord,
    job: LoadAttempt,
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
    uploads = frozenset(file.upload_id for file in record.uploads)
    while True:
        try:
            created = log.put_record(number, body)
        except Refused:
            # Every try was answered: earlier numbers by 412, this one by a refusal.
            abandon()
            raise
        # The job is committed from here on, even if this process is killed now.
        if created:
            return Placed(number)
        # 412: the number is taken. Whose record is it?
        winner = _winner(log, number)
        if isinstance(winner, LoadRecord):
            if winner.attempt_id == record.attempt_id:
                # An earlier try of ours arrived although its answer did not.
                return Placed(number)
            # Another attempt at the same job committed first: its rows count, these do not.
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
                retries=record.retried,
                deletes=record.deleted_rows is not None,
            )
        # The other record excludes this job, as a fence or a reset does.
        except LakeloadError:
            abandon()
            raise
        # An independent job: both may commit, this one under the next number.
        number += 1


def _winner(log: CommitLog, number: int) -> Record:
    try:
        return log.record(number)
    except (AwsError, LogDamaged) as error:
        # It may be this job's own record, so nothing may be aborted.
        raise UnknownOutcome(
            f"record {number} exists, perhaps from this job, and cannot be read: {error}",
            hint=error.hint or "run again with the same `--job-id`",
            retryable=True,
        ) from error


CLEANING_EVERY = 16
"""Records between two looks for uploads that died attempts left in the table."""
CHECKPOINT_EVERY = 8
"""Records that a load may find uncovered before it stores a checkpoint, also without a commit."""
MOST_JOBS = 1_000
"""Job ids of a checkpoint that is given to a load: more are read from the stored one, as a job's
spec holds those of all its tables."""


class TableLog:
    """The commit log of one table, for one job. Not shared between jobs or threads.

    `parallelism` is how many uploads are completed at once; `notify` gets sentences about what
    takes long; `catalog` serves the jobs that have a Glue table, whoever loaded them; `inspected`
    is what an inspection for this job has read. All methods may raise `AwsError`.
    """

    def __init__(
        self,
        objects: Objects,
        location: TableLocation,
        *,
        parallelism: int = 5,
        notify: Notify = tell_nobody,
        catalog: ParquetCatalog | None = None,
        inspected: InspectedLog | None = None,
    ) -> None:
        self._objects = objects
        self._location = location
        self._inspected = inspected
        self._settler = Settler(
            objects,
            location,
            catalog=catalog,
            parallelism=parallelism,
            notify=notify,
            known=inspected.checkpoint if inspected else None,
        )
        self._log = self._settler.log
        self._stale_uploads = StaleUploads(objects, self._log, parallelism=parallelism)
        self._bindings = Bindings(objects, location.prefix)
        self._notify = notify
        self._job: LoadAttempt | None = None
        self._opened: OpenedLog | None = None
        self._covered = History()

    def open(self, job: LoadAttempt) -> OpenedLog:
        """Step 0: settle what others left, then say whether and from where this job may load.

        Raises `InvalidInput` (the id or the target is another's, or the source has been loaded into
        another table, or the table under other `settings`), `LoadFailed` (first run into a
        table that is not empty), `RecordDamaged`, `UnexpectedObject`, `LogDamaged`, `NewerFormat`.
        """
        view, settled = self._settle()
        # Before admission, so that even a load that is rejected keeps the log short.
        self._keep_short(view, settled)
        checked = self._checked(view)
        opened = self._admit(job, view, settled, checked=checked)
        # On a later run the table's own log shows that this pipeline loads into it.
        if opened.first_run and not checked:
            self._bindings.check(job.pipeline, job.source, self._location)
        self._job, self._opened, self._covered = job, opened, settled.covered
        return opened

    def inspect(self, job: LoadAttempt) -> OpenedLog:
        """The same without writing or waiting: `settled` is then what `open` would settle.

        Unfinished jobs are taken for finished. Raises what `open` would raise.
        """
        view = self._log.read()
        settled = self._settler.foresee(view)
        opened = self._admit(job, view, settled, checked=False)
        if opened.first_run:
            self._bindings.check(job.pipeline, job.source, self._location)
        return replace(opened, inspected=_inspected(view, settled, opened))

    def commit(self, record: LoadRecord) -> Committed:
        """Steps 3 to 6: commit the record, make its files visible, mark its end, catalogue it.

        Returns only when the job is in; a catalog that fails is told in the result. Where the job
        certainly is not in, its uploads have been aborted. `UnknownOutcome` and `NotYetPublished`
        leave everything for the next run; so must whoever interrupts this call.
        """
        if self._job is None or self._opened is None:
            raise RuntimeError("commit needs open first")
        try:
            # Last check before the commit point: after it, a lost upload is an operator's problem.
            check_uploads_are_open(self._objects, self._location, record)
            check_side_table(self._objects, self._location, record)
            if self._opened.first_run:
                self._bindings.check_and_claim(self._job.pipeline, self._job.source, self._location)
        # Nothing was committed yet, so the uploads can go.
        except LakeloadError:
            self.abandon(record.uploads)
            raise
        placed = place(
            self._log,
            record,
            self._job,
            number=self._opened.next_number,
            first_run=self._opened.first_run,
            abandon=lambda: self.abandon(record.uploads),
        )
        # The same job is in from another attempt: report its outcome, not an error.
        if placed.by_other_attempt is not None:
            return self._report_other_attempt(self._job, placed.number, placed.by_other_attempt)
        with committed(placed.number, record):
            outcome = self._settler.publisher.finish(placed.number, record)
        # Recovery in another process has discarded or accepted it meanwhile.
        if outcome == "void":
            raise voided(placed.number, record)
        if outcome == "partial":
            raise cut_short(placed.number, record)
        # The rows are visible: from here on nothing may raise.
        cataloged = self._bring_into_step(placed.number, record)
        # A checkpoint over a record without its catalog update would hide that update.
        if record.glue is None or placed.number in cataloged.numbers:
            self._remember(placed.number, record, outcome)
        return Committed(placed.number, record, False, outcome, cataloged.error)

    def abandon(self, files: Iterable[StagedFile]) -> int:
        """Abort uploads of an attempt that never called `commit`; return how many stay open.

        Best effort: what stays open is invisible, and cleaned up later.
        """
        left = 0
        for file in files:
            try:
                self._objects.abort_upload(file.key, file.upload_id)
            # An open upload is invisible; `recover` or a lifecycle rule removes it.
            except AwsError:
                left += 1
        return left

    def _settle(self) -> tuple[LogView, Settled]:
        view = self._log.read()
        settled = self._settler.settle(view)
        # Once in a while, so that an ordinary run pays no request for it.
        if view.next_number % CLEANING_EVERY == 0 and self._remove_stale_uploads():
            view = self._log.read()
            settled = self._settler.settle(view)
        return view, settled

    def _remove_stale_uploads(self) -> bool:
        """Remove what died attempts left; a failure stops no load, its cause is told."""
        try:
            return bool(self._stale_uploads.remove(STALE_AFTER))
        except LakeloadError as error:
            self._notify(f"the uploads of abandoned attempts were not removed: {error}")
            return False

    def _checked(self, view: LogView) -> bool:
        """Whether the inspection has made the checks of a first run, and no record came since.

        Whoever comes after this moment is found at the commit, as during any load: another load
        has the record's number, and the claim is made before it.
        """
        given = self._inspected
        if given is None or not given.first_run:
            return False
        return view.next_number == given.checkpoint.number + 1

    def _admit(
        self, job: LoadAttempt, view: LogView, settled: Settled, *, checked: bool
    ) -> OpenedLog:
        history = settled.history
        target = self._location.data_path
        earlier = admission.earlier_load(history, job, target)
        already = None if earlier is None else self._load_record(earlier.number)
        # The same id with other settings would be another load under a used id.
        if already is not None:
            admission.check_same_load(job, already)
        admission.check_owner(history, job, target)
        admission.check_not_resetting(history, job, target)
        admission.check_table(history, job, target)
        first_run = admission.is_first_run(history, job)
        # Rows of unknown origin in the table could be this pipeline's own, under another name.
        if first_run and job.table_handling == "FAIL":
            admission.check_first_run(history, job, target)
            if not checked:
                self._check_empty(job, view)
        known = history.pipelines.get(job.pipeline)
        last = None if already else self._last_load(job, known)
        repeats = append_again_warnings(job.append_again, last, job.source)
        return OpenedLog(
            next_number=view.next_number,
            already=already,
            first_run=first_run,
            column_map=dict(known.column_map) if known else {},
            columns=history.columns,
            state=known.state if known else None,
            settled=settled.pending,
            catalog_error=settled.catalog_error,
            warnings=admission.shared_source(history, job, target) if first_run else repeats,
            last=last,
        )

    def _last_load(self, job: LoadAttempt, known: PipelineHistory | None) -> LastLoad | None:
        """Return the pipeline's newest load, where this one would append its rows again: a GET,
        unless the inspection or this read of the log has had its record."""
        if job.append_again is None or known is None or known.latest is None:
            return None
        given = self._inspected
        if given is not None and given.last is not None:
            inspected = given.checkpoint.pipelines.get(job.pipeline)
            if inspected is not None and inspected.latest == known.latest:
                return given.last
        record = self._load_record(known.latest)
        return LastLoad(record.job_id, record.created_at, record.rows)

    def _keep_short(self, view: LogView, settled: Settled) -> None:
        """Write the checkpoint when runs that never committed left many records uncovered."""
        if _uncovered(view, settled) >= CHECKPOINT_EVERY:
            self._log.write_checkpoint(settled.covered.checkpoint())

    def _check_empty(self, job: LoadAttempt, view: LogView) -> None:
        if self._objects.is_empty(self._location.data_path):
            return
        # Files may be those of a job that came in after the log was read; it knows its own.
        if self._log.read().next_number == view.next_number:
            path = self._location.data_path
            if not self._objects.is_empty(log_root(path.rstrip("/"))):
                raise admission.holds_destination(job, self._objects.url(path))
            raise admission.not_empty(job, self._objects.url(path))

    def _load_record(self, number: int) -> LoadRecord:
        record = self._log.record(number)
        if isinstance(record, FenceRecord):
            raise ValueError(f"record {number} is a fence, not a job")
        return record

    def _report_other_attempt(self, job: LoadAttempt, number: int, record: LoadRecord) -> Committed:
        """Report what became of our job in the hands of the attempt that was faster."""
        with committed(number, record):
            outcome = self._settler.settle_record(number, record, self._objects.waits.now())
        if outcome == "void":
            raise voided(number, record)
        admission.check_same_load(job, record)
        cataloged = self._bring_into_step(number, record)
        return Committed(number, record, True, outcome, cataloged.error)

    def _bring_into_step(self, number: int, record: LoadRecord) -> Cataloged:
        """Step 6. What other records need beyond the columns known at `open`, they do themselves:
        the catalog unites, it never takes away."""
        if record.glue is None or self._opened is None:
            return Cataloged()
        columns = union(self._opened.columns, record.columns)
        return self._settler.catalog_step.bring_into_step({number: record}, columns)

    def _remember(self, number: int, record: LoadRecord, outcome: Outcome) -> None:
        """Move the checkpoint on when nothing undecided lies between it and our record.

        The first record needs none: it costs no more to read, and a first load asks enough.
        """
        covered = self._covered
        if covered.number == number - 1 and number > 1:
            covered.add(number, record, outcome)
            self._log.write_checkpoint(covered.checkpoint())


def _uncovered(view: LogView, settled: Settled) -> int:
    """Return how many records a checkpoint could cover and the present one does not."""
    return settled.covered.number - (view.checkpoint.number if view.checkpoint else 0)


def _inspected(view: LogView, settled: Settled, opened: OpenedLog) -> InspectedLog | None:
    """Return what a load need not read again; None where it has to read the log as it is stored:
    there is something to finish or a checkpoint to store, or there are too many jobs."""
    covered = settled.covered
    jobs = sum(len(one.done) + len(one.void) for one in covered.pipelines.values())
    if settled.pending or _uncovered(view, settled) >= CHECKPOINT_EVERY or jobs > MOST_JOBS:
        return None
    return InspectedLog(covered.checkpoint(), opened.first_run, opened.last)

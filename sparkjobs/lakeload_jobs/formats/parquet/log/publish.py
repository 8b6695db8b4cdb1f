"""From committed to visible, by anyone: steps 4, 4v and 5 of docs/protocol-parquet.md.

Everything works from the record alone, so whoever finds an unfinished job goes on with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.formats.data_files.uploads import ATTEMPT_METADATA, StagedFile
from lakeload_jobs.formats.parquet.log.commit_log import CommitLog, Outcome, run_all
from lakeload_jobs.formats.parquet.log.records import (
    EndMarker,
    LoadRecord,
    tool_version,
)
from lakeload_jobs.storage.objects import Completion, ObjectHead, Objects, UnknownOutcome

Notify = Callable[[str], None]


class RecordDamaged(LoadFailed):
    """Some files of a committed job are visible and the uploads of others are gone: `lost`."""

    def __init__(self, number: int, record: LoadRecord, lost: Sequence[StagedFile]) -> None:
        rows = sum(file.rows for file in lost)
        kept = record.all_rows - rows
        shown = ", ".join(f"`{file.key}` ({file.rows} rows)" for file in lost[:20])
        more = f" and {len(lost) - 20} more" if len(lost) > 20 else ""
        job = record.job_id
        super().__init__(
            f"record {number}, job `{job}` of pipeline `{record.pipeline}`, is only "
            f"partially published: {rows} of {record.all_rows} rows are lost, because the "
            f"uploads of {shown}{more} were aborted",
            hint=f"this table accepts no new job until you choose: `lakeload recover FILE --void "
            f"{job} --yes` deletes its {kept} visible rows, so that you can load it again "
            f"under another id; `lakeload recover FILE --accept {job}` keeps them, without "
            f"the {rows} lost rows",
        )
        self.number = number
        self.record = record
        self.lost = tuple(lost)


class UnexpectedObject(LoadFailed):
    """Somebody else's object lies at a key of ours; it is never overwritten or deleted."""


class Publisher:
    """Finishes the records of one table. `notify` is told what takes long."""

    def __init__(
        self, objects: Objects, log: CommitLog, *, parallelism: int, notify: Notify
    ) -> None:
        self._objects = objects
        self._log = log
        self._parallelism = parallelism
        self._notify = notify
        self._waits = objects.waits

    def finish(self, number: int, record: LoadRecord, *, accept_loss: bool = False) -> Outcome:
        """Publish a committed record and mark its end; return how it ended.

        `accept_loss`: an operator accepts that the lost files are missing. Raises `RecordDamaged`
        or `UnexpectedObject` where an operator has to decide, `UnknownOutcome` or `AwsError` when
        S3 fails: nothing is lost then, and a later call continues.
        """
        # Idempotent: completing an upload again finds its object, so several processes may do it.
        visible = run_all(partial(self._complete, record), record.uploads, self._parallelism)
        missing = [file for file, there in zip(record.uploads, visible, strict=True) if not there]
        if missing:
            # S3 may still be working on a completion of a process that was killed.
            missing = self._look_again(number, record, missing)
        if not missing:
            return self._end_done(number, record)
        # Another process may have decided while this one waited. Its decision holds.
        if (ending := self._log.ending(number)) != "open":
            return self.after_end(number, record, ending)
        keys = tuple(file.key for file in missing)
        # No row is visible, so discarding loses nothing and needs no operator.
        if len(missing) == len(record.uploads):
            reason = "all its uploads were aborted"
            return self.void(number, record, reason, keys, looked_late=True)
        # Some rows are visible and some are lost: only an operator can choose.
        if accept_loss:
            return self._end_partial(number, record, keys)
        raise RecordDamaged(number, record, missing)

    def void(
        self,
        number: int,
        record: LoadRecord,
        reason: str,
        lost: tuple[str, ...] = (),
        *,
        looked_late: bool = False,
    ) -> Outcome:
        """Declare the job never loaded, then remove what there is of it.

        The decision comes before the first deletion: two processes that disagree are told so by
        the one key, and a wrong look can never delete files of a job that is done.
        """
        marker = EndMarker(tool_version(), self._waits.now(), "void", reason, lost)
        # The end marker is a conditional write: exactly one decision wins, and deletes follow it.
        if not self._log.end_otherwise(number, marker):
            return self.after_end(number, record, self._written_end(number))
        self.clean(number, record, looked_late=looked_late)
        return "void"

    def clean(self, number: int, record: LoadRecord, *, looked_late: bool = False) -> bool:
        """Remove what a void record has in the bucket: uploads first, then objects, then say so.

        In this order an upload cannot be completed behind the look for objects. A completion that
        S3 was already working on can: until none can be running any more (`looked_late`, or the
        void is old) the record stays "not clean", and whoever comes next looks again.
        Returns whether nothing is left to do.
        """
        run_all(
            lambda file: self._objects.abort_upload(file.key, file.upload_id),
            record.uploads,
            self._parallelism,
        )
        # Only after the aborts: an upload that is still open could be completed behind this.
        removed = run_all(partial(self._remove, record), record.uploads, self._parallelism)
        # A missing object may still appear from a completion that S3 has accepted: not clean yet.
        if None in removed and not looked_late and not self._is_old(number):
            return False
        self._log.mark_clean(number, tuple(key for key in removed if key))
        return True

    def lost(self, record: LoadRecord, uploads: Collection[str]) -> list[StagedFile]:
        """Return the files that are neither visible nor among the open `uploads`. Only looks."""
        return [
            file
            for file in record.uploads
            if file.upload_id not in uploads and not self._is_there(record, file)
        ]

    def after_end(self, number: int, record: LoadRecord, ending: Outcome) -> Outcome:
        """Do what an ending that is already written still asks for."""
        if ending == "void":
            self.clean(number, record)
        return ending

    def _end_done(self, number: int, record: LoadRecord) -> Outcome:
        if self._log.end_done(number):
            return "done"
        return self.after_end(number, record, self._written_end(number))

    def _end_partial(self, number: int, record: LoadRecord, lost: tuple[str, ...]) -> Outcome:
        reason = "an operator accepted the loss of the files"
        marker = EndMarker(tool_version(), self._waits.now(), "partial", reason, lost)
        if self._log.end_otherwise(number, marker):
            return "partial"
        return self.after_end(number, record, self._written_end(number))

    def _is_old(self, number: int) -> bool:
        """Whether a job ended so long ago that S3 works on nothing of it any more."""
        ended = self._log.ended_at(number)
        # Twice, because S3 accepts requests of a clock that is up to 15 minutes off.
        patience = 2 * self._waits.late_completion
        return ended is not None and (self._waits.now() - ended).total_seconds() >= patience

    def _written_end(self, number: int) -> Outcome:
        """Return the ending that refused ours. Nothing is removed where it cannot be read."""
        ending = self._log.ending(number)
        if ending == "open":
            raise UnknownOutcome(
                f"the end marker of record {number} was deleted while lakeload was running",
                hint=(
                    "run again with the same `--job-id`, and make sure that no other "
                    "program changes `_lakeload/`"
                ),
                retryable=True,
            )
        return ending

    def _complete(self, record: LoadRecord, file: StagedFile) -> bool:
        """Complete one upload; return whether its object is there and of this attempt."""
        for _ in self._waits.attempts(self._waits.answer):
            completion = self._objects.complete_upload(file.key, file.upload_id, file.parts)
            if completion is Completion.COMPLETED:
                return True
            # The look must come after this answer: one from before would void a live job.
            if self._is_there(record, file):
                return True
            # Neither upload nor object: aborted from outside, or not visible yet. The caller waits.
            if completion is Completion.NO_SUCH_UPLOAD:
                return False
        raise UnknownOutcome(
            f"completing `{self._objects.url(file.key)}`: S3 reports that the object "
            "exists, but it does not",
            hint="run again with the same `--job-id`",
            retryable=True,
        )

    def _is_there(self, record: LoadRecord, file: StagedFile) -> bool:
        head = look(self._objects, file.key)
        if head is None:
            return False
        if head.metadata.get(ATTEMPT_METADATA) == record.attempt_id:
            return True
        raise UnexpectedObject(
            f"`{self._objects.url(file.key)}` was not written by this job; job "
            f"`{record.job_id}` of pipeline `{record.pipeline}` has {file.rows} rows to publish "
            "under that key",
            hint=(
                "move that object and run again: lakeload never overwrites or deletes "
                "objects of other writers"
            ),
        )

    def _look_again(
        self, number: int, record: LoadRecord, missing: Sequence[StagedFile]
    ) -> list[StagedFile]:
        """Return what is still missing once no completion can be running any more."""
        age = (self._waits.now() - record.created_at).total_seconds()
        stops_anyway = len(missing) < len(record.uploads) and age > 4 * self._waits.late_completion
        # Where nothing will be removed, an old record need not make every sync wait.
        if not stops_anyway:
            minutes = self._waits.late_completion / 60
            self._notify(
                f"record {number} of job `{record.job_id}`: {len(missing)} of "
                f"{len(record.uploads)} uploads are gone; checking again in {minutes:.0f} min, "
                "when S3 must have finished any request"
            )
            self._waits.sleep(self._waits.late_completion)
        return [file for file in missing if not self._is_there(record, file)]

    def _remove(self, record: LoadRecord, file: StagedFile) -> str | None:
        """Delete this attempt's object and return its key, or '' where somebody else's lies,
        which stays. None: nothing is there."""
        while (head := look(self._objects, file.key)) is not None:
            # Never delete what this attempt did not write.
            if head.metadata.get(ATTEMPT_METADATA) != record.attempt_id:
                return ""
            # With the ETag compared: an object that was replaced since stays, and is read again.
            if self._objects.delete(file.key, head.etag):
                return file.key
        return None


def look(objects: Objects, key: str) -> ObjectHead | None:
    """Return what lies at a key now, None when nothing does. LIST first: HEAD alone cannot tell."""
    return None if objects.find(key) is None else objects.head(key)


def tell_nobody(message: str) -> None:
    """A `Notify` for those who only want the outcome."""

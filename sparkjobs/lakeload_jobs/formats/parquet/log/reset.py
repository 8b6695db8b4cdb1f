"""Reset: one pipeline's rows leave a table, for good, whoever is loading meanwhile.

The decision is a record, as every decision is: a fence that resets the pipeline. It locks out the
pipeline's running attempts, since they have to pass it, and frees no number (P12). What the
pipeline's records name is deleted after it, and `.clean` beside it ends the reset. A crash in
between is finished by running it again: the fence is found.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from lakeload_jobs.aws import AwsError
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.catalog_sync import CatalogStep
from lakeload_jobs.formats.parquet.log.commit_log import CommitLog, run_all
from lakeload_jobs.formats.parquet.log.log_codec import encode, tool_version
from lakeload_jobs.formats.parquet.log.publish import Notify, Publisher, RecordDamaged
from lakeload_jobs.formats.parquet.log.records import FenceRecord, GlueTarget
from lakeload_jobs.formats.parquet.log.reset_plan import (
    WHOLE_LOG,
    OwnObject,
    OwnRecord,
    ResetPlan,
    TableCatalog,
    own_records,
    plan_reset,
)
from lakeload_jobs.formats.parquet.log.roll_forward import Settler
from lakeload_jobs.formats.parquet.log.target_claims import Bindings
from lakeload_jobs.storage.objects import Objects


@dataclass(frozen=True)
class Removed:
    """What a reset has removed. `number` is that of its record, None when there was nothing."""

    number: int | None
    objects: int = 0
    rows: int = 0
    bytes: int = 0
    glue: tuple[GlueTarget, ...] = ()
    left: tuple[str, ...] = ()
    """Keys that are somebody else's by now."""


class Resetter:
    """Resets one pipeline in one table. All methods may raise `AwsError` and `LogDamaged`."""

    def __init__(
        self,
        objects: Objects,
        location: TableLocation,
        pipeline: str,
        *,
        catalog: TableCatalog | None,
        parallelism: int,
        notify: Notify,
    ) -> None:
        self._objects = objects
        self._pipeline = pipeline
        self._catalog = catalog
        self._parallelism = parallelism
        self._log = CommitLog(objects, location)
        self._publisher = Publisher(objects, self._log, parallelism=parallelism, notify=notify)
        step = CatalogStep(self._log, None)
        self._settler = Settler(self._log, self._publisher, objects.waits, notify, step)

    def plan(self) -> ResetPlan:
        """Say what `run` would remove. Reads only."""
        return plan_reset(self._objects, self._log, self._pipeline, self._catalog)

    def run(self, reason: str) -> Removed:
        """Remove it. `reason` stands in the log, for people.

        Raises `LoadFailed` where a job of the pipeline cannot be brought to an end.
        """
        number = self._begin(reason)
        if number is None:
            return Removed(None)
        plan = self.plan()
        deleted = run_all(self._delete, plan.objects, self._parallelism)
        gone = [item for item, done in zip(plan.objects, deleted, strict=True) if done]
        dropped = tuple(target for target in plan.glue if self._drop(target))
        self._log.mark_clean(number, tuple(item.key for item in gone))
        self._release({own.record.source for own in plan.records})
        return Removed(
            number,
            objects=len(gone),
            rows=sum(item.rows for item in gone),
            bytes=sum(item.bytes for item in gone),
            glue=dropped,
            left=tuple(i.key for i, done in zip(plan.objects, deleted, strict=True) if not done),
        )

    def seal(self, reason: str) -> None:
        """Make a finished reset of this pipeline the last record, as removing the log needs it."""
        while True:
            view = self._log.read(before=WHOLE_LOG)
            last = self._log.record(view.next_number - 1)
            if isinstance(last, FenceRecord) and last.resets == self._pipeline:
                return
            if self._log.put_record(view.next_number, encode(self._fence(reason))):
                self._log.mark_clean(view.next_number, ())

    def _fence(self, reason: str) -> FenceRecord:
        now = self._objects.waits.now()
        return FenceRecord(tool_version(), now, (), reason, resets=self._pipeline)

    def _begin(self, reason: str) -> int | None:
        """Bring the pipeline's jobs to an end, then lock it out; return the fence's number."""
        fence = self._fence(reason)
        body = encode(fence)
        while True:
            view = self._log.read(before=WHOLE_LOG)
            self._log.load_records(entry.number for entry in view.entries)
            records, begun = own_records(self._log, view, self._pipeline)
            if begun is not None or not records:
                return begun
            self._ask_to_delete()
            for own in records:
                self._end(own)
            # Taken by whoever was faster: perhaps a job of this pipeline, so look again.
            if self._log.put_record(view.next_number, body):
                return view.next_number
            if self._log.record(view.next_number) == fence:
                return view.next_number

    def _ask_to_delete(self) -> None:
        """Raise `AwsError` where objects of the table may not be deleted, while nothing is begun.

        The key is nobody's: IAM answers before S3 looks for it.
        """
        self._objects.delete(f"{self._log.location.data_path}_{uuid.uuid4()}", '"nobody"')

    def _end(self, own: OwnRecord) -> None:
        """Publish or void an unfinished job: nothing of it may appear behind the reset (P16)."""
        if own.ending == "void" and not own.entry.clean:
            self._publisher.clean(own.number, own.record)
        if own.ending != "open":
            return
        try:
            self._settler.settle_record(own.number, own.record, own.entry.modified)
        except RecordDamaged:
            self._publisher.void(own.number, own.record, "the pipeline is being reset")

    def _release(self, sources: Iterable[str]) -> None:
        """Give up the claims on this table. One that stays has no load behind it: no matter."""
        bindings = Bindings(self._objects, self._log.location.prefix)
        with contextlib.suppress(AwsError):
            for source in sources:
                bindings.release(self._pipeline, source, self._log.location)

    def _delete(self, item: OwnObject) -> bool:
        return self._objects.delete(item.key, item.etag)

    def _drop(self, target: GlueTarget) -> bool:
        return self._catalog is not None and self._catalog.drop_table(target, self._log.location)

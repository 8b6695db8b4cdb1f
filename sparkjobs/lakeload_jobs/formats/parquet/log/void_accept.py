"""A person's word on one committed job: `recover --void` and `--accept` (DESIGN section 5)."""

from __future__ import annotations

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.catalog import Catalog
from lakeload_jobs.formats.parquet.log.catalog_sync import CatalogStep
from lakeload_jobs.formats.parquet.log.commit_log import CommitLog, Entry, LogView
from lakeload_jobs.formats.parquet.log.history import History, Outcome
from lakeload_jobs.formats.parquet.log.publish import Notify, Publisher
from lakeload_jobs.formats.parquet.log.records import LoadRecord
from lakeload_jobs.formats.parquet.log.roll_forward import Settler
from lakeload_jobs.storage.objects import Objects

_NOTHING_TO_DECIDE = "there is nothing to decide; `lakeload runs` shows how each job ended"


def void_job(
    objects: Objects,
    location: TableLocation,
    job_id: str,
    *,
    pipeline: str | None = None,
    parallelism: int,
    notify: Notify,
) -> Outcome:
    """Declare a committed job void and remove what there is of it; its id is spent.

    A job whose uploads are whole may be voided too, as long as it is not done. Raises
    `InvalidInput` for a job that the log does not know, or that is done, and `AwsError` when the
    job's visible objects may not be deleted (`s3:DeleteObject`): it is void then, and the next run
    goes on with removing them.
    """
    return _Decision(objects, location, job_id, pipeline, None, parallelism, notify).void()


def accept_job(
    objects: Objects,
    location: TableLocation,
    job_id: str,
    *,
    pipeline: str | None = None,
    catalog: Catalog | None,
    parallelism: int,
    notify: Notify,
) -> Outcome:
    """Keep what there is of a damaged job and live without the rest: its end is "partial".

    Of a job whose uploads are all gone nothing can be kept: it becomes void. Raises `InvalidInput`
    for a job that the log does not know, that turns out to be whole (it is done then), or that has
    ended already.
    """
    return _Decision(objects, location, job_id, pipeline, catalog, parallelism, notify).accept()


class _Decision:
    def __init__(
        self,
        objects: Objects,
        location: TableLocation,
        job_id: str,
        pipeline: str | None,
        catalog: Catalog | None,
        parallelism: int,
        notify: Notify,
    ) -> None:
        self._log = CommitLog(objects, location)
        self._job_id = job_id
        self._pipeline = pipeline
        self._notify = notify
        self._publisher = Publisher(objects, self._log, parallelism=parallelism, notify=notify)
        self._step = CatalogStep(self._log, catalog)
        waits = objects.waits
        self._settler = Settler(self._log, self._publisher, waits, notify, self._step)

    def void(self) -> Outcome:
        found = self._find(self._log.read())
        if found is None:
            return "void"
        entry, record = found
        ending = self._settler.wait_for_author(entry.number, entry.modified)
        if ending == "open":
            outcome = self._publisher.void(entry.number, record, "declared void by an operator")
        else:
            outcome = self._publisher.after_end(entry.number, record, ending)
        if outcome != "void":
            raise self._ended(entry.number, outcome)
        return outcome

    def accept(self) -> Outcome:
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
        outcome = self._publisher.finish(entry.number, record, accept_loss=True)
        if outcome == "void":
            return outcome
        self._bring_into_step(view, entry.number, record)
        if outcome == "done":
            raise InvalidInput(
                f"job `{self._job_id}` is whole: all its {len(record.files)} files could be "
                "published, and it is done now",
                hint="there is nothing to accept",
            )
        return outcome

    def _find(self, view: LogView) -> tuple[Entry, LoadRecord] | None:
        """Return the job's record; None for a job that is void and clean."""
        self._log.load_records(entry.number for entry in view.entries)
        for entry in reversed(view.entries):
            record = self._log.record(entry.number)
            if isinstance(record, LoadRecord) and record.job_id == self._job_id:
                self._check_pipeline(record.pipeline)
                return entry, record
        earlier = History(view.checkpoint).find_job(self._job_id)
        if earlier is None:
            raise InvalidInput(
                f"the log of `{self._log.location.data_path}` knows no job `{self._job_id}`",
                hint="`lakeload runs` lists the jobs of each table",
            )
        self._check_pipeline(earlier.pipeline)
        if not earlier.void:
            raise self._ended(earlier.number, "done")
        return None

    def _check_pipeline(self, pipeline: str) -> None:
        if self._pipeline is not None and pipeline != self._pipeline:
            raise InvalidInput(
                f"job `{self._job_id}` of `{self._log.location.data_path}` is one of pipeline "
                f"`{pipeline}`, not of `{self._pipeline}`",
                hint="name the pipeline.yml of that pipeline",
            )

    def _ended(self, number: int, outcome: Outcome) -> InvalidInput:
        kept = "all its rows are in" if outcome == "done" else "what was left of it was accepted"
        return InvalidInput(
            f"job `{self._job_id}` is done in `{self._log.location.data_path}` (record {number}): "
            f"{kept}",
            hint=f"{_NOTHING_TO_DECIDE}; only `lakeload reset` removes what is in",
        )

    def _void_already(self) -> InvalidInput:
        return InvalidInput(
            f"job `{self._job_id}` is void in `{self._log.location.data_path}`: nothing of it is "
            "visible, so nothing can be kept",
            hint=f"{_NOTHING_TO_DECIDE}; load its rows again under another --job-id",
        )

    def _bring_into_step(self, view: LogView, number: int, record: LoadRecord) -> None:
        """Step 6; what fails here is told, and done by the next run."""
        columns = self._settler.foresee(view).history.columns
        error = self._step.bring_into_step({number: record}, columns).error
        if error is not None:
            self._notify(f"the catalog lags behind: {error}")

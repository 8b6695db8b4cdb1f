"""`lakeload recover`: step 0 on demand, and a person's word on a damaged record."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.lake.catalog import Catalog
from lakeload_jobs.lake.history import Outcome
from lakeload_jobs.lake.objects import Objects
from lakeload_jobs.lake.publish import Notify
from lakeload_jobs.lake.settle import Pending
from lakeload_jobs.lake.stale_uploads import StaleUpload
from lakeload_jobs.rules.layout import TableLocation

STALE_AFTER = timedelta(hours=24)
"""Uploads older than this that no record names are those of attempts that died."""


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
    """Settle every record of a table and remove uploads whose attempt died.

    A record that only a person can decide on does not keep the others from being settled. Never
    raises `LakeloadError`: it is in the result.
    """
    raise NotImplementedError


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
    job's objects may not be deleted: it is void then, and the next run goes on removing.
    """
    raise NotImplementedError


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

    Raises `InvalidInput` for a job that the log does not know, is whole, or has ended already.
    """
    raise NotImplementedError

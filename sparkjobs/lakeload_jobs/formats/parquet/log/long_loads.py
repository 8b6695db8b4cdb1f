"""A load so long that a lifecycle rule may have aborted its uploads before it commits them."""

from __future__ import annotations

from datetime import timedelta

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.records import LoadRecord
from lakeload_jobs.storage.objects import Objects

LONG = timedelta(hours=12)
"""Half of the shortest lifecycle rule there is: below it none can have acted."""


def check_uploads_are_open(objects: Objects, location: TableLocation, record: LoadRecord) -> None:
    """Raise `LoadFailed` when a long load lost uploads: committed, it would be damaged.

    Asks nothing of a shorter load, and nothing can be told where open uploads may not be listed.
    """
    if not record.files or objects.waits.now() - record.started_at < LONG:
        return
    try:
        left = {upload.upload_id for upload in objects.list_uploads(location.data_path)}
    except AwsError:
        return
    lost = [file for file in record.files if file.upload_id not in left]
    if lost:
        raise LoadFailed(
            f"{len(lost)} of {len(record.files)} uploads of job `{record.job_id}` were aborted "
            f"before it could commit, such as that of `{objects.url(lost[0].key)}`; nothing of it "
            "is visible",
            hint="make the bucket's lifecycle rule AbortIncompleteMultipartUpload longer than the "
            "longest load, then run again",
            retryable=True,
        )

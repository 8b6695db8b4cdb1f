"""The end of a load that did not come to its commit: none of its uploads stays open."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from lakeload_jobs.aws import AwsError
from lakeload_jobs.formats.parquet.log.records import StagedFile
from lakeload_jobs.formats.parquet.log.stale_uploads import UploadRegistry
from lakeload_jobs.storage.objects import Objects

_PASSES = 5
_PAUSE = 0.5


def abort_uploads(objects: Objects, registry: UploadRegistry, staged: Sequence[StagedFile]) -> None:
    """Abort every upload of this attempt, also those of tasks that are only now being killed.

    S3 may keep a part that arrives during an abort, so it is repeated until nothing is listed.
    What AWS refuses here must not hide why the load failed.
    """
    for _ in range(_PASSES):
        uploads = {(note.key, note.upload_id) for note in registry.close()}
        uploads |= {(file.key, file.upload_id) for file in staged}
        if not uploads:
            return
        with contextlib.suppress(AwsError):
            for key, upload_id in sorted(uploads):
                objects.abort_upload(key, upload_id)
            folders = {key.rpartition("/")[0] + "/" for key, _ in uploads}
            left = {u.upload_id for folder in folders for u in objects.list_uploads(folder)}
            if not left & {upload_id for _, upload_id in uploads}:
                return
        time.sleep(_PAUSE)

"""Multipart uploads of attempts that died: found by tag and age, and aborted."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import timedelta

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.maintain import DEAD_AFTER
from lakeload_jobs.core.file_names import FILE_SUFFIX
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.commit_log import CommitLog, LogView, run_all
from lakeload_jobs.formats.parquet.log.records import FenceRecord, LoadRecord, encode, tool_version
from lakeload_jobs.storage.objects import Objects, OpenUpload

STALE_AFTER = DEAD_AFTER
"""An upload of this age that no record names is taken for one of an attempt that died: a LIST tells
no attempt, only the id."""

UPLOADS_PER_FENCE = 1000
"""Ids in one fence record: about 100 bytes each."""

_PASSES = 5
_PAUSE = 0.5
_DATE = re.compile(r"[0-9]{4}/[0-9]{2}/[0-9]{2}(/[0-9]{2})?")
_NAME = re.compile(r"[A-Za-z0-9_]{1,255}")


class StaleUploads:
    """Removes what attempts of one table left behind when they died before their commit.

    Every method may raise `AwsError`; that of a policy without `s3:ListBucketMultipartUploads` or
    `s3:AbortMultipartUpload` comes before anything was written.
    """

    def __init__(self, objects: Objects, log: CommitLog, *, parallelism: int) -> None:
        self._objects = objects
        self._log = log
        self._parallelism = parallelism

    def find(self, older_than: timedelta) -> tuple[OpenUpload, ...]:
        """Return what `remove` would remove now. Writes nothing."""
        listed = self._listed(older_than)
        return self._unnamed(listed, self._log.read()) if listed else ()

    def remove(self, older_than: timedelta) -> tuple[OpenUpload, ...]:
        """Fence off and abort old uploads; return them.

        Age alone proves nothing: a writer may be slow, or paused for a day. Once the fence lies in
        the log, no record that names these uploads can get in. Whoever listed a record's
        uploads before it was committed sees it now, or is sent back by the 412.
        """
        listed = self._listed(older_than)
        # Before the first fence: without the permission each run would add a useless record.
        if listed:
            self._check_aborting(listed[0].key)
        removed: list[OpenUpload] = []
        while listed:
            view = self._log.read()
            stale = self._unnamed(listed, view)[:UPLOADS_PER_FENCE]
            if not stale:
                break
            # Another record took the number: it may name these uploads, so read the log again.
            if not self._fence(view.next_number, stale, older_than):
                continue
            # Only behind the fence: a paused writer can no longer commit these uploads.
            self._abort(stale)
            removed += stale
            fenced = {upload.upload_id for upload in stale}
            listed = [upload for upload in listed if upload.upload_id not in fenced]
        return tuple(removed)

    def _check_aborting(self, key: str) -> None:
        """Raise `AwsError` where nothing may be aborted: each try would leave one more fence.

        Permissions come before existence, so the answer about no upload tells.
        """
        try:
            self._objects.abort_upload(key, "AbsentUpload")
        except AwsError as error:
            # Any other error, such as NoSuchUpload, shows that aborting is allowed.
            if error.denied:
                raise

    def _listed(self, older_than: timedelta) -> list[OpenUpload]:
        limit = self._objects.waits.now() - older_than
        found: list[OpenUpload] = []
        for location in self._log.location.with_side_table:
            old = [
                upload
                for upload in self._objects.list_uploads(location.data_path)
                if upload.initiated <= limit and is_of_table(location, upload.key)
            ]
            # A table of that name with a log of its own is no side table: no fence of ours stops
            # its writers.
            own = location == self._log.location
            if old and (own or self._objects.is_empty(location.log_path)):
                others = self._tables_inside(location, {upload.key for upload in old})
                found += [upload for upload in old if not upload.key.startswith(others)]
        return found

    def _tables_inside(self, location: TableLocation, keys: Collection[str]) -> tuple[str, ...]:
        """Return the folders of keys that are tables of other destinations, whose prefix lies in
        this table: their writers read another log, too."""
        found = []
        for folder in {key.removeprefix(location.data_path).rpartition("/")[0] for key in keys}:
            if not _NAME.fullmatch(folder):
                continue
            above = location.data_path.rstrip("/").rpartition("/")[0]
            inside = (
                TableLocation(location.data_path.rstrip("/"), "", folder),
                TableLocation(above, location.table, folder),
            )
            if not all(self._objects.is_empty(one.log_path) for one in inside):
                found.append(f"{location.data_path}{folder}/")
        return tuple(found)

    def _unnamed(self, listed: Collection[OpenUpload], view: LogView) -> tuple[OpenUpload, ...]:
        """Leave out the uploads of records that have not ended: those are still to be completed."""
        named: set[str] = set()
        for number in (entry.number for entry in view.entries if entry.end_size is None):
            record = self._log.record(number)
            # Committed and unfinished: its uploads are still to be completed.
            if isinstance(record, LoadRecord):
                named |= {file.upload_id for file in record.uploads}
        return tuple(upload for upload in listed if upload.upload_id not in named)

    def _fence(self, number: int, stale: Collection[OpenUpload], older_than: timedelta) -> bool:
        fence = FenceRecord(
            tool_version(),
            self._objects.waits.now(),
            attempts=(),
            reason=f"uploads older than {older_than} without a record",
            uploads=tuple(upload.upload_id for upload in stale),
        )
        return self._log.put_record(number, encode(fence))

    def _abort(self, stale: Collection[OpenUpload]) -> None:
        """Abort until none is listed: S3 may keep a part that arrives during an abort."""
        left = {upload.upload_id: upload.key for upload in stale}
        for number in range(_PASSES):
            run_all(
                lambda item: self._objects.abort_upload(item[1], item[0]),
                left.items(),
                self._parallelism,
            )
            listed = open_uploads(self._objects, self._log.location, left.values())
            left = {upload_id: key for upload_id, key in left.items() if upload_id in listed}
            # Best effort: the fence already makes the remaining ones harmless.
            if not left or number == _PASSES - 1:
                return
            self._objects.waits.sleep(_PAUSE)


def open_uploads(objects: Objects, location: TableLocation, keys: Iterable[str]) -> set[str]:
    """Return the ids of the uploads that are open in a table, and in its side table where some of
    `keys` lie there. Raises `AwsError`."""
    paths = [table.data_path for table in location.with_side_table]
    named = {path for key in keys for path in paths if key.startswith(path)}
    return {upload.upload_id for path in sorted(named) for upload in objects.list_uploads(path)}


def is_of_table(location: TableLocation, key: str) -> bool:
    """Return whether an upload's key can only be this table's.

    Below a table without a schema lie the tables of the schema of that name: their writers read
    another log, so a fence in this one would not stop them. A folder that could be such a table
    is left alone.
    """
    folder, _, name = key.removeprefix(location.data_path).rpartition("/")
    if not name.endswith(FILE_SUFFIX):
        return False
    # The table's own folder or a date partition: no other table can have this key.
    if not folder or _DATE.fullmatch(folder):
        return True
    return "/" not in folder and (bool(location.schema) or not _NAME.fullmatch(folder))

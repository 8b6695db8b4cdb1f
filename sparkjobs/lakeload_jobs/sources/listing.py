"""The files of a table, known before Spark reads them: which they are, and which content."""

from __future__ import annotations

from collections.abc import Sequence

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import FilesInput
from lakeload_jobs.lake.input_listing import list_files, remote_paths
from lakeload_jobs.lake.local_files import file_state
from lakeload_jobs.rules.input_files import FileState, is_s3
from lakeload_jobs.sources.s3 import S3Source


def list_inputs(
    source: FilesInput, s3: S3Source | None = None, *, may_be_empty: bool = False
) -> tuple[FileState, ...]:
    """Return the files of a table (lake.input_listing), and see that the first can be read.

    `s3` is needed for `s3://` paths alone. Raises what `list_files` raises, and `AwsError` for
    reading that S3 refuses.
    """
    objects = _access(s3).objects(source) if remote_paths(source.paths) else None
    files = list_files(source, objects, may_be_empty=may_be_empty)
    first = next((file for file in files if is_s3(file.path)), None)
    if objects is not None and first is not None:
        # Who may list need not be allowed to read: one byte tells, before Spark begins.
        objects.read_start(first, 1)
    return files


def check_unchanged(
    files: Sequence[FileState], source: FilesInput, s3: S3Source | None = None
) -> None:
    """Raise `LoadFailed` when the content of a file is not what it was when it was listed."""
    for before, after in zip(files, list_again(files, source, s3), strict=True):
        if _content(before) != _content(after):
            what = "was removed" if after.size < 0 else "was written to"
            raise LoadFailed(
                f"the source changed while it was read: `{before.path}` {what}",
                hint="load files that are complete; write new ones beside them and rename"
                if after.etag is None
                else "load objects that are complete, and write new ones under keys of their own",
                retryable=True,
            )


def list_again(
    files: Sequence[FileState], source: FilesInput, s3: S3Source | None = None
) -> tuple[FileState, ...]:
    """Return the present state of files that were listed before, in their order.

    Objects are found by the same listing, which is a request for 1,000 of them and not for each.
    """
    now: dict[str, FileState] = {}
    if any(is_s3(file.path) for file in files):
        try:
            now = {
                file.path: file
                for file in _access(s3).objects(source).find(remote_paths(source.paths))
            }
        except LoadFailed:
            now = {}  # none is left
    return tuple(
        now.get(file.path, FileState(file.path, -1, 0, ""))
        if is_s3(file.path)
        else file_state(file.path)
        for file in files
    )


def _content(file: FileState) -> tuple[int, int | str]:
    """An object written again with the same bytes is the same; a local file says no more than when
    it was written."""
    return file.size, file.modified if file.etag is None else file.etag


def _access(s3: S3Source | None) -> S3Source:
    if s3 is None:
        raise ValueError("`s3://` paths need an S3Source")
    return s3

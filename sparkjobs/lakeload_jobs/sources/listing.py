"""The files of a table, known before Spark reads them: which they are, and which content."""

from __future__ import annotations

from collections.abc import Sequence

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import FilesInput
from lakeload_jobs.rules.input_files import FileState, choose
from lakeload_jobs.sources.paths import file_state, local_files


def list_inputs(source: FilesInput) -> tuple[FileState, ...]:
    """Return the files of a table as they are now, each once, sorted by path.

    Raises `LoadFailed` for a path that names nothing or files that Spark would pass over, and
    `InvalidInput` for reader options that cannot be understood.
    """
    files = choose(local_files(source.paths), source.options)
    if not files:
        raise LoadFailed(
            f"there are no files to read in `{'`, `'.join(source.paths)}`",
            hint="names that begin with `_` or `.` are skipped and, unless "
            "`recursiveFileLookup: true`, folders in folders",
        )
    return files


def list_again(files: Sequence[FileState]) -> tuple[FileState, ...]:
    """Return the present state of files that were listed before, in their order."""
    return tuple(file_state(file.path) for file in files)


def check_unchanged(files: Sequence[FileState]) -> None:
    """Raise `LoadFailed` when a file is not what it was when it was listed."""
    for before, after in zip(files, list_again(files), strict=True):
        if before != after:
            what = "was removed" if after.size < 0 else "was written to"
            raise LoadFailed(
                f"the source changed while it was read: `{before.path}` {what}",
                hint="load files that are complete; write new ones beside them and rename",
                retryable=True,
            )

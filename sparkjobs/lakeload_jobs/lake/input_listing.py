"""The files of a table as they are now, on this machine or in S3, before anything reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lakeload_jobs.contract.spec import FilesInput
from lakeload_jobs.lake.local_files import local_files
from lakeload_jobs.lake.source_objects import SourceObjects
from lakeload_jobs.rules.input_files import FileState, NoFiles, choose, is_s3


def list_files(
    source: FilesInput, objects: SourceObjects | None, *, may_be_empty: bool = False
) -> tuple[FileState, ...]:
    """Return what a load of the whole source reads, each file once, sorted by path.

    `objects` is needed for `s3://` paths alone. With `may_be_empty` a path whose folder is there
    may hold no file. Raises `LoadFailed` for a path that names nothing or files that Spark would
    pass over, `AwsError` for a listing that S3 refuses, and `InvalidInput` for reader options that
    cannot be understood.
    """
    if not may_be_empty:
        return _listed(source, source.paths, objects)
    found: dict[str, FileState] = {}
    for path in source.paths:
        try:
            files = _listed(source, (path,), objects)
        except NoFiles:
            continue
        for file in files:
            found.setdefault(file.path, file)
    return tuple(found[path] for path in sorted(found))


def remote_paths(paths: Iterable[str]) -> list[str]:
    """Return those of the paths that name objects."""
    return [path for path in paths if is_s3(path)]


def _listed(
    source: FilesInput, paths: Sequence[str], objects: SourceObjects | None
) -> tuple[FileState, ...]:
    found = list(local_files([path for path in paths if not is_s3(path)]))
    if remote := remote_paths(paths):
        if objects is None:
            raise ValueError("`s3://` paths need somebody who lists them")
        found += objects.find(remote)
    files = choose(found, source.options)
    if not files:
        raise NoFiles(
            f"there are no files to read in `{'`, `'.join(paths)}`",
            hint="names that begin with `_` or `.` are skipped and, unless "
            "`recursiveFileLookup: true`, folders in folders",
        )
    return files

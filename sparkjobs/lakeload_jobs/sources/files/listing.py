"""Listing of a source's files, local and in S3."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from lakeload_jobs.contract.spec import FilesInput
from lakeload_jobs.sources.paths.file_state import FileState, NoFiles, choose, is_s3
from lakeload_jobs.sources.paths.local_listing import file_state, local_files, without_links
from lakeload_jobs.sources.paths.objects import SourceObjects, changed
from lakeload_jobs.sources.readers import SourceReaders


def list_files(
    source: FilesInput, readers: SourceReaders | None = None, *, may_be_empty: bool = False
) -> tuple[FileState, ...]:
    """Return what a load of the whole source reads, each file once, sorted by path.

    `readers` are needed for `s3://` paths alone. With `may_be_empty` a path whose folder is there
    may hold no file. Raises `LoadFailed` for a path that names nothing or files that Spark would
    pass over, `AwsError` where S3 refuses the listing or the first object, and `InvalidInput` for
    reader options that cannot be understood.
    """
    objects = _objects(source, readers)
    files = _found(source, objects, may_be_empty=may_be_empty)
    first = next((file for file in files if is_s3(file.path)), None)
    if objects is not None and first is not None:
        # Who may list need not be allowed to read: one byte tells, before Spark begins.
        objects.read_start(first, 1)
    return files


def check_unchanged(
    files: Sequence[FileState], source: FilesInput, readers: SourceReaders | None = None
) -> None:
    """Raise `LoadFailed` when the content of a file is not what it was when it was listed."""
    for before, after in zip(files, list_again(files, source, readers), strict=True):
        if _content(before) != _content(after):
            raise changed(before.path, "was removed" if after.size < 0 else "was written to")


def list_again(
    files: Sequence[FileState], source: FilesInput, readers: SourceReaders | None = None
) -> tuple[FileState, ...]:
    """Return the present state of files that were listed before, in their order.

    Objects are found by the same listing, which is a request for 1,000 of them and not for each.
    """
    objects = _objects(source, readers) if any(is_s3(file.path) for file in files) else None
    now = {} if objects is None else {file.path: file for file in _present(source, objects)}
    return tuple(
        now.get(file.path, FileState(file.path, -1, 0, ""))
        if is_s3(file.path)
        else file_state(file.path)
        for file in files
    )


def remote_paths(paths: Iterable[str]) -> list[str]:
    """Return those of the paths that name objects."""
    return [path for path in paths if is_s3(path)]


def _objects(source: FilesInput, readers: SourceReaders | None) -> SourceObjects | None:
    if not remote_paths(source.paths):
        return None
    if readers is None:
        raise ValueError("`s3://` paths need an S3 reader")
    return readers.objects(source)


def _present(source: FilesInput, objects: SourceObjects) -> Iterator[FileState]:
    for path in remote_paths(source.paths):
        # One that names nothing any more, or never did, says nothing of the others.
        with contextlib.suppress(NoFiles):
            yield from objects.find([path])


def _found(
    source: FilesInput, objects: SourceObjects | None, *, may_be_empty: bool
) -> tuple[FileState, ...]:
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


def _listed(
    source: FilesInput, paths: Sequence[str], objects: SourceObjects | None
) -> tuple[FileState, ...]:
    found = list(local_files([path for path in paths if not is_s3(path)]))
    if objects is not None:
        found += objects.find(remote_paths(paths))
    files = without_links(choose(found, source.options))
    if not files:
        raise NoFiles(
            f"there are no files to read in `{'`, `'.join(paths)}`",
            hint="names that begin with `_` or `.` are skipped and, unless "
            "`recursiveFileLookup: true`, folders in folders",
        )
    return files


def _content(file: FileState) -> tuple[int, int | str]:
    """An object written again with the same bytes is the same; a local file says no more than when
    it was written."""
    return file.size, file.modified if file.etag is None else file.etag

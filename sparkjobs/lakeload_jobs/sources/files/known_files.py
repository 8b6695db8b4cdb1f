"""The source files that a pipeline's records name: all that it ever loaded, read from its log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.commit_log import CommitLog
from lakeload_jobs.formats.parquet.log.records import FenceRecord, LoadedFolder, LoadRecord
from lakeload_jobs.sources.files.bookmark import folder_of, identity
from lakeload_jobs.sources.files.file_state import FileState
from lakeload_jobs.storage.objects import Objects


@dataclass(frozen=True)
class KnownFiles:
    """Every version of every file that was loaded, and how many records it took to know them."""

    files: tuple[FileState, ...]
    records: int


def read_known_files(
    objects: Objects,
    location: TableLocation,
    *,
    pipeline: str,
    source: str,
    since: int,
    before: int,
) -> KnownFiles:
    """Read records `since` up to `before`, without the latter: a LIST and a GET for each.

    Void records and those before a reset of the pipeline count for nothing; an unfinished one is
    taken for finished, as `inspect` does. Raises `AwsError`, and `LogDamaged` for a missing record.
    """
    log = CommitLog(objects, location)
    entries = [entry for entry in log.entries_after(since - 1) if entry.number < before]
    log.load_records(entry.number for entry in entries)
    found: dict[object, FileState] = {}
    records = 0
    for entry in entries:
        record = log.record(entry.number)
        if isinstance(record, FenceRecord) and record.resets == pipeline:
            found, records = {}, 0
        if not isinstance(record, LoadRecord) or not (record.inputs or record.known):
            continue
        if (record.pipeline, record.source) != (pipeline, source):
            continue
        if log.ending_of_size(entry.number, entry.end_size) == "void":
            continue
        records += 1
        for file in files_of((*record.known, *record.inputs)):
            found[identity(file)] = file
    return KnownFiles(tuple(found.values()), records)


def by_folder(files: Iterable[FileState]) -> tuple[LoadedFolder, ...]:
    """Return files as a record holds them."""
    folders: dict[str, list[FileState]] = {}
    for file in files:
        folders.setdefault(folder_of(file), []).append(file)
    return tuple(
        LoadedFolder(
            folder,
            names=tuple(file.path.rpartition("/")[2] for file in inside),
            sizes=tuple(file.size for file in inside),
            modified=tuple(file.modified for file in inside),
            etags=tuple(file.etag or "" for file in inside) if any(f.etag for f in inside) else (),
        )
        for folder, inside in sorted(folders.items())
    )


def files_of(folders: Iterable[LoadedFolder]) -> Iterator[FileState]:
    """Yield the files that a record holds."""
    for folder in folders:
        prefix = f"{folder.folder}/" if folder.folder else ""
        etags = folder.etags or [""] * len(folder.names)
        for name, size, modified, etag in zip(
            folder.names, folder.sizes, folder.modified, etags, strict=True
        ):
            yield FileState(f"{prefix}{name}", size, modified, etag or None)

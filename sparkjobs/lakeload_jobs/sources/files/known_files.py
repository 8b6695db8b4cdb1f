"""Source files as loads note them: folder by folder, and read back from the notes of all loads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lakeload_jobs.contract.codec import CodecError, from_json, to_json
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.state import Evidence
from lakeload_jobs.sources.files.bookmark import folder_of, identity
from lakeload_jobs.sources.files.file_state import FileState


@dataclass(frozen=True)
class LoadedFolder:
    """Source files of one folder as they were when they were loaded, one tuple for each property.

    `sizes` in bytes, `modified` in ns since 1970. `etags` is empty where files have none: there may
    be 100,000 files, and each takes about 60 bytes this way.
    """

    folder: str
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    modified: tuple[int, ...]
    etags: tuple[str, ...] = ()


@dataclass(frozen=True)
class KnownFiles:
    """Every version of every file that was loaded, and how many loads' notes it took to know."""

    files: tuple[FileState, ...]
    records: int


def known_files(noted: Sequence[Evidence]) -> KnownFiles:
    """Return the files of all loads. Raises `LoadFailed` for notes that are not of files."""
    found: dict[object, FileState] = {}
    for evidence in noted:
        for file in files_of((*evidence.known, *evidence.inputs)):
            found[identity(file)] = file
    return KnownFiles(tuple(found.values()), len(noted))


def by_folder(files: Iterable[FileState]) -> tuple[Any, ...]:
    """Return files as a load notes them, as JSON."""
    folders: dict[str, list[FileState]] = {}
    for file in files:
        folders.setdefault(folder_of(file), []).append(file)
    return tuple(
        to_json(
            LoadedFolder(
                folder,
                names=tuple(file.path.rpartition("/")[2] for file in inside),
                sizes=tuple(file.size for file in inside),
                modified=tuple(file.modified for file in inside),
                etags=tuple(f.etag or "" for f in inside) if any(f.etag for f in inside) else (),
            )
        )
        for folder, inside in sorted(folders.items())
    )


def files_of(noted: Iterable[Any]) -> Iterator[FileState]:
    """Yield the files that a load noted. Raises `LoadFailed` for what are no files."""
    for data in noted:
        try:
            folder = from_json(LoadedFolder, data)
        except CodecError as error:
            raise LoadFailed(
                f"the stored list of loaded files is not valid: {error}",
                hint="restore the object as it was (bucket versioning keeps it); never edit the "
                "log",
            ) from error
        prefix = f"{folder.folder}/" if folder.folder else ""
        etags = folder.etags or [""] * len(folder.names)
        for name, size, modified, etag in zip(
            folder.names, folder.sizes, folder.modified, etags, strict=True
        ):
            yield FileState(f"{prefix}{name}", size, modified, etag or None)

"""Source files as loads note them: folder by folder, and read back from the notes of all loads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lakeload_jobs.contract.codec import CodecError, from_json, to_json
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.state import Evidence, check_format
from lakeload_jobs.sources.files.bookmark import folder_of, identity
from lakeload_jobs.sources.paths.file_state import FileState

FOLDER_FORMAT = 1
"""Of `LoadedFolder`. It is written once there is a higher one, so that every program reads 1."""


@dataclass(frozen=True)
class LoadedFolder:
    """Source files of one folder as they were when they were loaded, one tuple for each property.

    `sizes` in bytes, `modified` in ns since 1970. `etags` is empty where files have none: there may
    be 100,000 files, and each takes about 60 bytes this way. `left_rejects` are the places of files
    of which records were set aside, and `contents` the hashes of files, '' for one without; folders
    that were noted without either have none.
    """

    folder: str
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    modified: tuple[int, ...]
    etags: tuple[str, ...] = ()
    left_rejects: tuple[int, ...] = ()
    contents: tuple[str, ...] = ()
    format: int = FOLDER_FORMAT


@dataclass(frozen=True)
class KnownFiles:
    """Every version of every file that was loaded, in the order of their latest loads, and how many
    loads' notes it took to know."""

    files: tuple[FileState, ...]
    records: int

    @property
    def left_rejects(self) -> frozenset[str]:
        """The paths of files whose latest version left rejected records."""
        latest = {file.path: file.left_rejects for file in self.files}
        return frozenset(path for path, left in latest.items() if left)

    @property
    def contents(self) -> frozenset[tuple[str, int, str]]:
        """Path, size and hash of each version of which a hash was kept."""
        return frozenset(
            (file.path, file.size, file.content) for file in self.files if file.content is not None
        )


def known_files(noted: Sequence[Evidence]) -> KnownFiles:
    """Return the files of all loads. Raises `LoadFailed` for notes that are not of files."""
    found: dict[object, FileState] = {}
    for evidence in noted:
        for file in files_of((*evidence.known, *evidence.inputs)):
            found.pop(identity(file), None)
            found[identity(file)] = file
    return KnownFiles(tuple(found.values()), len(noted))


def by_folder(files: Iterable[FileState]) -> tuple[Any, ...]:
    """Return files as a load notes them, as JSON."""
    folders: dict[str, list[FileState]] = {}
    for file in files:
        folders.setdefault(folder_of(file), []).append(file)
    return tuple(_noted(folder, inside) for folder, inside in sorted(folders.items()))


def _noted(folder: str, files: Sequence[FileState]) -> Any:
    noted = to_json(
        LoadedFolder(
            folder,
            names=tuple(file.path.rpartition("/")[2] for file in files),
            sizes=tuple(file.size for file in files),
            modified=tuple(file.modified for file in files),
            etags=tuple(f.etag or "" for f in files) if any(f.etag for f in files) else (),
            left_rejects=tuple(at for at, file in enumerate(files) if file.left_rejects),
            contents=tuple(f.content or "" for f in files) if any(f.content for f in files) else (),
        )
    )
    for name, usual in (("left_rejects", []), ("contents", []), ("format", 1)):
        # Without them a note is as it has always been.
        if noted[name] == usual:
            del noted[name]
    return noted


def files_of(noted: Iterable[Any]) -> Iterator[FileState]:
    """Yield the files that a load noted. Raises `NewerFormat`, and `LoadFailed` for what are no
    files."""
    for data in noted:
        check_format(data, FOLDER_FORMAT, "the stored list of loaded files")
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
        contents = folder.contents or [""] * len(folder.names)
        rejects = frozenset(folder.left_rejects)
        for at, (name, size, modified, etag, content) in enumerate(
            zip(folder.names, folder.sizes, folder.modified, etags, contents, strict=True)
        ):
            yield FileState(
                f"{prefix}{name}",
                size,
                modified,
                etag or None,
                left_rejects=at in rejects,
                content=content or None,
            )

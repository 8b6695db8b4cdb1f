"""Bookmark of an incremental source of files: exact, with a state of bounded size.

The truth is the list of files in each load record. The state is a fold of it, so that a run need
not read that list: for each folder how many of the listed files are known, a hash over them that
does not depend on their order, and the watermark, the newest modification time. Files up to the
watermark that have exactly this number and hash are known, and the younger ones are new. Wherever
that does not hold (a late file with an older time, a file that was removed or written again) the
records decide. So clocks and modification times decide how long a run looks, never what it loads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lakeload_jobs.contract.codec import CodecError, from_json, to_json
from lakeload_jobs.contract.state import check_format
from lakeload_jobs.sources.paths.file_state import FileState

MAX_FOLDERS = 256
"""Folders that have a fold of their own; all others share one."""

MAX_FOLDERS_BYTES = 32 * 1024
"""About how many bytes of JSON the folds of folders may take."""

STATE_FORMAT = 1
"""Of `FilesState`. It is written once there is a higher one, so that every program reads 1."""

_FOLD_BYTES = 110
_MODULUS = 1 << 128


Identity = tuple[str, int, str]
"""Path, size and, as S3 gives it, the ETag, else the modification time: what no two versions of a
file share."""


@dataclass(frozen=True)
class Fold:
    """The known files of one group that were listed last, and a time no known file is younger than.

    `gone`: known files of the group are not listed any more, so they may come back.
    """

    count: int = 0
    watermark: int | None = None
    digest: str = "0"
    gone: bool = False


@dataclass(frozen=True)
class FilesState:
    """What a pipeline knows of one source: its state in the record of each incremental load.

    Records before number `since` need not be read to know all files. `loaded` counts them, every
    version of a file by itself. Folders without a fold of their own share `rest`.
    """

    since: int
    loaded: int = 0
    folders: dict[str, Fold] = field(default_factory=dict)
    rest: Fold = Fold()
    kind: Literal["FILES"] = "FILES"
    format: int = STATE_FORMAT

    def group(self, folder: str) -> str | None:
        """Return the folder itself where it has a fold of its own; None where it is the rest."""
        return folder if folder in self.folders else None

    def fold(self, group: str | None) -> Fold:
        """Return the fold of a group."""
        return self.rest if group is None else self.folders[group]


@dataclass(frozen=True)
class Comparison:
    """A listing beside the state. Only where `unclear` is not empty have the records to be read."""

    new: tuple[FileState, ...]
    unclear: tuple[FileState, ...]


def identity(file: FileState) -> Identity:
    """Return what tells this version of the file from every other."""
    return file.path, file.size, file.etag or str(file.modified)


def folder_of(file: FileState) -> str:
    """Return the path without its last part; empty for a file at the top."""
    return file.path.rpartition("/")[0]


def read_state(data: Any) -> FilesState | None:
    """Return the state a record holds; None before the first.

    Raises `ValueError`, and `NewerFormat`.
    """
    check_format(data, STATE_FORMAT, "the state of this pipeline")
    try:
        return None if data is None else from_json(FilesState, data)
    except CodecError as error:
        raise ValueError(f"this is not the state of a source of files: {error}") from error


def state_json(state: FilesState) -> Any:
    """Return the state as a record holds it."""
    data = to_json(state)
    if state.format == 1:
        del data["format"]
    return data


def compare(state: FilesState | None, files: Iterable[FileState]) -> Comparison:
    """Say which of the listed files are new, as far as the state alone can tell."""
    if state is None:
        return Comparison(tuple(files), ())
    groups: dict[str | None, list[FileState]] = {}
    for file in files:
        groups.setdefault(state.group(folder_of(file)), []).append(file)
    new: list[FileState] = []
    unclear: list[FileState] = []
    for group, listed in groups.items():
        fold = state.fold(group)
        known = [file for file in listed if _reached(fold, file)]
        younger = [file for file in listed if not _reached(fold, file)]
        if _is(fold, known) and not (fold.gone and any(file.etag for file in younger)):
            new += younger
        else:
            unclear += listed
    return Comparison(tuple(new), tuple(unclear))


@dataclass(frozen=True)
class Resolved:
    """The files to load, and those of them that are new versions of files loaded before."""

    new: tuple[FileState, ...]
    again: tuple[FileState, ...]


def resolve(compared: Comparison, known: Collection[FileState]) -> Resolved:
    """Decide what was unclear by the files of all records."""
    identities = {identity(file) for file in known}
    paths = {file.path for file in known}
    found = [file for file in compared.unclear if identity(file) not in identities]
    new = tuple(sorted((*compared.new, *found), key=lambda file: file.path))
    return Resolved(new, tuple(file for file in new if file.path in paths))


def advance(
    before: FilesState | None,
    listed: Collection[FileState],
    *,
    new: int,
    since: int,
    known: Collection[FileState] | None = None,
) -> FilesState:
    """Return the state when all that is `listed` has been loaded, `new` of it for the first time.

    `known` are the files of all records, where they have been read.
    """
    old = before or FilesState(since)
    here: dict[str, list[FileState]] = {}
    for file in listed:
        here.setdefault(folder_of(file), []).append(file)
    lost = None if known is None else _folders_with_losses(known, listed)
    folds = {folder: _folded(old, folder, files, lost) for folder, files in here.items()}
    kept = _worth_a_fold(folds)
    others = [fold for folder, fold in folds.items() if folder not in kept]
    # What is not listed at all has left its watermark, and may come back.
    left = [fold for folder, fold in old.folders.items() if folder not in here]
    gone = bool(lost and lost - kept.keys()) if lost is not None else old.rest.gone
    vanished = any(fold.count or fold.gone for fold in left) or _rest_vanished(old, here)
    rest = Fold(
        count=sum(fold.count for fold in others),
        watermark=_latest([old.rest, *others, *left]),
        digest=_hex(sum(int(fold.digest, 16) for fold in others)),
        gone=gone or vanished or any(fold.gone for fold in others),
    )
    return FilesState(since, old.loaded + new, kept, rest)


def _folded(
    old: FilesState, folder: str, files: list[FileState], lost: Collection[str] | None
) -> Fold:
    before = old.folders.get(folder, old.rest)
    youngest = max(file.modified for file in files)
    return Fold(
        count=len(files),
        watermark=youngest if before.watermark is None else max(before.watermark, youngest),
        digest=_digest(files),
        gone=before.gone if lost is None else folder in lost,
    )


def _folders_with_losses(
    known: Collection[FileState], listed: Collection[FileState]
) -> frozenset[str]:
    here = {identity(file) for file in listed}
    return frozenset(folder_of(file) for file in known if identity(file) not in here)


def _rest_vanished(old: FilesState, here: Mapping[str, list[FileState]]) -> bool:
    """Whether less is listed of the rest than was: files of it without any left in their folder."""
    listed = sum(len(files) for folder, files in here.items() if folder not in old.folders)
    return listed < old.rest.count


def _worth_a_fold(folds: Mapping[str, Fold]) -> dict[str, Fold]:
    """Choose the folders that changed last, within the bounds: those are where new files come."""
    kept: dict[str, Fold] = {}
    room = MAX_FOLDERS_BYTES
    for folder in sorted(folds, key=lambda name: (-(folds[name].watermark or 0), name)):
        room -= len(folder.encode("utf-8", "surrogatepass")) + _FOLD_BYTES
        if len(kept) == MAX_FOLDERS or room < 0:
            break
        kept[folder] = folds[folder]
    return kept


def _reached(fold: Fold, file: FileState) -> bool:
    return fold.watermark is not None and file.modified <= fold.watermark


def _is(fold: Fold, files: list[FileState]) -> bool:
    return len(files) == fold.count and _digest(files) == fold.digest


def _latest(folds: Iterable[Fold]) -> int | None:
    return max((fold.watermark for fold in folds if fold.watermark is not None), default=None)


def _digest(files: Iterable[FileState]) -> str:
    """Add up a hash of each identity: equal for equal sets in any order, and sums can be added."""
    total = 0
    for file in files:
        path, size, version = identity(file)
        # Names that are no UTF-8 arrive as lone surrogates.
        text = f"{path}\0{size}\0{version}".encode("utf-8", "surrogatepass")
        total += int.from_bytes(hashlib.sha256(text).digest()[:16])
    return _hex(total)


def _hex(total: int) -> str:
    return f"{total % _MODULUS:x}"

"""What one job of an incremental source loads, and the state its record leaves (DESIGN section 7).

The same for a load and for `plan`, which stops here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.records import LoadedFolder, StateChange
from lakeload_jobs.formats.parquet.log.table_log import Opened
from lakeload_jobs.sources.files.bookmark import (
    FilesState,
    Resolved,
    advance,
    compare,
    read_state,
    resolve,
    state_json,
)
from lakeload_jobs.sources.files.file_state import FileState
from lakeload_jobs.sources.files.known_files import KnownFiles, by_folder, read_known_files
from lakeload_jobs.storage.objects import Objects

_MANY_RECORDS = 50
_FILES_PER_RECORD = 2_000
"""Repeating known files may cost about so many for each record that need not be read any more."""


@dataclass(frozen=True)
class Source:
    """An incremental source of one pipeline, and where it is loaded.

    Known names are those of files below `folder`, without it, and the whole path of all others.
    """

    pipeline: str
    source: str
    folder: str
    location: TableLocation


@dataclass(frozen=True)
class Selection:
    """The files a job loads. `known` counts the listed files that were loaded before, `loaded` all
    that ever were; `again` are files of `files` of which an older version was loaded.

    `moves_state`: although nothing is new, a record without rows would spare the next run a look
    at all records.
    """

    files: tuple[FileState, ...]
    known: int
    loaded: int
    again: tuple[str, ...]
    state: StateChange
    inputs: tuple[LoadedFolder, ...]
    repeated: tuple[LoadedFolder, ...]
    moves_state: bool

    @property
    def sentence(self) -> str:
        """What is new, for people."""
        new = f"{len(self.files):,} new file" + "s" * (len(self.files) != 1)
        return f"{new if self.files else 'no new files'} ({self.known:,} known)"

    @property
    def idle(self) -> bool:
        """Whether there is nothing to load and nothing to record."""
        return not self.files and not self.moves_state

    @property
    def bytes(self) -> int:
        """The bytes of the files to load."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True)
class Account:
    """What a pipeline keeps of the files it has loaded, whichever the table's format.

    `state` is that of its newest load. `read` returns the files of the records from number `since`
    on, and `next_number` is that of the record to come.
    """

    state: Any
    first_run: bool
    next_number: int
    read: Callable[[int], KnownFiles]


def select_files(
    objects: Objects,
    source: Source,
    opened: Opened,
    listed: Sequence[FileState],
    *,
    reload: bool = False,
) -> Selection:
    """Choose from the listed files by the records of a Parquet table, as `choose_files` does."""
    account = Account(
        opened.state,
        opened.first_run,
        opened.next_number,
        lambda since: _read(objects, source, since, opened),
    )
    return choose_files(account, source.folder, listed, reload=reload)


def choose_files(
    opened: Account, folder: str, listed: Sequence[FileState], *, reload: bool = False
) -> Selection:
    """Choose those of the listed files that no job of this pipeline has loaded; all for `reload`.

    `folder` is that of `Source`. Reads the records only where the state alone cannot tell
    (sources.files.bookmark). Raises `LoadFailed` when the pipeline has loaded this table without
    keeping account of files, and `AwsError` when records cannot be read.
    """
    before = _state(opened, reload=reload)
    names = {known_name(file.path, folder): file for file in listed}
    here = [replace(file, path=name) for name, file in names.items()]
    compared = compare(before, here)
    known: KnownFiles | None = None
    if before is not None and compared.unclear:
        known = opened.read(before.since)
    resolved = resolve(compared, known.files if known else ())
    since = before.since if before else opened.next_number
    if repeat := known is not None and _worth_repeating(known):
        since = opened.next_number
    after = advance(
        before,
        here,
        new=len(resolved.new),
        since=since,
        known=known.files if known else None,
    )
    load = here if reload else resolved.new
    return Selection(
        files=tuple(names[file.path] for file in load),
        known=len(here) - len(resolved.new),
        loaded=before.loaded if before else 0,
        again=_again(resolved, names),
        state=StateChange(opened.state, state_json(after)),
        inputs=by_folder(load),
        repeated=by_folder(known.files) if known and repeat else (),
        moves_state=known is not None and after != before,
    )


def known_name(path: str, folder: str) -> str:
    """Return the name under which a file is remembered: below `folder` without it, so that
    documents and their files may move together."""
    return path.removeprefix(f"{folder}/") if folder else path


def _state(opened: Account, *, reload: bool) -> FilesState | None:
    try:
        before = read_state(opened.state)
    except ValueError as error:
        raise LoadFailed(
            f"the state of this pipeline cannot be used: {error}",
            hint="was another kind of source loaded into this table before? give this one another "
            "`name`",
        ) from error
    if before is None and not opened.first_run and not reload:
        raise LoadFailed(
            "this pipeline has loaded this table without `incremental`, so nobody knows which "
            "files are in it",
            hint="`lakeload sync --reload` appends all files that are there now and remembers "
            "them; to have no row twice, first remove what is in the table with `lakeload reset`",
        )
    return before


def _read(objects: Objects, source: Source, since: int, opened: Opened) -> KnownFiles:
    return read_known_files(
        objects,
        source.location,
        pipeline=source.pipeline,
        source=source.source,
        since=since,
        before=opened.next_number,
    )


def _worth_repeating(known: KnownFiles) -> bool:
    """Whether repeating all files here is cheaper than reading so many records next time."""
    return known.records > max(_MANY_RECORDS, len(known.files) // _FILES_PER_RECORD)


def _again(resolved: Resolved, names: dict[str, FileState]) -> tuple[str, ...]:
    return tuple(names[file.path].path for file in resolved.again)

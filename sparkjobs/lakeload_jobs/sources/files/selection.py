"""File selection of one job of an incremental source, and the state after it.

The same for a load and for `plan`, which stops here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import OnChangedFile, RoundLimit
from lakeload_jobs.contract.state import Bookmark, Evidence, StateChange
from lakeload_jobs.sources.files.bookmark import (
    FilesState,
    advance,
    compare,
    read_state,
    resolve,
    state_json,
)
from lakeload_jobs.sources.files.known_files import KnownFiles, by_folder, known_files
from lakeload_jobs.sources.paths.file_state import FileState
from lakeload_jobs.sources.paths.local_listing import link_warnings

Contents = Callable[[Sequence[FileState]], Sequence[str]]
"""Returns the hashes of listed files."""

_SHOWN = 5
_MANY_RECORDS = 50
_FILES_PER_RECORD = 2_000
"""Repeating known files may cost about so many for each record that need not be read any more."""


@dataclass(frozen=True)
class Selection:
    """The files a job loads. `known` counts the listed files that were loaded before, `loaded` all
    that ever were; `again` are files of `files` of which an older version was loaded, `skipped` new
    versions that are remembered and not loaded, and `same` those that have the content of a version
    that was loaded.

    `moves_state`: although nothing is new, a record without rows would spare the next run a look
    at all records. `folder` is that of the document.
    """

    files: tuple[FileState, ...]
    known: int
    loaded: int
    again: tuple[str, ...]
    state: StateChange
    evidence: Evidence
    moves_state: bool
    skipped: tuple[str, ...] = ()
    folder: str = ""
    same: tuple[str, ...] = ()
    later: tuple[FileState, ...] = ()
    """New files that a limit leaves for later jobs."""
    first: bool = False
    """Whether no job has loaded any file."""

    @property
    def typed_by(self) -> tuple[FileState, ...]:
        """The files that the columns are found by: all that are there at the first load, because
        later ones keep to its types."""
        return (*self.files, *self.later) if self.first else self.files

    def noted(self, rejected_from: Collection[str], contents: Sequence[str] = ()) -> Evidence:
        """Return what the load notes when records of these files were set aside, and with the
        hashes `contents` of all files."""
        if not rejected_from and not contents:
            return self.evidence
        kept: Sequence[str | None] = contents or [None] * len(self.files)
        named = (
            replace(
                file,
                path=known_name(file.path, self.folder),
                left_rejects=file.path in rejected_from,
                content=content,
            )
            for file, content in zip(self.files, kept, strict=True)
        )
        return replace(self.evidence, inputs=by_folder(named))

    @property
    def sentence(self) -> str:
        """What is new, for people."""
        new = f"{len(self.files):,} new file" + "s" * (len(self.files) != 1)
        if self.later:
            new = f"{len(self.files):,} of {len(self.files) + len(self.later):,} new files"
        same = f", {len(self.same):,} of them rewritten with the same content" if self.same else ""
        return f"{new if self.files else 'no new files'} ({self.known:,} known{same})"

    @property
    def idle(self) -> bool:
        """Whether there is nothing to load and nothing to record."""
        return not self.files and not self.moves_state

    @property
    def bytes(self) -> int:
        """The bytes of the files to load."""
        return sum(file.size for file in self.files)


def choose_files(
    bookmark: Bookmark,
    folder: str,
    listed: Sequence[FileState],
    *,
    reload: bool = False,
    on_changed_file: OnChangedFile | None = None,
    contents: Contents | None = None,
    limit: RoundLimit | None = None,
) -> Selection:
    """Choose those of the listed files that no job of this pipeline has loaded; all for `reload`.
    Of more than `limit` these are the oldest. `on_changed_file` says what becomes of new versions
    of files that one has loaded. None loads them, unless records of the older version were set
    aside. `contents` returns the hashes of files that may only have been written again, which are
    no new versions; without it all are.

    Known names are those of files below `folder`, without it, and the whole path of all others.
    Reads the evidence of earlier loads only where the state alone cannot tell
    (sources.files.bookmark). Raises `LoadFailed` when the pipeline has loaded this table without
    keeping account of files, or for a changed file under FAIL, and `AwsError` when the evidence
    cannot be read.
    """
    before = _state(bookmark, reload=reload)
    names = {known_name(file.path, folder): file for file in listed}
    here = [replace(file, path=name) for name, file in names.items()]
    compared = compare(before, here)
    known: KnownFiles | None = None
    if before is not None and compared.unclear:
        known = known_files(bookmark.evidence(before.since))
    resolved = resolve(compared, known.files if known else ())
    skipped: tuple[FileState, ...] = ()
    same: tuple[FileState, ...] = ()
    left_rejects = known.left_rejects if known else frozenset()
    again = resolved.again
    if known is not None and contents is not None and not reload:
        same = _with_known_content(again, names, known, contents)
        again = tuple(file for file in again if file not in frozenset(same))
    if again and not reload:
        _check_changed(again, names, on_changed_file, left_rejects)
        skipped = again if on_changed_file == "SKIP" else ()
    left_out = {*skipped, *same}
    new = [file for file in resolved.new if file not in left_out]
    load = here if reload else new
    later: frozenset[FileState] = frozenset()
    if limit is not None and not reload:
        later = _beyond(limit, new)
        load = [file for file in new if file not in later]
        again = tuple(file for file in again if file not in later)
    since = before.since if before else bookmark.next_number
    if repeat := known is not None and _worth_repeating(known):
        since = bookmark.next_number
    after = advance(
        before,
        [file for file in here if file not in later] if later else here,
        new=len(resolved.new) - len(later),
        since=since,
        known=known.files if known else None,
    )
    repeated = known.files if known and repeat else ()
    # What is not loaded leaves the rows and the rejected records of the older version as they were.
    remembered = (
        replace(file, left_rejects=file.path in left_rejects) for file in (*skipped, *same)
    )
    return Selection(
        files=tuple(names[file.path] for file in load),
        known=len(here) - len(new),
        loaded=before.loaded if before else 0,
        again=() if skipped else _paths(again, names),
        state=StateChange(bookmark.state, state_json(after)),
        evidence=Evidence(by_folder(load), by_folder((*repeated, *remembered))),
        moves_state=known is not None and after != before,
        skipped=_paths(skipped, names),
        folder=folder,
        same=_paths(same, names),
        later=tuple(names[file.path] for file in new if file in later),
        first=before is None,
    )


def _beyond(limit: RoundLimit, new: Sequence[FileState]) -> frozenset[FileState]:
    """Return the files behind the oldest ones that are within a limit; the first one always is."""
    oldest = sorted(new, key=lambda file: (file.modified, file.path))
    size = 0
    for place, file in enumerate(oldest):
        size += file.size
        many = limit.files is not None and place >= limit.files
        large = limit.bytes is not None and size > limit.bytes
        if place and (many or large):
            return frozenset(oldest[place:])
    return frozenset()


def _with_known_content(
    changed: Sequence[FileState],
    names: Mapping[str, FileState],
    known: KnownFiles,
    contents: Contents,
) -> tuple[FileState, ...]:
    """Return those of the changed files that have the content of a version that was loaded, with
    its hash. A file is read only where such a version has its size."""
    kept = known.contents
    sizes = {(path, size) for path, size, _ in kept}
    asked = [file for file in changed if (file.path, file.size) in sizes]
    found = contents([names[file.path] for file in asked]) if asked else ()
    return tuple(
        replace(file, content=content)
        for file, content in zip(asked, found, strict=True)
        if (file.path, file.size, content) in kept
    )


def known_name(path: str, folder: str) -> str:
    """Return the name under which a file is remembered: below `folder` without it, so that
    documents and their files may move together."""
    return path.removeprefix(f"{folder}/") if folder else path


def _state(bookmark: Bookmark, *, reload: bool) -> FilesState | None:
    try:
        before = read_state(bookmark.state)
    except ValueError as error:
        raise LoadFailed(
            f"the state of this pipeline cannot be used: {error}",
            hint=(
                "if another kind of source was loaded into this table before, give this "
                "pipeline another `name`"
            ),
        ) from error
    if before is None and not bookmark.first_run and not reload:
        raise LoadFailed(
            "this pipeline has loaded this table without `source.incremental`, so it is not "
            "known which files are loaded",
            hint=(
                "empty the table with `lakeload reset --table NAME`, then run `lakeload sync "
                "--table NAME --reload`, which loads all files and remembers them; without the "
                "reset, the rows of files that are already loaded are duplicated"
            ),
        )
    return before


def _worth_repeating(known: KnownFiles) -> bool:
    """Whether repeating all files here is cheaper than reading so many records next time."""
    return known.records > max(_MANY_RECORDS, len(known.files) // _FILES_PER_RECORD)


def _check_changed(
    changed: Sequence[FileState],
    names: dict[str, FileState],
    policy: OnChangedFile | None,
    left_rejects: Collection[str],
) -> None:
    """Raise `LoadFailed` for new versions that are not to be loaded."""
    if policy is None:
        _check_rejects([file for file in changed if file.path in left_rejects], names)
    if policy != "FAIL":
        return
    more = f" and {len(changed) - 1:,} more" if changed[1:] else ""
    raise LoadFailed(
        f"`{names[changed[0].path].path}`{more} has changed since it was loaded "
        "(`on_changed_file: FAIL`)",
        hint=(
            "set `on_changed_file: LOAD` to append all rows of the new version, or `SKIP` "
            "to continue without it"
        ),
    )


def _check_rejects(changed: Sequence[FileState], names: dict[str, FileState]) -> None:
    if not changed:
        return
    more = f" and {len(changed) - 1:,} more" if changed[1:] else ""
    raise LoadFailed(
        f"`{names[changed[0].path].path}`{more} has changed since it was loaded, and records of "
        "the version that was loaded were set aside: the new version would load its good records "
        "a second time",
        hint="to load only what was set aside, run `lakeload sync --retry-rejected JOB` and set "
        "`on_changed_file: SKIP`; to load all rows of the new version, set `on_changed_file: LOAD`",
    )


def _paths(files: Sequence[FileState], names: dict[str, FileState]) -> tuple[str, ...]:
    return tuple(names[file.path].path for file in files)


def selection_warnings(selection: Selection | None, *, reload: bool) -> tuple[str, ...]:
    """Return what may double rows or leave some out: new versions of files, and a reload."""
    found = []
    if reload and selection is None:
        found.append(
            "`--reload` reads no more files here: without `incremental` every load reads all"
        )
    elif reload and selection is not None:
        found.append(
            f"`--reload` appended all files ({len(selection.files):,}) including files that "
            f"were loaded before ({selection.known:,} of them had)"
        )
    elif selection is not None and selection.again:
        found.append(
            "loaded again with all rows, because the file has changed since it was loaded: "
            + _shown(selection.again)
        )
    if selection is not None and selection.skipped:
        found.append(
            "not loaded although the file has changed since it was loaded (`on_changed_file: "
            f"SKIP`): {_shown(selection.skipped)}"
        )
    if selection is not None:
        found += link_warnings(selection.files)
    return tuple(found)


def _shown(paths: Sequence[str]) -> str:
    shown = ", ".join(f"`{path}`" for path in paths[:_SHOWN])
    return shown + (f" and {len(paths) - _SHOWN:,} more" if paths[_SHOWN:] else "")

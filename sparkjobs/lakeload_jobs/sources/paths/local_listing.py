"""Local files: what paths and globs name, and what is below folders.

What cannot be listed is an error that names it, never left out in silence: a folder that may not be
read, a link that leads nowhere, and what is no file, such as a named pipe. A folder is looked into
once on each way down, whatever links there are.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.core.names import neighbour_meant
from lakeload_jobs.sources.paths.file_state import FileState, NoFiles, hidden, is_s3, normal_path
from lakeload_jobs.sources.paths.key_patterns import names_path

NEIGHBOURS_SHOWN = 5
"""How many names of a folder a hint shows."""
_ANYWHERE = "**"
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
_ALLOW = "allow the user who runs lakeload to read it, or use other paths"

OnFault = Callable[[str, LoadFailed], None]
"""Takes what cannot be listed: its path and the error."""


def raise_fault(path: str, error: LoadFailed) -> None:
    """Raise the error."""
    raise error


def expand(patterns: Sequence[str], *, on_fault: OnFault = raise_fault) -> tuple[str, ...]:
    """Return the files and folders that absolute `patterns` name, sorted within each pattern.

    `*`, `?`, `[…]` and `**` are wildcards unless a file has exactly that name. Names that Spark
    hides (beginning with `_` or `.`) are skipped by a wildcard and refused by name, because
    Spark would read them as empty. Raises `LoadFailed` for a pattern that matches nothing.

    What is returned has one spelling, the one that Spark gives it (`normal_path`).
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        found.update(dict.fromkeys(_matches(_local(pattern), on_fault)))
    return tuple(found)


def local_files(patterns: Sequence[str], *, on_fault: OnFault = raise_fault) -> Iterator[FileState]:
    """Yield every file the patterns name, and every file below a folder they name, hidden ones
    left out. Raises what `expand` raises. What else cannot be listed goes to `on_fault`, which may
    raise it."""
    for path in expand(patterns, on_fault=on_fault):
        try:
            status = Path(path).stat()
        except OSError as error:
            if not _is_gone(path, error):
                on_fault(path, _unreadable(path, error))
                continue
            status = None
        if status is None:
            yield FileState(path, -1, 0)
        elif stat.S_ISDIR(status.st_mode):
            yield from _below(path, on_fault, hides=True)
        elif stat.S_ISREG(status.st_mode):
            yield FileState(path, status.st_size, status.st_mtime_ns)
        else:
            on_fault(path, not_a_file(path, status.st_mode))


def _is_link(path: str) -> bool:
    return os.path.islink(path)  # noqa: PTH114 - Path's raises where a folder may not be read


def _is_gone(path: str, error: OSError) -> bool:
    """Whether a file was removed since it was found, and is no link that leads nowhere."""
    return error.errno == errno.ENOENT and not _is_link(path)


def _below(root: str, on_fault: OnFault, *, hides: bool) -> Iterator[FileState]:
    """Walk with one system call for each file: there may be 100,000."""
    folders: deque[tuple[str, tuple[str, ...]]] = deque([(root, ())])
    while folders:
        folder, above = folders.popleft()
        for entry in _entries(folder, on_fault):
            if hides and hidden(entry.name):
                continue
            try:
                if entry.is_dir():
                    within = (*above, os.path.realpath(folder)) if entry.is_symlink() else above
                    if not (entry.is_symlink() and _holds(os.path.realpath(entry.path), within)):
                        folders.append((entry.path, within))
                elif entry.is_file():
                    status = entry.stat()
                    yield FileState(entry.path, status.st_size, status.st_mtime_ns, root=root)
                elif entry.is_symlink():
                    Path(entry.path).stat()  # it may lead nowhere
            except OSError as error:
                if not _is_gone(entry.path, error):
                    on_fault(entry.path, _unreadable(entry.path, error))


def _holds(folder: str, others: Sequence[str]) -> bool:
    """Whether one of the other folders is this one or below it."""
    return any(f"{other}/".startswith(f"{folder.rstrip('/')}/") for other in others)


def _entries(folder: str, on_fault: OnFault) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        _tell(folder, error, on_fault)
        return []


def _tell(folder: str, error: OSError, on_fault: OnFault) -> None:
    if error.errno not in _NOT_THERE:
        said = f"the folder `{folder}` cannot be read: {error.strerror}"
        on_fault(folder, LoadFailed(said, hint=_ALLOW))


def _unreadable(path: str, error: OSError) -> LoadFailed:
    if error.errno in (errno.ENOENT, errno.ELOOP) and _is_link(path):
        circle = ", in a circle" if error.errno == errno.ELOOP else ", which is not there"
        return LoadFailed(
            f"`{path}` is a link to `{Path(path).readlink()}`{circle}",
            hint="remove the link, or let it lead to a file",
        )
    return LoadFailed(
        f"`{path}` cannot be read: {error.strerror}",
        hint=_ALLOW,
    )


_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def not_a_file(path: str, mode: int) -> LoadFailed:
    """Return the error of a path that is neither a file nor a folder."""
    what = next((name for is_kind, name in _KINDS if is_kind(mode)), "no file")
    return LoadFailed(
        f"`{path}` is {what}, and lakeload reads files alone: it reads them more than once",
        hint="write its data to a file, or use other paths",
    )


def file_state(path: str) -> FileState:
    """Return the present state of a local file; one that is gone has size -1."""
    try:
        status = Path(path).stat()
    except FileNotFoundError:
        return FileState(path, -1, 0)
    return FileState(path, status.st_size, status.st_mtime_ns)


def without_links(files: Sequence[FileState]) -> tuple[FileState, ...]:
    """Return files, each once: of several paths that links lead to one file the one without links,
    else the first, with all others as its `links`."""
    folders: dict[str, str] = {}
    by_file: dict[str, list[FileState]] = {}
    for file in files:
        real = file.path if is_s3(file.path) else _real(file.path, folders)
        by_file.setdefault(real, []).append(file)
    if len(by_file) == len(files):
        return tuple(files)
    chosen = {}
    for real, same in by_file.items():
        best = next((file for file in same if file.path == real), same[0])
        links = tuple(file.path for file in same if file is not best)
        chosen[best.path] = replace(best, links=links)
    return tuple(chosen[file.path] for file in files if file.path in chosen)


def _real(path: str, folders: dict[str, str]) -> str:
    """Return a path without links; `folders` are those that are known already."""
    folder, _, name = path.rpartition("/")
    if folder not in folders:
        folders[folder] = os.path.realpath(folder)
    real = f"{folders[folder].rstrip('/')}/{name}"
    return os.path.realpath(real) if _is_link(real) else real


def link_warnings(files: Sequence[FileState]) -> tuple[str, ...]:
    """Return what to say of links to files that are read under another name."""
    linked = [(link, file.path) for file in files for link in file.links]
    if not linked:
        return ()
    link, path = linked[0]
    more = f" (and {len(linked) - 1:,} more such)" if linked[1:] else ""
    return (f"`{link}` leads to `{path}` by a link: its rows are loaded once{more}",)


def _local(pattern: str) -> str:
    scheme, separator, rest = pattern.partition("://")
    if not separator:
        return pattern.removeprefix("file:")
    if scheme == "file":
        return rest
    raise InvalidInput(
        f"reading `{pattern}`: `{scheme}://` input is not supported",
        hint="use local paths or `s3://` paths",
    )


_ESCAPED = re.compile(r"\[([*?[])\]")
"""What `glob.escape` makes of a character."""


def _matches(pattern: str, on_fault: OnFault) -> list[str]:
    # The folder of the document is escaped, and a file in it may be called `a[1].csv`.
    plain = _ESCAPED.sub(r"\1", pattern)
    for named in (pattern, plain):
        try:
            Path(named).stat()
            return [normal_path(named)]
        except ValueError:  # a zero byte
            continue
        except OSError as error:
            if _is_link(named) or error.errno not in _NOT_THERE:
                on_fault(named, _unreadable(named, error))
                return []
    if not _has_magic(pattern):
        raise _nothing(pattern)
    found = sorted(_globbed(pattern, on_fault))
    # Python's globs hide names with a dot alone, and look into folders such as `_temporary`.
    matches = [normal_path(path) for path in found if names_path(pattern, path)]
    if not matches:
        raise _nothing(pattern)
    return matches


def _has_magic(pattern: str) -> bool:
    return glob.has_magic(_ESCAPED.sub("", pattern))


def _globbed(pattern: str, on_fault: OnFault) -> Iterator[str]:
    names = pattern.split("/")
    if _ANYWHERE not in names:
        _check_folders(names, on_fault)
        # Path.glob takes no absolute pattern.
        matches = glob.glob(pattern)  # noqa: PTH207
        yield from (path for path in matches if "**" not in pattern or not Path(path).is_dir())
        return
    # Python's own `**` goes around in links that lead back to a folder above them.
    first = names.index(_ANYWHERE)
    _check_folders(names[:first], on_fault)
    for folder in glob.glob("/".join(names[:first]) or "/"):  # noqa: PTH207
        yield from (file.path for file in _below(folder, on_fault, hides=False))


def _check_folders(names: Sequence[str], on_fault: OnFault) -> None:
    """Tell of folders that a glob would look into and that may not be read: Python's passes over
    them."""
    for place, name in enumerate(names):
        if not _has_magic(name):
            continue
        above = "/".join(names[:place]) or "/"
        for folder in sorted(glob.glob(above)):  # noqa: PTH207
            if not names_path(above, folder):
                continue
            try:
                os.scandir(f"{folder}/.").close()
            except OSError as error:
                _tell(folder, error, on_fault)


def _nothing(pattern: str) -> LoadFailed:
    folder = Path(pattern).parent
    # A folder that is named and not there may be one that is not mounted.
    kind: type[LoadFailed] = NoFiles
    while not os.path.isdir(folder) or glob.has_magic(str(folder)):  # noqa: PTH112 - never raises
        kind = kind if glob.has_magic(str(folder)) else LoadFailed
        folder = folder.parent
    faults: list[str] = []
    names = sorted(e.name for e in _entries(str(folder), lambda path, _: faults.append(path)))
    shown = ", ".join(f"`{name}`" for name in names[:NEIGHBOURS_SHOWN])
    more = f" and {len(names) - NEIGHBOURS_SHOWN} more" if len(names) > NEIGHBOURS_SHOWN else ""
    content = f"it holds {shown}{more}" if names else "it is empty"
    what = "no file matches" if glob.has_magic(pattern) else "there is no file or folder"
    meant = neighbour_meant(pattern, str(folder), names)
    hint = f"{meant}`{folder}` exists; {'it cannot be read' if faults else content}"
    return kind(f"{what} `{pattern}`", hint=hint)

"""The files that the local `paths` of a table name, found on the driver's machine in one order for
every run; by the command line too, before Spark starts."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.sources.files.file_state import FileState, NoFiles, hidden
from lakeload_jobs.sources.files.key_patterns import names_path

_NEIGHBOURS_SHOWN = 5


def expand(patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the files and folders that absolute `patterns` name, sorted within each pattern.

    `*`, `?`, `[…]` and `**` are wildcards unless a file has exactly that name. Names that Spark
    hides (beginning with `_` or `.`) are skipped by a wildcard and refused by name, because
    Spark would read them as empty. Raises `LoadFailed` for a pattern that matches nothing.

    What is returned has one spelling, the one that Spark gives it (`normal_path`).
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        found.update(dict.fromkeys(_matches(_local(pattern))))
    return tuple(found)


def normal_path(path: str) -> str:
    """Return an absolute path without `.`, `..` and empty names.

    Hadoop takes the name before a `..` away, whatever it is; to the system a link leads elsewhere.
    So a link that `..` follows is resolved here, and no other: known files keep their names.
    """
    normal = "/"
    for name in path.split("/"):
        if name == "..":
            leads = os.path.realpath(normal) if Path(normal).is_symlink() else normal
            normal = str(Path(leads).parent)
        elif name not in ("", "."):
            normal = f"{normal.rstrip('/')}/{name}"
    return normal


def local_files(patterns: Sequence[str]) -> Iterator[FileState]:
    """Yield every file the patterns name, and every file below a folder they name, hidden ones
    left out. Raises what `expand` raises, and `LoadFailed` for a folder that cannot be read."""
    for path in expand(patterns):
        if Path(path).is_dir():
            yield from _below(path, root=path)
        else:
            yield file_state(path)


def _below(folder: str, *, root: str) -> Iterator[FileState]:
    """Walk with one system call for each file: there may be 100,000."""
    try:
        with os.scandir(folder) as entries:
            inside = [entry for entry in entries if not hidden(entry.name)]
    except FileNotFoundError:
        return
    except OSError as error:
        raise LoadFailed(
            f"the folder `{folder}` cannot be read: {error.strerror}",
            hint="allow the user who runs lakeload to read it, or name other paths",
        ) from error
    for entry in inside:
        if entry.is_dir():
            yield from _below(entry.path, root=root)
        elif entry.is_file():
            with contextlib.suppress(FileNotFoundError):
                status = entry.stat()
                yield FileState(entry.path, status.st_size, status.st_mtime_ns, root=root)


def file_state(path: str) -> FileState:
    """Return the present state of a local file; one that is gone has size -1."""
    try:
        status = Path(path).stat()
    except FileNotFoundError:
        return FileState(path, -1, 0)
    return FileState(path, status.st_size, status.st_mtime_ns)


def _local(pattern: str) -> str:
    scheme, separator, rest = pattern.partition("://")
    if not separator:
        return pattern.removeprefix("file:")
    if scheme == "file":
        return rest
    raise InvalidInput(
        f"reading `{pattern}`: `{scheme}://` input is not supported",
        hint="name local paths or `s3://` paths",
    )


def _matches(pattern: str) -> list[str]:
    if Path(pattern).exists():
        path = normal_path(pattern)
        if hidden(Path(path).name):
            raise LoadFailed(
                f"`{pattern}` cannot be read: Spark skips names that begin with `_` or `.`",
                hint="rename it",
            )
        return [path]
    # Path.glob takes no absolute pattern.
    matches = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207
    if "**" in pattern:
        matches = [path for path in matches if not Path(path).is_dir()]
    # Python's globs hide names with a dot alone, and look into folders such as `_temporary`.
    matches = [normal_path(path) for path in matches if names_path(pattern, path)]
    if not matches:
        raise _nothing(pattern)
    return matches


def _nothing(pattern: str) -> LoadFailed:
    folder = Path(pattern).parent
    # A folder that is named and not there may be one that is not mounted.
    kind: type[LoadFailed] = NoFiles
    while not folder.is_dir() or glob.has_magic(str(folder)):
        kind = kind if glob.has_magic(str(folder)) else LoadFailed
        folder = folder.parent
    names = sorted(entry.name for entry in folder.iterdir())
    shown = ", ".join(f"`{name}`" for name in names[:_NEIGHBOURS_SHOWN])
    more = f" and {len(names) - _NEIGHBOURS_SHOWN} more" if len(names) > _NEIGHBOURS_SHOWN else ""
    content = f"it holds {shown}{more}" if names else "it is empty"
    what = "no file matches" if glob.has_magic(pattern) else "there is no file or folder"
    return kind(f"{what} `{pattern}`", hint=f"`{folder}` exists; {content}")

"""Paths and globs of a FILES source, expanded on the driver in one order for every run."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed

_HADOOP_MAGIC = "{}[]*?\\"
_NEIGHBOURS_SHOWN = 5


@dataclass(frozen=True)
class FileState:
    """What identifies the content of a file as it was read: path, bytes, modification time (ns)."""

    path: str
    size: int
    modified: int


def expand(patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the files and folders that absolute `patterns` name, sorted within each pattern.

    `*`, `?`, `[…]` and `**` are wildcards unless a file has exactly that name. Names that Spark
    hides (beginning with `_` or `.`) are skipped by a wildcard and refused by name, because
    Spark would read them as empty. Raises `LoadFailed` for a pattern that matches nothing.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        found.update(dict.fromkeys(_matches(_local(pattern))))
    # A file whose folder is read as well would be loaded twice.
    return tuple(path for path in found if str(Path(path).parent) not in found)


def spark_path(path: str) -> str:
    """Return `path` so that Spark takes every character of it literally."""
    return "file:" + "".join(f"\\{c}" if c in _HADOOP_MAGIC else c for c in path)


def local_path(uri: str) -> str:
    """Return the path behind one of Spark's `file:///…` URIs."""
    return unquote(urlsplit(uri).path)


def file_states(paths: Iterable[str]) -> tuple[FileState, ...]:
    """Return the present state of files; one that is gone has size -1."""
    states = []
    for path in sorted(paths):
        try:
            status = Path(path).stat()
        except FileNotFoundError:
            states.append(FileState(path, -1, 0))
        else:
            states.append(FileState(path, status.st_size, status.st_mtime_ns))
    return tuple(states)


def _local(pattern: str) -> str:
    scheme, separator, rest = pattern.partition("://")
    if not separator:
        return pattern.removeprefix("file:")
    if scheme == "file":
        return rest
    raise InvalidInput(
        f"reading `{pattern}`: `{scheme}://` input is not supported yet",
        hint="copy the files to this machine and name the local path",
    )


def _matches(pattern: str) -> list[str]:
    if Path(pattern).exists():
        if _hidden(pattern):
            raise LoadFailed(
                f"`{pattern}` cannot be read: Spark skips names that begin with `_` or `.`",
                hint="rename it",
            )
        return [pattern.rstrip("/") or "/"]
    # Path.glob takes no absolute pattern.
    matches = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207
    if "**" in pattern:
        matches = [path for path in matches if not Path(path).is_dir()]
    matches = [path.rstrip("/") for path in matches if not _hidden(path)]
    if not matches:
        raise _nothing(pattern)
    return matches


def _hidden(path: str) -> bool:
    """Spark's own rule (HadoopFSUtils.shouldFilterOutPathName)."""
    name = Path(path).name
    underscore = name.startswith("_") and "=" not in name
    return underscore or name.startswith(".") or name.endswith("._COPYING_")


def _nothing(pattern: str) -> LoadFailed:
    folder = Path(pattern).parent
    while not folder.is_dir() or glob.has_magic(str(folder)):
        folder = folder.parent
    names = sorted(entry.name for entry in folder.iterdir())
    shown = ", ".join(f"`{name}`" for name in names[:_NEIGHBOURS_SHOWN])
    more = f" and {len(names) - _NEIGHBOURS_SHOWN} more" if len(names) > _NEIGHBOURS_SHOWN else ""
    content = f"it holds {shown}{more}" if names else "it is empty"
    what = "no file matches" if glob.has_magic(pattern) else "there is no file or folder"
    return LoadFailed(f"{what} `{pattern}`", hint=f"`{folder}` exists; {content}")

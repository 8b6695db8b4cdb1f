"""A source file's state, and the options that decide which files are read."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed

_NS = 1_000_000_000
_MS = 1_000_000


@dataclass(frozen=True)
class ListingFilter:
    """Which files of a listing are wanted. Times in ms since 1970, both bounds exclusive."""

    name: re.Pattern[str] | None = None
    after: int | None = None
    before: int | None = None

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> ListingFilter:
        """Read the options, whose names are in lower case. Raises `InvalidInput`."""
        pattern = options.get("pathglobfilter")
        zone = options.get("timezone", "UTC")
        return cls(
            name=None if pattern is None else _compiled(pattern),
            after=_instant("modifiedAfter", options.get("modifiedafter"), zone),
            before=_instant("modifiedBefore", options.get("modifiedbefore"), zone),
        )

    def accepts(self, name: str, modified: int) -> bool:
        """Whether a file of this name, modified then (ns since 1970), is wanted."""
        at = modified // _MS
        if self.name is not None and not self.name.fullmatch(name):
            return False
        return (self.after is None or at > self.after) and (self.before is None or at < self.before)


def _compiled(pattern: str) -> re.Pattern[str]:
    """Hadoop's globs: `*`, `?`, `[…]`, `[^…]`, `{a,b}` and a backslash before any of these."""
    try:
        return re.compile(_translated(pattern), re.DOTALL)
    except (re.error, IndexError) as error:
        raise InvalidInput(
            f"the reader option `pathGlobFilter: {pattern}` is not a pattern",
            hint=(
                "write a glob with `*`, `?`, `[a-z]` or `{a,b}`, which is matched with the "
                "file name"
            ),
        ) from error


def _translated(pattern: str) -> str:
    regex, depth, i = "", 0, 0
    while i < len(pattern):
        char = pattern[i]
        if char == "\\":
            i += 1
            regex += re.escape(pattern[i])
        elif char == "[":
            end = pattern.index("]", i + 2) if "]" in pattern[i + 2 :] else len(pattern)
            inner = pattern[i + 1 : end]
            negated = inner[0] in "^!"
            regex += "[" + ("^" if negated else "") + _escaped(inner[negated:]) + pattern[end] * 1
            i = end
        elif char == "{":
            regex, depth = regex + "(?:", depth + 1
        elif char == "}" and depth:
            regex, depth = regex + ")", depth - 1
        elif char == "," and depth:
            regex += "|"
        else:
            regex += {"*": ".*", "?": "."}.get(char) or re.escape(char)
        i += 1
    return regex


def _escaped(characters: str) -> str:
    return re.sub(r"([\\\[\]^&~|])", r"\\\1", characters)


def _instant(option: str, text: str | None, zone: str) -> int | None:
    if text is None:
        return None
    try:
        given = datetime.fromisoformat(text.strip())
        local = given if given.tzinfo else given.replace(tzinfo=ZoneInfo(zone))
    except (ValueError, LookupError) as error:
        raise InvalidInput(
            f"the reader option `{option}: {text}` is not a time",
            hint="write it as `2026-11-21T10:15:00`; it is UTC unless `timeZone` is set",
        ) from error
    return int(local.timestamp() * _NS) // _MS


S3_SCHEME = "s3://"


class NoFiles(LoadFailed):
    """The place is there, or is a bucket, and holds no file that a path names."""


def is_damage(error: Exception) -> bool:
    """Whether an error of a library says that bytes are wrong. Errors of the system, such as a
    missing permission or a broken connection, say nothing of a file's content."""
    if isinstance(error, MemoryError):
        return False
    if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
        # bzip2 and Arrow raise it without a number.
        return type(error) is OSError and error.errno is None
    return True


@dataclass(frozen=True)
class FileState:
    """What identifies the content of an input file when it was listed.

    `path` is an absolute path of this machine or `s3://bucket/key`; `size` in bytes, -1 for a file
    that is gone; `modified` in ns since 1970; `etag` as S3 names it, None for local files. `root`
    is the folder a path of the table names, '' for a file that was named itself. `left_rejects`:
    the load of this version set some of its records aside. `content` is a hash of its bytes, None
    where none was kept (sources.files.content). `links` are other paths that lead to the file and
    are not read.
    """

    path: str
    size: int
    modified: int
    etag: str | None = None
    root: str = field(default="", compare=False)
    left_rejects: bool = field(default=False, compare=False)
    content: str | None = field(default=None, compare=False)
    links: tuple[str, ...] = field(default=(), compare=False)

    @property
    def partitioned(self) -> bool:
        """Whether a folder between `root` and the file is named `column=value`."""
        below = self.path[len(self.root) :] if self.root else ""
        return any("=" in name for name in below.split("/")[:-1])


def is_s3(path: str) -> bool:
    """Whether a path or glob of a table names objects in S3."""
    return path.startswith(S3_SCHEME)


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


def hidden(name: str) -> bool:
    """Whether Spark passes over a file or folder of this name (HadoopFSUtils), except that
    summary files of Parquet, which hold no rows, are always passed over."""
    underscore = name.startswith("_") and "=" not in name
    return underscore or name.startswith(".") or name.endswith("._COPYING_")


def hidden_below(relative: str) -> bool:
    """Whether a file is hidden, or lies in a folder that is."""
    return any(hidden(name) for name in relative.split("/"))


def choose(found: Iterable[FileState], options: Mapping[str, str]) -> tuple[FileState, ...]:
    """Return the files Spark would read, each once, sorted by path.

    Of a folder: the files directly in it, or all below when it has `column=value` folders or with
    `recursiveFileLookup`. Raises `LoadFailed` for files that Spark would drop without a word, and
    `InvalidInput` for listing options that cannot be understood.
    """
    lower = {name.lower(): value for name, value in options.items()}
    recursive = lower.get("recursivefilelookup", "false").lower() == "true"
    wanted = ListingFilter.from_options(lower)
    chosen: dict[str, FileState] = {}
    for root, files in _by_root(found).items():
        kept = [file for file in files if wanted.accepts(_name(file.path), file.modified)]
        if root and not recursive:
            kept = _of_folder(root, kept)
        for file in kept:
            chosen.setdefault(file.path, file)
    return tuple(chosen[path] for path in sorted(chosen))


def partition_base(files: Sequence[FileState], options: Mapping[str, str]) -> str | None:
    """Return the folder below which `column=value` folders are columns, None without such folders.

    Raises `LoadFailed` where several folders have them: Spark takes columns from one alone.
    """
    lower = {name.lower(): value.lower() for name, value in options.items()}
    if "basepath" in lower or lower.get("recursivefilelookup") == "true":
        return None
    bases = sorted({file.root for file in files if file.partitioned})
    if not bases:
        return None
    others = [file.path for file in files if not file.partitioned or file.root != bases[0]]
    if others:
        raise LoadFailed(
            f"`{bases[0]}` has folders named `column=value`, and `{others[0]}` is outside of them",
            hint="load it as a separate table, or set the reader option `basePath` or "
            "`recursiveFileLookup: true`",
        )
    return bases[0]


_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def folder_base(files: Sequence[FileState], options: Mapping[str, str]) -> str | None:
    """Return the folder below which `column=value` folders are columns, with the option `basePath`
    as well. Raises as `partition_base` does."""
    lower = {name.lower(): value for name, value in options.items()}
    if lower.get("recursivefilelookup", "false").lower() == "true":
        return None
    if base := lower.get("basepath"):
        if is_s3(place := re.sub("^s3[an]://", S3_SCHEME, base)):
            return place.rstrip("/")
        return normal_path(base.removeprefix("file:"))
    return partition_base(files, options)


def folder_values(path: str, base: str | None) -> tuple[tuple[str, str | None], ...]:
    """Return the columns and values that the folders of a file below `base` name, as text."""
    if base is None or not path.startswith(f"{base.rstrip('/')}/"):
        return ()
    found: dict[str, str | None] = {}
    for folder in path.removeprefix(f"{base.rstrip('/')}/").split("/")[:-1]:
        name, equals, text = folder.partition("=")
        if equals:
            found[_unescaped(name)] = None if text == _NO_VALUE else _unescaped(text)
    return tuple(found.items())


def _unescaped(name: str) -> str:
    """Hive writes each `%XX` for one sign; other letters are as they are."""
    return re.sub("%([0-9A-Fa-f]{2})", lambda found: chr(int(found[1], 16)), name)


def _by_root(found: Iterable[FileState]) -> dict[str, list[FileState]]:
    files: dict[str, list[FileState]] = {}
    for file in found:
        files.setdefault(file.root, []).append(file)
    return files


def _of_folder(root: str, files: list[FileState]) -> list[FileState]:
    if any(file.partitioned for file in files):
        return files
    return [file for file in files if "/" not in file.path[len(root) :].strip("/")]


def _name(path: str) -> str:
    return path.rpartition("/")[2]

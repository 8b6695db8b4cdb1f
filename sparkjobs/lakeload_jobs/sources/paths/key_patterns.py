"""Globs over S3 keys, with the meaning they have for local paths (Python's `glob`). Pure.

`*` and `?` stay within one name, `**` as a whole name spans folders and yields files only, and
names that Spark hides are never matched by a wildcard.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from lakeload_jobs.sources.paths.file_state import S3_SCHEME, hidden

_MAGIC = re.compile(r"[*?[]")
_ANYWHERE = "**"


@dataclass(frozen=True)
class KeyPattern:
    """One `s3://bucket/key` of a table, whose key may hold wildcards."""

    bucket: str
    key: str

    @classmethod
    def parse(cls, path: str) -> KeyPattern:
        """Split `s3://bucket/key`."""
        bucket, _, key = path.removeprefix(S3_SCHEME).partition("/")
        return cls(bucket, key)

    @property
    def magic(self) -> bool:
        """Whether the key holds a wildcard."""
        return _MAGIC.search(self.key) is not None

    @property
    def prefix(self) -> str:
        """What every matching key begins with: the only part of the bucket that is listed."""
        found = _MAGIC.search(self.key)
        return self.key[: found.start()] if found else self.key

    @property
    def flat(self) -> bool:
        """Whether wildcards are in the last name only: one level of folders has all matches."""
        return "/" not in self.key[len(self.prefix) :].rstrip("/") and not self._anywhere

    def root_of(self, key: str) -> str | None:
        """Return '' for a key the pattern matches, the folder for a key in a folder it matches,
        and None for any other key."""
        names = key.split("/")
        if self._anywhere:
            return "" if _match(self._names, names) else None
        size = len(self._names)
        folder_only = self.key.endswith("/")
        if len(names) < size or (folder_only and len(names) == size):
            return None
        if not _match(self._names, names[:size]):
            return None
        if any(hidden(name) for name in names[size:]):
            return None
        return "" if len(names) == size else "/".join(names[:size])

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(self.key.rstrip("/").split("/"))

    @cached_property
    def _anywhere(self) -> bool:
        return _ANYWHERE in self._names


def names_path(pattern: str, path: str) -> bool:
    """Whether a glob names a path or key whole, hidden names by no wildcard."""
    return _match(tuple(pattern.rstrip("/").split("/")), path.rstrip("/").split("/"))


def last_name_glob(path: str) -> str | None:
    """Return the last name of a path, local or in S3, as a glob of Hadoop, where it alone holds
    wildcards; None where no name does or another one."""
    folder, _, name = path.rpartition("/")
    if not _MAGIC.search(name) or _MAGIC.search(folder) or name == _ANYWHERE:
        return None
    return re.sub(r"([\\{},])", r"\\\1", name).replace("[!", "[^")


_BRACES = re.compile(r"(?<!\[)\{((?:[^{}]|\{[^{}]*\})*,(?:[^{}]|\{[^{}]*\})*)\}")
"""The first `{a,b}` of a path, another one within it included; `[{]` is a brace by itself."""


def alternatives(path: str) -> tuple[str, ...]:
    """Return the paths that `{a,b}` in a path is short for, in order, as in a shell."""
    found = _BRACES.search(path)
    if found is None:
        return (path,)
    options, depth = [""], 0
    for char in found[1]:
        depth += (char == "{") - (char == "}")
        if char == "," and not depth:
            options.append("")
        else:
            options[-1] += char
    head, tail = path[: found.start()], path[found.end() :]
    return tuple(one for option in options for one in alternatives(f"{head}{option}{tail}"))


def _match(patterns: tuple[str, ...], names: list[str]) -> bool:
    """Match whole names; `**` stands for any number of folders, at the end for what is in them."""
    if not patterns:
        return not names
    first, rest = patterns[0], patterns[1:]
    if first == _ANYWHERE:
        if not rest:
            return bool(names) and not any(map(hidden, names))
        return _match(rest, names) or (
            bool(names) and not hidden(names[0]) and _match(patterns, names[1:])
        )
    return bool(names) and _one(first, names[0]) and _match(rest, names[1:])


def _one(pattern: str, name: str) -> bool:
    if not _MAGIC.search(pattern):
        return pattern == name
    return not hidden(name) and _compiled(pattern).fullmatch(name) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern))

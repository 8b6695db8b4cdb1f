"""Files that lakeload has written beside data: configuration files, and the folder of a lake."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from lakeload_jobs.sources.paths.file_state import FileState, is_s3

_VERSION = re.compile(r"^version: *\d", re.MULTILINE)
_SETTING = re.compile(r"^(bucket|tables|destination):", re.MULTILINE)
_READ = 1 << 16
"""Bytes of a configuration file in which its settings are."""
_LAKE = "lake.json"


def own_files(files: Sequence[FileState]) -> Callable[[str], bool]:
    """Return what tells whether lakeload has written a file, one of these or a file beside them
    that cannot be read. Objects are never taken for its own."""
    lakes = tuple(f"{folder}/" for folder in _lakes(file.path for file in files))

    def is_own(path: str) -> bool:
        return not is_s3(path) and (path.startswith(lakes) or _is_configuration(path))

    return is_own


def _is_configuration(path: str) -> bool:
    if not path.lower().endswith((".yml", ".yaml")):
        return False
    text = _start(path)
    return bool(_VERSION.search(text) and _SETTING.search(text))


def _lakes(paths: Iterable[str]) -> Iterator[str]:
    """Yield the folders of lakes of this machine."""
    for path in paths:
        folder, _, name = path.rpartition("/")
        if name != _LAKE:
            continue
        try:
            settings = json.loads(_start(path))
        except ValueError:
            continue
        if isinstance(settings, dict) and "port" in settings and Path(folder, "data").is_dir():
            yield folder


def _start(path: str) -> str:
    """Return the first characters of a file, none where it cannot be read."""
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            return file.read(_READ)
    except OSError:
        return ""

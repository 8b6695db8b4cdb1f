"""Detection of JSON lines in local files, so that `init` writes the right format."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from lakeload.init.interview import format_of

_LOOKED_AT = 100


def detect_format(given: Mapping[str, str]) -> str | None:
    """Return NDJSON for a path whose ending says JSON and whose first file has an object on each
    line; None for other endings, and for files that are missing, remote or unreadable."""
    path = given.get("path", "")
    if format_of(path) != "JSON" or "://" in path:
        return None
    # Only here: a look into files brings the libraries of AWS along.
    from lakeload_jobs.contract.errors import LakeloadError
    from lakeload_jobs.sources.files.listing import local_files
    from lakeload_jobs.sources.files.source_bytes import DAMAGED, as_utf8, decompressed

    # As in the document: a shell expands it for flags, nobody for an answer.
    pattern = os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111
    try:
        first = next(iter(local_files([pattern])), None)
        if first is None:
            return None
        with Path(first.path).open("rb") as file:
            start = next(as_utf8(decompressed(first.path, file), None), b"")
    except (LakeloadError, *DAMAGED):
        return None
    return "NDJSON" if _has_lines(start) else None


def _has_lines(start: bytes) -> bool:
    """Whether a text begins with two lines that are an object each: JSON has one in a file."""
    lines = [line for line in start.splitlines()[:_LOOKED_AT] if line.strip()]
    return len(lines) > 1 and all(map(_is_object, lines[:2]))


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False

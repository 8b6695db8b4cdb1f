"""What the input paths of a FILES table name on this machine, looked at before Spark starts."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path

from lakeload.sources.base import InputFound
from lakeload_jobs.contract.spec import FilesInput
from lakeload_jobs.sources.files.file_state import hidden, is_s3


def look_at_input(given: FilesInput) -> InputFound:
    """Count what lies at the local paths: folders with all they hold, without what Spark hides.

    The job may read less: folders in folders and reader options are its business.
    Objects in S3 are not looked at here: that takes an identity.
    """
    local = [path for path in given.paths if not is_s3(path)]
    missing = tuple(path for path in local if not input_exists(path))
    sizes: dict[str, int] = {}
    for pattern in local:
        for match in _matches(pattern):
            for file in _files(Path(match)):
                sizes[os.path.realpath(file)] = file.stat().st_size
    return InputFound(len(sizes), sum(sizes.values()), missing)


def input_exists(pattern: str) -> bool:
    """Whether a path or glob names anything at all; of one in S3 only S3 can tell."""
    return is_s3(pattern) or any(True for _ in _matches(pattern))


def _matches(pattern: str) -> Iterator[str]:
    if os.path.lexists(pattern):
        yield pattern
    else:
        # The same function as in the job, whose globs are these.
        yield from glob.iglob(pattern, recursive=True)  # noqa: PTH207


def _files(path: Path) -> Iterator[Path]:
    if hidden(path.name):
        return
    if path.is_file():
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not hidden(name)]
        yield from (Path(folder, name) for name in names if not hidden(name))

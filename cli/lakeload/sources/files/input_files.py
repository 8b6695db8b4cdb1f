"""Local input files of a FILES table, listed before Spark starts."""

from __future__ import annotations

import os
from collections.abc import Sequence

from lakeload.sources.base import InputFound
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import FilesInput
from lakeload_jobs.sources.paths.file_state import is_s3


def look_at_input(given: FilesInput) -> InputFound:
    """Count what lies at the local paths: folders with all they hold, without what Spark hides.

    The job may read less: folders in folders and reader options are its business.
    Objects in S3 are not looked at here: that takes an identity.
    """
    # Only here: it brings the libraries of AWS along. The job lists with the same function.
    from lakeload_jobs.sources.paths.local_listing import local_files

    sizes: dict[str, int] = {}
    missing: list[str] = []
    why: LoadFailed | None = None
    for pattern in given.paths:
        if is_s3(pattern):
            continue
        try:
            for file in local_files([pattern]):
                sizes[os.path.realpath(file.path)] = file.size
        except LoadFailed as error:
            missing.append(pattern)
            why = why or error
    return InputFound(len(sizes), sum(sizes.values()), tuple(missing), why)


def any_input(patterns: Sequence[str]) -> bool:
    """Whether one of the paths or globs names anything at all; of S3 only S3 can tell."""
    from lakeload_jobs.sources.paths.local_listing import expand

    for pattern in patterns:
        if is_s3(pattern):
            return True
        try:
            expand([pattern])
        except LoadFailed:
            continue
        return True
    return False

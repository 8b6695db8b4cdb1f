"""What the input paths of a FILES table name on this machine, looked at before Spark starts."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakeload_jobs.contract.errors import Refused
from lakeload_jobs.contract.spec import FilesInput, TableSpec
from lakeload_jobs.sources.files.file_state import hidden, is_s3


@dataclass(frozen=True)
class InputFound:
    """Files and bytes of one table's input, and the local patterns that match nothing."""

    files: int
    bytes: int
    missing: tuple[str, ...]


def look_at_input(given: FilesInput) -> InputFound:
    """Count what lies at the local paths: folders with all they hold, without what Spark hides.

    The job may read less: folders in folders and reader options are its business.
    Objects in S3 are not looked at here: that takes an identity (formats).
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


def input_bytes(tables: Sequence[TableSpec]) -> int | None:
    """Return the bytes the job will read, None where some of them are not on this machine."""
    if any(is_s3(path) for table in tables for path in table.input.paths):
        return None
    return sum(look_at_input(table.input).bytes for table in tables)


def refuse_without_any_input(tables: Sequence[TableSpec]) -> None:
    """Raise `Refused` when every table lacks its files: Spark need not start for that.

    Where only some lack them, those fail in the job and the others are loaded.
    """
    lacking = [
        table
        for table in tables
        # A folder whose files are loaded once may be empty; their log knows whether they were.
        if not table.input.incremental and not any(map(input_exists, table.input.paths))
    ]
    if not tables or len(lacking) < len(tables):
        return
    first = lacking[0]
    more = f", nor those of {len(lacking) - 1} other tables" if len(lacking) > 1 else ""
    raise Refused(
        f"the input files of `{first.source}` are not there: {_listed(first.input.paths)}{more}",
        hint="relative paths start at the folder of the pipeline document",
    )


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


def _listed(paths: Iterable[str]) -> str:
    return ", ".join(f"`{path}`" for path in paths)

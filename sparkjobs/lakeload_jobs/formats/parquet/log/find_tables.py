"""The tables of a destination, found by their logs: at most two LISTs a table of any age."""

from __future__ import annotations

from lakeload_jobs.core.layout import TableLocation, log_root
from lakeload_jobs.formats.parquet.log.commit_log import run_all
from lakeload_jobs.storage.objects import Objects

AT_ONCE = 8

_LOG = "log"


def find_tables(objects: Objects, prefix: str) -> tuple[TableLocation, ...]:
    """Return every table below `prefix` that has a log, in order of schema and name.

    Folders are listed with a delimiter, so that commits are not. Raises `AwsError`.
    """
    root = log_root(prefix)
    folders = list(objects.list_folders(root))
    below = run_all(lambda name: list(objects.list_folders(f"{root}{name}/")), folders, AT_ONCE)
    candidates = [
        location
        for folder, names in zip(folders, below, strict=True)
        for location in _candidates(prefix, folder, names)
    ]
    begun = run_all(lambda location: _has_records(objects, location), candidates, AT_ONCE)
    found = [location for location, there in zip(candidates, begun, strict=True) if there]
    return tuple(sorted(found, key=lambda location: (location.schema, location.table)))


def _candidates(prefix: str, folder: str, names: list[str]) -> list[TableLocation]:
    """Return what `folder` may be: a table without a schema, a schema of tables, or both.

    The log of table `log` in schema `a` and that of table `a` without a schema share a folder.
    """
    pairs = [(folder, name) for name in names]
    if _LOG in names:
        pairs.append(("", folder))
    found = []
    for schema, table in pairs:
        try:
            found.append(TableLocation(prefix, schema, table))
        except ValueError:
            # Not a name that lakeload makes: something else lies in this folder.
            continue
    return found


def _has_records(objects: Objects, location: TableLocation) -> bool:
    # Record numbers have 20 digits: all of them begin with 0, and nothing else does.
    return not objects.is_empty(location.log_path + "0")

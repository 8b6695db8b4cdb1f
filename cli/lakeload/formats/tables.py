"""Which tables a command is about, and work on several of them at once."""

from __future__ import annotations

import fnmatch
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.formats.parquet.log.commit_log import find_tables
from lakeload_jobs.formats.parquet.log.publish import Notify
from lakeload_jobs.storage.objects import Objects

T = TypeVar("T")

AT_ONCE = 4
"""Tables worked on at once."""


@dataclass(frozen=True)
class UpkeepTable:
    """One table: the name it is shown under, and where it lies."""

    target: str
    location: TableLocation


def open_session(destination: DestinationSpec, label: str) -> AwsSession:
    """Return a session with enough connections for `AT_ONCE` tables. Nothing is called yet."""
    return AwsSession(destination, label=label, read_timeout=30, max_attempts=4)


def of_pipeline(destination: DestinationSpec, tables: Sequence[TableSpec]) -> list[UpkeepTable]:
    """Return the tables of a pipeline where they lie."""
    return [
        UpkeepTable(table.target, TableLocation(destination.prefix, table.schema, table.table))
        for table in tables
    ]


def of_destination(objects: Objects, prefix: str, globs: Sequence[str]) -> list[UpkeepTable]:
    """Return every table with a log whose `schema.table` matches one of the globs, or all.

    Raises `InvalidInput` for a glob without a match, `AwsError`.
    """
    tables = [UpkeepTable(_target(found), found) for found in find_tables(objects, prefix)]
    names = [table.target for table in tables]
    for glob in globs:
        if not any(fnmatch.fnmatchcase(name, glob) for name in names):
            root = objects.url(prefix)
            raise InvalidInput(
                f"`--table {glob}` matches no table with a log in `{root}`",
                hint=did_you_mean(glob, names) or _there_are(names),
            )
    return [
        table
        for table in tables
        if not globs or any(fnmatch.fnmatchcase(table.target, glob) for glob in globs)
    ]


def for_each(tables: Sequence[UpkeepTable], work: Callable[[UpkeepTable], T]) -> list[T]:
    """Return `work` of each table in order, several at a time; raise what the first one raised.

    Ctrl-C ends it at once: a table may be waiting for minutes, and every step may be cut off. The
    threads of a pool would be waited for.
    """
    todo = iter(enumerate(tables))
    taking = threading.Lock()
    results: dict[int, T] = {}
    errors: list[BaseException] = []

    def run() -> None:
        while not errors:
            with taking:
                number, table = next(todo, (None, None))
            if number is None or table is None:
                return
            try:
                results[number] = work(table)
            except BaseException as error:  # noqa: BLE001 - raised by the caller's thread
                errors.append(error)

    threads = [threading.Thread(target=run, daemon=True) for _ in tables[:AT_ONCE]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(tables))]


def about(table: UpkeepTable, notify: Notify) -> Notify:
    """Return a `notify` that names the table: several are worked on at once."""
    return lambda message: notify(f"{table.target}: {message}")


def _target(location: TableLocation) -> str:
    return f"{location.schema}.{location.table}" if location.schema else location.table


def _there_are(names: Sequence[str], most: int = 10) -> str:
    if not names:
        return "no table has been loaded there yet"
    shown = ", ".join(f"`{name}`" for name in names[:most])
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"there are {shown}{more}"

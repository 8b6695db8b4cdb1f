"""Table selection of a command, and parallel work on several tables."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lakeload.connections import Connections
from lakeload.documents.load import DestinationDocument, PipelineDocument
from lakeload.documents.spec import destination_spec, table_specs
from lakeload.launch.spec import select_tables
from lakeload.probes.connection import preflight
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.maintain import MaintainSpec
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.publish import Notify

T = TypeVar("T")

AT_ONCE = 4
"""Tables worked on at once."""


@dataclass(frozen=True)
class TableRef:
    """One table: the name it is shown under, and where it lies."""

    target: str
    location: TableLocation


@dataclass(frozen=True)
class TablesRequest:
    """The tables that a command is about: those of a document whose names match one of the globs,
    or all.

    `option` is what the globs were given with, for messages; `notify` is told what takes long.
    """

    command: str
    document: PipelineDocument | DestinationDocument
    globs: Sequence[str]
    notify: Notify
    option: str = "--table"


@dataclass(frozen=True)
class MaintenanceRequest:
    """The maintenance of the tables of a pipeline. `with_sides` are the tables, each with the side
    table of its rejected records, where that is maintained by itself."""

    pipeline: str
    destination: DestinationSpec
    tables: Sequence[TableSpec]
    with_sides: Sequence[TableSpec]
    wanted: MaintainSpec


def about(table: TableRef, notify: Notify) -> Notify:
    """Return a `notify` that names the table: several are worked on at once."""
    return lambda message: notify(f"{table.target}: {message}")


def open_session(destination: DestinationSpec, label: str) -> AwsSession:
    """Return a session for a command named `label`. Nothing is called yet."""
    return Connections(destination, label).patient


def enter(destination: DestinationSpec, request: TablesRequest) -> AwsSession:
    """Become the identity that writes. Raises `Refused`."""
    connections = Connections(destination, request.command)
    preflight(connections)
    return connections.patient


def open_pipeline(
    document: PipelineDocument, request: TablesRequest
) -> tuple[DestinationSpec, AwsSession, Sequence[TableRef]]:
    """Become the identity that writes, and find the tables of a pipeline by its names for them.

    Raises `InvalidInput` for a glob without a match, before the network is used, and `Refused`.
    """
    destination = destination_spec(document.destination)
    chosen = select_tables(table_specs(document), request.globs, request.option)
    return destination, enter(destination, request), of_pipeline(destination, chosen)


def of_pipeline(destination: DestinationSpec, tables: Sequence[TableSpec]) -> list[TableRef]:
    """Return the tables of a pipeline where they lie."""
    return [
        TableRef(table.target, TableLocation(destination.prefix, table.schema, table.table))
        for table in tables
    ]


def each_table(
    tables: Sequence[TableRef],
    work: Callable[[TableRef], T],
    failed: Callable[[TableRef, LakeloadError], T],
) -> tuple[T, ...]:
    """Return `work` of each table, several at a time; one that fails leaves the others alone."""

    def guarded(table: TableRef) -> T:
        try:
            return work(table)
        except LakeloadError as error:
            return failed(table, error)

    return tuple(for_each(tables, guarded))


def for_each(tables: Sequence[TableRef], work: Callable[[TableRef], T]) -> list[T]:
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

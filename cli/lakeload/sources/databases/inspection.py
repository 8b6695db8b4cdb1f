"""Tables of a database as a load would find them, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from lakeload.sources.base import ColumnsRequest, SourceCheck, SourceColumns
from lakeload.sources.kept_connections import connected
from lakeload.sources.report import CursorPlan, SourceReport
from lakeload_jobs.contract.spec import JdbcInput, RunOptions, TableSpec
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.rows.columns import in_source_spelling
from lakeload_jobs.sources.databases.columns import CatalogColumn, Relation, SelectedColumn, is_read
from lakeload_jobs.sources.databases.cursors import RowsWindow, find_window, request_of
from lakeload_jobs.sources.databases.engines.base import Catalog
from lakeload_jobs.sources.databases.engines.registry import ENGINES
from lakeload_jobs.sources.databases.identity import password_of
from lakeload_jobs.sources.position import position_of
from lakeload_jobs.sources.readers import SourceReaders
from lakeload_jobs.sources.type_names import UnknownType, spark_name, text_type


def inspect(
    read: JdbcInput,
    table: TableSpec,
    options: RunOptions,
    bookmark: Callable[[], Bookmark] | None,
    readers: SourceReaders,
) -> SourceReport:
    """Return what the statistics of the database know of a table, and what a load that goes on from
    a bookmark would read.

    Raises `Refused` where it cannot be reached, `LoadFailed` where it has no such table, and what a
    load raises for its cursor.
    """
    engine = ENGINES[read.database]
    with connected_catalog(read, readers) as (database, connection):
        if not read.incremental or read.by_xmin:
            relation = database.find_relation(connection, read)
            whole = _report_of_all(relation)
            if not read.by_xmin or bookmark is None:
                return whole
            return _inspect_by_xmin(read, table, options, bookmark(), connection, relation, whole)
        relation, columns, selected = _selected(database, connection, table, read)
        whole = _report_of_all(relation)
        mark = None if bookmark is None else bookmark()
        with database.one_transaction(connection, read, relation) as fetch:
            key = database.key_of(connection, relation)
            request = request_of(
                read, engine.cursors, table, relation, columns, selected, key, options
            )
            if mark is None or mark.state is None:
                return whole
            window = find_window(request, mark, fetch)
            rows: int | None = 0
            if not window.idle and window.condition:
                rows = database.estimate_rows(connection, relation, window.condition)
    size = 0 if not rows else (whole.bytes or 0) * min(1, rows / (whole.rows or rows))
    cursor = CursorPlan(window.cursor.name, window.low, window.high)
    return replace(_report_of_window(whole, window), rows=rows, bytes=int(size), cursor=cursor)


def _report_of_all(relation: Relation) -> SourceReport:
    rows, size = relation.estimated_rows, relation.bytes
    return SourceReport(rows=rows, bytes=size, all_rows=rows, all_bytes=size)


def _report_of_window(whole: SourceReport, window: RowsWindow) -> SourceReport:
    return replace(
        whole,
        sentence=window.sentence,
        idle=window.idle,
        warnings=window.warnings,
        position=position_of(window.state.before),
    )


def _inspect_by_xmin(
    read: JdbcInput,
    table: TableSpec,
    options: RunOptions,
    mark: Bookmark,
    connection: Any,
    relation: Relation,
    whole: SourceReport,
) -> SourceReport:
    """Return whether row versions are new. How many are, no statistics tell."""
    if mark.state is None:
        return whole
    engine = ENGINES[read.database]
    with engine.catalog().one_transaction(connection, read, relation) as fetch:
        window = engine.xmin_window(connection, relation, table, options, mark, fetch)
    if window.refreshes:
        # The job has to keep the state anew.
        return whole
    report = _report_of_window(whole, window)
    return replace(report, rows=0, bytes=0) if window.idle else report


def read_columns(
    read: JdbcInput, request: ColumnsRequest, readers: SourceReaders
) -> SourceColumns | None:
    """Return the columns of a table; None for a type in `columns.types` that only Spark knows.

    Raises as `estimate` does, and `LoadFailed` for columns that the user may not read.
    """
    with connected_catalog(read, readers) as (database, connection):
        relation, found, selected = _selected(database, connection, request.table, read)
    names = tuple(column.name for column in found)
    columns = in_source_spelling(request.table.columns, names)
    types = {column.name: column.type for column in selected}
    try:
        types |= {name: spark_name(text_type(kind)) for name, kind in (columns.types or {}).items()}
    except UnknownType:
        return None
    rows = relation.estimated_rows or 1
    return SourceColumns(names, types, rows, warnings=relation.warnings)


def checks(
    tables: Sequence[tuple[TableSpec, JdbcInput]], readers: SourceReaders
) -> tuple[SourceCheck, ...]:
    """Return the checks of the database of some tables."""
    first = tables[0][1]

    def log_in() -> str:
        with connected_catalog(first, readers) as (database, connection):
            return database.describe_session(connection)

    def select(table: TableSpec, read: JdbcInput) -> str:
        with connected_catalog(read, readers) as (database, connection):
            _, _, selected = _selected(database, connection, table, read)
        return f"{len(selected)} columns"

    login = "source-login"
    more = (
        ENGINES[first.database]
        .catalog()
        .session_checks(first, partial(password_of, readers.session, first))
    )
    return (
        SourceCheck(login, "the database accepts the user", log_in),
        *(SourceCheck(name, proves, run, (login,)) for name, proves, run in more),
        *(
            SourceCheck(
                f"source-table:{table.source}",
                "the columns that are loaded can be selected",
                partial(select, table, read),
                (login,),
            )
            for table, read in tables
        ),
    )


def _selected(
    database: Catalog, connection: Any, table: TableSpec, read: JdbcInput
) -> tuple[Any, tuple[CatalogColumn, ...], list[SelectedColumn]]:
    """Return the table, its columns, and those that a load selects. Raises `LoadFailed` where it
    may not."""
    relation = database.find_relation(connection, read)
    found = database.columns(connection, relation, read)
    names = tuple(column.name for column in found)
    columns = in_source_spelling(table.columns, names)
    selected = [column for column in database.select(found) if is_read(table, columns, column)]
    database.check_select(connection, relation, selected, read)
    return relation, found, selected


@contextmanager
def connected_catalog(read: JdbcInput, readers: SourceReaders) -> Iterator[tuple[Catalog, Any]]:
    """Give the catalog of a database, and a connection to it. Raises `Refused` where the database
    cannot be reached."""
    catalog = ENGINES[read.database].catalog()

    def connect() -> Any:
        return catalog.connect_read_only(read, password_of(readers.session, read))

    with connected(_place(read), connect) as connection:
        yield catalog, connection


def _place(read: JdbcInput) -> str:
    """Return what the connections of two tables have in common if they are the same."""
    return repr(
        replace(read, schema="", table="", query=None, key=None, incremental=False, by_xmin=False,
                lookback=None)
    )  # fmt: skip

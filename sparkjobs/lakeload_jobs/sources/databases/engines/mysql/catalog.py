"""Catalog of MySQL and MariaDB: tables, columns and keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pymysql
import pymysql.cursors
from pymysql.constants import ER

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import JdbcInput
from lakeload_jobs.sources.databases.columns import (
    CatalogColumn,
    CatalogTable,
    Fetch,
    Relation,
    SelectedColumn,
    UniqueIndex,
    keys_of,
    query_sql,
)
from lakeload_jobs.sources.databases.engines.mysql.connection import (
    account_of,
    connect,
    failures,
    fetch,
    grant_hint,
    not_granted,
    number_of,
)
from lakeload_jobs.sources.databases.engines.mysql.sql import quoted, select_sql
from lakeload_jobs.sources.databases.engines.mysql.types import PLACES, result_column, type_name
from lakeload_jobs.sources.databases.engines.mysql.types import select as select
from lakeload_jobs.sources.databases.key_ranges import Ranges, find_bounds
from lakeload_jobs.sources.databases.relation_identity import RelationIdentity
from lakeload_jobs.sources.databases.table_names import table_meant

if TYPE_CHECKING:
    from lakeload_jobs.sources.databases.engines.mysql.connection import Connection


@dataclass(frozen=True)
class MysqlRelation(Relation):
    """A table or view, `engine` '' for a view, or a query: then `schema` and `name` are ''."""

    schema: str = ""
    name: str = ""
    engine: str = ""

    def quoted(self, name: str) -> str:
        """Return an identifier as the server has it."""
        return quoted(name)


_LOADED_IN_PART = "during the read may be loaded in part"


def find_relation(connection: Connection, read: JdbcInput) -> MysqlRelation:
    """Return what is read. Raises `LoadFailed` where the user sees no table of that name."""
    if read.query is not None:
        return MysqlRelation("query", query_sql(read.query, "AS `query`"))
    shown = f"{read.schema}.{read.table}"
    with failures(f"finding the table `{shown}`"):
        rows = fetch(
            connection,
            "SELECT table_name, engine, table_rows, data_length, table_comment, create_time"
            " FROM information_schema.tables WHERE table_schema = %s",
            read.schema,
        )
    for name, engine, count, size, comment, created in rows:
        # The server compares names without case.
        if name == read.table:
            unsafe = f"`{shown}` has the engine {engine}, which has no consistent read: a change "
            return MysqlRelation(
                shown,
                f"{quoted(read.schema)}.{quoted(read.table)}",
                None if count is None else int(count),
                int(size or 0),
                () if engine in (None, "", "InnoDB") else (f"{unsafe}{_LOADED_IN_PART}",),
                # That of a view is the word VIEW.
                comment if engine else "",
                RelationIdentity("", frozenset([created])) if engine and created else None,
                schema=read.schema,
                name=read.table,
                engine=engine or "",
            )
    meant = table_meant(read.schema, read.table, list_tables(connection, read, None))
    if meant is None:
        meant = "write the names as they are in the database, upper and lower case included."
    raise LoadFailed(
        f"the user sees no table `{shown}`",
        hint=f"{meant} If the name is right, "
        + grant_hint(
            "SELECT", f"{quoted(read.schema)}.{quoted(read.table)}", account_of(connection)
        ),
    )


def columns(
    connection: Connection, relation: MysqlRelation, read: JdbcInput
) -> tuple[CatalogColumn, ...]:
    """Return the columns, as the server describes them, in their order.

    Raises `LoadFailed` for a query that the server rejects or with two columns of one name.
    """
    with failures(f"reading the columns of `{relation.shown}`", relation.sql):
        if not relation.name:
            return _result_columns(connection, relation)
        rows = fetch(
            connection,
            "SELECT table_name, column_name, data_type, column_type, numeric_precision,"
            " numeric_scale, is_nullable, column_comment FROM information_schema.columns"
            " WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
            relation.schema,
            relation.name,
        )
        if not rows:
            # A view without columns is one that the server cannot read: this says why.
            fetch(connection, f"SELECT 1 FROM {relation.sql} LIMIT 0")  # noqa: S608
    return tuple(
        CatalogColumn(
            name,
            type_name(kind.lower(), declared, precision),
            declared,
            None if precision is None else int(precision),
            None if scale is None else int(scale),
            nullable == "YES",
            comment or "",
        )
        for table, name, kind, declared, precision, scale, nullable, comment in rows
        if table == relation.name
    )


def _result_columns(connection: Connection, relation: MysqlRelation) -> tuple[CatalogColumn, ...]:
    """Return the columns of a query, by what the protocol says of them."""
    cursor: Any = connection.cursor()
    with closing(cursor):
        cursor.execute(f"SELECT * FROM {relation.sql} LIMIT 0")  # noqa: S608
        return tuple(map(result_column, cursor._result.fields))


def check_select(
    connection: Connection,
    relation: MysqlRelation,
    selected: Sequence[SelectedColumn],
    read: JdbcInput,
) -> None:
    """Raise `LoadFailed` where the user may not read the columns."""
    with failures(f"reading `{relation.shown}`", relation.sql):
        try:
            fetch(connection, f"{select_sql(relation, selected, counts_bad=False)} LIMIT 0")
        except pymysql.Error as error:
            if number_of(error) != ER.TABLEACCESS_DENIED_ERROR or not relation.name:
                raise
            doing = f"reading `{relation.shown}`"
            raise not_granted(connection, doing, error, "SELECT", relation.sql) from None


_SYSTEM = ("information_schema", "mysql", "performance_schema", "sys")


def list_tables(
    connection: Connection, read: JdbcInput, schemas: Sequence[str] | None
) -> tuple[CatalogTable, ...]:
    """Return the tables and views of some databases, or of all, by their names."""
    chosen = _SYSTEM if schemas is None else tuple(schemas)
    within = f"{'NOT ' if schemas is None else ''}IN ({', '.join(['%s'] * len(chosen))})"
    with failures("listing the tables"):
        rows = fetch(
            connection,
            "SELECT table_schema, table_name, table_type FROM information_schema.tables"  # noqa: S608
            f" WHERE table_schema {within} AND table_type <> 'SEQUENCE' ORDER BY 1, 2",
            *chosen,
        )
        keys = _keys(connection, f"table_schema {within}", *chosen)
    return tuple(
        CatalogTable(
            schema, name, "view" if "VIEW" in kind else "table", keys.get((schema, name), ())
        )
        for schema, name, kind in rows
    )


def list_changed(connection: Connection, read: JdbcInput) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the timestamps that are not null of each table: one may say when a row changed."""
    places = ", ".join(["%s"] * len(_SYSTEM))
    with failures("listing the columns"):
        rows = fetch(
            connection,
            "SELECT table_schema, table_name, column_name FROM information_schema.columns"  # noqa: S608
            " WHERE data_type IN ('datetime', 'timestamp') AND is_nullable = 'NO'"
            f" AND table_schema NOT IN ({places}) ORDER BY 1, 2, ordinal_position",
            *_SYSTEM,
        )
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for schema, table, name in rows:
        found[schema, table] = (*found.get((schema, table), ()), name)
    return found


def list_sizes(connection: Connection, read: JdbcInput) -> dict[tuple[str, str], int]:
    """Return the bytes of each table, as the database estimates them."""
    places = ", ".join(["%s"] * len(_SYSTEM))
    with failures("listing the sizes of tables"):
        rows = fetch(
            connection,
            "SELECT table_schema, table_name, data_length FROM information_schema.tables"  # noqa: S608
            f" WHERE data_length IS NOT NULL AND table_schema NOT IN ({places})",
            *_SYSTEM,
        )
    return {(schema, table): int(size) for schema, table, size in rows}


def _keys(
    connection: Connection, condition: str, *values: str
) -> dict[tuple[str, str], tuple[tuple[str, ...], ...]]:
    """Return the keys of tables by schema and name.

    MariaDB adds the end of a row's validity to each key of a table with system versions. It is
    another value once the row has changed, and current rows are told apart without it.
    """
    rows = fetch(
        connection,
        "SELECT table_schema, table_name, index_name, column_name, nullable, sub_part"  # noqa: S608
        f" FROM information_schema.statistics WHERE non_unique = 0 AND {condition}"
        " ORDER BY table_schema, table_name, index_name, seq_in_index",
        *values,
    )
    ends = fetch(
        connection,
        "SELECT table_schema, table_name, column_name FROM information_schema.columns"  # noqa: S608
        f" WHERE generation_expression = 'ROW END' AND {condition}",
        *values,
    )
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    refused: set[tuple[str, str, str]] = set()
    for schema, table, index, column, nullable, part in rows:
        if (schema, table, column) in ends:
            continue
        found.setdefault((schema, table), {}).setdefault(index, []).append(column)
        # An index of expressions, of values that can be null, or of their first characters.
        if column is None or nullable == "YES" or part is not None:
            refused.add((schema, table, index))
    return {
        place: keys_of(
            UniqueIndex(index, tuple(names), index == "PRIMARY")
            for index, names in indexes.items()
            if (*place, index) not in refused
        )
        for place, indexes in found.items()
    }


def key_of(connection: Connection, relation: MysqlRelation) -> tuple[str, ...]:
    """Return the columns of the preferred key; none where the table has none."""
    place = (relation.schema, relation.name)
    keys = _keys(connection, "table_schema = %s AND table_name = %s", *place).get(place, ())
    return keys[0] if keys else ()


def estimate_rows(connection: Connection, relation: MysqlRelation, wanted: str) -> int | None:
    """Return how many rows meet a condition, by the statistics of the database; None where it would
    read all rows to know."""
    with connection.cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute(f"EXPLAIN SELECT 1 FROM {relation.sql} WHERE {wanted}")  # noqa: S608
        plan: Any = cursor.fetchall()
    return int(plan[0]["rows"]) if len(plan) == 1 and plan[0]["key"] and plan[0]["rows"] else None


_PART_BYTES = 16 << 20
"""No range is made for less."""


def find_ranges(
    connection: Connection, relation: MysqlRelation, found: Sequence[CatalogColumn], most: int
) -> Ranges | None:
    """Return at most so many ranges of a table's primary key with about as many rows each, by the
    estimates of the server; None where one session reads all rows."""
    count = min(most, relation.bytes // _PART_BYTES)
    if count < 2 or relation.engine != "InnoDB":
        return None
    with failures(f"finding ranges of `{relation.shown}`", relation.sql):
        rows = fetch(
            connection,
            "SELECT table_name, column_name FROM information_schema.statistics"
            " WHERE table_schema = %s AND table_name = %s AND index_name = 'PRIMARY'"
            " AND seq_in_index = 1 AND sub_part IS NULL",
            relation.schema,
            relation.name,
        )
        first = {column for table, column in rows if table == relation.name}
        key = next((column for column in found if column.name in first), None)
        if key is None or (places := PLACES.get(key.type)) is None:
            return None
        name, whole = quoted(key.name), _explained_rows(connection, relation.sql)

        def below(place: int) -> int:
            # Of more than half of a table the server estimates half.
            source, value = f"{relation.sql} FORCE INDEX (PRIMARY)", places.text(place)
            low = _explained_rows(connection, f"{source} WHERE {name} < {value}")
            high = _explained_rows(connection, f"{source} WHERE {name} >= {value}")
            return low if low <= high else whole - high

        bounds = find_bounds(places, count, whole, below)
    return Ranges(key.name, name, tuple(map(places.text, bounds)))


def _explained_rows(connection: Connection, source: str) -> int:
    with connection.cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute(f"EXPLAIN SELECT 1 FROM {source}")  # noqa: S608
        plan: Any = cursor.fetchall()
    # Without an index there is no row that could meet the condition.
    return int(plan[0]["rows"] or 0) if plan[0]["key"] or plan[0]["type"] == "ALL" else 0


@contextmanager
def one_transaction(
    connection: Connection, read: JdbcInput, relation: MysqlRelation
) -> Iterator[Fetch]:
    """Give what runs SELECTs in one transaction. Raises `LoadFailed` for what fails there."""
    with failures(f"finding what is new in `{relation.shown}`", relation.sql):
        fetch(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        yield partial(fetch, connection)
        fetch(connection, "ROLLBACK")


def session_checks(
    read: JdbcInput, password: Callable[[], Secret | None]
) -> tuple[tuple[str, str, Callable[[], str]], ...]:
    """Return none: a transaction there needs no more than the login."""
    return ()


def connect_read_only(read: JdbcInput, password: Secret | None) -> Connection:
    """Return a connection whose transactions read only, as all do. Raises as `connect`."""
    return connect(read, password)


def describe_session(connection: Connection) -> str:
    """Return the version of the server and how the connection is encrypted."""
    ((version,),) = fetch(connection, "SELECT version()")
    ((_, tls),) = fetch(connection, "SHOW SESSION STATUS LIKE 'Ssl_version'")
    return f"{version}, {tls or 'without TLS'}"

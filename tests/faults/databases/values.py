"""Tables of every type of a database and its extremes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tests.faults.databases.tables import Server, Table, Way
from tests.integration.sources.databases import test_mysql_values as mysql
from tests.integration.sources.databases import test_postgres_values as postgres

_COLUMNS = 20
_ORACLE = "oracle"
"""The schema of PostgreSQL with a table for each value, for psycopg to read."""


def type_tables(server: Server, way: Way) -> list[Table]:
    """Return tables whose columns together have all types of a server."""
    kinds = list(postgres.VALUES if server == "postgres" else mysql.VALUES)
    groups = [kinds[first : first + _COLUMNS] for first in range(0, len(kinds), _COLUMNS)]
    return [
        Table(f"types{number}", dict.fromkeys(group, ""), (), way, still=True, types=True)
        for number, group in enumerate(groups)
    ]


def statements(server: Server, table: Table) -> Iterator[str]:
    """Yield what makes a table and its rows."""
    kinds = list(table.columns)
    if server == "mysql":
        columns = ", ".join(f"v{number} {kind}" for number, kind in enumerate(kinds))
        yield f"CREATE TABLE {table.name} (id int PRIMARY KEY, {columns})"
        values = [mysql.VALUES[kind] for kind in kinds]
        for row in range(max(map(len, values))):
            listed = ", ".join(
                # The values of a `serial` are unique.
                f"{one[0]} - {row}" if kind == "serial" else one[row % len(one)]
                for kind, one in zip(kinds, values, strict=True)
            )
            yield f"INSERT INTO {table.name} VALUES ({row}, {listed})"
        return
    columns = ", ".join(
        f"{postgres.VALUES[kind]} AS v{number}" for number, kind in enumerate(kinds)
    )
    yield f"CREATE TABLE {table.name} AS SELECT 0 AS id, {columns}"
    yield f"CREATE SCHEMA IF NOT EXISTS {_ORACLE}"
    for number, kind in enumerate(kinds):
        name = f"{_ORACLE}.{table.name}_{number}"
        yield f"CREATE TABLE {name} AS SELECT {postgres.VALUES[kind]} AS v"


def problems(server: Server, connection: Any, table: Table, own: pa.Table) -> list[str]:
    """Return what is wrong with the values of a table in the lake."""
    found = []
    for number, kind in enumerate(table.columns):
        column = own[f"v{number}"]
        ids = [int(one or 0) for one in own["id"].to_pylist()]
        for row, value in zip(ids, column.to_pylist(), strict=True):
            if server == "mysql":
                right, expected = _mysql(connection, table, number, kind, row, value, column.type)
            else:
                target = "string" if pa.types.is_string(column.type) else "another"
                name = f"{_ORACLE}.{table.name}_{number}"
                expected, _ = postgres._expected(connection, name, kind, target)
                right = postgres._same(value, expected)
            if not right:
                found.append(f"{table.name}, row {row}: {kind}: {value!r}, not {expected!r}")
    return found


def _mysql(
    connection: Any, table: Table, number: int, kind: str, row: int, value: Any, target: pa.DataType
) -> tuple[bool, Any]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT v{number} FROM {table.name} WHERE id = {row}")
        ((read,),) = cursor.fetchall()
    if kind == "float":
        read = mysql.FLOATS[row % len(mysql.FLOATS)]
    expected = mysql._as_loaded(read, target, kind)
    return value == expected, expected

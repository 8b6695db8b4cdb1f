"""SQL over tables of a lake, run by DuckDB."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakeload.policy.templates import name, text
from lakeload_jobs.contract.errors import InvalidInput, MachineNotReady
from lakeload_jobs.core.file_names import FILE_SUFFIX

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {"autoinstall_known_extensions": False}
"""What is not in the wheel would be downloaded."""


@dataclass(frozen=True)
class Answer:
    """Columns and rows of a query, as text and numbers that can be shown or become JSON."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | None, ...], ...]


def query(tables: Mapping[str, Path | pa.Table | ds.Dataset], sql: str) -> Answer:
    """Run SQL in which each name is a view of the files in a folder, or of rows; times are UTC.

    A name is `table` or `schema.table`. Raises `InvalidInput` for what DuckDB rejects.
    """
    import duckdb  # only here: it takes longer to import than the rest of the command line

    with duckdb.connect(config=_SETTINGS) as connection:
        for number, (table, rows) in enumerate(tables.items()):
            if isinstance(rows, Path):
                parts = text(str(rows / "**" / f"*{FILE_SUFFIX}"))
                # Views take no parameters.
                source = f"read_parquet({parts}, union_by_name = true)"
            else:
                source = f"_rows_{number}"
                connection.register(source, rows)
            schema, _, own = table.rpartition(".")
            if schema:
                connection.execute(f"create schema if not exists {name(schema)}")
            target = f"{name(schema)}.{name(own)}" if schema else name(own)
            connection.execute(f"create view {target} as from {source}")
        connection.execute("set timezone = 'UTC'")
        try:
            relation = connection.sql(sql)
            # Through Arrow: of times with a zone DuckDB's own rows need another package.
            result = relation.to_arrow_table() if relation is not None else None
        except duckdb.Error as error:
            raise InvalidInput(f"the query failed: {error}", hint="correct the query") from error
        if result is None:
            raise InvalidInput("the statement has no rows to show", hint="write a `SELECT`")
        columns = [[_plain(value) for value in column.to_pylist()] for column in result.columns]
        return Answer(tuple(result.column_names), tuple(zip(*columns, strict=True)))


def names_in(sql: str) -> set[str]:
    """Return the tables that a query names, `table` or `schema.table`. Raises `InvalidInput`,
    `MachineNotReady` without DuckDB."""
    try:
        import duckdb
    except ImportError as error:
        raise MachineNotReady(
            "DuckDB, which runs queries, is not installed",
            hint="install it with `pip install 'lakeload[local]'`",
        ) from error
    with duckdb.connect(config=_SETTINGS) as connection:
        row = connection.execute("select json_serialize_sql(?)", [sql]).fetchone()
    parsed = json.loads(row[0]) if row else {}
    if parsed.get("error_type") == "not implemented":
        raise InvalidInput("the statement changes something", hint="write a `SELECT`")
    if parsed.get("error"):
        raise InvalidInput(
            f"the query cannot be read: {parsed.get('error_message')}",
            hint="write one `SELECT`, in quotes for the shell",
        )
    nodes = list(_nodes(parsed))
    if any(node.get("show_type") == "SHOW_SPECIAL" for node in nodes):
        raise InvalidInput(
            "only the tables that a query names are opened, so there is nothing to list",
            hint="`lakeload lake status` lists the tables",
        )
    queries = {each["key"] for node in nodes for each in node.get("cte_map", {}).get("map", ())}
    names = {
        ".".join(filter(None, (node["schema_name"], node["table_name"])))
        for node in nodes
        if node.get("type") == "BASE_TABLE"
    }
    return names - queries


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield every mapping of a JSON document."""
    if isinstance(tree, dict):
        yield tree
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _nodes(part)


def _plain(value: object) -> str | int | None:
    """Return a value as a number or as text: lists and structs as JSON, binary in hexadecimal."""
    if isinstance(value, list | dict):
        return json.dumps(value, default=_plain, ensure_ascii=False)
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value if value is None or isinstance(value, int) else str(value)

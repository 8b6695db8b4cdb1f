"""Looks at the demo's lake as a reader would: lists the objects, and queries them with DuckDB."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lakeload_jobs.core.file_names import FILE_SUFFIX
from lakeload_jobs.storage.objects import ObjectEntry, Objects

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class Answer:
    """Columns and rows of a query, as text and numbers that can be shown or become JSON."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | None, ...], ...]


def fetch_objects(objects: Objects, prefix: str, folder: Path) -> tuple[ObjectEntry, ...]:
    """Copy every object below `prefix` into `folder` under its key; return what was listed."""
    entries = tuple(objects.list(f"{prefix}/"))
    for entry in entries:
        path = folder / entry.key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(objects.get(entry.key) or b"")
    return entries


def query(schema_folder: Path, sql: str) -> Answer:
    """Run SQL in which each table's folder below `schema_folder` is a view of its files."""
    import duckdb  # only here: it takes longer to import than the rest of the command line

    with duckdb.connect() as connection:
        for table in sorted(path for path in schema_folder.iterdir() if path.is_dir()):
            files = str(table / "**" / f"*{FILE_SUFFIX}").replace("'", "''")
            # Views take no parameters; the table's name is one of our own samples.
            connection.execute(
                f'create view "{table.name}" as '  # noqa: S608
                f"select * from read_parquet('{files}', union_by_name = true)"
            )
        return answer_of(connection, sql)


def answer_of(connection: DuckDBPyConnection, sql: str) -> Answer:
    """Return what a connection answers, with times in UTC."""
    connection.execute("set timezone = 'UTC'")
    result = connection.execute(sql)
    columns = tuple(column[0] for column in result.description or ())
    rows = tuple(tuple(_plain(value) for value in row) for row in result.fetchall())
    return Answer(columns, rows)


def _plain(value: object) -> str | int | None:
    return value if value is None or isinstance(value, int) else str(value)

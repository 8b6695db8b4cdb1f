"""PostgreSQL's SQL: names and values, and the cursors of incremental loads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from lakeload_jobs.sources.databases.bookmark import Kind
from lakeload_jobs.sources.databases.columns import Fetch, SelectedColumn
from lakeload_jobs.sources.databases.cursor_sql import Cursor, CursorSql


def quoted(name: str) -> str:
    """Return an identifier as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return text as a literal of SQL, whatever the settings of the session are."""
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f" E'{escaped}'" if "\\" in text else f"'{escaped}'"


_DIGEST = "pg_catalog.sha256(pg_catalog.convert_to({0}, 'UTF8'))"


def _sum_of_digests(text: str) -> str:
    digits = f"'x' || pg_catalog.left(pg_catalog.encode({_DIGEST.format(text)}, 'hex'), 16)"
    return f"COALESCE(pg_catalog.sum(({digits})::bit(64)::int8), 0)"


class PostgresCursors(CursorSql):
    """Cursors of PostgreSQL: every value crosses as its text."""

    types: ClassVar[dict[str, tuple[Kind, str]]] = {
        **dict.fromkeys(("int2", "int4", "int8"), ("INTEGER", "int8")),
        "numeric": ("INTEGER", "numeric"),
        "date": ("DATE", "date"),
        "timestamp": ("TIMESTAMP", "timestamp"),
        "timestamptz": ("TIMESTAMPTZ", "timestamptz"),
        **dict.fromkeys(("text", "varchar"), ("TEXT", "text")),
    }
    functions = "pg_catalog."

    def literal(self, cursor: Cursor, text: str) -> str:
        """Return the literal of a value."""
        return f"{literal(text)}::{cursor.literal_type}"

    def value(self, kind: Kind, column: str) -> str:
        """Return what is compared of a column."""
        return f'{column} COLLATE "C"' if kind == "TEXT" else column

    def outside(self, kind: Kind, literal_type: str, column: str) -> tuple[str, ...]:
        """Return the conditions of values that no load can go on from."""
        if kind in ("INTEGER", "TEXT"):
            return ()
        first, end = (f"'{day}'::{literal_type}" for day in ("0001-01-01", "10000-01-01"))
        return f"{column} < {first}", f"{column} >= {end}"

    def is_greater(self, cursor: Cursor, text: str, than: str, fetch: Fetch) -> bool:
        """Return whether a value is greater than another."""
        order = ' COLLATE "C"' if cursor.kind == "TEXT" else ""
        greater = f"{cursor.literal(text)} > {cursor.literal(than)}{order}"
        return bool(fetch(f"SELECT ({greater})::int4::text")[0][0] == "1")

    def greatest(self, cursor: Cursor, relation: str, than: str | None) -> str:
        """Return the SELECT of the greatest value, and of whether it is less than `than`."""
        greatest = f"pg_catalog.max({cursor.value})"
        less = "NULL" if than is None else f"{greatest} < {cursor.literal(than)}"
        return f"SELECT {greatest}::text, ({less})::int4::text FROM {relation}"  # noqa: S608

    def bound(self, cursor: Cursor, relation: str, last: str | None, rows: int) -> str:
        """Return the SELECT of the value of the last of so many rows that are greater."""
        # As text only here: `ORDER BY` means what is selected.
        select = super().bound(cursor, relation, last, rows)
        return f"SELECT bound::text FROM ({select}) lakeload"  # noqa: S608

    def digest(self, selected: Sequence[SelectedColumn]) -> str:
        """Return the expression of a digest of rows."""
        row = f"ROW({', '.join(quoted(column.name) for column in selected)})::text"
        return f"pg_catalog.count(*)::text || ':' || {_sum_of_digests(row)}::text"

    def digest_of_column(self, column: SelectedColumn) -> str:
        """Return the expression of a digest of the values of a column."""
        total = _sum_of_digests(f"{quoted(column.name)}::text")
        return f"pg_catalog.count(*) || ':' || {total}"

    def unusable(self, cursor: Cursor, key: Sequence[str], rows: str) -> str:
        """Return the SELECT of the cursor and the key of one of some rows."""
        shown = ", ".join(f"{quoted(name)}::text" for name in (cursor.name, *key))
        return f"SELECT {shown}{rows} LIMIT 1"

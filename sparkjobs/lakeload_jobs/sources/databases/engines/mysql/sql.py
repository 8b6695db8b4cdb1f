"""SQL of MySQL and MariaDB: names, and the cursors of incremental loads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from lakeload_jobs.sources.databases.bookmark import Kind
from lakeload_jobs.sources.databases.columns import Fetch, Relation, SelectedColumn, text_of
from lakeload_jobs.sources.databases.cursor_sql import Cursor, CursorSql
from lakeload_jobs.sources.databases.seen import ID_BYTES


def quoted(name: str) -> str:
    """Return an identifier as SQL has it."""
    return "`" + name.replace("`", "``") + "`"


def select_sql(
    relation: Relation, selected: Sequence[SelectedColumn], counts_bad: bool, entry: str = ""
) -> str:
    """Return the SELECT of a table: the columns, and behind them with `counts_bad` the number of
    values of a row that are bad, and the expression `entry` where there is one."""
    values = [column.checked for column in selected]
    if counts_bad:
        values.append(" + ".join(column.bad for column in selected if column.bad))
    if entry:
        values.append(entry)
    return f"SELECT {', '.join(values)} FROM {relation.sql}"  # noqa: S608


def entry_sql(key: Sequence[str], compared: Sequence[SelectedColumn]) -> str:
    """Return the entry of a row as `seen` has it, in hexadecimal digits: 8 bytes of the hash of the
    expressions `key`, and 8 of that of the columns `compared`, which make all of it without a key.
    """
    values = [column.expression for column in compared]

    def digest(expressions: Sequence[str]) -> str:
        # Of one length each: what they are joined from cannot be mistaken.
        hashes = ", ".join(f"COALESCE(SHA2({one}, 256), '-')" for one in expressions)
        return f"SHA2(CONCAT_WS(',', {hashes}), 256)"

    digits = 2 * ID_BYTES
    rest = f"SUBSTRING({digest(values)}, {digits + 1}, {digits})"
    return f"CONCAT(LEFT({digest(key or values)}, {digits}), {rest})"


def _sum_of_digests(digest: str) -> str:
    return f"COALESCE(SUM(CAST(CONV(LEFT({digest}, 15), 16, 10) AS SIGNED)), 0)"


class MysqlCursors(CursorSql):
    """Cursors of MySQL and MariaDB, whose driver converts nothing."""

    types: ClassVar[dict[str, tuple[Kind, str]]] = {
        **{
            f"{size}int{sign}": ("INTEGER", "")
            for size in ("tiny", "small", "medium", "", "big")
            for sign in ("", " unsigned")
        },
        "decimal": ("INTEGER", ""),
        "date": ("DATE", "DATE"),
        "datetime": ("TIMESTAMP", "TIMESTAMP"),
        "timestamp": ("TIMESTAMPTZ", "TIMESTAMP"),
        **dict.fromkeys(
            ("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), ("TEXT", "")
        ),
    }

    def literal(self, cursor: Cursor, text: str) -> str:
        """Return the literal of a value."""
        if cursor.kind == "TEXT":
            return f"X'{text.encode().hex()}'"
        return f"{cursor.literal_type}'{text}'" if cursor.literal_type else text

    def value(self, kind: Kind, column: str) -> str:
        """Return what is compared of a column."""
        # Byte by byte: collations take blanks at the end, and letters, for equal.
        return f"CAST(CONVERT({column} USING utf8mb4) AS BINARY)" if kind == "TEXT" else column

    def outside(self, kind: Kind, literal_type: str, column: str) -> tuple[str, ...]:
        """Return the conditions of values that no load can go on from."""
        return () if kind in ("INTEGER", "TEXT") else (f"{column} < '0001-01-01'",)

    def is_greater(self, cursor: Cursor, text: str, than: str, fetch: Fetch) -> bool:
        """Return whether a value is greater than another."""
        select = f"SELECT {cursor.literal(text)} > {cursor.literal(than)}"
        return text_of(fetch(select)[0][0]) == "1"

    def greatest(self, cursor: Cursor, relation: str, than: str | None) -> str:
        """Return the SELECT of the greatest value, and of whether it is less than `than`."""
        greatest = f"max({cursor.value})"
        less = "NULL" if than is None else f"{greatest} < {cursor.literal(than)}"
        return f"SELECT {greatest}, {less} FROM {relation}"  # noqa: S608

    def digest(self, selected: Sequence[SelectedColumn]) -> str:
        """Return the expression of a digest of rows."""
        values = ", ".join(f"COALESCE(SHA2({column.expression}, 256), '-')" for column in selected)
        total = _sum_of_digests(f"SHA2(CONCAT_WS(',', {values}), 256)")
        return f"CONCAT(COUNT(*), ':', {total})"

    def digest_of_column(self, column: SelectedColumn) -> str:
        """Return the expression of a digest of the values of a column."""
        return f"CONCAT(COUNT(*), ':', {_sum_of_digests(f'SHA2({column.expression}, 256)')})"

    def unusable(self, cursor: Cursor, key: Sequence[str], rows: str) -> str:
        """Return the SELECT of the cursor and the key of one of some rows."""
        shown = ", ".join(f"CAST({quoted(name)} AS CHAR)" for name in (cursor.name, *key))
        return f"SELECT {shown}{rows} LIMIT 1"

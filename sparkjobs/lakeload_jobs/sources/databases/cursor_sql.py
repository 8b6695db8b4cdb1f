"""SQL of a cursor: how an engine compares the values of a column, and tells rows apart.

Between loads the greatest value is kept as text, which becomes a literal of the column's own type:
no driver, time zone or locale touches it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, ClassVar

from lakeload_jobs.sources.databases.bookmark import Kind, check_text
from lakeload_jobs.sources.databases.columns import Fetch, SelectedColumn


class CursorSql:
    """What an engine has of its own. The base is SQL that most databases take, without functions
    of theirs: of engines that do not read a row twice."""

    types: ClassVar[dict[str, tuple[Kind, str]]] = {}
    """The kind of a column by its type in the catalog, and the type of its literals."""
    hint = "set `cursor` to a column of integers, dates, timestamps or text"
    """What to do about a column of another type."""
    functions = ""
    """The schema of functions, with which a user's own are not taken for them."""

    def literal(self, cursor: Cursor, text: str) -> str:
        """Return the literal of a value."""
        # The escapes of JDBC, which drivers make the literals of their databases of.
        return f"{{{cursor.literal_type} '{text}'}}" if cursor.literal_type else text

    def value(self, kind: Kind, column: str) -> str:
        """Return what is compared of a column."""
        return column

    def outside(self, kind: Kind, literal_type: str, column: str) -> tuple[str, ...]:
        """Return the conditions of values that no load can go on from."""
        return ()

    def is_greater(self, cursor: Cursor, text: str, than: str, fetch: Fetch) -> bool:
        """Return whether a value is greater than another."""
        # Not every database has a SELECT without a table, or of a condition.
        return bool(value_of(cursor.kind, text) > value_of(cursor.kind, than))

    def greatest(self, cursor: Cursor, relation: str, than: str | None) -> str:
        """Return the SELECT of the greatest value, and of whether it is less than `than`: 1, 0 or
        null."""
        greatest = f"max({cursor.value})"
        less = "0"
        if than is not None:
            less = f"CASE WHEN {greatest} < {cursor.literal(than)} THEN 1 ELSE 0 END"
        return f"SELECT {greatest}, {less} FROM {relation}"  # noqa: S608

    def bound(self, cursor: Cursor, relation: str, last: str | None, rows: int) -> str:
        """Return the SELECT of the value of the last of so many rows that are greater than `last`,
        in the order of the cursor. It finds nothing where there are fewer."""
        where = "" if last is None else f" WHERE {cursor.value} > {cursor.literal(last)}"
        order = f"ORDER BY 1 LIMIT 1 OFFSET {rows - 1}"
        return f"SELECT {cursor.value} AS bound FROM {relation}{where} {order}"  # noqa: S608

    def digest(self, selected: Sequence[SelectedColumn]) -> str:
        """Return the expression of a digest of rows: their number at least."""
        # No two databases have the same hash function.
        return "COUNT(*)"

    def digest_of_column(self, column: SelectedColumn) -> str:
        """Return the expression of a digest of the values of a column. Of relations that have an
        identity."""
        raise NotImplementedError

    def unusable(self, cursor: Cursor, key: Sequence[str], rows: str) -> str:
        """Return the SELECT of the cursor of one of some rows as text, and of the columns `key`;
        without these where the database has no way to name one row. `rows` begins with FROM."""
        return f"SELECT {cursor.value}{rows}"


@dataclass(frozen=True)
class Cursor:
    """A column by which the rows of a table are in the order in which they came or were changed.

    `value` is the SQL that is compared, `unusable` a condition that is true for a row without a
    place in this order, '' where there is none.
    """

    sql: CursorSql
    name: str
    kind: Kind
    literal_type: str
    value: str
    unusable: str

    def literal(self, text: str) -> str:
        """Return a value as SQL. Raises `ValueError` for text that writes no value of the kind."""
        check_text(self.kind, text)
        return self.sql.literal(self, text)

    def between(self, low: str | None, high: str | None, *, after: bool = False) -> str:
        """Return the condition of the rows from `low` to `high`, both included; None: no bound.
        `after`: without those of `low`."""
        bounds = ((">" if after else ">=", low), ("<=", high))
        return " AND ".join(
            f"{self.value} {sign} {self.literal(text)}" for sign, text in bounds if text is not None
        )


def value_of(kind: Kind, text: str) -> Any:
    """Return the value that text writes, as Python has it."""
    if kind == "INTEGER":
        return int(text)
    if kind == "TEXT":
        return text
    return date.fromisoformat(text) if kind == "DATE" else datetime.fromisoformat(text)

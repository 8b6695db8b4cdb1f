"""Parts of a table of PostgreSQL, and the SELECTs that read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER
from lakeload_jobs.sources.databases.columns import (
    CatalogColumn,
    Relation,
    SelectedColumn,
)
from lakeload_jobs.sources.databases.engines.postgres.sql import quoted
from lakeload_jobs.sources.databases.seen import ID_BYTES, Unseen

_UNSEEN_OF_SPLIT = 20_000
_ENTRY, _KNOWN = '"lakeload entry"', '"lakeload known"'
_SEEN, _PLACE = '"lakeload seen"', '"lakeload place"'
"""Columns of subqueries, beside those of the table."""


@dataclass(frozen=True)
class PostgresRelation(Relation):
    """A table or view of PostgreSQL, or a query.

    `kind` is that of `pg_class.relkind`. `pages` are those of the table, or of the largest one of
    its partitions; 0 where rows are not in pages that can be read one by one.
    """

    kind: str = "r"
    oid: int = 0
    pages: int = 0


@dataclass(frozen=True)
class PostgresPart:
    """A part of a table: a condition, '' for all of it, and how many rows it has.

    `among` is a query with the columns that are read, in place of the table; '' for the table.
    """

    condition: str
    rows: int
    by_page: bool = False
    """Whether nothing but their pages chooses the rows, so that they can be read in that order."""
    among: str = ""


@dataclass(frozen=True)
class ByKey:
    """How rows that are in no pages of the table may be read in parts: `columns` are those whose
    ranges an index may serve, the preferred one first; `selected` are those that are read."""

    columns: tuple[CatalogColumn, ...]
    selected: tuple[SelectedColumn, ...]


def select_sql(
    relation: PostgresRelation,
    selected: Sequence[SelectedColumn],
    split: PostgresPart,
    *,
    by_place: bool = False,
) -> str:
    """Return the SELECT of a split: the columns, and behind them the number of values of a row
    that are bad, where some can be. `by_place`: their names are `c0`, `c1` and so on."""
    names = [column.name for column in selected]
    values = [column.checked for column in selected]
    if bad := [f"{column.bad}::int4" for column in selected if column.bad]:
        names.append(BAD_VALUES_HELPER)
        values.append(" + ".join(bad))
    if by_place:
        names = [f"c{place}" for place in range(len(names))]
    values = [f"{value} AS {quoted(name)}" for value, name in zip(values, names, strict=True)]
    where = f" WHERE {split.condition}" if split.condition else ""
    return f"SELECT {', '.join(values)} FROM {split.among or relation.sql}{where}"  # noqa: S608


def entry_sql(key: Sequence[str], compared: Sequence[SelectedColumn]) -> str:
    """Return the entry of a row as `seen` has it: 8 bytes of the hash of the expressions `key`, and
    8 of that of the columns `compared`, which make all of it without a key."""
    values = [column.expression for column in compared]

    def digest(expressions: Sequence[str], first: int) -> str:
        # The text of a record tells nulls, empty texts and where a value ends apart.
        row = f"ROW({', '.join(expressions)})::text"
        hashed = f"pg_catalog.sha256(pg_catalog.convert_to({row}, 'UTF8'))"
        return f"pg_catalog.substring({hashed}, {first}, {ID_BYTES})"

    return f"({digest(key or values, 1)} || {digest(values, ID_BYTES + 1)})"


def unseen_parts(
    relation: PostgresRelation,
    selected: Sequence[SelectedColumn],
    window: str,
    entry: str,
    found: Sequence[Unseen],
) -> tuple[PostgresPart, ...]:
    """Return the rows of a window that were not seen. Of equal rows so many are left out as were
    seen, whichever."""
    columns = ", ".join(quoted(column.name) for column in selected)
    splits = []
    for first in range(0, len(found), _UNSEEN_OF_SPLIT):
        part = found[first : first + _UNSEEN_OF_SPLIT]
        entries = ",".join(one.entry.hex() for one in part)
        seen = ",".join(str(one.seen) for one in part)
        prefix = f"pg_catalog.substring({entry}, 1, {len(part[0].entry)})"
        rows = (
            f"SELECT {columns}, pg_catalog.encode({prefix}, 'hex') AS {_ENTRY}"  # noqa: S608
            f" FROM {relation.sql} WHERE {window}"
        )
        known = (
            f"ROWS FROM (pg_catalog.unnest('{{{entries}}}'::text[]),"
            f" pg_catalog.unnest('{{{seen}}}'::int8[])) AS k({_KNOWN}, {_SEEN})"
        )
        numbered = (
            f"SELECT *, pg_catalog.row_number() OVER (PARTITION BY {_ENTRY}) AS {_PLACE}"  # noqa: S608
            f" FROM ({rows}) AS r JOIN {known} ON {_KNOWN} = {_ENTRY}"
        )
        count = sum(one.new for one in part)
        splits.append(PostgresPart(f"{_PLACE} > {_SEEN}", count, among=f"({numbered}) AS n"))
    return tuple(splits)

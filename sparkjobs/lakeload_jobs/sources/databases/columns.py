"""Tables and columns of a database: as its catalog describes them, and as a load selects them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lakeload_jobs.contract.spec import ColumnsSpec, TableSpec
from lakeload_jobs.sources.base import BadValue
from lakeload_jobs.sources.databases.relation_identity import RelationIdentity

_TEXT_SHOWN = 60
"""Characters of a bad value that are shown."""
Carried = Literal["VALUE", "TEXT"]
Fetch = Callable[[str], Sequence[Sequence[Any]]]
"""Runs a SELECT and returns its rows, whose values are those of the driver, text or its bytes."""


def text_of(value: Any) -> str | None:
    """Return a value that the driver may give as bytes."""
    return value.decode() if isinstance(value, bytes) else value


@dataclass(frozen=True)
class Relation:
    """What rows are read from: a table or view, or a query."""

    shown: str
    """The name in messages."""
    sql: str
    """What stands behind FROM."""
    estimated_rows: int | None = None
    bytes: int = 0
    """0 where the database does not know them."""
    warnings: tuple[str, ...] = ()
    """What is not as one expects of a table."""
    comment: str = ""
    identity: RelationIdentity | None = None
    """Of a table: other relations have no rows of their own."""

    def quoted(self, name: str) -> str:
        """Return an identifier as the database has it: here as standard SQL does."""
        return '"' + name.replace('"', '""') + '"'


def query_sql(query: str, alias: str) -> str:
    """Return what stands behind FROM for a query."""
    # The line break ends a comment at the end of the query.
    return f"({query.strip().rstrip(';')}\n) {alias}"


@dataclass(frozen=True)
class UniqueIndex:
    """A unique index over whole columns that are not null, of all rows of a table."""

    name: str
    columns: tuple[str, ...]
    primary: bool = False


def keys_of(indexes: Iterable[UniqueIndex]) -> tuple[tuple[str, ...], ...]:
    """Return the keys of a table, the preferred one first: the primary key, then that of the
    fewest columns, then by the name of the index."""
    found = sorted(indexes, key=lambda one: (not one.primary, len(one.columns), one.name))
    return tuple(one.columns for one in found)


@dataclass(frozen=True)
class CatalogTable:
    """A table or view as the catalog lists it, with its keys as `keys_of` orders them.

    `is_table`: a glob finds it. Views are named one by one, and so is a table whose rows are read
    with another one: its `kind` is ''.
    """

    schema: str
    name: str
    kind: str
    keys: tuple[tuple[str, ...], ...] = ()

    @property
    def is_table(self) -> bool:
        """Whether it is a table of its own."""
        return self.kind in ("table", "partitioned table")


@dataclass(frozen=True)
class CatalogColumn:
    """A column as the catalog of the database describes it.

    `type` is the plain name by which the database's table of types has it, domains resolved
    (`numeric`, `_int4`, `enum`); `declared` is the type as the database writes it
    (`numeric(12,2)`, `public.mood`), for messages.
    """

    name: str
    type: str
    declared: str
    precision: int | None = None
    """Of an exact number; the length of a type that has one."""
    scale: int | None = None
    nullable: bool = True
    comment: str = ""


@dataclass(frozen=True)
class Rule:
    """What becomes of the columns of one type: the page of its engine.

    `{0}` in the expressions is the column. `bad` and `reason` as in `SelectedColumn`.
    """

    type: str
    target: str
    expression: str = "{0}"
    text: bool = False
    """Whether the value crosses as text that writes it."""
    bad: str = ""
    reason: str = ""


def target_of(rule: Rule, column: CatalogColumn) -> str:
    """Return the type of the target, with the precision and scale of the column."""
    if rule.target == "decimal(p,s)":
        return f"decimal({column.precision},{column.scale})"
    return rule.target


@dataclass(frozen=True)
class SelectedColumn:
    """A column as a load selects it, whoever reads.

    All SQL is that of the database and complete: quoted, and without an alias.
    """

    name: str
    expression: str
    """The value, exact; for a value that `bad` is true for it may be anything that is no error."""
    type: str
    """The type of the target column, as Spark names it."""
    carried: Carried = "VALUE"
    """How the value crosses: as a value of the database's own type, or as text that writes one of
    `type`."""
    bad: str = ""
    """A condition that is true, and never null, for a value that `type` cannot represent; '' where
    there is none."""
    reason: str = ""
    """What is wrong with those values, as a clause: `it is not a date of the years 1 to 9999`."""
    shown: str = ""
    """The value as text, for messages about bad ones."""

    @property
    def checked(self) -> str:
        """The value, null where it is bad."""
        if not self.bad:
            return self.expression
        return f"CASE WHEN {self.bad} THEN NULL ELSE {self.expression} END"


def bad_value(
    table: str, key: Iterable[tuple[str, object]], column: str, value: str, reason: str
) -> BadValue:
    """Return a value that cannot be loaded, in the row with this key, as messages say it."""
    at = ", ".join(f"{name} = {text}" for name, text in key)
    what = f"the value `{value[:_TEXT_SHOWN]}` cannot be loaded: {reason}"
    return BadValue(table, at and f", row with {at}", f": column `{column}`: {what}")


def is_read(table: TableSpec, columns: ColumnsSpec, column: SelectedColumn) -> bool:
    """Whether a column is loaded, or may be in a condition: others are not selected. `columns` are
    the settings of `table` with names as the source has them."""
    name = column.name
    if (not columns.include or name in columns.include) and name not in columns.exclude:
        return True
    escaped = name.replace("`", "``")
    return any(escaped in text for text in (table.where, table.deleted_when) if text is not None)

"""The columns of a table before and now (`schema_changes`).

For plain Parquet: files of different columns lie beside each other, readers unite them by name.
An added column is null in old files and a removed one is null in new files; a column of two types
is what Athena, Spark and Glue refuse to read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import SchemaChanges
from lakeload_jobs.core.type_conflicts import NOTHING_ASKED, Misfits, misfit_clause, ways_out


@dataclass(frozen=True)
class ChangedType:
    """A column whose type is not what it was; types are written as the caller gave them."""

    name: str
    before: str
    now: str


@dataclass(frozen=True)
class SchemaDifference:
    """What differs between the columns of a table and those of a load."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[ChangedType, ...] = ()


def schema_difference(before: Mapping[str, str], now: Mapping[str, str]) -> SchemaDifference:
    """Compare target columns, name → type, in the order of each side.

    Names are compared without case, as Glue and Athena do. A table without columns has no
    difference: it has no files either.
    """
    if not before:
        return SchemaDifference()
    old = {name.lower(): kind for name, kind in before.items()}
    new = {name.lower() for name in now}
    return SchemaDifference(
        added=tuple(name for name in now if name.lower() not in old),
        removed=tuple(name for name in before if name.lower() not in new),
        changed=tuple(
            ChangedType(name, old[name.lower()], kind)
            for name, kind in now.items()
            if old.get(name.lower(), kind) != kind
        ),
    )


def check_schema_change(
    before: Mapping[str, str],
    now: Mapping[str, str],
    policy: SchemaChanges,
    misfits: Misfits = NOTHING_ASKED,
    key: Sequence[str] = (),
) -> SchemaDifference:
    """Return the difference when `policy` allows it; else raise `LoadFailed` naming each column,
    with what `misfits` tells of its values. `key` are the columns of the primary key.

    FAIL allows removed columns only; the others add columns. Parquet files cannot be widened
    after they are written, so EVOLVE refuses changed types here as well.
    """
    difference = schema_difference(before, now)
    if difference.changed:
        shown = ", ".join(
            f"`{change.name}` was `{change.before}` and is `{change.now}`"
            + misfit_clause(change.name, misfits)
            for change in difference.changed
        )
        names = [change.name for change in difference.changed]
        raise LoadFailed(
            f"the types of columns changed: {shown}",
            hint=", or ".join(ways_out(names, misfits, key, adds=policy != "FAIL")),
        )
    if difference.added and policy == "FAIL":
        shown = ", ".join(f"`{name}`" for name in difference.added)
        raise LoadFailed(
            f"the source has columns that the table does not: {shown}",
            hint="set `schema_changes: ADD_COLUMNS`, or leave them out with `columns.exclude`",
        )
    return difference

"""The columns of a table before and now (`schema_changes`).

For plain Parquet: files of different columns lie beside each other, readers unite them by name.
An added column is null in old files and a removed one is null in new files, and so are the fields
of structs; a column of two types is what Athena, Spark and Glue refuse to read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import SchemaChanges
from lakeload_jobs.core.nested_types import first_difference, new_fields, with_new_fields
from lakeload_jobs.core.type_conflicts import (
    NOTHING_ASKED,
    Misfits,
    leave_out,
    misfit_clause,
    ways_out,
)


@dataclass(frozen=True)
class ChangedType:
    """A column whose type is not what it was; types are written as the caller gave them."""

    name: str
    before: str
    now: str


@dataclass(frozen=True)
class SchemaDifference:
    """What differs between the columns of a table and those of a load. `added_fields` are paths of
    fields that are new in structs of the table."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[ChangedType, ...] = ()
    added_fields: tuple[str, ...] = ()


def schema_difference(before: Mapping[str, str], now: Mapping[str, str]) -> SchemaDifference:
    """Compare target columns, name → type, in the order of each side.

    Names are compared without case, as Glue and Athena do. A table without columns has no
    difference: it has no files either.
    """
    if not before:
        return SchemaDifference()
    old = {name.lower(): kind for name, kind in before.items()}
    new = {name.lower() for name in now}
    united = {
        name: with_new_fields(old[name.lower()], kind)
        for name, kind in now.items()
        if name.lower() in old
    }
    return SchemaDifference(
        added=tuple(name for name in now if name.lower() not in old),
        removed=tuple(name for name in before if name.lower() not in new),
        changed=tuple(
            ChangedType(name, old[name.lower()], kind)
            for name, kind in now.items()
            if name in united and united[name] is None
        ),
        added_fields=tuple(
            field
            for name, kind in united.items()
            if kind is not None
            for field in new_fields(old[name.lower()], kind, name)
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

    FAIL allows removed columns only; the others add columns and fields. Parquet files cannot be
    widened after they are written, so EVOLVE refuses changed types here as well.
    """
    difference = schema_difference(before, now)
    if difference.changed:
        shown = ", ".join(_changed(change, misfits) for change in difference.changed)
        names = [change.name for change in difference.changed]
        raise LoadFailed(
            f"the types of columns changed: {shown}",
            hint=", or ".join(ways_out(names, misfits, key, adds=policy != "FAIL")),
        )
    new = (*difference.added, *difference.added_fields)
    if new and policy == "FAIL":
        shown = ", ".join(f"`{name}`" for name in new)
        what = "columns" if difference.added else "fields"
        raise LoadFailed(
            f"the source has {what} that the table does not: {shown}",
            hint="set `schema_changes: ADD_COLUMNS`, or "
            + leave_out(difference.added, difference.added_fields),
        )
    return difference


def _changed(change: ChangedType, misfits: Misfits) -> str:
    path, before, now = first_difference(change.before, change.now)
    name = ".".join((change.name, *path))
    return f"`{name}` was `{before}` and is `{now}`{misfit_clause(name, misfits)}"

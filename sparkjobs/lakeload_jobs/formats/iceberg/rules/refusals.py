"""Why a load does not fit the columns of an Iceberg table, and what to do about it, for people."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lakeload_jobs.contract.spec import SchemaChanges
from lakeload_jobs.formats.iceberg.rules.changes import (
    Added,
    Change,
    Incompatible,
    Path,
    Removed,
    Widened,
)
from lakeload_jobs.formats.iceberg.rules.keys import KeyChange


def shown(path: Path) -> str:
    """Return a column, or a field in one, as people read it: `items.element.price`."""
    return ".".join(path)


def schema_problems(
    changes: Sequence[Change], key: KeyChange, policy: SchemaChanges, identifiers: Collection[str]
) -> list[str]:
    """Return what `policy` does not allow. `identifiers` are those of the table afterwards."""
    problems = [
        problem
        for change in changes
        if (problem := _problem(change, policy, identifiers)) is not None
    ]
    if key.problem is not None:
        problems.append(key.problem)
    elif key.identifiers is not None and policy != "EVOLVE":
        named = ", ".join(f"`{name}`" for name in key.identifiers)
        problems.append(f"the key is {named} now, which the identifier fields of the table are not")
    return problems


def schema_hint(
    changes: Sequence[Change],
    key: KeyChange,
    policy: SchemaChanges,
    identifiers: Collection[str],
    *,
    replaces: bool,
) -> str:
    """Return what would let the load through."""
    stuck = any(isinstance(change, Incompatible) for change in changes)
    keyless = any(_takes_key_away(change, identifiers) for change in changes)
    ways = []
    if policy != "EVOLVE" and (replaces or not (stuck or keyless or key.problem)):
        only_new = not (stuck or keyless or key.problem or key.identifiers) and not any(
            isinstance(change, Widened) or (isinstance(change, Removed) and change.required)
            for change in changes
        )
        ways.append(f"set `schema_changes: {'ADD_COLUMNS' if only_new else 'EVOLVE'}`")
    if stuck:
        ways.append("give the column the type it has in the table with `columns.types`")
        ways.append("load it under another name with `columns.rename`")
    elif policy == "FAIL" and any(isinstance(change, Added) for change in changes):
        ways.append("leave the new columns out with `columns.exclude`")
    if keyless:
        ways.append("load that column too, or name the columns of another key in `primary_key`")
    if not replaces and (stuck or keyless or key.problem):
        ways.append(
            "replace rows and columns of the table: mode OVERWRITE, or `--full-refresh` with UPSERT"
        )
    return ", or ".join(ways)


def _problem(change: Change, policy: SchemaChanges, identifiers: Collection[str]) -> str | None:
    name = f"`{shown(change.path)}`"
    if isinstance(change, Incompatible):
        return (
            f"{name} is `{change.before}` in the table and `{change.now}` in the load, and Iceberg "
            "cannot change the one into the other"
        )
    if isinstance(change, Widened) and policy != "EVOLVE":
        return (
            f"{name} is `{change.before}` in the table and `{change.now}` in the load; it could be "
            f"widened, and `schema_changes` is {policy}"
        )
    if isinstance(change, Added) and policy == "FAIL":
        return f"{name} of type `{change.type}` is new, and `schema_changes` is FAIL"
    if _takes_key_away(change, identifiers):
        return f"{name} is an identifier field of the table and not in the load"
    if isinstance(change, Removed) and change.required and policy != "EVOLVE":
        return (
            f"{name} is required in the table and not in the load, and `schema_changes` is {policy}"
        )
    return None


def _takes_key_away(change: Change, identifiers: Collection[str]) -> bool:
    top_level = isinstance(change, Removed) and len(change.path) == 1
    return top_level and change.path[0].lower() in identifiers

"""Why a load does not fit the columns of an Iceberg table, and what to do about it, for people."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lakeload_jobs.contract.spec import SchemaChanges
from lakeload_jobs.rules.iceberg_changes import Added, Change, Incompatible, Path, Removed, Widened
from lakeload_jobs.rules.iceberg_keys import KeyChange


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
    changes: Sequence[Change], key: KeyChange, policy: SchemaChanges, *, replaces: bool
) -> str:
    """Return what would let the load through."""
    stuck = any(isinstance(change, Incompatible) for change in changes)
    ways = []
    if policy != "EVOLVE" and (replaces or not stuck):
        wants_all = stuck or any(isinstance(change, Widened | Removed) for change in changes)
        wanted = "EVOLVE" if wants_all or key.identifiers or key.problem else "ADD_COLUMNS"
        ways.append(f"set `schema_changes: {wanted}`")
    if stuck:
        ways.append("give the column the type it has in the table with `columns.types`")
        ways.append("load it under another name with `columns.rename`")
    elif any(isinstance(change, Added) for change in changes) and policy == "FAIL":
        ways.append("leave the new columns out with `columns.exclude`")
    if not replaces and (stuck or key.problem):
        ways.append(
            "replace rows and columns of the table: mode OVERWRITE, or `--full-refresh` with UPSERT"
        )
    if not ways:
        ways.append("bring the column again")
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
        return f"{name}, `{change.type}`, is new, and `schema_changes` is FAIL"
    if not isinstance(change, Removed):
        return None
    if len(change.path) == 1 and change.path[0].lower() in identifiers:
        return f"{name} is an identifier field of the table and not in the load"
    if change.required and policy != "EVOLVE":
        return (
            f"{name} is required in the table and not in the load, and `schema_changes` is {policy}"
        )
    return None

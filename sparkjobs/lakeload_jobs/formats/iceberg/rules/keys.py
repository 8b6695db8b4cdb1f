"""Primary keys and Iceberg's identifier fields, which say the same of a table (F69, F88, F93).

Identifier fields are required columns of primitive types other than float and double:
https://iceberg.apache.org/spec/#identifier-field-ids
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import Mode
from lakeload_jobs.formats.iceberg.rules.types import Primitive, parse_type

_NO_IDENTIFIER = ("float", "double", "variant", "unknown")


@dataclass(frozen=True)
class KeyChange:
    """What the load's key asks of the table. Names are the table's where it has the column."""

    identifiers: tuple[str, ...] | None = None
    """The new identifier fields; None leaves them as they are."""
    require: tuple[str, ...] = ()
    problem: str | None = None
    notes: tuple[str, ...] = ()


def identifier_problem(name: str, column_type: str) -> str | None:
    """Say why a column cannot be an identifier field, or return None."""
    kind = parse_type(column_type)
    if not isinstance(kind, Primitive) or kind.name.startswith("geo"):
        return f"key column `{name}` is `{kind}`, and a key consists of single values"
    if kind.name in ("float", "double"):
        return f"key column `{name}` is `{kind}`, whose values are not exact"
    if kind.name in _NO_IDENTIFIER:
        return f"key column `{name}` is `{kind}`, which cannot be compared"
    return None


def identifier_fields(
    columns: Mapping[str, str], keys: Sequence[str], mode: Mode, *, target: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the identifier fields of a new table, and notes for people.

    An UPSERT needs them: a key that cannot be one raises `LoadFailed`. Other modes write the same
    rows without, so the table then has none and a note says why.
    """
    spelled = {name.lower(): name for name in columns}
    problems = []
    for key in keys:
        name = spelled.get(key.lower())
        if name is None:
            problems.append(f"key column `{key}` is not among the columns of the load")
        elif problem := identifier_problem(name, columns[name]):
            problems.append(problem)
    if not problems:
        return tuple(spelled[key.lower()] for key in keys), ()
    if mode == "UPSERT":
        raise LoadFailed(
            f"`{target}` cannot be loaded by its key: {'; '.join(problems)}",
            hint="name other columns in `primary_key`, or give the column an exact type with "
            "`columns.types`: a decimal, or string",
        )
    return (), tuple(f"no identifier fields: {problem}" for problem in problems)


def key_change(
    existing: Mapping[str, str],
    incoming: Mapping[str, str],
    required: Collection[str],
    identifiers: Sequence[str],
    keys: Sequence[str],
    mode: Mode,
    *,
    target: str,
    empty: bool,
) -> KeyChange:
    """Compare the key of a load with the identifier fields of the table.

    A load without a key leaves them as they are.
    """
    fields, notes = identifier_fields(incoming, keys, mode, target=target)
    known = {name.lower(): name for name in existing}
    names = tuple(known.get(field.lower(), field) for field in fields)
    if not names or {n.lower() for n in names} == {n.lower() for n in identifiers}:
        return KeyChange(notes=notes)
    new = [name for name in names if name.lower() not in known]
    if new and not empty:
        return KeyChange(
            problem=f"key column `{new[0]}` is new: the rows that `{target}` has already are "
            "without a value for it"
        )
    has = {name.lower() for name in required}
    return KeyChange(names, tuple(name for name in names if name.lower() not in has))


def key_is_null(target: str, column: str, rows: int) -> LoadFailed:
    """Return the error of a new key that rows of the table do not have (F93, B19)."""
    noun = "row" if rows == 1 else "rows"
    return LoadFailed(
        f"`{target}` has {rows} {noun} with null in `{column}`, a column of the new key: nothing "
        "could tell them apart",
        hint="name columns in `primary_key` that have a value in every row, or replace the rows: "
        "mode OVERWRITE, or `--full-refresh` with UPSERT",
    )

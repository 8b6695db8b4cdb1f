"""Columns whose values are of another type than the table's column (`on_type_conflict`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from lakeload_jobs.core.names import unique_names
from lakeload_jobs.core.yaml_lines import yaml_list, yaml_mapping


@dataclass(frozen=True)
class Misfit:
    """A column of a load whose type the table's column cannot take: its name in the `source`, the
    type that it has in the table, as `columns.types` takes it, and what is known of its values."""

    source: str
    kind: str
    problem: str | None
    """A clause about the first value that does not fit that type; None where every value fits."""
    path: str = ""
    """Where in the column that value is, such as `a.x`; '' for the column itself."""


Misfits: TypeAlias = Mapping[str, Misfit]
"""By target in lower case. A column that is not in it was not asked."""
NOTHING_ASKED: Misfits = MappingProxyType({})

_MARK = "\0variant\0"
"""No source has a column of such a name."""


def variant_key(target: str, kind: str) -> str:
    """Return the key under which the column map names the column that has the values of type `kind`
    in place of the column `target`."""
    return f"{_MARK}{target}\0{kind}"


def variants_of(target: str, recorded: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns that have values in place of the column `target`, the oldest first."""
    return tuple(name for key, name in recorded.items() if key.startswith(variant_key(target, "")))


def split_variants(recorded: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the names of sources in a column map, and what else is in it."""
    names = {name: target for name, target in recorded.items() if not name.startswith(_MARK)}
    return names, {key: target for key, target in recorded.items() if key not in names}


def variant_name(target: str, kind: str, *, lower: bool, taken: Collection[str]) -> str:
    """Return the name of the column for values of type `kind`: `amount_string`, `at_decimal`."""
    family = re.split(r"[<(]", kind, maxsplit=1)[0]
    return unique_names([f"{target}_{family}"], lower=lower, taken=taken)[0]


def misfit_clause(name: str, misfits: Misfits) -> str:
    """Return what is known of the values of a column, or of a field in it such as `a.x`, as the
    end of a sentence."""
    column = name.lower().partition(".")[0]
    misfit = misfits.get(name.lower()) or misfits.get(column)
    if misfit is None:
        return ""
    if misfit.problem is None:
        return "; every value of this load fits the table's type"
    if (misfit.path or column).lower() != name.lower():
        return ""
    return f"; {misfit.problem}"


def types_setting(kinds: Mapping[str, str]) -> str:
    """Return the setting `columns.types` with these types, as a line of YAML."""
    return f"columns.types: {yaml_mapping(kinds)}"


OTHER_TABLE = "load everything into a table of another `name`, in a pipeline of another `name`"
"""A pipeline loads a table into one place of a lake of Parquet files."""


def leave_out(columns: Sequence[str], fields: Sequence[str] = ()) -> str:
    """Return what leaves new columns out, and new `fields`, such as `a.x`, of columns that the
    table has: no setting leaves out a field."""
    whole = list(dict.fromkeys(field.partition(".")[0] for field in fields))
    if columns or not whole:
        also = f" and, for the new fields, {_listed(whole)}" if whole else ""
        return f"leave the new columns{also} out with `columns.exclude`"
    return f"leave the whole column out with `columns: {{exclude: {yaml_list(whole)}}}`"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def ways_out(
    names: Sequence[str], misfits: Misfits, fixed: Collection[str] = (), *, adds: bool = True
) -> list[str]:
    """Return what lets a load through whose columns `names` are of other types.

    `fixed` are columns whose values have to stay in them: those of the key. `adds`: the table may
    get new columns.
    """
    stays = {name.lower() for name in fixed}
    asked = [name.lower() for name in names]
    ways = []
    known = [misfits[name] for name in asked if name in misfits]
    if len(known) == len(asked) and all(misfit.problem is None for misfit in known):
        setting = types_setting({misfit.source: misfit.kind for misfit in known})
        what = "the type" if len(known) == 1 else "the types"
        ways.append(f"set `{setting}`, {what} in the table")
    if stays & set(asked):
        ways.append(OTHER_TABLE)
        return ways
    also = "" if adds else " and `schema_changes: ADD_COLUMNS`"
    ways.append(
        f"set `on_type_conflict: NEW_COLUMN`{also}, which loads the values into a column of their "
        "own"
    )
    if len(ways) == 1:
        ways.append("leave the column out with `columns.exclude`")
    return ways

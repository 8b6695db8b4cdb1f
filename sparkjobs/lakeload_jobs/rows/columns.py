"""Source columns → target columns of one table (docs/names.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import ColumnsSpec
from lakeload_jobs.core.names import RESERVED_COLUMNS, did_you_mean, normalize, unique_names


@dataclass(frozen=True)
class LoadedColumn:
    """One column that is loaded: what the source calls it and what the target does."""

    source: str
    target: str


@dataclass(frozen=True)
class ColumnMapping:
    """The columns that are loaded, in source order, and the target names of the primary key."""

    columns: tuple[LoadedColumn, ...]
    key: tuple[str, ...]

    @property
    def column_map(self) -> dict[str, str]:
        """Source → target, as it is stored with the commit."""
        return {column.source: column.target for column in self.columns}


def map_columns(
    source_names: Sequence[str],
    spec: ColumnsSpec,
    *,
    primary_key: Sequence[str] = (),
    recorded: Mapping[str, str] | None = None,
    lower: bool = False,
) -> ColumnMapping:
    """Select, rename and normalise the columns of a table.

    `recorded` is the column map of earlier commits: it wins over computing again, and its targets
    stay taken even when their source columns are gone. Raises `InvalidInput` for settings that
    name no column, a key that is not loaded, nothing left, reserved and contradictory names.
    """
    _check_source(source_names)
    _check_settings(source_names, spec, primary_key)
    selected = [
        name
        for name in source_names
        if (not spec.include or name in spec.include) and name not in spec.exclude
    ]
    if not selected:
        raise InvalidInput("`columns` leaves no column to load", hint="include one or more")
    fixed = _fixed(selected, spec.rename or {}, recorded or {}, lower=lower)
    targets = _targets(selected, fixed, (recorded or {}).values(), lower=lower)
    _check_reserved(targets)
    for name in primary_key:
        if name not in targets:
            raise InvalidInput(
                f"the primary key column `{name}` is not among the columns that are loaded",
                hint="take it out of `exclude`, or put it into `include`",
            )
    columns = tuple(LoadedColumn(name, targets[name]) for name in selected)
    return ColumnMapping(columns, tuple(targets[name] for name in primary_key))


def _check_source(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInput(f"the source has two columns named `{name}`")
        seen.add(name)


def _check_settings(
    source_names: Sequence[str], spec: ColumnsSpec, primary_key: Sequence[str]
) -> None:
    settings: dict[str, Iterable[str]] = {
        "columns.include": spec.include,
        "columns.exclude": spec.exclude,
        "columns.rename": spec.rename or (),
        "columns.types": spec.types or (),
        "primary_key": primary_key,
    }
    for setting, names in settings.items():
        for name in names:
            if name not in source_names:
                raise InvalidInput(
                    f"`{setting}` names the column `{name}`, which the source does not have",
                    hint=did_you_mean(name, source_names) or _list_columns(source_names),
                )


def _fixed(
    selected: Sequence[str],
    rename: Mapping[str, str],
    recorded: Mapping[str, str],
    *,
    lower: bool,
) -> dict[str, str]:
    """Return the targets that are given and not computed: recorded ones and renamed ones."""
    fixed = {name: recorded[name] for name in selected if name in recorded}
    owners = {target.lower(): source for source, target in recorded.items()}
    for name in selected:
        if name not in rename:
            continue
        target = normalize(rename[name], lower=lower)
        if fixed.get(name, target) != target:
            raise InvalidInput(
                f"column `{name}` was loaded as `{fixed[name]}` before and `rename` now says "
                f"`{target}`",
                hint="take the `rename` back, or load into a table of another name",
            )
        owner = owners.setdefault(target.lower(), name)
        if owner != name:
            raise InvalidInput(
                f"`rename` makes column `{name}` `{target}`, which is the target of `{owner}`",
                hint="choose another name",
            )
        fixed[name] = target
    return fixed


def _targets(
    selected: Sequence[str], fixed: Mapping[str, str], recorded: Iterable[str], *, lower: bool
) -> dict[str, str]:
    open_names = [name for name in selected if name not in fixed]
    taken = {*fixed.values(), *recorded}
    computed = unique_names(open_names, lower=lower, taken=taken)
    return {**fixed, **dict(zip(open_names, computed, strict=True))}


def _check_reserved(targets: Mapping[str, str]) -> None:
    for source, target in targets.items():
        if target.lower() in RESERVED_COLUMNS:
            raise InvalidInput(
                f"column `{source}` would become `{target}`, a name that lakeload keeps for itself",
                hint=f"give it another name with `columns: {{rename: {{{source}: …}}}}`",
            )


def _list_columns(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:10])
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"the columns are {shown}{more}"

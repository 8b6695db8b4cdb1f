"""Source columns → target columns of one table (docs/names.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import ColumnsSpec, TableSpec
from lakeload_jobs.core.names import (
    RESERVED_COLUMNS,
    did_you_mean,
    normalize,
    spelling,
    unique_names,
)
from lakeload_jobs.core.type_conflicts import OTHER_TABLE, split_variants, variants_of
from lakeload_jobs.core.yaml_lines import yaml_mapping


@dataclass(frozen=True)
class LoadedColumn:
    """One column that is loaded: what the source calls it and what the target does."""

    source: str
    target: str
    instead_of: str | None = None
    """The table's column that these are the values of, where it cannot take their type."""


@dataclass(frozen=True)
class ColumnMapping:
    """The columns that are loaded, in source order, and the target names of the primary key."""

    columns: tuple[LoadedColumn, ...]
    key: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """Which columns continue others that were spelled in another way."""
    warnings: tuple[str, ...] = ()
    """Which columns are numbered, because another one has their name."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """The columns that have values of other types, as the column map names them."""
    spellings: Mapping[str, str] = field(default_factory=dict)
    """Other spellings that columns have in the source, and the names of these there."""

    @property
    def column_map(self) -> dict[str, str]:
        """Source → target, as it is stored with the commit."""
        columns = {column.source: column.instead_of or column.target for column in self.columns}
        others = {one: columns[name] for one, name in self.spellings.items() if name in columns}
        return {
            **columns,
            **{one: others[one] for one in others.keys() - columns.keys()},
            **self.variants,
        }

    @property
    def families(self) -> frozenset[str]:
        """The targets, in lower case, that have values of a column that is loaded: it is not gone
        where another of them has the values of this load."""
        names = {column.instead_of or column.target for column in self.columns}
        others = (name for target in names for name in variants_of(target, self.variants))
        return frozenset(name.lower() for name in (*names, *others))


def added_column(name: str) -> str:
    """Return the note of a column that a load adds to a table."""
    return f"column `{name}` is new: it is null in the rows of earlier loads"


def missing_column(name: str) -> str:
    """Return the warning of a column that only the table has."""
    return f"column `{name}` is no longer in the source: it is null in the rows of this load"


def source_names(given: Iterable[str], names: Collection[str]) -> dict[str, str]:
    """Return the columns of a source that a setting names, by the names it gives: a column of just
    this name, else the only one of which it is another spelling, such as its name in the table.
    What names no column, or more than one, is returned as it is."""
    listed = list(given)
    found = {name: name for name in listed}
    open_names = [name for name in listed if name not in names]
    if not open_names:
        return found
    spelled: dict[str, list[str]] = {}
    for name in names:
        spelled.setdefault(spelling(name), []).append(name)
    for name in open_names:
        meant = spelled.get(spelling(name), [])
        if len(meant) == 1 and meant[0] not in found.values():
            found[name] = meant[0]
    return found


def in_source_spelling(spec: ColumnsSpec, names: Collection[str]) -> ColumnsSpec:
    """Return settings that name columns as the source does (`source_names`)."""
    types, rename = spec.types or {}, spec.rename or {}
    own_types, own_rename = source_names(types, names), source_names(rename, names)
    return ColumnsSpec(
        include=tuple(source_names(spec.include, names).values()),
        exclude=tuple(source_names(spec.exclude, names).values()),
        rename={own_rename[name]: target for name, target in rename.items()} or spec.rename,
        types={own_types[name]: kind for name, kind in types.items()} or spec.types,
    )


def is_read(table: TableSpec, name: str) -> bool:
    """Whether a column of the source is loaded, or may be asked for by a condition: others are not
    read. Settings name columns as the source does (`in_source_spelling`)."""
    columns = table.columns
    if (not columns.include or name in columns.include) and name not in columns.exclude:
        return True
    return in_condition(table, name)


def in_condition(table: TableSpec, name: str) -> bool:
    """Whether a condition of a table may ask for a column of the source."""
    quoted = name.replace("`", "``")
    conditions = (table.where, table.deleted_when)
    return any(quoted in condition for condition in conditions if condition is not None)


def map_columns(
    names: Sequence[str],
    spec: ColumnsSpec,
    *,
    primary_key: Sequence[str] = (),
    recorded: Mapping[str, str] | None = None,
    existing: Collection[str] = (),
    lower: bool = False,
    spellings: Iterable[tuple[str, str]] = (),
) -> ColumnMapping:
    """Select, rename and normalise the columns of a table.

    `names` are those of the source, which settings may spell in another way (`source_names`).
    `recorded` is the column map of earlier commits: it wins over computing again, and its targets
    stay taken even when their source columns are gone. Another spelling of a recorded name, one
    that normalises to the same, is the same column. So is the name, or another spelling, of one
    that the table has already (`existing`): others may have made it. `spellings` are others of
    `names` that parts of the source have, each with the name. Raises `InvalidInput` for
    settings that name no column, a key that is not loaded, nothing left, reserved, contradictory
    and ambiguous names.
    """
    _check_source(names)
    spec = in_source_spelling(spec, names)
    primary_key = tuple(source_names(primary_key, names).values())
    _check_settings(names, spec, primary_key)
    selected = [
        name
        for name in names
        if (not spec.include or name in spec.include) and name not in spec.exclude
    ]
    if not selected:
        raise InvalidInput("`columns` excludes every column", hint="include one or more")
    taken = (recorded or {}).values()
    recorded, variants = split_variants(recorded or {})
    rename = _renamed(spec.rename or {}, existing, lower=lower)
    others = _others(existing, [*taken, *rename.values()])
    fixed = _fixed(selected, rename, others | recorded)
    continued = _continued(selected, fixed, others | recorded)
    targets = _targets(selected, {**fixed, **continued}, taken, lower=lower)
    _check_reserved(targets)
    for name in primary_key:
        if name not in targets:
            raise InvalidInput(
                f"the primary key column `{name}` is not among the columns that are loaded",
                hint="remove it from `exclude`, or add it to `include`",
            )
    columns = tuple(LoadedColumn(name, targets[name]) for name in selected)
    return ColumnMapping(
        columns,
        tuple(targets[name] for name in primary_key),
        (*_continuations(continued, recorded), *_spelled(spellings, targets)),
        tuple(_numberings(selected, fixed, targets, recorded, lower=lower)),
        variants,
        dict(spellings),
    )


def types_of(names: Sequence[str], earlier: Mapping[str, str]) -> dict[str, str]:
    """Return the types that columns of one source had in earlier loads, as far as they had one.

    A column in another spelling of its name has its type, as `map_columns` has its target: unless
    another column of the source has the name itself, or more than one could be meant.
    """
    found = {name: earlier[name] for name in names if name in earlier}
    new = Counter(spelling(name) for name in names if name not in found)
    spelled: dict[str, set[str]] = {}
    for name, kind in earlier.items():
        if name not in found:
            spelled.setdefault(spelling(name), set()).add(kind)
    for name in names:
        kinds = spelled.get(spelling(name), set())
        if name not in found and len(kinds) == 1 and new[spelling(name)] == 1:
            found[name] = next(iter(kinds))
    return found


def earlier_types(
    types: Mapping[str, str], recorded: Mapping[str, str], rename: Mapping[str, str]
) -> dict[str, str]:
    """Return the types that source columns had in earlier loads. `types` are those of the table's
    columns and `recorded` the targets of earlier loads. Where this pipeline has not loaded a
    column yet, another one may have: its source name is then that of the target, or renamed.
    """
    given = {target: source for source, target in rename.items()}
    others = types.keys() - recorded.values()
    found = {given.get(name, name): types[name] for name in types if name in others}
    # What is renamed is not the column that has the name already.
    for source, target in rename.items():
        if target not in others:
            found.pop(source, None)
    return found | {name: types[target] for name, target in recorded.items() if target in types}


def _check_source(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInput(
                f"the source has two columns named `{name}`",
                hint="rename one of them in the source",
            )
        seen.add(name)


def _check_settings(known: Sequence[str], spec: ColumnsSpec, primary_key: Sequence[str]) -> None:
    settings: dict[str, Iterable[str]] = {
        "columns.include": spec.include,
        "columns.exclude": spec.exclude,
        "columns.rename": spec.rename or (),
        "columns.types": spec.types or (),
        "primary_key": primary_key,
    }
    for setting, names in settings.items():
        for name in names:
            if name not in known:
                raise InvalidInput(
                    f"`{setting}` names the column `{name}`, which the source does not have",
                    hint=_several(name, known) or did_you_mean(name, known) or _list_columns(known),
                )


def _several(name: str, known: Sequence[str]) -> str | None:
    """Return the hint for a name that is another spelling of several columns."""
    meant = [f"`{one}`" for one in known if spelling(one) == spelling(name)]
    return (
        f"it may be {' or '.join(meant)}: write the name exactly as in the source"
        if meant[1:]
        else None
    )


def _renamed(
    rename: Mapping[str, str], existing: Collection[str], *, lower: bool
) -> dict[str, str]:
    """Return the targets of renamed columns, as the table spells those that it has."""
    own = {name.lower(): name for name in existing}
    return {
        name: own.get(target.lower()) or normalize(target, lower=lower)
        for name, target in rename.items()
    }


def _others(existing: Collection[str], targets: Iterable[str]) -> dict[str, str]:
    """Return the columns of the table that are none of `targets`, each under its own name."""
    used = {name.lower() for name in targets} | RESERVED_COLUMNS
    return {name: name for name in existing if name.lower() not in used}


def _fixed(
    selected: Sequence[str], rename: Mapping[str, str], recorded: Mapping[str, str]
) -> dict[str, str]:
    """Return the targets that are given and not computed: recorded ones and renamed ones."""
    fixed: dict[str, str] = {}
    owners: dict[str, str] = {}
    for name in selected:
        # Of two spellings of one column in one source the first is that column.
        if name in recorded and owners.setdefault(recorded[name].lower(), name) == name:
            fixed[name] = recorded[name]
    for name in selected:
        if name not in rename:
            continue
        target = rename[name]
        if fixed.get(name, target) != target:
            raise InvalidInput(
                f"column `{name}` was loaded as `{fixed[name]}` before, but `rename` is now "
                f"`{target}`",
                hint=f"remove the `rename`, or {OTHER_TABLE}",
            )
        owner = owners.setdefault(target.lower(), name)
        if owner != name:
            raise InvalidInput(
                f"`rename` makes column `{name}` `{target}`, which is the target of `{owner}`",
                hint="choose another name",
            )
        fixed[name] = target
    return fixed


def _continued(
    selected: Sequence[str], fixed: Mapping[str, str], recorded: Mapping[str, str]
) -> dict[str, str]:
    """Return the recorded targets of names that are new in their spelling alone."""
    spelled: dict[str, dict[str, str]] = {}
    for source, target in recorded.items():
        spelled.setdefault(spelling(source), {}).setdefault(target, source)
    used = {target.lower() for target in fixed.values()}
    continued: dict[str, str] = {}
    for name in selected:
        if name in fixed or name in recorded:
            continue
        known = spelled.get(spelling(name), {})
        free = [target for target in known if target.lower() not in used]
        if len(free) > 1:
            listed = ", ".join(f"`{target}` (from `{known[target]}`)" for target in free)
            raise InvalidInput(
                f"column `{name}` is another spelling of more than one column of the table: "
                f"{listed}",
                hint=f"choose one with `columns: {{rename: {yaml_mapping({name: free[0]})}}}`, or "
                "give it a name of its own there",
            )
        if free:
            continued[name] = free[0]
            used.add(free[0].lower())
    return continued


def _continuations(continued: Mapping[str, str], recorded: Mapping[str, str]) -> Iterator[str]:
    for name, target in continued.items():
        before = next(
            (
                source
                for source, known in recorded.items()
                if known == target and spelling(source) == spelling(name)
            ),
            None,
        )
        if before is None:
            continue
        told = f"column `{name}` is loaded into `{target}`, as `{before}` was"
        yield f"{told}: another spelling of it"


def _spelled(spellings: Iterable[tuple[str, str]], targets: Mapping[str, str]) -> Iterator[str]:
    for other, name in spellings:
        if name in targets:
            told = f"column `{other}` is loaded into `{targets[name]}`, as `{name}` is"
            yield f"{told}: another spelling of it"


def _numberings(
    selected: Sequence[str],
    fixed: Mapping[str, str],
    targets: Mapping[str, str],
    recorded: Mapping[str, str],
    *,
    lower: bool,
) -> Iterator[str]:
    """Say which columns did not get the name they have by themselves, and whose it is."""
    owners = {target.lower(): source for source, target in recorded.items()}
    owners |= {targets[name].lower(): name for name in selected}
    numbered = []
    for name in selected:
        own = normalize(name, lower=lower)
        if name not in fixed and targets[name].lower() != own.lower() and own.lower() in owners:
            owner = owners[own.lower()]
            numbered.append(
                f"column `{name}` is loaded as `{targets[name]}`: `{own}` is column `{owner}`"
            )
    yield from numbered[:_NUMBERED_NAMED]
    if (more := len(numbered) - _NUMBERED_NAMED) > 0:
        yield f"{more:,} more columns have a number behind their name, for the same reason"


_NUMBERED_NAMED = 3


def _targets(
    selected: Sequence[str], fixed: Mapping[str, str], recorded: Iterable[str], *, lower: bool
) -> dict[str, str]:
    open_names = [name for name in selected if name not in fixed]
    taken = {*fixed.values(), *recorded}
    computed = unique_names(open_names, lower=lower, taken=taken)
    return {**fixed, **dict(zip(open_names, computed, strict=True))}


def _check_reserved(targets: Mapping[str, str]) -> None:
    taken = [pair for pair in targets.items() if pair[1].lower() in RESERVED_COLUMNS]
    if not taken:
        return
    each = ", ".join(f"column `{source}` would become `{target}`" for source, target in taken)
    rename = yaml_mapping({source: "…" for source, _ in taken})
    several = len(taken) > 1
    raise InvalidInput(
        f"{each}, {'names' if several else 'a name'} that lakeload reserves",
        hint=f"give {'them other names' if several else 'it another name'} with "
        f"`columns: {{rename: {rename}}}`",
    )


def _list_columns(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:10])
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"the columns are {shown}{more}"

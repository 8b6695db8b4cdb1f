"""Schema evolution: types, keys, changes and refusals."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.plan import ExistingColumns
from lakeload_jobs.contract.spec import (
    TRACKING_COLUMNS,
    Mode,
    PartitionField,
    SchemaChanges,
)
from lakeload_jobs.core.type_conflicts import (
    NOTHING_ASKED,
    Misfits,
    leave_out,
    misfit_clause,
    ways_out,
)
from lakeload_jobs.formats.iceberg.rules.partitions import (
    Repartition,
    check_repartition,
    kept_fields,
    repartition,
)


@dataclass(frozen=True)
class Primitive:
    """A type without parts: `long`, or `decimal` with (precision, scale), `fixed` with (length)."""

    name: str
    sizes: tuple[int, ...] = ()

    def __str__(self) -> str:
        """As Iceberg writes it."""
        if self.name == "fixed" and self.sizes:
            return f"fixed[{self.sizes[0]}]"
        sizes = ", ".join(str(size) for size in self.sizes)
        return f"{self.name}({sizes})" if sizes else self.name


@dataclass(frozen=True)
class Field:
    """A field of a struct."""

    name: str
    type: IcebergType
    required: bool = False


@dataclass(frozen=True)
class Struct:
    """Named fields."""

    fields: tuple[Field, ...]

    def __str__(self) -> str:
        """Without ids: `struct<city: string, zip: int>`."""
        return f"struct<{', '.join(f'{field.name}: {field.type}' for field in self.fields)}>"


@dataclass(frozen=True)
class ListOf:
    """A list of elements of one type."""

    element: IcebergType

    def __str__(self) -> str:
        """As Iceberg writes it."""
        return f"list<{self.element}>"


@dataclass(frozen=True)
class MapOf:
    """A map."""

    key: IcebergType
    value: IcebergType

    def __str__(self) -> str:
        """As Iceberg writes it."""
        return f"map<{self.key}, {self.value}>"


IcebergType: TypeAlias = Primitive | Struct | ListOf | MapOf

_PRIMITIVE = re.compile(r"[a-z][a-z0-9_]*")
_SIZES = re.compile(r"\(\s*(\d+)\s*,\s*(\d+)\s*\)|\[\s*(\d+)\s*\]")
_PARAMETERS = re.compile(r"\([^()<>]*\)")
_FIELD = re.compile(r"\d+: (?P<name>.+?): (?P<null>optional|required) ", re.DOTALL)
_PLAIN_FIELD = re.compile(r"(?P<name>[^:<>,]+): ?(?P<null>(?:optional|required) )?")
_COMMENT = re.compile(r" \((?s:.*?)\)(?=, \d+: |>)")


def parse_type(text: str) -> IcebergType:
    """Read a type. Raises `ValueError` naming the text when it is none."""
    reader = _Reader(text.strip())
    found = reader.type()
    if reader.at != len(reader.text):
        raise reader.error()
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def error(self) -> ValueError:
        return ValueError(f"`{self.text}` is not a type of Iceberg, from character {self.at + 1}")

    def type(self) -> IcebergType:
        if self._take("struct<"):
            return self._struct()
        if self._take("list<"):
            element = self.type()
            self._need(">")
            return ListOf(element)
        if self._take("map<"):
            key = self.type()
            self._need(",")
            self._take(" ")
            value = self.type()
            self._need(">")
            return MapOf(key, value)
        return self._primitive()

    def _primitive(self) -> Primitive:
        name = self._match(_PRIMITIVE)
        if name is None:
            raise self.error()
        if name[0] in ("decimal", "fixed"):
            sizes = self._match(_SIZES)
            if sizes is None:
                raise self.error()
            return Primitive(name[0], tuple(int(size) for size in sizes.groups() if size))
        # geometry(srid:4326), geography(…): the parameters belong to the name.
        parameters = self._match(_PARAMETERS) if name[0].startswith("geo") else None
        return Primitive(name[0] + (parameters[0] if parameters else ""))

    def _struct(self) -> Struct:
        fields: list[Field] = []
        while not self._take(">"):
            if fields:
                self._need(",")
                self._take(" ")
            fields.append(self._field())
            self._match(_COMMENT)
        return Struct(tuple(fields))

    def _field(self) -> Field:
        match = self._match(_FIELD) or self._match(_PLAIN_FIELD)
        if match is None:
            raise self.error()
        return Field(match["name"], self.type(), (match["null"] or "").strip() == "required")

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return match

    def _take(self, literal: str) -> bool:
        taken = self.text.startswith(literal, self.at)
        self.at += len(literal) if taken else 0
        return taken

    def _need(self, literal: str) -> None:
        if not self._take(literal):
            raise self.error()


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
        return f"key column `{name}` is `{kind}`, but a key column must be a single value"
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
            problem=(
                f"key column `{new[0]}` is new: the existing rows of `{target}` have no "
                "value for it"
            )
        )
    has = {name.lower() for name in required}
    return KeyChange(names, tuple(name for name in names if name.lower() not in has))


def key_is_null(target: str, column: str, rows: int) -> LoadFailed:
    """Return the error of a new key that rows of the table do not have."""
    noun = "row" if rows == 1 else "rows"
    return LoadFailed(
        f"`{target}` has {rows} {noun} with null in `{column}`, a column of the new key, so "
        "they cannot be distinguished",
        hint="name columns in `primary_key` that have a value in every row, or replace the rows: "
        "mode OVERWRITE, or `--full-refresh` with UPSERT",
    )


Path: TypeAlias = tuple[str, ...]
"""A column, or a field in one: `("address", "city")`; `element` and `value` lead into lists and
maps. Names that the table has are spelled as there."""

_WIDENED = {("int", "long"), ("float", "double")}
_FITS = {("int", "long"), ("float", "double"), ("int", "double")}
"""(load, table): the table's type holds every value of the load's exactly."""
_DIGITS = {"int": 10, "long": 19}


@dataclass(frozen=True)
class Added:
    """A column or field that the table does not have."""

    path: Path
    type: str


@dataclass(frozen=True)
class RemovedColumn:
    """A column or field that the load does not have: it stays, and is null in new rows."""

    path: Path
    required: bool = False


@dataclass(frozen=True)
class Widened:
    """A type that Iceberg changes in place."""

    path: Path
    before: str
    now: str


@dataclass(frozen=True)
class Incompatible:
    """Two types of which neither holds the other."""

    path: Path
    before: str
    now: str


@dataclass(frozen=True)
class Relaxed:
    """A required column or field for which the load may bring null."""

    path: Path


Change: TypeAlias = Added | RemovedColumn | Widened | Incompatible | Relaxed


_UNREADABLE = ("time", "timestamp_ns", "timestamptz_ns")
"""Types of Iceberg that Spark has no type for: it cannot open a table with one at any depth."""


def unreadable_problems(kind: IcebergType, path: Path = ()) -> list[str]:
    """Return why Spark cannot open a table with columns of this type, a clause for each."""
    if not isinstance(kind, Primitive):
        parts = _parts(kind).items()
        return [found for name, part in parts for found in unreadable_problems(part, (*path, name))]
    if kind.name not in _UNREADABLE:
        return []
    return [f"`{shown(path)}` is `{kind}` in the table, a type that Spark cannot read"]


def twin_problems(kind: IcebergType, path: Path = ()) -> list[str]:
    """Return which columns, or fields at any depth, Spark cannot tell apart, a clause for each."""
    problems = []
    seen: dict[str, str] = {}
    for name, part in _parts(kind).items():
        if (twin := seen.setdefault(name.lower(), name)) != name:
            pair = f"`{shown((*path, twin))}` and `{shown((*path, name))}`"
            problems.append(f"{pair} differ in nothing but case, and are one column to Spark")
        problems += twin_problems(part, (*path, name))
    return problems


def type_changes(path: Path, table: IcebergType, load: IcebergType) -> Iterator[Change]:
    """Yield what a column of the type `table` needs so that values of the type `load` fit."""
    if isinstance(table, Struct) and isinstance(load, Struct):
        yield from _field_changes(path, table, load)
    elif isinstance(table, ListOf) and isinstance(load, ListOf):
        yield from type_changes((*path, "element"), table.element, load.element)
    elif isinstance(table, MapOf) and isinstance(load, MapOf):
        if not fits(load.key, table.key):
            # Keys of maps never change in Iceberg, not even to a wider type.
            yield Incompatible((*path, "key"), str(table.key), str(load.key))
        yield from type_changes((*path, "value"), table.value, load.value)
    elif not fits(load, table):
        kind = Widened if widens(table, load) else Incompatible
        yield kind(path, str(table), str(load))


def takes_type(table: str, load: str, policy: SchemaChanges) -> bool:
    """Return whether a column of the type `table` takes values of the type `load`, widened where
    `policy` allows that."""
    for change in type_changes((), parse_type(table), parse_type(load)):
        if isinstance(change, Incompatible):
            return False
        if isinstance(change, Widened) and policy != "EVOLVE":
            return False
    return True


def spelled_in(columns: Mapping[str, str], path: Path) -> Path:
    """Return a path as these columns spell it: names that differ in case alone are one.

    `columns` are name → Iceberg type. Raises `KeyError` for what is not in them.
    """
    named: Mapping[str, str | IcebergType] = columns
    found = []
    for name in path:
        own = {known.lower(): known for known in named}[name.lower()]
        found.append(own)
        kind = named[own]
        named = _parts(parse_type(kind) if isinstance(kind, str) else kind)
    return tuple(found)


def _parts(kind: IcebergType) -> dict[str, IcebergType]:
    if isinstance(kind, Struct):
        return {field.name: field.type for field in kind.fields}
    if isinstance(kind, ListOf):
        return {"element": kind.element}
    return {"key": kind.key, "value": kind.value} if isinstance(kind, MapOf) else {}


def fits(load: IcebergType, table: IcebergType) -> bool:
    """Return whether a column of the type `table` takes every value of the type `load` exactly."""
    if not (isinstance(load, Primitive) and isinstance(table, Primitive)):
        return str(load) == str(table)
    if load == table or (load.name, table.name) in _FITS:
        return True
    if table.name != "decimal":
        return False
    precision, scale = table.sizes
    if load.name == "decimal":
        own_precision, own_scale = load.sizes
        return own_scale <= scale and own_precision - own_scale <= precision - scale
    return load.name in _DIGITS and precision - scale >= _DIGITS[load.name]


def widens(table: IcebergType, load: IcebergType) -> bool:
    """Return whether Iceberg changes the type `table` to `load` without rewriting files."""
    if not (isinstance(table, Primitive) and isinstance(load, Primitive)):
        return False
    if table.name == load.name == "decimal":
        return table.sizes[1] == load.sizes[1] and table.sizes[0] < load.sizes[0]
    return (table.name, load.name) in _WIDENED


def _field_changes(path: Path, table: Struct, load: Struct) -> Iterator[Change]:
    known = {field.name.lower(): field for field in table.fields}
    given = {field.name.lower() for field in load.fields}
    for field in load.fields:
        own = known.get(field.name.lower())
        if own is None:
            yield Added((*path, field.name), str(field.type))
        else:
            if own.required and not field.required:
                yield Relaxed((*path, own.name))
            yield from type_changes((*path, own.name), own.type, field.type)
    for field in table.fields:
        if field.name.lower() not in given:
            yield RemovedColumn((*path, field.name), field.required)


def shown(path: Path) -> str:
    """Return a column, or a field in one, as people read it: `items.element.price`."""
    return ".".join(path)


def schema_problems(
    changes: Sequence[Change],
    key: KeyChange,
    policy: SchemaChanges,
    identifiers: Collection[str],
    misfits: Misfits = NOTHING_ASKED,
) -> list[str]:
    """Return what `policy` does not allow. `identifiers` are those of the table afterwards."""
    problems = [
        problem
        for change in changes
        if (problem := _problem(change, policy, identifiers, misfits)) is not None
    ]
    if key.problem is not None:
        problems.append(key.problem)
    elif key.identifiers is not None and policy != "EVOLVE":
        named = ", ".join(f"`{name}`" for name in key.identifiers)
        problems.append(
            f"the key is now {named}, which differs from the identifier fields of the table"
        )
    return problems


def schema_hint(
    changes: Sequence[Change],
    key: KeyChange,
    policy: SchemaChanges,
    identifiers: Collection[str],
    *,
    replaces: bool,
    misfits: Misfits = NOTHING_ASKED,
    keys: Sequence[str] = (),
) -> str:
    """Return what would let the load through."""
    stuck = [change.path[0] for change in changes if isinstance(change, Incompatible)]
    keyless = any(_takes_key_away(change, identifiers) for change in changes)
    ways = []
    if policy != "EVOLVE" and (replaces or not (stuck or keyless or key.problem)):
        only_new = not (stuck or keyless or key.problem or key.identifiers) and not any(
            isinstance(change, Widened) or (isinstance(change, RemovedColumn) and change.required)
            for change in changes
        )
        ways.append(f"set `schema_changes: {'ADD_COLUMNS' if only_new else 'EVOLVE'}`")
    if tracking := [f"`{name}`" for name in stuck if name.lower() in TRACKING_COLUMNS]:
        ways.append(f"leave {', '.join(tracking)} out of `tracking_columns`")
    elif stuck:
        ways += ways_out(stuck, misfits, keys, adds=policy != "FAIL")
    elif policy == "FAIL" and (new := [c.path for c in changes if isinstance(c, Added)]):
        ways.append(
            leave_out(
                [path[0] for path in new if len(path) == 1],
                [".".join(path) for path in new if len(path) > 1],
            )
        )
    if keyless:
        ways.append("load that column too, or name the columns of another key in `primary_key`")
    if not replaces and (stuck or keyless or key.problem):
        ways.append(
            "replace rows and columns of the table: mode OVERWRITE, or `--full-refresh` with UPSERT"
        )
    return ", or ".join(ways)


def _problem(
    change: Change, policy: SchemaChanges, identifiers: Collection[str], misfits: Misfits
) -> str | None:
    name = f"`{shown(change.path)}`"
    if isinstance(change, Incompatible):
        return (
            f"{name} is `{change.before}` in the table and `{change.now}` in the load, "
            f"which Iceberg cannot convert{misfit_clause(shown(change.path), misfits)}"
        )
    if isinstance(change, Widened) and policy != "EVOLVE":
        return (
            f"{name} is `{change.before}` in the table and `{change.now}` in the load; it "
            f"could be widened, but `schema_changes` is {policy}"
            f"{misfit_clause(shown(change.path), misfits)}"
        )
    if isinstance(change, Added) and policy == "FAIL":
        return f"{name} of type `{change.type}` is new, but `schema_changes` is FAIL"
    if _takes_key_away(change, identifiers):
        return f"{name} is an identifier field of the table but missing in the load"
    if isinstance(change, RemovedColumn) and change.required and policy != "EVOLVE":
        return (
            f"{name} is required in the table but missing in the load, and "
            f"`schema_changes` is {policy}"
        )
    return None


def _takes_key_away(change: Change, identifiers: Collection[str]) -> bool:
    return isinstance(change, RemovedColumn) and _has_identifier(change.path, identifiers)


def _has_identifier(path: Path, identifiers: Collection[str]) -> bool:
    """Return whether a column or field is an identifier field, or has one in it. `identifiers` are
    in lower case."""
    name = shown(path).lower()
    return any(field == name or field.startswith(f"{name}.") for field in identifiers)


@dataclass(frozen=True)
class SchemaPlan:
    """The steps that a table needs before a load is written into it, in this order."""

    add: tuple[Added, ...] = ()
    """Always optional. `type` is for people: the load's own schema has the type to add."""
    widen: tuple[Widened, ...] = ()
    make_optional: tuple[Path, ...] = ()
    """Required columns of which the load may bring nulls; identifiers are set first."""
    require: tuple[str, ...] = ()
    """New key columns that are optional yet: count the nulls they have in the table's rows, and
    ask `with_nulls` what becomes of the plan."""
    set_identifiers: tuple[str, ...] | None = None
    """The new identifier fields; None leaves them as they are."""
    sorted_by: tuple[str, ...] = ()
    """The identifier fields so far: where the table is sorted by them, as `lakeload` makes it, it
    is sorted by the new ones from then on."""
    removed: tuple[Path, ...] = ()
    """Columns, or fields in them, that the load does not have: filled with null."""
    replace: bool = False
    """The load replaces the definition of the table by its own, as it replaces the rows."""
    replaced: tuple[Change, ...] = ()
    """What differs then: nothing of it is a step."""
    repartition: Repartition | None = None
    """The partition spec that new files get; None leaves that of the table."""
    notes: tuple[str, ...] = ()

    @property
    def changes_table(self) -> bool:
        """Whether any step is to be done before the load is written."""
        return self.changes_columns or self.replace or self.repartition is not None

    @property
    def changes_columns(self) -> bool:
        """Whether columns or the key are changed in place."""
        steps = (self.add, self.widen, self.make_optional, self.require)
        return any(steps) or self.set_identifiers is not None

    @property
    def dropped(self) -> tuple[Path, ...]:
        """Columns, or fields in them, that the table has no longer after this load."""
        return tuple(c.path for c in self.replaced if isinstance(c, RemovedColumn))

    @property
    def retyped(self) -> tuple[Widened | Incompatible, ...]:
        """Columns, or fields in them, that are of another type after this load."""
        return tuple(c for c in self.replaced if isinstance(c, Widened | Incompatible))

    def replacement_warnings(self) -> tuple[str, ...]:
        """Return what readers of the table miss, or find changed, after such a load."""
        return (
            *(
                f"column `{shown(path)}` is no longer in the source: the load drops it from the "
                "table, as it replaces rows and columns"
                for path in self.dropped
            ),
            *(
                f"column `{shown(change.path)}` was `{change.before}` and is `{change.now}`: the "
                "load replaces rows and columns"
                for change in self.retyped
            ),
        )

    def lines(self) -> tuple[str, ...]:
        """Return the plan for people, a sentence a step."""
        identifiers = ", ".join(f"`{name}`" for name in self.set_identifiers or ())
        return (
            *(f"adds `{shown(change.path)}` as `{change.type}`" for change in self.add),
            *(
                f"widens `{shown(change.path)}` from `{change.before}` to `{change.now}`"
                for change in self.widen
            ),
            *(f"lets `{shown(path)}` be null" for path in self.make_optional),
            *(f"makes `{name}` required" for name in self.require),
            *((f"sets the identifier fields to {identifiers}",) if identifiers else ()),
            *(f"keeps `{shown(path)}`, which is null in new rows" for path in self.removed),
            *(("replaces the columns of the table by those of the load",) * self.replace),
            *(f"drops `{shown(path)}`, which the load does not have" for path in self.dropped),
            *(
                f"replaces `{shown(change.path)}`, a `{change.before}`, by a `{change.now}`"
                for change in self.retyped
            ),
            *(
                f"adds `{shown(change.path)}` as `{change.type}`"
                for change in self.replaced
                if isinstance(change, Added)
            ),
            *((self.repartition.sentence(),) if self.repartition else ()),
            *self.notes,
        )


def plan_definition(
    existing: ExistingColumns,
    incoming: Mapping[str, str],
    partition_by: Sequence[PartitionField] | None,
    policy: SchemaChanges,
    mode: Mode,
    *,
    target: str,
    required: Collection[str],
    keys: Sequence[str],
    full_refresh: bool,
    misfits: Misfits = NOTHING_ASKED,
) -> SchemaPlan:
    """Return the steps from the columns and partitions of a table to those of a load, whose columns
    are `incoming`, those that are not nullable `required`, and its key `keys`.

    Raises `LoadFailed` as `compare` and `with_partitions` do.
    """
    plan = compare(
        existing.columns,
        incoming,
        policy,
        mode,
        target=target,
        required=existing.required,
        identifiers=existing.identifiers,
        keys=keys,
        incoming_required=required,
        full_refresh=full_refresh,
        empty=existing.empty,
        misfits=misfits,
    )
    return with_partitions(
        plan, existing.partitions, partition_by, policy, target=target, columns=incoming
    )


def compare(
    existing: Mapping[str, str],
    incoming: Mapping[str, str],
    policy: SchemaChanges,
    mode: Mode,
    *,
    target: str,
    required: Collection[str] = (),
    identifiers: Sequence[str] = (),
    keys: Sequence[str] = (),
    incoming_required: Collection[str] = (),
    full_refresh: bool = False,
    empty: bool = False,
    misfits: Misfits = NOTHING_ASKED,
) -> SchemaPlan:
    """Return the steps for a load into a table, or raise `LoadFailed` naming column and types.

    `existing` and `incoming` are columns, name → Iceberg type as text; names are compared without
    case, as Glue and Athena do. `required` and `identifiers` are those of the table, `keys` the
    primary key of the load (none: the identifiers stay). Spark calls nearly every column nullable;
    `incoming_required` names those that are not. `empty` tables may be given required columns.
    `misfits` tells of values that do not fit, for messages.
    """
    key = key_change(
        existing, incoming, required, identifiers, keys, mode, target=target, empty=empty
    )
    key = _left_alone(key, policy, mode, target)
    table = _columns(existing, required)
    load = _columns(incoming, {*incoming_required, *keys})
    changes = tuple(type_changes((), table, load))
    replaces = mode == "OVERWRITE" or full_refresh
    unreadable = [*unreadable_problems(table), *twin_problems(table)]
    if unreadable and not (replaces and policy == "EVOLVE"):
        raise LoadFailed(
            f"`{target}` cannot be loaded: {'; '.join(unreadable)}",
            hint="load into a table of another `name`, or replace rows and columns of the table "
            "under `schema_changes: EVOLVE`: set `mode: OVERWRITE`, or use `--full-refresh` with "
            "UPSERT",
        )
    stays = {name.lower() for name in (identifiers if key.identifiers is None else key.identifiers)}
    problems = schema_problems(changes, key, policy, stays, misfits)
    if (problems or unreadable) and replaces and policy == "EVOLVE":
        names, notes = identifier_fields(incoming, keys, mode, target=target)
        return SchemaPlan(set_identifiers=names, replace=True, replaced=changes, notes=notes)
    if problems:
        raise LoadFailed(
            f"the columns of the load do not fit those of `{target}`: {'; '.join(problems)}",
            hint=schema_hint(
                changes, key, policy, stays, replaces=replaces, misfits=misfits, keys=keys
            ),
        )
    return SchemaPlan(
        add=tuple(change for change in changes if isinstance(change, Added)),
        widen=tuple(change for change in changes if isinstance(change, Widened)),
        make_optional=tuple(_relaxed(changes, stays)) if policy == "EVOLVE" else (),
        require=key.require,
        set_identifiers=key.identifiers,
        sorted_by=tuple(identifiers) if key.identifiers else (),
        removed=tuple(change.path for change in changes if isinstance(change, RemovedColumn)),
        notes=key.notes,
    )


def with_nulls(
    plan: SchemaPlan,
    nulls: Mapping[str, int],
    mode: Mode,
    *,
    target: str,
    identifiers: Sequence[str],
) -> SchemaPlan:
    """Return the plan for a table that has so many rows with null in columns of `plan.require`.

    `identifiers` are those of the table. An UPSERT raises `LoadFailed` at the first null;
    other modes leave the identifier fields as they are, and say so.
    """
    found = next(((name, rows) for name, rows in nulls.items() if rows), None)
    if found is None:
        return plan
    name, rows = found
    error = key_is_null(target, name, rows)
    if mode == "UPSERT":
        raise error
    stays = {identifier.lower() for identifier in identifiers}
    optional = (path for path in plan.make_optional if not _has_identifier(path, stays))
    note = f"the identifier fields of `{target}` stay as they are: {error}"
    return replace(
        plan,
        make_optional=tuple(optional),
        require=(),
        set_identifiers=None,
        notes=(*plan.notes, note),
    )


def with_partitions(
    plan: SchemaPlan,
    table: Sequence[str],
    wanted: Sequence[PartitionField] | None,
    policy: SchemaChanges,
    *,
    target: str,
    columns: Mapping[str, str],
) -> SchemaPlan:
    """Return the plan with the step from the table's partition spec to the one asked for.

    `table` are the fields of its spec, `wanted` those of `partition_by` (None: not given, so the
    table keeps what `columns` of the load allow), in target names. Raises `LoadFailed` where
    `policy` forbids the step.
    """
    if wanted is None and plan.replace:
        wanted = kept_fields(table, columns)
    step = repartition(table, wanted)
    if step is None:
        return plan
    check_repartition(step, policy, target)
    return replace(plan, repartition=step)


def _columns(columns: Mapping[str, str], required: Collection[str]) -> Struct:
    names = {name.lower() for name in required}
    return Struct(
        tuple(
            Field(name, parse_type(kind), name.lower() in names) for name, kind in columns.items()
        )
    )


def _left_alone(key: KeyChange, policy: SchemaChanges, mode: Mode, target: str) -> KeyChange:
    """Let the identifier fields be where they may not change and only an UPSERT needs them."""
    if mode == "UPSERT" or (key.identifiers is None and key.problem is None):
        return key
    if key.problem is None and policy == "EVOLVE":
        return key
    why = key.problem or f"`schema_changes` is {policy}"
    note = f"the identifier fields of `{target}` stay as they are: {why}"
    return KeyChange(notes=(*key.notes, note))


def _relaxed(changes: Sequence[Change], stays: Collection[str]) -> Iterator[Path]:
    """Yield what has to become optional: all but the identifier fields, which never are."""
    for change in changes:
        asked = isinstance(change, Relaxed) or (
            isinstance(change, RemovedColumn) and change.required
        )
        if asked and not _has_identifier(change.path, stays):
            yield change.path

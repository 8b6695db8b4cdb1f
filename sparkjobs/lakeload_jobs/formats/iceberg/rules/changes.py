"""One column, its type in an Iceberg table and its type in a load: what the difference asks for.

Iceberg changes types without rewriting files only where every old value stays readable: int to
long, float to double, a decimal to more digits (https://iceberg.apache.org/spec/#schema-evolution).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from lakeload_jobs.formats.iceberg.rules.types import (
    IcebergType,
    ListOf,
    MapOf,
    Primitive,
    Struct,
    parse_type,
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
class Removed:
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


Change: TypeAlias = Added | Removed | Widened | Incompatible | Relaxed


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
            yield Removed((*path, field.name), field.required)

"""Frozen dataclasses ⇄ JSON, strictly: unknown keys, missing keys and wrong types are errors.

Unions of dataclasses are told apart by a tag: a `Literal` field such as `type: Literal["FILES"]`.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

T = TypeVar("T")

_EARLIER_WORDS = {
    "LOADED_CATALOG_STALE": "LOADED_CATALOG_OUT_OF_DATE",
    "NOT_POSSIBLE": "UNSUPPORTED",
    "LOST_RACE": "CONFLICT",
}
"""Statuses in stored results of earlier versions, and their names today."""


class CodecError(ValueError):
    """A document does not have the shape its dataclass declares; the message names the path."""


def format_instant(instant: datetime) -> str:
    """Write a UTC instant as `2026-11-21T10:15:30.000001Z`, always with microseconds."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_instant(text: str) -> datetime:
    """Read what `format_instant` wrote."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def to_json(value: Any) -> Any:
    """Return JSON data for a dataclass tree of strings, numbers, instants, tuples and maps."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"{type(value).__name__} has no JSON form here")


def from_json(kind: type[T], data: Any, where: str = "$") -> T:
    """Build `kind` from JSON data. Raises `CodecError` naming the path of the first mismatch."""
    return cast(T, _read(kind, data, where))


def _read(kind: Any, data: Any, where: str) -> Any:
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _read_union(kind, data, where)
    if origin is typing.Literal:
        if isinstance(data, str) and _EARLIER_WORDS.get(data) in typing.get_args(kind):
            return _EARLIER_WORDS[data]
        if data not in typing.get_args(kind):
            raise CodecError(f"{where}: {data!r} is not one of {typing.get_args(kind)}")
        return data
    if origin is tuple:
        _expect(list, data, where)
        item = typing.get_args(kind)[0]
        return tuple(_read(item, value, f"{where}[{i}]") for i, value in enumerate(data))
    if origin in (dict, Mapping):
        _expect(dict, data, where)
        item = typing.get_args(kind)[1]
        return {key: _read(item, value, f"{where}.{key}") for key, value in data.items()}
    if kind is Any:
        return data
    if kind is datetime:
        _expect(str, data, where)
        try:
            return parse_instant(data)
        except ValueError as error:
            raise CodecError(f"{where}: {error}") from error
    if dataclasses.is_dataclass(kind):
        return _read_dataclass(cast(type, kind), data, where)
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    _expect(kind, data, where)
    return data


def _read_union(kind: Any, data: Any, where: str) -> Any:
    """Read `X | None`, or the member of a tagged union that the data's tag names."""
    members = _members(kind)
    if data is None and types.NoneType in typing.get_args(kind):
        return None
    if len(members) == 1:
        return _read(members[0], data, where)
    tag, kinds, default = _tagged(members)
    _expect(dict, data, where)
    if tag in data:
        value = data[tag]
        # Looked for in a tuple: a tag may be of a type that no mapping takes as a key.
        if value not in tuple(kinds):
            raise CodecError(f"{where}.{tag}: {value!r} is not one of {tuple(kinds)}")
        return _read_dataclass(kinds[value], data, where)
    if default is None:
        raise CodecError(f"{where}: {tag!r} is missing, one of {tuple(kinds)}")
    return _read_dataclass(default, data, where)


def _members(kind: Any) -> tuple[Any, ...]:
    return tuple(item for item in typing.get_args(kind) if item is not types.NoneType)


@functools.cache
def _tagged(members: tuple[type, ...]) -> tuple[str, dict[Any, type], type | None]:
    """Return the tag of a union, its members by their tags, and the one that may go without.

    The tag is the one field that is a `Literal` in each member, with values of its own in each. The
    first member whose tag has a default is meant where the tag is missing: what was written before
    there were others. Raises `TypeError` for a union without a tag.
    """
    if not all(dataclasses.is_dataclass(member) for member in members):
        raise TypeError(f"only X | None and unions of dataclasses can be read, not {members}")
    values = [
        {
            name: typing.get_args(hint)
            for name, hint in _type_hints(member).items()
            if typing.get_origin(hint) is typing.Literal
        }
        for member in members
    ]
    for tag in sorted(set.intersection(*map(set, values))):
        kinds = {
            value: member
            for member, named in zip(members, values, strict=True)
            for value in named[tag]
        }
        if len(kinds) == sum(len(named[tag]) for named in values):
            return tag, kinds, next((one for one in members if _has_default(one, tag)), None)
    raise TypeError(f"no field distinguishes {members}")


def _has_default(kind: Any, name: str) -> bool:
    (field,) = (field for field in dataclasses.fields(kind) if field.name == name)
    return field.default is not dataclasses.MISSING


def _read_dataclass(kind: type, data: Any, where: str) -> Any:
    _expect(dict, data, where)
    hints = _type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    if unknown := sorted(set(data) - set(fields)):
        raise CodecError(f"{where}: unknown key {unknown[0]!r} for {kind.__name__}")
    required = {
        name
        for name, field in fields.items()
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }
    if missing := sorted(required - set(data)):
        raise CodecError(f"{where}: {missing[0]!r} is missing for {kind.__name__}")
    values = {name: _read(hints[name], value, f"{where}.{name}") for name, value in data.items()}
    return kind(**values)


@functools.cache
def _type_hints(kind: type) -> dict[str, Any]:
    """Evaluated once: a log of many records names the same few dataclasses thousands of times."""
    return typing.get_type_hints(kind)


def _expect(kind: type, data: Any, where: str) -> None:
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise CodecError(f"{where}: expected {kind.__name__}, found {type(data).__name__}")

"""Nested types as Spark and Glue write them: `struct<a:int,b:array<string>>`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_NESTED = re.compile(r"(struct|array|map)<", re.IGNORECASE)
_NAME = re.compile(r"[^:,<>]+")
_PLAIN = re.compile(r"[^(),<>]+(\([^()]*\))?")
_NAMES = {"array": ("element",), "map": ("key", "value")}


@dataclass(frozen=True)
class Nested:
    """A struct, array or map, and what is inside of it by `names`: those of a struct's fields,
    `element`, or `key` and `value`."""

    kind: str
    names: tuple[str, ...]
    inner: tuple[Type, ...]


Type = str | Nested


class NotAType(ValueError):
    """A text that this module does not read."""


def with_new_fields(before: str, now: str) -> str | None:
    """Return the type with the fields of both: those that structs had, in their order, and then
    those that are new, at every depth. None where the types differ in more than that.

    Names are compared without case, as Glue and Athena do.
    """
    if before == now:
        return before
    try:
        united = _united(parse_type(before), parse_type(now))
    except NotAType:
        return None
    return None if united is None else type_text(united)


def new_fields(before: str, after: str, name: str) -> tuple[str, ...]:
    """Return the paths of the fields below the column `name` that only the second type has."""
    return tuple(_new(parse_type(before), parse_type(after), name)) if before != after else ()


def first_difference(before: str, now: str) -> tuple[tuple[str, ...], str, str]:
    """Return the path of the first part of a type that is of another type in `now`, and both types
    of it; no path for types that differ as a whole. New fields are no difference."""
    try:
        path, one, other = _difference(parse_type(before), parse_type(now))
    except NotAType:
        return (), before, now
    return path, type_text(one), type_text(other)


def _difference(before: Type, now: Type) -> tuple[tuple[str, ...], Type, Type]:
    if isinstance(before, str) or isinstance(now, str) or before.kind != now.kind:
        return (), before, now
    known = dict(zip(map(str.lower, before.names), before.inner, strict=True))
    for name, other in zip(now.names, now.inner, strict=True):
        one = known.get(name.lower(), other)
        if _united(one, other) is None:
            path, *kinds = _difference(one, other)
            return (name, *path), kinds[0], kinds[1]
    return (), before, now


def _united(before: Type, now: Type) -> Type | None:
    if isinstance(before, str) or isinstance(now, str):
        same = before == now
        return before if same else None
    if before.kind != now.kind:
        return None
    if before.kind == "map" and before.inner[0] != now.inner[0]:
        return None
    given = dict(zip(map(str.lower, now.names), now.inner, strict=True))
    known = {name.lower() for name in before.names}
    if len(known) < len(before.names) or len(given) < len(now.names):
        return None
    kept = [
        _united(own, given.get(name.lower(), own))
        for name, own in zip(before.names, before.inner, strict=True)
    ]
    added = [
        (name, own)
        for name, own in zip(now.names, now.inner, strict=True)
        if name.lower() not in known
    ]
    inner = [own for own in kept if own is not None]
    if len(inner) < len(kept):
        return None
    names = (*before.names, *(name for name, _ in added))
    return Nested(before.kind, names, (*inner, *(own for _, own in added)))


def _new(before: Type, after: Type, path: str) -> Iterator[str]:
    if isinstance(before, str) or isinstance(after, str):
        return
    known = dict(zip(map(str.lower, before.names), before.inner, strict=True))
    for name, own in zip(after.names, after.inner, strict=True):
        if name.lower() in known:
            yield from _new(known[name.lower()], own, f"{path}.{name}")
        else:
            yield f"{path}.{name}"


def type_text(kind: Type) -> str:
    """Return a type as Spark and Glue write it."""
    if isinstance(kind, str):
        return kind
    texts = map(type_text, kind.inner)
    if kind.kind == "struct":
        fields = zip(kind.names, texts, strict=True)
        return f"struct<{','.join(f'{name}:{text}' for name, text in fields)}>"
    return f"{kind.kind}<{','.join(texts)}>"


def parse_type(text: str) -> Type:
    """Read a type. Raises `NotAType`."""
    kind, end = _type_at(text, 0)
    if end < len(text):
        raise NotAType(text)
    return kind


def _type_at(text: str, at: int) -> tuple[Type, int]:
    """Return the type that begins at a place, and where it ends."""
    nested = _NESTED.match(text, at)
    if nested is None:
        plain = _PLAIN.match(text, at)
        if plain is None:
            raise NotAType(text)
        return plain[0], plain.end()
    kind, at = nested[1].lower(), nested.end()
    names: list[str] = []
    inner: list[Type] = []
    while not text.startswith(">", at):
        if inner:
            at = _behind(text, at, ",")
        if kind == "struct":
            name = _NAME.match(text, at)
            if name is None:
                raise NotAType(text)
            names.append(name[0])
            at = _behind(text, name.end(), ":")
        own, at = _type_at(text, at)
        inner.append(own)
    within = _NAMES.get(kind, tuple(names))
    if len(inner) != len(within):
        raise NotAType(text)
    return Nested(kind, within, tuple(inner)), at + 1


def _behind(text: str, at: int, sign: str) -> int:
    if not text.startswith(sign, at):
        raise NotAType(text)
    return at + 1

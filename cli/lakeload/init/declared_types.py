"""Types of columns that a JSON Schema of another product declares, as `columns.types` has them.

They are those of the product's own table of types (docs/migrating.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Dialect = Literal["airbyte", "estuary"]
Schema = Mapping[str, Any]

_TYPES = {"boolean": "boolean", "integer": "bigint", "number": "double"}
_AIRBYTE_TYPES = {
    "integer": "bigint",
    "big_integer": "bigint",
    "big_number": "double",
    "timestamp_with_timezone": "timestamp",
    "timestamp_without_timezone": "timestamp_ntz",
}
_WELL_KNOWN_TYPES = {
    "BinaryData": "string",
    "Boolean": "boolean",
    "Date": "date",
    "Integer": "bigint",
    "Number": "double",
    "String": "string",
    "TimeWithTimezone": "string",
    "TimeWithoutTimezone": "string",
    "TimestampWithTimezone": "timestamp",
    "TimestampWithoutTimezone": "timestamp_ntz",
}
"""Definitions of Airbyte's `WellKnownTypes.json`."""

_OF_TYPES = {"type", "format", "airbyte_type", "contentEncoding", "oneOf", "anyOf", "allOf", "$ref"}
_INSIDE = {"properties", "items", "additionalProperties", "required"}
"""What is inside of an object or list, which is JSON text there and here."""
_OF_TABLE = {"type", "properties", "allOf", "$ref", "$defs", "definitions", "$schema", "$id"}


@dataclass
class DeclaredTypes:
    """The type of each column, and what of the schema has no effect here."""

    types: dict[str, str] = field(default_factory=dict)
    unknown: list[tuple[str, str]] = field(default_factory=list)
    """Columns, or blank for the whole table, and the other documents that they refer to."""
    keywords: set[str] = field(default_factory=set)


def declared_types(schema: Schema, dialect: Dialect, key: Sequence[str] = ()) -> DeclaredTypes:
    """Return the types of the columns of a schema, whose lists are tuples; `key` are those of the
    primary key."""
    declared = DeclaredTypes()
    for part in _parts(schema, schema):
        if reference := _other_document(part, schema):
            declared.unknown.append(("", reference))
        declared.keywords |= part.keys() - _OF_TABLE
        columns = part.get("properties")
        for name, column in columns.items() if isinstance(columns, Mapping) else ():
            parts = tuple(_parts(column, schema)) if isinstance(column, Mapping) else ()
            for one in parts:
                declared.keywords |= one.keys() - _OF_TYPES - _INSIDE
            kind = _column_type(parts, schema, dialect, is_key=name in key)
            if kind is None:
                declared.unknown += [(name, other) for other in _other_documents(parts, schema)]
            else:
                # A double is no key here, and such numbers are text there, too.
                declared.types[name] = "string" if kind == "double" and name in key else kind
    return declared


def _parts(schema: Schema, root: Schema, above: frozenset[int] = frozenset()) -> Iterator[Schema]:
    """Yield a schema and those that it is made of: references within the document, and `allOf`.
    `above` are those that are made of it: references may go in circles."""
    yield schema
    above |= {id(schema)}
    reference = schema.get("$ref")
    inside = _inside(root, reference) if isinstance(reference, str) else None
    for part in (inside, *_schemas(schema, "allOf")):
        if part is not None and id(part) not in above:
            yield from _parts(part, root, above)


def _inside(root: Schema, reference: str) -> Schema | None:
    """Return what `#/$defs/name` refers to; None where it is not in the document."""
    found: Any = root
    # A document that is bundled with this one has its address for its name.
    path = ["$defs", reference]
    if reference.startswith("#/"):
        path = [part.replace("~1", "/").replace("~0", "~") for part in reference[2:].split("/")]
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _schemas(schema: Schema, name: str) -> tuple[Schema, ...]:
    items = schema.get(name)
    if not isinstance(items, tuple):
        return ()
    return tuple(item for item in items if isinstance(item, Mapping))


def _other_document(part: Schema, root: Schema) -> str:
    """Return a reference to another document, blank where there is none."""
    reference = part.get("$ref")
    if not isinstance(reference, str) or reference.startswith("#"):
        return ""
    return "" if _well_known(reference) or _inside(root, reference) else reference


def _other_documents(parts: Sequence[Schema], root: Schema) -> list[str]:
    return [reference for part in parts if (reference := _other_document(part, root))]


def _well_known(reference: object) -> str | None:
    name = str(reference).partition("WellKnownTypes.json#/definitions/")[2]
    return _WELL_KNOWN_TYPES.get(name)


def _column_type(
    parts: Sequence[Schema],
    root: Schema,
    dialect: Dialect,
    *,
    is_key: bool,
    above: frozenset[int] = frozenset(),
) -> str | None:
    """Return the type of a column; None where another document declares it. `above` are choices
    that this is one of."""
    known = [kind for part in parts if (kind := _well_known(part.get("$ref")))]
    if known:
        return known[0]
    choices = [one for part in parts for name in ("oneOf", "anyOf") for one in _schemas(part, name)]
    kinds = {
        _column_type(
            tuple(_parts(one, root)), root, dialect, is_key=is_key, above=above | {id(one)}
        )
        for one in choices
        if _type_names(one) != ("null",) and id(one) not in above
    }
    if kinds:
        return kinds.pop() if len(kinds) == 1 else "string"
    names = {name for part in parts for name in _type_names(part)}
    if not names and _other_documents(parts, root):
        return None
    keywords = {name: str(part[name]) for part in parts for name in _OF_TYPES if name in part}
    if is_key and keywords.get("format") in _TYPES:
        # Numbers that may be strings are text in a key.
        del keywords["format"]
    of_product = _airbyte_type if dialect == "airbyte" else _estuary_type
    return of_product(names - {"null"}, keywords)


def _type_names(part: Schema) -> tuple[str, ...]:
    """Return `type`, a name or a list of names. YAML's `null` is the name, too."""
    if "type" not in part:
        return ()
    names = part["type"] if isinstance(part["type"], tuple) else (part["type"],)
    return tuple("null" if name is None else str(name) for name in names)


def _airbyte_type(names: set[str], keywords: Mapping[str, str]) -> str:
    """Return the type of a column of Airbyte. Objects, lists and unions are JSON text."""
    if len(names) != 1:
        return "string"
    if (kind := _AIRBYTE_TYPES.get(keywords.get("airbyte_type", ""))) is not None:
        return kind
    if names == {"string"}:
        return {"date": "date", "date-time": "timestamp"}.get(keywords.get("format", ""), "string")
    return _TYPES.get(min(names), "string")


def _estuary_type(names: set[str], keywords: Mapping[str, str]) -> str:
    """Return the type of a column of Estuary. Numbers may be strings that have a format."""
    form = keywords.get("format", "")
    if names and names <= {"string", "integer", "number"} and form in ("integer", "number"):
        return _TYPES[form]
    if names == {"integer", "number"}:
        return "double"
    if names == {"string"} and keywords.get("contentEncoding") == "base64":
        return "binary"
    if names == {"string"}:
        return {"date": "date", "date-time": "timestamp"}.get(form, "string")
    return _TYPES.get(min(names), "string") if len(names) == 1 else "string"

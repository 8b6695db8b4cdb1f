"""Arrow schemas of Iceberg tables, with the field ids that data files carry at every level."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import pyarrow as pa

FIELD_ID = "PARQUET:field_id"
"""arrow-rs and pyarrow write it into the Parquet schema."""

_PRIMITIVES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")

FloatLeaf = tuple[int, Literal["float", "double"], tuple[str, ...]]
"""Field id, type and path of a column of floating-point numbers."""


def arrow_schema(schema: Mapping[str, Any]) -> pa.Schema:
    """Return the Arrow schema of Iceberg's JSON of a schema, of types that `rules.writers` takes.
    Raises `KeyError` for others."""
    return pa.schema([_field_of(field) for field in schema["fields"]])


def required_schema(schema: Mapping[str, Any]) -> pa.Schema:
    """Return the Arrow schema of Iceberg's JSON of any schema, as far as it says what is required:
    types that tasks do not write are binary."""
    return arrow_schema(_with_known_types(schema))


def _with_known_types(kind: Any) -> Any:
    if isinstance(kind, str):
        return kind if kind in _PRIMITIVES or _DECIMAL.fullmatch(kind) else "binary"
    parts = {name: _with_known_types(kind[name]) for name in _PARTS if name in kind}
    if "fields" in kind:
        fields = kind["fields"]
        parts["fields"] = [{**one, "type": _with_known_types(one["type"])} for one in fields]
    return {**kind, **parts}


_PARTS = ("element", "key", "value")


def float_leaves(struct: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[FloatLeaf]:
    """Yield the floating-point columns outside of lists and maps: Iceberg counts their NaN."""
    for field in struct["fields"]:
        kind, names = field["type"], (*path, field["name"])
        if kind in ("float", "double"):
            yield field["id"], kind, names
        elif isinstance(kind, Mapping) and kind["type"] == "struct":
            yield from float_leaves(kind, names)


def _field_of(field: Mapping[str, Any]) -> pa.Field[Any]:
    return _field(field["name"], field["type"], field["id"], nullable=not field["required"])


def _field(name: str, kind: Any, number: int, *, nullable: bool) -> pa.Field[Any]:
    return pa.field(name, _type(kind), nullable, {FIELD_ID: str(number)})


def _type(kind: Any) -> pa.DataType:
    if isinstance(kind, str):
        if decimal := _DECIMAL.fullmatch(kind):
            return pa.decimal128(int(decimal[1]), int(decimal[2]))
        return _PRIMITIVES[kind]
    if kind["type"] == "struct":
        return pa.struct([_field_of(field) for field in kind["fields"]])
    value = "element" if kind["type"] == "list" else "value"
    nullable = not kind[f"{value}-required"]
    inner = _field(value, kind[value], kind[f"{value}-id"], nullable=nullable)
    if kind["type"] == "list":
        return pa.list_(inner)
    # The stubs want types: fields, which carry the ids, are taken too.
    key: Any = _field("key", kind["key"], kind["key-id"], nullable=False)
    value_field: Any = inner
    made: pa.DataType = pa.map_(key, value_field)
    return made

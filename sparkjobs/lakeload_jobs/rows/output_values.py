"""Spark values → the values that are written, by the table of `core.types`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakeload_jobs.contract.spec import Nested
from lakeload_jobs.core.names import unique_names
from lakeload_jobs.core.types import type_rule

# Spark's defaults drop null fields and everything below milliseconds.
_JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


Rename = Callable[[Sequence[str]], list[str]]
"""Makes the field names of one struct those of the target."""


class UnsupportedType(Exception):
    """A type that lakeload cannot write; `kind` is Spark's name of it."""

    def __init__(self, kind: T.DataType) -> None:
        super().__init__(kind.simpleString())
        self.kind = kind.simpleString()


def written_value(
    column: Column, kind: T.DataType, nested: Nested, *, lower: bool = False
) -> Column:
    """Return the expression that writes a value of type `kind`.

    JSON text keeps the source's field names; native structs get normalised ones, numbered where
    they collide, with `lower` in lower case for Glue. Raises `UnsupportedType`, for a
    type at any depth.
    """
    written = _written(kind)
    if written != "NESTED":
        return _scalar(column, kind)
    if nested == "JSON":
        return F.to_json(_nested(column, kind, None), _JSON_OPTIONS)
    return _nested(column, kind, partial(unique_names, lower=lower))


def _written(kind: T.DataType) -> str:
    # A user-defined type is called whatever its class is called, `string` for one.
    user_defined = isinstance(kind, T.UserDefinedType)
    rule = None if user_defined else type_rule(kind.typeName())
    if rule is None or rule.written == "REFUSED":
        raise UnsupportedType(kind)
    return rule.written


def _scalar(column: Column, kind: T.DataType) -> Column:
    written = _written(kind)
    if written == "TEXT":
        return column.cast("string")
    if written == "TIME_TEXT":
        # Spark's own text leaves out a fraction of zero and its last zeros.
        text = column.cast("string")
        fraction = F.rpad(F.substring(text, 10, 6), 6, "0")
        return F.concat(F.substring(text, 1, 8), F.lit("."), fraction)
    if written == "JSON":
        return F.to_json(column)
    return column


def _nested(column: Column, kind: T.DataType, rename: Rename | None) -> Column:
    if not _has_changes(kind):
        # A cast between structs goes by position, so it renames at every depth at once.
        renamed = _renamed(kind, rename) if rename else kind
        return column if renamed == kind else column.cast(renamed)
    if isinstance(kind, T.StructType):
        return _struct(column, kind, rename)
    if isinstance(kind, T.ArrayType):
        element = kind.elementType
        return F.transform(column, lambda value: _nested(value, element, rename))
    if isinstance(kind, T.MapType):
        keys, values = kind.keyType, kind.valueType
        if _has_changes(keys):
            column = F.transform_keys(column, lambda key, _: _nested(key, keys, rename))
        return F.transform_values(column, lambda _, value: _nested(value, values, rename))
    return _scalar(column, kind)


def _struct(column: Column, kind: T.StructType, rename: Rename | None) -> Column:
    """Build a struct anew, field by field."""
    plain, reachable = _reachable(column, kind)
    names = rename(kind.names) if rename else kind.names
    values = [
        _nested(plain.getField(own), field.dataType, rename).alias(name)
        for own, field, name in zip(reachable, kind.fields, names, strict=True)
    ]
    return F.when(column.isNotNull(), F.struct(*values))


def _reachable(column: Column, kind: T.StructType) -> tuple[Column, list[str]]:
    """Return the struct and names by which its fields resolve: twins in case do not."""
    if len({name.lower() for name in kind.names}) == len(kind.names):
        return column, kind.names
    fields = [
        T.StructField(f"f{i}", field.dataType, field.nullable)
        for i, field in enumerate(kind.fields)
    ]
    return column.cast(T.StructType(fields)), [field.name for field in fields]


def _has_changes(kind: T.DataType) -> bool:
    """Whether a value at some depth is not written as it is. Raises `UnsupportedType`."""
    if isinstance(kind, T.StructType):
        return any(_has_changes(field.dataType) for field in kind.fields)
    if isinstance(kind, T.ArrayType):
        return _has_changes(kind.elementType)
    if isinstance(kind, T.MapType):
        return _has_changes(kind.keyType) or _has_changes(kind.valueType)
    return _written(kind) != "AS_IS"


def _renamed(kind: T.DataType, rename: Rename) -> T.DataType:
    """Return the type with normalised field names at every depth."""
    if isinstance(kind, T.StructType):
        names = rename(kind.names)
        return T.StructType(
            [
                T.StructField(name, _renamed(field.dataType, rename), field.nullable)
                for field, name in zip(kind.fields, names, strict=True)
            ]
        )
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_renamed(kind.elementType, rename), kind.containsNull)
    if isinstance(kind, T.MapType):
        keys, values = _renamed(kind.keyType, rename), _renamed(kind.valueType, rename)
        return T.MapType(keys, values, kind.valueContainsNull)
    return kind

"""Spark's names of types as the Arrow types that they stand for."""

from __future__ import annotations

import re
from typing import Literal, cast

import pyarrow as pa
import pyarrow.types as pt

from lakeload_jobs.rows.arrow import Kind

TimestampUnit = Literal["s", "ms", "us", "ns"]


class UnknownType(ValueError):
    """A name of a type that text cannot be read as."""


_TYPES: dict[str, Kind] = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
    "binary": pa.binary(),
}
_ALIASES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "timestamp_ltz": "timestamp",
}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
_WITH_UNIT = re.compile(r"(timestamp|timestamp_ntz)\(\s*(s|ms|us|ns)\s*\)")
_TEXT = re.compile(r"(?:varchar|char|character)\(\s*\d+\s*\)")


def declared_type(name: str) -> tuple[Kind, TimestampUnit | None]:
    """Return what a name in `columns.types` stands for: the type, and for `timestamp(ms)` and the
    like what whole numbers count. Raises `UnknownType`."""
    if found := _WITH_UNIT.fullmatch(name.strip().lower()):
        return _TYPES[found[1]], cast(TimestampUnit, found[2])
    return text_type(name), None


def text_type(name: str) -> Kind:
    """Return the Arrow type that Spark's name of a type stands for. Raises `UnknownType`."""
    plain = name.strip().lower()
    plain = _ALIASES.get(plain, plain)
    if plain in _TYPES:
        return _TYPES[plain]
    if found := _DECIMAL.fullmatch(plain):
        precision, scale = int(found[1] or "10"), int(found[2] or "0")
        if 1 <= precision <= 38 and scale <= precision:
            return pa.decimal128(precision, scale)
    if _TEXT.fullmatch(plain):
        return pa.string()
    raise UnknownType(f"text cannot be read as `{name}`")


def spark_name(kind: Kind) -> str:
    """Return Spark's name of a type. Raises `UnknownType`."""
    if pt.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    for name, own in _TYPES.items():
        if own == kind:
            return name
    raise UnknownType(f"text cannot be read as `{kind}`")

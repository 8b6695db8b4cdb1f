"""Values of primitive types as Iceberg writes them: bounds, partitions, and their Avro types.

https://iceberg.apache.org/spec/, "Binary single-value serialization" and "Avro".
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

from lakeload_jobs.formats.iceberg.commits.errors import Unsupported

_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
_FIXED = re.compile(r"fixed\[(\d+)\]")
_PACKED: Mapping[str, str] = {
    "int": "<i",
    "long": "<q",
    "float": "<f",
    "double": "<d",
    "date": "<i",
    "time": "<q",
    "timestamp": "<q",
    "timestamptz": "<q",
    "timestamp_ns": "<q",
    "timestamptz_ns": "<q",
}
_EXACT = Context(prec=38)
"""Iceberg's decimals have at most so many digits."""
_HIGHEST = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def binary(kind: str, value: Any) -> bytes:
    """Return a value as bounds and manifest lists hold it. Dates and times are numbers since 1970,
    decimals unscaled integers."""
    if kind == "boolean":
        return b"\x01" if value else b"\x00"
    if kind in _PACKED:
        return struct.pack(_PACKED[kind], value)
    if _DECIMAL.fullmatch(kind):
        return decimal_bytes(value)
    if kind == "string":
        return value if isinstance(value, bytes) else str(value).encode()
    return bytes(value)


def decimal_bytes(unscaled: int) -> bytes:
    """Return an unscaled decimal in the fewest bytes of two's complement, high byte first."""
    size = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
    return int(unscaled).to_bytes(size, "big", signed=True)


def unscaled_decimal(value: Decimal, scale: int) -> int:
    """Return the unscaled integer of a decimal of a scale."""
    return int(value.scaleb(scale, _EXACT))


def stored(kind: str, value: Any) -> Any:
    """Return a value of a partition as manifests hold it, of one that `transforms.by_partition`
    yields: decimals are text there, and unscaled bytes here."""
    if value is None or not (match := _DECIMAL.fullmatch(kind)):
        return value
    precision, scale = int(match[1]), int(match[2])
    unscaled = unscaled_decimal(Decimal(value), scale)
    return unscaled.to_bytes(_decimal_size(precision), "big", signed=True)


def ordered(kind: str, value: Any) -> Any:
    """Return what orders the values of a type as Iceberg does, of one that a manifest holds."""
    if kind.startswith("decimal"):
        return int.from_bytes(value, "big", signed=True)
    if kind in ("float", "double"):
        return value, math.copysign(1, value)
    return value


def truncated(kind: str, value: bytes, length: int, *, upper: bool) -> bytes | None:
    """Return a bound of at most `length` characters or bytes: the value's beginning, or as `upper`
    bound the least one above all that begin so, None where there is none."""
    if kind == "string":
        text = value.decode()
        if len(text) <= length:
            return value
        begin = text[:length]
        return (_text_above(begin) if upper else begin.encode()) or None
    if kind == "binary" or _FIXED.fullmatch(kind):
        if len(value) <= length:
            return value
        return _bytes_above(value[:length]) if upper else value[:length]
    return value


def _text_above(text: str) -> bytes | None:
    points = [ord(character) for character in text]
    for at in reversed(range(len(points))):
        following = points[at] + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= _HIGHEST:
            return "".join(map(chr, [*points[:at], following])).encode()
    return None


def _bytes_above(data: bytes) -> bytes | None:
    for at in reversed(range(len(data))):
        if data[at] < 0xFF:
            return data[:at] + bytes([data[at] + 1])
    return None


def avro_type(kind: str) -> Any:
    """Return the Avro type of a primitive type. Raises `Unsupported`."""
    if match := _DECIMAL.fullmatch(kind):
        precision, scale = int(match[1]), int(match[2])
        return {
            "type": "fixed",
            "name": f"decimal_{precision}_{scale}",
            "size": _decimal_size(precision),
            "logicalType": "decimal",
            "precision": precision,
            "scale": scale,
        }
    if match := _FIXED.fullmatch(kind):
        return {"type": "fixed", "name": f"fixed_{match[1]}", "size": int(match[1])}
    if kind not in _AVRO:
        raise Unsupported(f"a partition of the type `{kind}`")
    return _AVRO[kind]


def _decimal_size(precision: int) -> int:
    return next(n for n in range(1, 17) if 10**precision <= 2 ** (8 * n - 1))


def avro_name(name: str) -> str:
    """Return the name of a field as Avro takes it, by the rule of Iceberg's `AvroSchemaUtil`:
    letters, digits and `_` stay, a digit in front gets a `_`, others are `_x` and their code."""
    data = name.encode("utf-16-be", "surrogatepass")
    units = [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]
    return "".join(_avro_character(chr(unit), first=at == 0) for at, unit in enumerate(units))


def _avro_character(character: str, *, first: bool) -> str:
    # Avro's specification has ASCII alone, Java's code takes letters of any language: by its id the
    # field is found under both names.
    if character.isascii() and (character.isalpha() or character == "_"):
        return character
    if character.isascii() and character.isdigit():
        return f"_{character}" if first else character
    return f"_x{ord(character):X}"


_AVRO: Mapping[str, Any] = {
    **{kind: kind for kind in ("boolean", "int", "long", "float", "double", "string")},
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    "uuid": {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"},
}


@dataclass(frozen=True)
class Leaf:
    """A primitive field of a schema. `repeated`: it lies within a list or a map."""

    id: int
    kind: str
    name: str
    repeated: bool


def leaves(schema: Mapping[str, Any]) -> Iterator[Leaf]:
    """Yield the primitive fields of a schema in the order in which Parquet has their columns."""
    yield from _leaves({**schema, "type": "struct"}, 0, "", repeated=False)


def _leaves(kind: Any, number: int, name: str, *, repeated: bool) -> Iterator[Leaf]:
    if isinstance(kind, str):
        yield Leaf(number, kind, name, repeated)
    elif kind["type"] == "struct":
        for field in kind["fields"]:
            inner = f"{name}.{field['name']}" if name else field["name"]
            yield from _leaves(field["type"], field["id"], inner, repeated=repeated)
    elif kind["type"] == "list":
        yield from _leaves(kind["element"], kind["element-id"], f"{name}.element", repeated=True)
    else:
        for part in ("key", "value"):
            yield from _leaves(kind[part], kind[f"{part}-id"], f"{name}.{part}", repeated=True)

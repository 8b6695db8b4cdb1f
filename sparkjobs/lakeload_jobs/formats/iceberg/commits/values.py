"""Values of primitive types as Iceberg writes bounds of partitions.

https://iceberg.apache.org/spec/, "Binary single-value serialization".
"""

from __future__ import annotations

import re
import struct
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
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
_EPOCH_DAY = date(1970, 1, 1).toordinal()


def binary(kind: str, value: Any) -> bytes:
    """Return a value as bounds and manifest lists hold it.

    Dates and times may be numbers since 1970 or Python's own, decimals unscaled integers or
    `Decimal`.
    """
    if kind == "boolean":
        return b"\x01" if value else b"\x00"
    if kind in _PACKED:
        return struct.pack(_PACKED[kind], number(value))
    if match := _DECIMAL.fullmatch(kind):
        unscaled = int(value.scaleb(int(match[2]))) if isinstance(value, Decimal) else int(value)
        # The fewest bytes of two's complement.
        size = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
        return unscaled.to_bytes(size, "big", signed=True)
    if kind == "string":
        return value if isinstance(value, bytes) else str(value).encode()
    if kind == "uuid" and isinstance(value, uuid.UUID):
        return value.bytes
    return bytes(value)


def number(value: Any) -> Any:
    """Return dates and times that Avro has decoded as the numbers that Iceberg stores."""
    if isinstance(value, datetime):
        since = value - (datetime(1970, 1, 1, tzinfo=UTC if value.tzinfo else None))
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if isinstance(value, date):
        return value.toordinal() - _EPOCH_DAY
    if isinstance(value, time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + (
            value.microsecond
        )
    return value


def primitives(kind: Any, identifier: int = 0) -> Iterator[tuple[int, str]]:
    """Yield the id and the type of each primitive field within a type or a schema."""
    if isinstance(kind, str):
        yield identifier, kind
    elif kind["type"] == "struct":
        for field in kind["fields"]:
            yield from primitives(field["type"], field["id"])
    elif kind["type"] == "list":
        yield from primitives(kind["element"], kind["element-id"])
    else:
        yield from primitives(kind["key"], kind["key-id"])
        yield from primitives(kind["value"], kind["value-id"])

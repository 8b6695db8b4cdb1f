"""An encoder of VARIANT that knows nothing of the product, by the specification of parquet-format.

Files of pyarrow have no annotation for it. The schema that Spark puts beside the data says which
columns are VARIANT, as in files of Spark 4.0.
"""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import accumulate
from typing import Any

import pyarrow as pa

NOTE = "org.apache.spark.sql.parquet.row.metadata"


@dataclass(frozen=True)
class Raw:
    """A value of a primitive type that Python has no type for: its number and its bytes."""

    kind: int
    content: bytes


def encode(value: Any, *, spare: int = 0) -> dict[str, bytes]:
    """Return metadata and value. `spare`: offsets and ids are so many bytes longer than needed."""
    names = sorted(set(_names(value)), key=str.encode)
    return {
        "metadata": metadata(names, spare=spare),
        "value": _value(value, {name: place for place, name in enumerate(names)}, spare),
    }


def metadata(names: Sequence[str], *, spare: int = 0) -> bytes:
    """Return a dictionary of field names."""
    texts = [name.encode() for name in names]
    size = _size(max(sum(map(len, texts)), len(texts)), spare)
    ends = [0, *accumulate(map(len, texts))]
    head = bytes([1 | (size - 1) << 6])
    return head + _number(len(texts), size) + _joined(ends, size) + b"".join(texts)


def _names(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [*value, *(name for one in value.values() for name in _names(one))]
    return [name for one in value for name in _names(one)] if isinstance(value, list) else []


def _size(most: int, spare: int) -> int:
    return min(4, max(1, (most.bit_length() + 7) // 8) + spare)


def _number(number: int, size: int) -> bytes:
    return number.to_bytes(size, "little")


def _joined(numbers: Sequence[int], size: int) -> bytes:
    return b"".join(_number(number, size) for number in numbers)


def _value(value: Any, places: Mapping[str, int], spare: int) -> bytes:
    if isinstance(value, Mapping):
        names = sorted(value, key=str.encode)
        values = [_value(value[name], places, spare) for name in names]
        ids = [places[name] for name in names]
        return _container(2, values, ids, spare)
    if isinstance(value, list):
        return _container(3, [_value(one, places, spare) for one in value], [], spare)
    return _primitive(value)


def _container(basic: int, values: Sequence[bytes], ids: Sequence[int], spare: int) -> bytes:
    ends = [0, *accumulate(map(len, values))]
    size, id_size = _size(ends[-1], spare), _size(max(ids, default=0), spare)
    large = spare > 0 or len(values) > 255
    bits = size - 1
    if basic == 2:
        bits |= (id_size - 1) << 2 | large << 4
    else:
        bits |= large << 2
    head = bytes([basic | bits << 2]) + _number(len(values), 4 if large else 1)
    return head + _joined(ids, id_size) + _joined(ends, size) + b"".join(values)


def _primitive(value: Any) -> bytes:
    if value is None or isinstance(value, bool):
        return bytes([{None: 0, True: 1, False: 2}[value] << 2])
    if isinstance(value, Raw):
        return bytes([value.kind << 2]) + value.content
    if isinstance(value, str):
        raw = value.encode()
        if len(raw) < 64:
            return bytes([1 | len(raw) << 2]) + raw
        return bytes([16 << 2]) + struct.pack("<I", len(raw)) + raw
    if isinstance(value, int):
        bits = next(
            bits for bits in (8, 16, 32, 64) if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)
        )
        kind = {8: 3, 16: 4, 32: 5, 64: 6}[bits]
        return bytes([kind << 2]) + value.to_bytes(bits // 8, "little", signed=True)
    if isinstance(value, float):
        return bytes([7 << 2]) + struct.pack("<d", value)
    if isinstance(value, Decimal):
        sign, digits, exponent = value.as_tuple()
        unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
        size = 4 if len(digits) <= 9 else 8 if len(digits) <= 18 else 16
        kind = {4: 8, 8: 9, 16: 10}[size]
        return bytes([kind << 2, -int(exponent)]) + unscaled.to_bytes(size, "little", signed=True)
    if isinstance(value, datetime):
        kind = 13 if value.tzinfo is None else 12
        passed = value.replace(tzinfo=value.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)
        micros = (passed.days * 86_400 + passed.seconds) * 10**6 + passed.microseconds
        return bytes([kind << 2]) + struct.pack("<q", micros)
    if isinstance(value, date):
        return bytes([11 << 2]) + struct.pack("<i", (value - date(1970, 1, 1)).days)
    if isinstance(value, time):
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return bytes([17 << 2]) + struct.pack("<q", seconds * 10**6 + value.microsecond)
    if isinstance(value, bytes):
        return bytes([15 << 2]) + struct.pack("<I", len(value)) + value
    assert isinstance(value, uuid.UUID)
    return bytes([20 << 2]) + value.bytes


def plain_type() -> Any:
    """Return the type of a VARIANT that is not shredded."""
    return pa.struct([pa.field("metadata", pa.binary(), nullable=False), ("value", pa.binary())])


def with_note(table: pa.Table, **types: Any) -> pa.Table:
    """Return a table whose schema says which types Spark gives its columns."""
    fields = [
        {"name": name, "type": types.get(name, "long"), "nullable": True, "metadata": {}}
        for name in table.schema.names
    ]
    return table.replace_schema_metadata({NOTE: json.dumps({"type": "struct", "fields": fields})})

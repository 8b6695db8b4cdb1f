"""The row id `_supa_id` of Arrow batches: a digest of the encoded row."""

from __future__ import annotations

import hashlib
from binascii import hexlify
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.rows.arrow import Column, pc

_NULL = pa.scalar(b"~", pa.binary())
_END = pa.scalar(b";", pa.binary())
_NOTHING = pa.scalar(b"", pa.binary())
_TICKS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def encode(column: Column) -> Column:
    """Return the encoded values as binary, without nulls: null is a value of its own, `~`.

    Raises `InvalidInput` for a type that has no encoding (durations and intervals are cast to
    text before).
    """
    if pt.is_dictionary(column.type):
        column = column.dictionary_decode()
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pt.is_null(column.type):
        return pa.repeat(_NULL, len(column))
    for applies, encoder in _ENCODERS:
        if applies(column.type):
            return pc.fill_null(encoder(column), _NULL)
    raise InvalidInput(
        f"a key column of type `{column.type}` has no row id",
        hint="choose another `primary_key`, or cast the column with `columns.types`",
    )


def _boolean(column: Column) -> Column:
    return pc.if_else(column, pa.scalar(b"b1;", pa.binary()), pa.scalar(b"b0;", pa.binary()))


def _integer(column: Column) -> Column:
    return _tagged(b"n", pc.cast(column, pa.string()))


def _decimal(column: Column) -> Column:
    """Write `n` and the shortest plain decimal text: 1.50 as `1.5`, 2.00 as `2`, like integer 2."""
    scale = column.type.scale
    digits = pc.cast(_unscaled(column), pa.string())
    if scale <= 0:
        grown = pc.binary_join_element_wise(digits, "0" * -scale, "")
        return _tagged(b"n", pc.if_else(pc.equal(digits, "0"), digits, grown))
    negative = pc.starts_with(digits, "-")
    padded = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), scale + 1, padding="0")
    whole = pc.utf8_slice_codeunits(padded, 0, -scale)
    fraction = pc.utf8_rtrim(pc.utf8_slice_codeunits(padded, -scale), "0")
    point = pc.if_else(pc.equal(fraction, ""), "", ".")
    sign = pc.if_else(negative, "-", "")
    return _tagged(b"n", pc.binary_join_element_wise(sign, whole, point, fraction, ""))


def _unscaled(column: Column) -> Column:
    """Return the same digits as a decimal of scale 0, whose text has neither point nor exponent."""
    kind = column.type
    if kind.bit_width < 128:
        column = pc.cast(column, pa.decimal128(38, kind.scale))
    whole = pa.decimal256(76, 0) if kind.bit_width == 256 else pa.decimal128(38, 0)
    return pa.Array.from_buffers(whole, len(column), column.buffers(), offset=column.offset)


def _float(column: Column) -> Column:
    """Write `f` and the IEEE 754 bits of the double as a signed integer; one zero and one NaN."""
    doubles = pc.add(pc.cast(column, pa.float64()), 0.0)  # -0.0 + 0.0 is 0.0
    doubles = pc.if_else(pc.is_nan(doubles), pa.scalar(float("nan")), doubles)
    return _tagged(b"f", pc.cast(doubles.view(pa.int64()), pa.string()))


def _text(column: Column) -> Column:
    return _counted(b"s", pc.cast(column, pa.string()).view(pa.binary()))


def _bytes(column: Column) -> Column:
    return _counted(b"x", pc.cast(column, pa.binary()))


def _date(column: Column) -> Column:
    return _tagged(b"d", pc.cast(_date32(column).view(pa.int32()), pa.string()))


def _date32(column: Column) -> Column:
    return column if pt.is_date32(column.type) else pc.cast(column, pa.date32())


def _timestamp(column: Column) -> Column:
    """Write `u` (an instant) or `l` (a wall clock without zone) and microseconds since 1970."""
    tag = b"l" if column.type.tz is None else b"u"
    return _tagged(tag, pc.cast(_micros(column), pa.string()))


def _micros(column: Column) -> Column:
    """Return microseconds; nanoseconds are cut downward, as they are when written."""
    ticks = _TICKS_PER_SECOND[column.type.unit]
    values = column.view(pa.int64())
    if ticks <= 10**6:
        return pc.multiply_checked(values, 10**6 // ticks)
    quotient = pc.divide(values, 1000)
    below = pc.less(pc.subtract(values, pc.multiply(quotient, 1000)), 0)
    return pc.subtract(quotient, pc.cast(below, pa.int64()))


def _time(column: Column) -> Column:
    """Encode as the text `HH:mm:ss.SSSSSS` that is written for a time."""
    return _text(time_text(column))


def time_text(column: Column) -> Column:
    """Return times of day as `HH:mm:ss.SSSSSS`."""
    return pc.cast(pc.cast(column, pa.time64("us"), safe=False), pa.string())


def _list(column: Column) -> Column:
    """Write `[`, the elements and `]`."""
    lengths = pc.fill_null(pc.cast(pc.list_value_length(column), pa.int32()), 0)
    ends = pc.cumulative_sum(lengths)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    elements = pa.ListArray.from_arrays(offsets, encode(column.flatten()))
    return _null_where_null(column, _enclosed(b"[", pc.binary_join(elements, b""), b"]"))


def _struct(column: Column) -> Column:
    """Write `{`, the fields in their order and `}`; names are not part of it."""
    fields = [encode(field) for field in column.flatten()]
    inner = _joined(*fields) if fields else pa.repeat(_NOTHING, len(column))
    return _null_where_null(column, _enclosed(b"{", inner, b"}"))


def _map(column: Column) -> Column:
    """Write `(`, the entries sorted by their bytes and `)`: order in a map means nothing."""
    entries = _joined(encode(column.keys), encode(column.items)).to_pylist()
    offsets = column.offsets.to_pylist()
    rows = [b"".join(sorted(entries[a:b])) for a, b in pairwise(offsets)]
    return _null_where_null(column, _enclosed(b"(", pa.array(rows, pa.binary()), b")"))


def _tagged(tag: bytes, text: Column) -> Column:
    return _joined(pa.scalar(tag), text.view(pa.binary()), _END)


def _counted(tag: bytes, values: Column) -> Column:
    size = pc.cast(pc.binary_length(values), pa.string()).view(pa.binary())
    return _joined(pa.scalar(tag), size, pa.scalar(b":"), values)


def _enclosed(start: bytes, inner: Column, end: bytes) -> Column:
    return _joined(pa.scalar(start), inner, pa.scalar(end))


def _joined(*parts: Any) -> Column:
    return pc.binary_join_element_wise(*parts, _NOTHING)


def _null_where_null(column: Column, encoded: Column) -> Column:
    if column.null_count == 0:
        return encoded
    return pc.if_else(column.is_valid(), encoded, pa.scalar(None, pa.binary()))


def _is_text(kind: pa.DataType) -> bool:
    return pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind)


def _is_bytes(kind: pa.DataType) -> bool:
    return (
        pt.is_binary(kind)
        or pt.is_large_binary(kind)
        or pt.is_binary_view(kind)
        or pt.is_fixed_size_binary(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    return (
        pt.is_list(kind)
        or pt.is_large_list(kind)
        or pt.is_fixed_size_list(kind)
        or pt.is_list_view(kind)
        or pt.is_large_list_view(kind)
    )


_ENCODERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Column], Column]], ...] = (
    (pt.is_boolean, _boolean),
    (pt.is_integer, _integer),
    (pt.is_decimal, _decimal),
    (pt.is_floating, _float),
    (_is_text, _text),
    (_is_bytes, _bytes),
    (pt.is_date, _date),
    (pt.is_timestamp, _timestamp),
    (pt.is_time, _time),
    (_is_list, _list),
    (pt.is_struct, _struct),
    (pt.is_map, _map),
)


_DIGITS = 64


def row_ids(columns: Sequence[Column]) -> Column:
    """Return the id of each row as 64 lower-case hex digits; `columns` are the key, in order.

    Raises `ValueError` without columns and `InvalidInput` for a type that has no encoding.
    """
    if not columns:
        raise ValueError("a row id needs at least one column")
    sha256 = hashlib.sha256
    digests = b"".join([sha256(row).digest() for row in encoded_rows(columns).to_pylist()])
    count = len(columns[0])
    return pa.StringArray.from_buffers(count, _offsets(count), pa.py_buffer(hexlify(digests)))


def encoded_rows(columns: Sequence[Column]) -> Column:
    """Return the bytes that are hashed, one value a row; different rows have different bytes."""
    encoded = [encode(column) for column in columns]
    if len(encoded) == 1:
        return encoded[0]
    return pc.binary_join_element_wise(*encoded, pa.scalar(b""))


def _offsets(count: int) -> pa.Buffer:
    """Return offsets of `count` strings of equal length."""
    offsets = np.arange(0, (count + 1) * _DIGITS, _DIGITS, dtype=np.int32)
    return pa.py_buffer(offsets)  # type: ignore[arg-type]

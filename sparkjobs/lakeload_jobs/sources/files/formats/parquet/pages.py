"""Sizes of the pages of a Parquet file, read from their headers (Thrift's compact protocol)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

_WINDOW = 1 << 13
_WIDEST_WINDOW = 1 << 24
_TRUE, _FALSE, _BYTE, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = (
    1,
    2,
    3,
    6,
    7,
    *range(8, 13),
)

_Struct: TypeAlias = dict[int, Any]


@dataclass(frozen=True)
class Page:
    """A page: how many values it has, nulls too, and its bytes before compression."""

    is_dictionary: bool
    values: int
    size: int


def pages(stream: Any, start: int, end: int) -> Iterator[Page]:
    """Yield the pages between two bytes of a file, in order, without their contents. Ends at bytes
    that are no header: whoever reads the values reports what is wrong with them."""
    at = start
    while at < end:
        found = _header(stream, at)
        if found is None:
            return
        header, size = found
        about = header.get(7) or header.get(5) or header.get(8) or {}
        page_size, stored = _number(header.get(2)), _number(header.get(3))
        if page_size and not stored:
            return
        yield Page(7 in header, _number(about.get(1)), page_size)
        at += size + stored


def read_struct(data: bytes) -> dict[int, Any]:
    """Return the fields of a struct that bytes begin with, by their numbers; what is in binary
    values and lists is left out. Raises `IndexError`, `ValueError` and `RecursionError` for what is
    none."""
    return _struct(data, 0)[0]


def _number(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _header(stream: Any, at: int) -> tuple[_Struct, int] | None:
    """Return the header that begins at a byte, and its length."""
    window = _WINDOW
    while True:
        stream.seek(at)
        data = stream.read(window)
        try:
            return _struct(data, 0)
        except IndexError:
            # A header may have statistics with long values.
            if len(data) < window or window >= _WIDEST_WINDOW:
                return None
            window *= 16
        except (ValueError, RecursionError):
            return None


def _struct(data: bytes, at: int) -> tuple[_Struct, int]:
    """Return the fields of a struct, and where it ends. Raises `IndexError` where the data ends
    before it, and `ValueError` for what is none."""
    fields: _Struct = {}
    number = 0
    while head := data[at]:
        at += 1
        if head >> 4:
            number += head >> 4
        else:
            number, at = _signed(data, at)
        kind = head & 15
        if kind in (_TRUE, _FALSE):
            fields[number] = kind == _TRUE
        else:
            fields[number], at = _value(kind, data, at)
    return fields, at + 1


def _value(kind: int, data: bytes, at: int) -> tuple[Any, int]:
    if kind in (_TRUE, _FALSE, _BYTE):  # A boolean is a byte within a list.
        return data[at], at + 1
    if kind <= _I64:
        return _signed(data, at)
    if kind == _DOUBLE:
        if at + 8 > len(data):
            raise IndexError
        return None, at + 8
    if kind == _BINARY:
        size, at = _unsigned(data, at)
        if at + size > len(data):
            raise IndexError
        return None, at + size
    if kind in (_LIST, _SET):
        head, at = data[at], at + 1
        count, at = (head >> 4, at) if head >> 4 < 15 else _unsigned(data, at)
        for _ in range(count):
            _, at = _value(head & 15, data, at)
        return None, at
    if kind == _STRUCT:
        return _struct(data, at)
    raise ValueError(kind)


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
        if shift > 63:
            raise ValueError(value)


def _signed(data: bytes, at: int) -> tuple[int, int]:
    value, at = _unsigned(data, at)
    return (value >> 1) ^ -(value & 1), at

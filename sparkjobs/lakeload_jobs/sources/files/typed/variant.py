"""VARIANT of Parquet as JSON text: the binary encoding and shredding of parquet-format.

The text is that of Spark's `to_json`: decimals without trailing zeros, numbers of floating point as
Java writes them, dates and timestamps as text, binary as Base64. `NaN` and the infinities, for
which JSON has no number, are text.
"""

from __future__ import annotations

import re
import struct
import uuid
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lakeload_jobs.rows.arrow import Column, Kind

MAX_DEPTH = 500
_MAX_DIGITS = 38
_DAY_SECONDS = 86_400
_DAY_MICROS = _DAY_SECONDS * 10**6
_EPOCH = date(1970, 1, 1).toordinal()
_CYCLE_DAYS, _CYCLE_YEARS = 146_097, 400
"""The calendar repeats itself after so many days."""
_LAST = date.max.toordinal()

_UNSAFE = re.compile(r'[\x00-\x1f"\\]')
_ESCAPES: Mapping[int, str] = {
    **{number: f"\\u{number:04X}" for number in range(0x20)},
    **{ord(sign): f"\\{name}" for sign, name in zip('\b\t\n\f\r"\\', 'btnfr"\\', strict=True)},
}
_SHORT = "it ends too early"
_TWO_VALUES = "it has both a value and a typed value"
_KEY_TWICE = "an object has the key `{}` twice"


class BadVariant(Exception):
    """A value that is not as the specification has it; the message is the reason."""


def is_variant(own: Kind) -> bool:
    """Whether a group may be a VARIANT by its fields."""
    if not pt.is_struct(own):
        return False
    fields = {field.name: field.type for field in own}
    return (
        _is_bytes(fields.get("metadata"))
        and ("value" not in fields or _is_bytes(fields["value"]))
        and len(fields) > 1
        and set(fields) <= {"metadata", "value", "typed_value"}
    )


def _is_bytes(own: Kind | None) -> bool:
    return own is not None and (pt.is_binary(own) or pt.is_large_binary(own))


def unknown_type(own: Kind) -> Kind | None:
    """Return the first type of a `typed_value` that shredding does not know; None where it knows
    all. `own` is a group of `value` and `typed_value`."""
    place = own.get_field_index("typed_value")
    return None if place < 0 else _unknown(own.field(place).type)


def _unknown(own: Kind) -> Kind | None:
    if pt.is_struct(own):
        children = [field.type for field in own]
    elif pt.is_list(own) or pt.is_large_list(own):
        children = [own.value_type]
    else:
        return None if _leaf_text(_stored(own)) else own
    if not all(pt.is_struct(child) for child in children):
        return own
    return next((kind for child in children if (kind := unknown_type(child)) is not None), None)


def variant_texts(column: Column) -> tuple[list[str | None], dict[int, str]]:
    """Return the JSON text of each value, and the reasons for those that have none, by place."""
    variants = _Shredded(column)
    texts: list[str | None] = [None] * len(column)
    bad: dict[int, str] = {}
    valid = column.is_valid().to_pylist()
    for row, metadata in enumerate(_bytes_of(column.field("metadata"))):
        if not valid[row]:
            continue
        try:
            if metadata is None:
                raise BadVariant("it has no metadata")
            texts[row] = variants.text(row, metadata) or "null"
        except BadVariant as error:
            bad[row] = str(error)
    return texts, bad


def variant_text(metadata: bytes, value: bytes) -> str:
    """Return a value as JSON text. Raises `BadVariant`."""
    return _Value(metadata, value).text()


@lru_cache(maxsize=8)
def _dictionary(metadata: bytes) -> tuple[str, ...]:
    """Return the field names that values refer to."""
    if not metadata:
        raise BadVariant("its metadata is empty")
    if metadata[0] & 15 != 1:
        raise BadVariant(f"its metadata is of version {metadata[0] & 15}, and 1 is known")
    size = (metadata[0] >> 6) + 1
    count = int.from_bytes(metadata[1 : 1 + size], "little")
    start = 1 + size * (count + 2)
    if start > len(metadata):
        raise BadVariant("its metadata ends too early")
    offsets = _numbers(metadata, 1 + size, count + 1, size)
    if offsets[-1] > len(metadata) - start or any(
        first > last for first, last in pairwise(offsets)
    ):
        raise BadVariant("its metadata has an offset that is beyond its end")
    return tuple(
        _decoded(metadata[start + first : start + last]) for first, last in pairwise(offsets)
    )


def _numbers(raw: bytes, at: int, count: int, size: int) -> Sequence[int]:
    """Return unsigned numbers of `size` bytes each."""
    if size == 1:
        return raw[at : at + count]
    if size == 3:
        ends = range(at, at + 3 * count, 3)
        return [int.from_bytes(raw[start : start + 3], "little") for start in ends]
    return struct.unpack_from(f"<{count}{'H' if size == 2 else 'I'}", raw, at)


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise BadVariant("a text in it is not UTF-8") from None


class _Value:
    """One value and what is inside of it.

    Each byte may be read once: values that overlap could stand for any amount of text.
    """

    def __init__(self, metadata: bytes, raw: bytes) -> None:
        self._names = _dictionary(metadata)
        self._raw = raw
        self._unread = len(raw)

    def text(self) -> str:
        """Return JSON text. Raises `BadVariant`."""
        return self._text(0, len(self._raw), 0)

    def fields(self) -> dict[str, str] | None:
        """Return the fields of an object as JSON text; None for another value. Raises
        `BadVariant`."""
        if not self._raw or self._raw[0] & 3 != 2:
            return None
        names, starts, end = self._children(0, len(self._raw))
        texts = [self._text(start, end, 1) for start in starts]
        return dict(zip(names, texts, strict=True))

    def _text(self, at: int, end: int, depth: int) -> str:
        if at >= end:
            raise BadVariant(_SHORT)
        header = self._raw[at]
        basic = header & 3
        if basic == 0:
            return self._primitive(header >> 2, at + 1, end)
        if basic == 1:
            return quoted(_decoded(self._bytes(at + 1, header >> 2, end)))
        if depth == MAX_DEPTH:
            raise BadVariant(f"it is nested more than {MAX_DEPTH} deep")
        names, starts, inner_end = self._children(at, end)
        texts = []
        for start in starts:  # no comprehension: each takes a frame of Python's stack
            texts.append(self._text(start, inner_end, depth + 1))
        if basic == 3:
            return f"[{','.join(texts)}]"
        pairs = zip(names, texts, strict=True)
        return f"{{{','.join([f'{quoted(name)}:{text}' for name, text in pairs])}}}"

    def _children(self, at: int, end: int) -> tuple[list[str], list[int], int]:
        """Return the names of an object's fields, none for an array, where the values start, and
        the end of all."""
        raw, header = self._raw, self._raw[at]
        is_object = header & 3 == 2
        is_large = header >> (6 if is_object else 4) & 1
        offset_size = (header >> 2 & 3) + 1
        id_size = (header >> 4 & 3) + 1 if is_object else 0
        ids = at + 1 + (4 if is_large else 1)
        count = int.from_bytes(raw[at + 1 : ids], "little")
        offsets = ids + count * id_size
        first = offsets + (count + 1) * offset_size
        if first > end:
            raise BadVariant(_SHORT)
        self._spend(first - at)
        places = _numbers(raw, offsets, count + 1, offset_size)
        if first + places[-1] > end:
            raise BadVariant("it has an offset that is beyond its end")
        names = []
        if is_object:
            try:
                names = [self._names[number] for number in _numbers(raw, ids, count, id_size)]
            except IndexError:
                raise BadVariant("a field's name is not in its metadata") from None
            if len(set(names)) < count:
                twin = next(name for name in names if names.count(name) > 1)
                raise BadVariant(_KEY_TWICE.format(twin))
        return names, [first + place for place in places[:-1]], first + places[-1]

    def _primitive(self, kind: int, at: int, end: int) -> str:
        if kind in _CONSTANTS:
            self._spend(1)
            return _CONSTANTS[kind]
        if kind in _FIXED:
            size, text = _FIXED[kind]
            return text(self._bytes(at, size, end))
        if kind in (_BINARY, _STRING):
            size = int.from_bytes(self._bytes(at, 4, end), "little")
            content = self._bytes(at + 4, size, end, header=0)
            return quoted(_decoded(content)) if kind == _STRING else _base64(content)
        raise BadVariant(f"it has a value of the type {kind}, which is not known")

    def _bytes(self, at: int, size: int, end: int, *, header: int = 1) -> bytes:
        if at + size > end:
            raise BadVariant(_SHORT)
        self._spend(header + size)
        return self._raw[at : at + size]

    def _spend(self, size: int) -> None:
        self._unread -= size
        if self._unread < 0:
            raise BadVariant("values in it overlap")


class _Typed(Protocol):
    """The values of a `typed_value`."""

    def has(self, row: int) -> bool:
        """Whether there is one."""

    def text(self, row: int, metadata: bytes, value: bytes | None) -> str:
        """Return it as JSON text, with the `value` beside it. Raises `BadVariant`."""


class _Shredded:
    """Values that are partly in columns of their own: groups of `value` and `typed_value`."""

    def __init__(self, column: Column) -> None:
        place = column.type.get_field_index("value")
        self._values = None if place < 0 else _bytes_of(column.field(place))
        place = column.type.get_field_index("typed_value")
        self._typed = None if place < 0 else _typed(column.field(place))

    def text(self, row: int, metadata: bytes) -> str | None:
        """Return the value as JSON text; None where there is none. Raises `BadVariant`."""
        value = None if self._values is None else self._values[row]
        if self._typed is not None and self._typed.has(row):
            return self._typed.text(row, metadata, value)
        return None if value is None else variant_text(metadata, value)


def _bytes_of(column: Column) -> list[bytes | None]:
    values: list[bytes | None] = column.to_pylist()
    return values


def _typed(column: Column) -> _Typed:
    if pt.is_dictionary(column.type):
        column = column.dictionary_decode()
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pt.is_struct(column.type):
        return _Fields(column)
    if pt.is_list(column.type) or pt.is_large_list(column.type):
        return _Elements(column)
    return _Leaves(column)


class _Fields:
    """Objects of which some fields, or all, are columns."""

    def __init__(self, column: Column) -> None:
        self._valid = column.is_valid().to_pylist()
        self._fields = [
            (field.name, _Shredded(column.field(place))) for place, field in enumerate(column.type)
        ]

    def has(self, row: int) -> bool:
        """Whether there is one."""
        return bool(self._valid[row])

    def text(self, row: int, metadata: bytes, value: bytes | None) -> str:
        """Return the fields of both, in the order of their names."""
        fields: dict[str, str] = {}
        if value is not None:
            own = _Value(metadata, value).fields()
            if own is None:
                raise BadVariant(_TWO_VALUES)
            fields = own
        typed: dict[str, str] = {}
        for name, shredded in self._fields:
            if name in fields:
                raise BadVariant(f"the key `{name}` is in its value and has a column, too")
            text = shredded.text(row, metadata)
            if text is not None:
                typed[name] = text
        fields.update(typed)
        return f"{{{','.join([f'{quoted(name)}:{fields[name]}' for name in sorted(fields)])}}}"


class _Elements:
    """Arrays whose elements are columns."""

    def __init__(self, column: Column) -> None:
        self._valid = column.is_valid().to_pylist()
        self._offsets = column.offsets.to_pylist()
        self._elements = _Shredded(column.values)

    def has(self, row: int) -> bool:
        """Whether there is one."""
        return bool(self._valid[row])

    def text(self, row: int, metadata: bytes, value: bytes | None) -> str:
        """Return the elements, each of which is a value: what is missing is null."""
        if value is not None:
            raise BadVariant(_TWO_VALUES)
        places = range(self._offsets[row], self._offsets[row + 1])
        texts = [self._elements.text(place, metadata) or "null" for place in places]
        return f"[{','.join(texts)}]"


class _Leaves:
    """Values of one type."""

    def __init__(self, column: Column) -> None:
        text = _leaf_text(column.type)
        assert text is not None  # noqa: S101 - `unknown_type` was called for the file's schema
        self._text, stored = text
        self._values = (column if stored is None else column.cast(stored)).to_pylist()

    def has(self, row: int) -> bool:
        """Whether there is one."""
        return self._values[row] is not None

    def text(self, row: int, metadata: bytes, value: bytes | None) -> str:
        """Return its text."""
        if value is not None:
            raise BadVariant(_TWO_VALUES)
        return self._text(self._values[row])


def _stored(own: Kind) -> Kind:
    """Return the type as it is stored."""
    if pt.is_dictionary(own):
        return own.value_type
    return own.storage_type if isinstance(own, pa.BaseExtensionType) else own


def _leaf_text(own: Kind) -> tuple[Callable[[Any], str], Kind | None] | None:
    """Return what makes text of the values of a type, and the type that they are cast to before;
    None for a type that shredding does not know."""
    plain: Mapping[Kind, tuple[Callable[[Any], str], Kind | None]] = {
        pa.bool_(): (lambda value: "true" if value else "false", None),
        pa.int8(): (str, None),
        pa.int16(): (str, None),
        pa.int32(): (str, None),
        pa.int64(): (str, None),
        pa.float32(): (_float, None),
        pa.float64(): (_double, None),
        pa.date32(): (_date, pa.int32()),
        pa.time64("us"): (_time, pa.int64()),
        pa.string(): (_text, pa.binary()),
        pa.large_string(): (_text, pa.large_binary()),
        pa.binary(): (_base64, None),
        pa.large_binary(): (_base64, None),
        pa.binary(16): (_uuid, None),
    }
    if own in plain:
        return plain[own]
    if pt.is_decimal(own) and own.precision <= _MAX_DIGITS:
        return _typed_decimal, None
    if pt.is_timestamp(own) and own.unit in ("us", "ns"):
        digits, zone = 6 if own.unit == "us" else 9, "" if own.tz is None else "+00:00"
        return lambda ticks: _moment(ticks, digits, zone), pa.int64()
    return None


def quoted(text: str) -> str:
    """Return a text as JSON has it."""
    return f'"{text.translate(_ESCAPES) if _UNSAFE.search(text) else text}"'


def _text(raw: bytes) -> str:
    return quoted(_decoded(raw))


def _base64(raw: bytes) -> str:
    return f'"{b64encode(raw).decode()}"'


def _uuid(raw: bytes) -> str:
    return f'"{uuid.UUID(bytes=raw)}"'


def _double(value: float) -> str:
    return _floating(value, repr(value))


def _float(value: float) -> str:
    """Return the shortest text of a number of 32 bits."""
    return _floating(value, str(np.float32(value)))


def _floating(value: float, text: str) -> str:
    """Return a number as Java writes it; `text` has its shortest digits."""
    if value != value:
        return '"NaN"'
    if value in (float("inf"), float("-inf")):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(text))
    sign, digits, exponent = Decimal(text).normalize().as_tuple()
    fraction = "".join(map(str, digits[1:])) or "0"
    power = int(exponent) + len(digits) - 1
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{power}"


def _decimal(unscaled: int, scale: int) -> str:
    digits = str(abs(unscaled))
    if scale > _MAX_DIGITS or len(digits) > _MAX_DIGITS:
        raise BadVariant(f"it has a decimal of more than {_MAX_DIGITS} digits")
    if scale:
        digits = digits.rjust(scale + 1, "0")
        fraction = digits[-scale:].rstrip("0")
        digits = digits[:-scale] + (f".{fraction}" if fraction else "")
    return f"-{digits}" if unscaled < 0 else digits


def _typed_decimal(value: Decimal) -> str:
    sign, digits, exponent = value.as_tuple()
    unscaled = int("".join(map(str, digits)))
    return _decimal(-unscaled if sign else unscaled, -int(exponent))


def _date(days: int) -> str:
    return f'"{_day(days)}"'


def _day(days: int) -> str:
    """Return a day since 1970 as Java writes it, in years that Python has not as well."""
    ordinal = days + _EPOCH
    if 1 <= ordinal <= _LAST:
        return date.fromordinal(ordinal).isoformat()
    cycles, rest = divmod(ordinal - 1, _CYCLE_DAYS)
    within = date.fromordinal(rest + 1)
    year = within.year + _CYCLE_YEARS * cycles
    sign = "+" if year > date.max.year else "-" if year < 0 else ""
    return f"{sign}{abs(year):04}-{within:%m-%d}"


def _moment(ticks: int, digits: int, zone: str) -> str:
    seconds, rest = divmod(ticks, 10**digits)
    days, second = divmod(seconds, _DAY_SECONDS)
    fraction = f".{rest:0{digits}}".rstrip("0") if rest else ""
    return f'"{_day(days)} {_clock(second)}{fraction}{zone}"'


def _clock(second: int) -> str:
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


def _time(micros: int) -> str:
    if not 0 <= micros <= _DAY_MICROS:
        raise BadVariant(f"it has a time of {micros} microseconds, which is no time of day")
    return f'"{_clock(micros // 10**6)}.{micros % 10**6:06}"'


def _signed(raw: bytes) -> int:
    return int.from_bytes(raw, "little", signed=True)


def _packed(layout: str, text: Callable[[float], str]) -> Callable[[bytes], str]:
    return lambda raw: text(struct.unpack(layout, raw)[0])


def _packed_decimal(raw: bytes) -> str:
    return _decimal(_signed(raw[1:]), raw[0])


def _packed_moment(digits: int, zone: str) -> Callable[[bytes], str]:
    return lambda raw: _moment(_signed(raw), digits, zone)


def _integers() -> Iterator[tuple[int, tuple[int, Callable[[bytes], str]]]]:
    for kind, size in ((3, 1), (4, 2), (5, 4), (6, 8)):
        yield kind, (size, lambda raw: str(_signed(raw)))


_CONSTANTS: Mapping[int, str] = {0: "null", 1: "true", 2: "false"}
_BINARY, _STRING = 15, 16
_FIXED: Mapping[int, tuple[int, Callable[[bytes], str]]] = {
    **dict(_integers()),
    7: (8, _packed("<d", _double)),
    8: (5, _packed_decimal),
    9: (9, _packed_decimal),
    10: (17, _packed_decimal),
    11: (4, lambda raw: _date(_signed(raw))),
    12: (8, _packed_moment(6, "+00:00")),
    13: (8, _packed_moment(6, "")),
    14: (4, _packed("<f", _float)),
    17: (8, lambda raw: _time(_signed(raw))),
    18: (8, _packed_moment(9, "+00:00")),
    19: (8, _packed_moment(9, "")),
    20: (16, _uuid),
}
"""The size and the text of each primitive type."""

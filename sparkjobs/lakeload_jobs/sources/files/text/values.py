"""Text to values of a type: exact, or bad.

A value is never changed to fit: text that does not write a value of the type, as this module
understands it, is bad. Most columns are of one usual form. These are found by regular expressions
over the whole column and cast by Arrow; the rest is parsed value by value.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lakeload_jobs.rows.arrow import Column, Kind, pc
from lakeload_jobs.sources.files.text.patterns import (
    BadPattern,
    Pattern,
    compile_pattern,
    microseconds,
    utc_offset,
)
from lakeload_jobs.sources.type_names import TimestampUnit, UnknownType, spark_name

Positions = npt.NDArray[np.int64]
Words = tuple[str, ...]

_SHOWN = 60
_LOCAL, _INSTANT = pa.timestamp("us"), pa.timestamp("us", "UTC")
_INTEGERS: dict[Kind, int] = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
_READ_ALIKE = frozenset(
    (*_INTEGERS, pa.float32(), pa.float64(), pa.bool_(), pa.date32(), _LOCAL, _INSTANT)
)


@dataclass(frozen=True)
class TextFormats:
    """How values are written. Words are compared without case, except null texts."""

    null_texts: Words = ()
    empty_is_text: bool = False
    """Whether an empty text is one, and null only in columns of other types."""
    true_words: Words = ("true",)
    false_words: Words = ("false",)
    nan_words: Words = ("NaN",)
    infinity_words: Words = ("Inf",)
    minus_infinity_words: Words = ("-Inf",)
    decimal_mark: str = "."
    thousands_mark: str = ""
    date_pattern: str | None = None
    timestamp_pattern: str | None = None
    timestamp_ntz_pattern: str | None = None
    """Patterns (`patterns`); None is ISO 8601, see docs/text-values.md."""
    timestamp_unit: TimestampUnit | None = None
    """What whole numbers count under `timestamp` since 1970; None: they are bad."""
    zone: str = "UTC"
    """The zone of text without one, under `timestamp`."""
    binary: Literal["UTF8", "BASE64"] = "UTF8"
    """What text is under `binary`: its bytes, or their Base64."""
    exact_doubles: bool = False
    """Whether text is bad under `double` that is not `is_exact_double`: so it is where the type is
    not declared."""

    @property
    def typed_null_texts(self) -> Words:
        """The texts that mean null in columns of other types than text."""
        return (*self.null_texts, "") if self.empty_is_text else self.null_texts


DEFAULT_FORMATS = TextFormats()


def parse_text(
    column: Column, kind: Kind, formats: TextFormats = DEFAULT_FORMATS
) -> tuple[Column, Positions]:
    """Return the values of a column as `kind`, null where bad, and the positions of the bad ones.

    Null stays null, and the null texts of `formats` become null. Raises `UnknownType` for a kind
    that text is not read as, and `BadPattern` for patterns that cannot be read.
    """
    is_text = pt.is_string(kind) or pt.is_binary(kind)
    null_texts = formats.null_texts if is_text else formats.typed_null_texts
    column = without_null_texts(column, null_texts)
    if pt.is_string(kind):
        return column, _NONE_BAD
    if column.null_count == len(column):
        return pa.nulls(len(column), kind), _NONE_BAD
    return _parser(kind, formats).parse(column)


def reads_alike(kind: Kind, formats: TextFormats) -> bool:
    """Return whether Arrow's CSV reader returns what `parse_text` does for each text that is a
    value of a type, if it takes it. It takes others too, and decimals with exponents crash it."""
    defaults = replace(
        DEFAULT_FORMATS,
        zone=formats.zone,
        binary=formats.binary,
        exact_doubles=formats.exact_doubles,
    )
    return kind in _READ_ALIKE and formats == defaults


def is_value(text: str, kind: Kind, formats: TextFormats = DEFAULT_FORMATS) -> bool:
    """Return whether one text is a value of a type. Raises as `parse_text`."""
    return pt.is_string(kind) or _parser(kind, formats).read(text) is not None


def without_null_texts(column: Column, null_texts: Words) -> Column:
    """Return a column with null in place of these texts."""
    if not null_texts:
        return column
    is_null = pc.is_in(column, value_set=pa.array(null_texts, pa.string()))
    return pc.if_else(is_null, pa.scalar(None, pa.string()), column)


def shortened(value: str) -> str:
    """Return a value as messages show it."""
    shown = value.encode("unicode_escape").decode() if not value.isprintable() else value
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


def describe_bad(value: str, kind: Kind, formats: TextFormats = DEFAULT_FORMATS) -> str:
    """Return a clause for messages: the value, shortened, and what was expected."""
    said = f"`{shortened(value)}` is not {expected(kind, formats)}"
    if not pt.is_timestamp(kind) or not value.strip().lstrip("-").isdecimal():
        return said
    if formats.timestamp_unit is None:
        return f"{said}; numbers need a unit, as in the type `timestamp(ms)`"
    if formats.timestamp_unit == "ns":
        return f"{said}; digits below a microsecond cannot be kept"
    return said


def expected(kind: Kind, formats: TextFormats = DEFAULT_FORMATS) -> str:
    """Return what values of a type look like, for messages."""
    if kind in _INTEGERS:
        most = 1 << (_INTEGERS[kind] - 1)
        return f"a whole number from {-most} to {most - 1}"
    if kind == pa.float64() and formats.exact_doubles:
        return "a number that is a `double` in its shortest form or with 17 digits"
    if pt.is_floating(kind):
        return f"a number within the range of `{spark_name(kind)}`"
    if pt.is_decimal(kind):
        whole, scale = kind.precision - kind.scale, kind.scale
        return f"a number of at most {whole} digits before and {scale} after the decimal point"
    if pt.is_boolean(kind):
        return " or ".join(f"`{word}`" for word in (*formats.true_words, *formats.false_words))
    if pt.is_date(kind):
        return f"a date like `{formats.date_pattern or 'yyyy-MM-dd'}`"
    if pt.is_timestamp(kind) and kind.tz is not None:
        if formats.timestamp_unit is not None:
            return f"a timestamp or a whole number of `{formats.timestamp_unit}` since 1970"
        usual = "yyyy-MM-dd HH:mm:ss[.SSSSSS][XXX]"
        return f"a timestamp like `{formats.timestamp_pattern or usual}`"
    if pt.is_timestamp(kind):
        usual = "yyyy-MM-dd HH:mm:ss[.SSSSSS]"
        if formats.timestamp_unit is not None:
            return f"a timestamp or a whole number of `{formats.timestamp_unit}` since 1970"
        return f"a timestamp without zone like `{formats.timestamp_ntz_pattern or usual}`"
    return "Base64" if pt.is_binary(kind) and formats.binary == "BASE64" else "text"


Value = Callable[[str], Any]
Cast = Callable[[Column], Column]
QuickCast = Callable[[Column], Column | None]


@dataclass(frozen=True)
class _Parser:
    """How text becomes values of one type. `value` parses one text and raises ValueError for a bad
    one. `shapes` are usual forms, with casts of columns that have no other: they return what
    `value` returns, or null, or raise `ArrowInvalid` where one value is bad.
    """

    kind: Kind
    value: Value
    shapes: tuple[tuple[str, Cast], ...] = ()
    quick: QuickCast | None = None
    """A cast of a column that has one of the most usual forms; None for any other column."""

    def parse(self, column: Column) -> tuple[Column, Positions]:
        if self.quick is not None and (values := self.quick(column)) is not None:
            return values, _NONE_BAD
        values = None
        for shape, to_values in self.shapes:
            fits = pc.match_substring_regex(column, shape)
            if not pc.any(fits).as_py():
                continue
            usual = column
            if not pc.all(fits).as_py():
                usual = pc.if_else(fits, column, pa.scalar(None, pa.string()))
            try:
                cast_values = to_values(usual)
            except pa.ArrowInvalid:
                continue
            values = cast_values if values is None else pc.coalesce(values, cast_values)
            if values.null_count == column.null_count:
                return values, _NONE_BAD
        if values is None:
            values = pa.nulls(len(column), self.kind)
        left = pc.and_(column.is_valid(), values.is_null())
        hard = self._one_by_one(column.filter(left))
        values = pc.replace_with_mask(values, left, hard)
        bad = pc.and_(column.is_valid(), values.is_null())
        return values, np.flatnonzero(bad.to_numpy(zero_copy_only=False))

    def _one_by_one(self, column: Column) -> Column:
        """Parse each different text once."""
        encoded = column.dictionary_encode()
        values = [self.read(text) for text in encoded.dictionary.to_pylist()]
        return pa.array(values, self.kind).take(encoded.indices)

    def read(self, text: str) -> Any:
        """Return the value of a text, None for a bad one."""
        try:
            return self.value(text)
        except (ValueError, OverflowError):
            return None


_NONE_BAD: Positions = np.zeros(0, np.int64)


@dataclass(frozen=True)
class _Bytes:
    """The bytes of a column of text. What nulls have is not of its values."""

    starts: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]
    data: npt.NDArray[np.uint8]

    @property
    def used(self) -> npt.NDArray[np.uint8]:
        """The bytes of all texts, one behind the other."""
        return self.data[self.starts[0] : self.starts[-1] + self.lengths[-1]]

    def first(self, number: int = 0) -> npt.NDArray[np.uint8]:
        """Return one of the first bytes of each text; any byte of texts that are shorter."""
        return self.data.take(self.starts + number, mode="clip")

    def last(self) -> npt.NDArray[np.uint8]:
        """Return the last byte of each text; any byte of empty texts."""
        ends: npt.NDArray[np.int32] = self.starts + self.lengths
        return self.data.take(ends - 1, mode="clip")


def _bytes_of(column: Column) -> _Bytes:
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return _Bytes(ends[:-1], np.diff(ends), np.frombuffer(data or b"", np.uint8))


def _quick_cast(column: Column, kind: Kind) -> Column | None:
    """Return a column cast by Arrow, None where a value cannot be."""
    try:
        # Arrow casts all values before it fails: where the first cannot be cast, that takes long.
        pc.cast(column[:_TRIED], kind)
        return pc.cast(column, kind)
    except pa.ArrowInvalid:
        return None


def plain_integers(column: Column) -> Column | None:
    """Return integers of 64 bits; None where a text is not as Python writes it."""
    values = _quick_cast(column, pa.int64())
    if values is None:
        return None
    text = _bytes_of(column)
    # Arrow takes 007, -0 and 0x10 for numbers too.
    first = text.first()
    if ((first == ord("0")) & (text.lengths > 1)).any():
        return None
    minus = first == ord("-")
    return None if minus.any() and (minus & (text.first(1) == ord("0"))).any() else values


def iso_dates(column: Column) -> Column | None:
    """Return dates; None where a text is not one as ISO 8601 writes it."""
    values = _quick_cast(column, pa.date32())
    return values if values is not None and _has_years(values) else None


def iso_local(column: Column) -> Column | None:
    """Return timestamps without zone; None where a text is not one with hours and minutes."""
    values = _quick_cast(column, _LOCAL)
    if values is None or not _has_years(values):
        return None
    # Arrow takes a date, and one with an hour, for a timestamp too.
    lengths = _bytes_of(column).lengths
    return None if ((lengths == _DATE_LENGTH) | (lengths == _HOUR_LENGTH)).any() else values


def iso_utc(column: Column) -> Column | None:
    """Return timestamps; None where a text is not one with hours and minutes that ends in Z."""
    values = _quick_cast(column, _INSTANT)
    if values is None or not _has_years(values):
        return None
    text = _bytes_of(column)
    in_utc = (text.last() == ord("Z")) & (text.lengths != _HOUR_LENGTH + 1)
    return values if (in_utc | (text.lengths == 0)).all() else None


def _has_years(values: Column) -> bool:
    """Return whether all are of the years 1 to 9999: Arrow knows a year 0."""
    least = pc.min(values.view(pa.int32() if pt.is_date(values.type) else pa.int64())).as_py()
    return least is None or least >= (_FIRST_DAY if pt.is_date(values.type) else _FIRST_MICROS)


_TRIED = 8
_MOST_DECIMAL_DIGITS = 38
_DATE_LENGTH, _HOUR_LENGTH = len("2024-02-29"), len("2024-02-29 13")
_FIRST_DAY = (date(1, 1, 1) - date(1970, 1, 1)).days
_FIRST_MICROS = _FIRST_DAY * 86_400_000_000


@lru_cache(maxsize=256)
def _parser(kind: Kind, formats: TextFormats) -> _Parser:
    if kind in _INTEGERS:
        return _integers(kind, formats)
    if kind in (pa.float32(), pa.float64()):
        return _floats(kind, formats)
    if pt.is_decimal128(kind):
        return _decimals(kind, formats)
    if pt.is_boolean(kind):
        return _booleans(formats)
    if kind == pa.date32():
        return _dates(formats)
    if kind == pa.timestamp("us"):
        return _local_timestamps(formats)
    if kind == pa.timestamp("us", "UTC"):
        return _timestamps(formats)
    if kind == pa.binary():
        return _binary(formats)
    raise UnknownType(f"text cannot be read as `{kind}`")


def _cast_to(kind: Kind) -> Cast:
    return lambda column: pc.cast(column, kind)


# Numbers

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_EASY_INTEGER = "^-?[0-9]{1,18}$"
_EASY_DOUBLE = r"^-?[0-9]{1,20}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?$"
_EASY_FLOAT = r"^-?[0-9]{1,15}(\.[0-9]{1,15})?$"
_EASY_EXACT = r"^-?[0-9]{1,20}(\.[0-9]{1,20})?$"
_MOST_WHOLE_DIGITS = 400
"""So many digits, or an exponent of so many, are beyond every type."""
EXACT_LENGTH = 16
"""Shorter decimals, of up to 15 digits, are the shortest forms of their doubles."""


@dataclass(frozen=True)
class _Marks:
    """The marks of numbers. Digits between thousands marks are three, or there are no marks."""

    decimal: str
    thousands: str

    @property
    def plain(self) -> bool:
        return self.decimal == "." and not self.thousands

    def number(self, text: str) -> str:
        """Return a number with a point and without thousands marks. Raises ValueError."""
        if not self.plain:
            text = self._plain(text)
        if not _NUMBER.fullmatch(text):
            raise ValueError(f"`{text}` is not a number")
        return text

    @property
    def shape(self) -> str:
        """The usual form of a number, as a regular expression."""
        point, thousands = re.escape(self.decimal), re.escape(self.thousands)
        groups = rf"|[0-9]{{1,3}}({thousands}[0-9]{{3}}){{1,4}}" if self.thousands else ""
        return rf"^-?([0-9]{{1,15}}{groups})({point}[0-9]{{1,15}})?$"

    def replaced(self, column: Column) -> Column:
        """Return numbers of the usual form with a point and without thousands marks."""
        if self.thousands:
            column = pc.replace_substring(column, self.thousands, "")
        return pc.replace_substring(column, self.decimal, ".")

    def _plain(self, text: str) -> str:
        mantissa, power, exponent = text, "", ""
        if (found := re.search("[eE]", text)) is not None:
            mantissa, power, exponent = text[: found.start()], "e", text[found.end() :]
        whole, mark, fraction = mantissa.partition(self.decimal)
        if self.thousands and self.thousands in whole:
            first, *groups = whole.lstrip("+-").split(self.thousands)
            if not 1 <= len(first) <= 3 or any(len(group) != 3 for group in groups):
                raise ValueError(f"`{text}` has thousands marks in other places")
            whole = whole.replace(self.thousands, "")
        if self.decimal != "." and "." in whole + fraction:
            raise ValueError(f"`{text}` is not a number")
        return whole + ("." if mark else "") + fraction + power + exponent


def _marks(formats: TextFormats) -> _Marks:
    return _Marks(formats.decimal_mark, formats.thousands_mark)


def _number_shapes(shape: str, marks: _Marks, kind: Kind) -> tuple[tuple[str, Cast], ...]:
    """Return the usual form of numbers of a type: `shape`, or one with marks."""
    if marks.plain:
        return ((shape, _cast_to(kind)),)
    if pt.is_decimal(kind):
        return ()
    return ((marks.shape, lambda column: pc.cast(marks.replaced(column), kind)),)


def plain_number(text: str, formats: TextFormats) -> str:
    """Return a number with a point and without thousands marks. Raises ValueError."""
    return _marks(formats).number(text)


def usual_numbers(column: Column, formats: TextFormats) -> tuple[Column, Column]:
    """Return the numbers of a column without nulls as `plain_number` does, as far as they have the
    usual form, and all other texts. Without marks of their own all texts are the former.
    `replaced_formats` are those of the former."""
    marks = _marks(formats)
    if marks.plain:
        return column, column[:0]
    matches = pc.match_substring_regex(column, marks.shape)
    return marks.replaced(column.filter(matches)), column.filter(pc.invert(matches))


def replaced_formats(formats: TextFormats) -> TextFormats:
    """Return formats with the usual marks of numbers."""
    return replace(formats, decimal_mark=".", thousands_mark="")


def _integers(kind: Kind, formats: TextFormats) -> _Parser:
    most, marks = 1 << (_INTEGERS[kind] - 1), _marks(formats)

    def value(text: str) -> int:
        text = marks.number(text)
        if not _INTEGER.fullmatch(text):
            raise ValueError(f"`{text}` is not a whole number")
        number = whole_number(text)
        if not -most <= number < most:
            raise ValueError(f"`{text}` is out of range")
        return number

    def quick(column: Column) -> Column | None:
        values = _quick_cast(column, kind) if marks.plain else None
        if values is None:
            return None
        text = _bytes_of(column)
        hexadecimal = (text.first(1) | 0x20) == ord("x")
        return None if ((text.first() == ord("0")) & hexadecimal).any() else values

    return _Parser(kind, value, _number_shapes(_EASY_INTEGER, marks, kind), quick)


def whole_number(text: str) -> int:
    """Return what digits with or without a sign stand for, however many zeros lead them; a number
    of more than `_MOST_WHOLE_DIGITS` is 10 to that power, which is beyond every type as well."""
    digits = text.lstrip("+-").lstrip("0") or "0"
    # Python refuses to convert more than 4,300 digits, and takes long for fewer.
    number = int(digits) if len(digits) <= _MOST_WHOLE_DIGITS else 10**_MOST_WHOLE_DIGITS
    return -number if text.startswith("-") else number


def _floats(kind: Kind, formats: TextFormats) -> _Parser:
    marks, exact = _marks(formats), formats.exact_doubles and kind == pa.float64()
    words = {
        **{word.lower(): float("nan") for word in formats.nan_words},
        **{word.lower(): float("inf") for word in formats.infinity_words},
        **{word.lower(): float("-inf") for word in formats.minus_infinity_words},
    }

    def value(text: str) -> float:
        if text.lower() in words:
            return words[text.lower()]
        text = marks.number(text)
        number = float(pc.cast(pa.scalar(text), kind).as_py())
        if number in (float("inf"), float("-inf")):
            raise ValueError(f"`{text}` is too large")
        if number == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
            raise ValueError(f"`{text}` is too small")
        if exact and not is_exact_double(text):
            raise ValueError(f"`{text}` is more exact than a double")
        return number

    def quick(column: Column) -> Column | None:
        values = _quick_cast(column, kind) if marks.plain and not exact else None
        if values is None or not pc.all(pc.is_finite(values)).as_py():
            return None
        # A zero may be a number that is too small.
        return None if pc.any(pc.equal(values, pa.scalar(0, kind))).as_py() else values

    def exact_values(column: Column) -> Column:
        values = pc.cast(column, kind)
        is_short = pc.less(pc.binary_length(column), EXACT_LENGTH)
        exact = pc.or_(is_short, pc.equal(pc.cast(values, pa.string()), column))
        return pc.if_else(exact, values, pa.scalar(None, kind))

    shape = _EASY_DOUBLE if kind == pa.float64() else _EASY_FLOAT
    if exact and marks.plain:
        return _Parser(kind, value, ((_EASY_EXACT, exact_values),))
    return _Parser(kind, value, () if exact else _number_shapes(shape, marks, kind), quick)


def is_exact_double(text: str) -> bool:
    """Return whether a number has the value of the shortest form of its double, or of the form with
    17 digits, which C, R and databases write."""
    try:
        number = float(text)
        long = f"{number:.17g}"
        if text == long:  # Most are, where one is: the parts take longer.
            return True
        return decimal_parts(text) in (decimal_parts(repr(number)), decimal_parts(long))
    except ValueError:
        return False


def _decimals(kind: Kind, formats: TextFormats) -> _Parser:
    marks, scale, whole = _marks(formats), kind.scale, kind.precision - kind.scale

    def value(text: str) -> Decimal:
        sign, digits, exponent = decimal_parts(marks.number(text))
        if exponent < -scale or len(digits) + exponent > whole:
            raise ValueError(f"`{text}` has too many digits")
        return Decimal((sign, tuple(map(int, digits + "0" * (exponent + scale))), -scale))

    # Arrow's cast crashes where an exponent is very small, and overflows silently where a number
    # has too many digits for the scale: its 007 is a decimal(38,38).
    digits = rf"(0|[0-9]{{1,{whole}}})" if whole else "0"
    fraction = rf"(\.[0-9]{{1,{scale}}})?" if scale else ""

    def quick(column: Column) -> Column | None:
        if not marks.plain:
            return None
        text = _bytes_of(column)
        if text.lengths.max() + scale > _MOST_DECIMAL_DIGITS or not _without_exponents(text):
            return None
        return _quick_cast(column, kind)

    return _Parser(kind, value, _number_shapes(f"^-?{digits}{fraction}$", marks, kind), quick)


def _without_exponents(text: _Bytes) -> bool:
    """Return whether texts have nothing but digits, points, `-` and `/`, and end with a digit."""
    if not len(text.used):
        return False
    if (text.used - np.uint8(ord("-")) > np.uint8(ord("9") - ord("-"))).any():
        return False
    return bool(((text.last() >= ord("0")) | (text.lengths == 0)).all())


def decimal_parts(text: str) -> tuple[int, str, int]:
    """Return sign, digits and exponent of a number: digits without zeros at either end, none for
    zero."""
    mantissa, _, power = text.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("+-").partition(".")
    digits = (whole + fraction).lstrip("0")
    stripped = digits.rstrip("0")
    if not stripped:
        return 0, "", 0
    exponent = whole_number(power or "0") - len(fraction) + len(digits) - len(stripped)
    return int(text.startswith("-")), stripped, exponent


# Booleans and bytes


def _booleans(formats: TextFormats) -> _Parser:
    true, false = ({word.lower() for word in words} for words in
                   (formats.true_words, formats.false_words))  # fmt: skip

    def value(text: str) -> bool:
        if (word := text.lower()) not in true | false:
            raise ValueError(f"`{text}` is neither true nor false")
        return word in true

    def quick(column: Column) -> Column | None:
        if (true, false) != ({"true"}, {"false"}):
            return None
        values = _quick_cast(column, pa.bool_())
        # Arrow takes 0 and 1 for booleans too.
        return None if values is None or (_bytes_of(column).lengths == 1).any() else values

    return _Parser(pa.bool_(), value, quick=quick)


def _binary(formats: TextFormats) -> _Parser:
    if formats.binary == "UTF8":
        return _Parser(pa.binary(), str.encode, (("", lambda column: column.cast(pa.binary())),))

    def value(text: str) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise ValueError(f"`{text}` is not Base64") from error

    return _Parser(pa.binary(), value)


# Dates and timestamps

_EASY_DAY = "[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_EASY_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
_EASY_OFFSET = "(Z|[+-](0[0-9]|1[0-7])(:?[0-5][0-9])?)"
_ISO_DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ISO = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?"
    r"(?: ?(Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?))?)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PER_SECOND: dict[TimestampUnit, int] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_EASY_DIGITS: dict[TimestampUnit, int] = {"s": 11, "ms": 14, "us": 17, "ns": 18}


def iso_moment(text: str) -> datetime:
    """Return what ISO text stands for, with a zone where it has one. Raises ValueError."""
    found = _ISO.fullmatch(text)
    if found is None:
        raise ValueError(f"`{text}` is not a timestamp")
    day, minutes, seconds, fraction, offset = found.groups()
    moment = datetime.fromisoformat(f"{day}T{minutes or '00:00'}:{seconds or '00'}")
    moment = moment.replace(microsecond=microseconds(fraction or ""))
    if offset is None:
        return moment
    return moment.replace(tzinfo=utc_offset("Z" if offset == "UTC" else offset))


def has_iso_moments(formats: TextFormats) -> bool:
    """Return whether dates and timestamps are written as ISO 8601 has them, without zone in UTC."""
    patterns = (formats.date_pattern, formats.timestamp_pattern, formats.timestamp_ntz_pattern)
    return patterns == (None, None, None) and formats.zone == "UTC"


def _dates(formats: TextFormats) -> _Parser:
    kind = pa.date32()
    if formats.date_pattern is not None:
        pattern = compile_pattern(formats.date_pattern)
        return _Parser(kind, pattern.parse_date, _iso_shapes(pattern, _cast_to(kind)))

    def value(text: str) -> date:
        if not _ISO_DATE.fullmatch(text):
            raise ValueError(f"`{text}` is not a date")
        return date.fromisoformat(text)

    return _Parser(kind, value, ((f"^{_EASY_DAY}$", _cast_to(kind)),), iso_dates)


def _local_timestamps(formats: TextFormats) -> _Parser:
    pattern, unit = _compiled(formats.timestamp_ntz_pattern), formats.timestamp_unit
    to_local = _cast_to(_LOCAL)
    numbers: tuple[tuple[str, Cast], ...] = ()
    if unit is not None:
        count = _numbers_cast(unit)
        digits = f"^[0-9]{{1,{_EASY_DIGITS[unit]}}}$"
        numbers = ((digits, lambda column: count(column).view(_LOCAL)),)

    def value(text: str) -> datetime:
        if unit is not None and _INTEGER.fullmatch(text):
            return _since_epoch(whole_number(text), unit).replace(tzinfo=None)
        moment = iso_moment(text) if pattern is None else pattern.parse(text)
        if moment.tzinfo is not None:
            raise ValueError(f"`{text}` has a zone")
        return moment

    if pattern is not None:
        return _Parser(_LOCAL, value, numbers + _iso_shapes(pattern, to_local))
    shapes = (f"^{_EASY_DAY}[T ]{_EASY_TIME}$", to_local), (f"^{_EASY_DAY}$", to_local)
    return _Parser(_LOCAL, value, numbers + shapes, iso_local)


def _timestamps(formats: TextFormats) -> _Parser:
    pattern, unit = _compiled(formats.timestamp_pattern), formats.timestamp_unit
    zone = _zone(formats.zone)

    def value(text: str) -> datetime:
        if unit is not None and _INTEGER.fullmatch(text):
            return _since_epoch(whole_number(text), unit)
        moment = iso_moment(text) if pattern is None else pattern.parse(text)
        if moment.tzinfo is None:
            moment = _in_zone(moment, zone)
        return moment.astimezone(UTC)

    def cast_local(column: Column) -> Column:
        return _assume_zone(pc.cast(column, _LOCAL), formats.zone)

    def cast_utc(column: Column) -> Column:
        return pc.cast(pc.replace_substring_regex(column, " ?(UTC|Z)$", "Z"), _INSTANT)

    def quick(column: Column) -> Column | None:
        values = iso_utc(column)
        if values is None and zone is None and (local := iso_local(column)) is not None:
            return local.view(_INSTANT)
        return values

    to_instant = _cast_to(_INSTANT)
    shapes: list[tuple[str, Cast]] = []
    if unit is not None:
        shapes.append((f"^[0-9]{{1,{_EASY_DIGITS[unit]}}}$", _numbers_cast(unit)))
    if pattern is not None:
        shapes += _iso_shapes(pattern, to_instant if "offset" in pattern.fields else cast_local)
    else:
        moment = f"{_EASY_DAY}[T ]{_EASY_TIME}"
        shapes += [
            (f"^{moment}{_EASY_OFFSET}$", to_instant),
            (f"^{moment}$", cast_local),
            (f"^{moment} ?(UTC|Z)$", cast_utc),
            (f"^{_EASY_DAY}$", cast_local),
        ]
    return _Parser(_INSTANT, value, tuple(shapes), quick if pattern is None else None)


def _compiled(pattern: str | None) -> Pattern | None:
    return None if pattern is None else compile_pattern(pattern)


def _iso_shapes(pattern: Pattern, cast: Cast) -> tuple[tuple[str, Cast], ...]:
    """Return the shape of a pattern that a replacement makes ISO text."""
    if pattern.iso is None:
        return ()
    shape, replacement = pattern.iso

    def cast_replaced(column: Column) -> Column:
        iso = pc.replace_substring_regex(column, shape, replacement)
        return cast(pc.replace_substring_regex(iso, r"([-T:])([0-9])\b", r"\10\2"))

    return ((shape, cast_replaced),)


def _numbers_cast(unit: TimestampUnit) -> Cast:
    """Return a cast of digits, few enough that nothing overflows, that count `unit` since 1970."""
    per_second = _PER_SECOND[unit]

    def to_values(column: Column) -> Column:
        numbers = pc.cast(column, pa.int64())
        if per_second <= 10**6:
            return pc.multiply(numbers, 10**6 // per_second).view(_INSTANT)
        whole = pc.divide(numbers, 1000)
        exact = pc.equal(pc.multiply(whole, 1000), numbers)
        return pc.if_else(exact, whole, pa.scalar(None, pa.int64())).view(_INSTANT)

    return to_values


def _since_epoch(number: int, unit: TimestampUnit) -> datetime:
    micros, rest = divmod(number * 10**6, _PER_SECOND[unit])
    if rest:
        raise ValueError(f"`{number}` is more exact than microseconds")
    return _EPOCH + timedelta(microseconds=micros)


def _zone(name: str) -> ZoneInfo | None:
    """Return a zone; None for UTC. Raises `BadPattern`."""
    if name == "UTC":
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise BadPattern(f"`{name}` is not a time zone") from error


def _in_zone(moment: datetime, zone: ZoneInfo | None) -> datetime:
    """Return a local time in its zone. Raises ValueError for one that is skipped or doubled."""
    if zone is None:
        return moment.replace(tzinfo=UTC)
    first, second = (moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() != second.utcoffset():
        raise ValueError(f"`{moment}` is not one moment in {zone.key}")
    return first


def _assume_zone(local: Column, zone: str) -> Column:
    """Return the instants of local times, null for those that are skipped or doubled."""
    if zone == "UTC":
        return local.view(_INSTANT)
    first, second = (
        pc.assume_timezone(local, zone, ambiguous=side, nonexistent=side)
        for side in ("earliest", "latest")
    )
    once = pc.equal(first, second)
    return pc.if_else(once, first, pa.scalar(None, first.type)).view(_INSTANT)

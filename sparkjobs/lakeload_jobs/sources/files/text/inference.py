"""Types of columns of text: from all their values, never from a sample, and without loss.

What is kept of a column is small: which types every value so far could be read as, which forms were
seen, and how large numbers are. It can be pickled and merged, so that parts of a file are looked
through in different tasks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Flag, auto
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lakeload_jobs.contract.spec import OnTypeConflict
from lakeload_jobs.rows.arrow import Column, Kind, pc
from lakeload_jobs.rows.rejects import SET_ASIDE
from lakeload_jobs.sources.files.text.options import Infer
from lakeload_jobs.sources.files.text.values import (
    DEFAULT_FORMATS,
    EXACT_LENGTH,
    Positions,
    TextFormats,
    decimal_parts,
    describe_bad,
    has_iso_moments,
    is_exact_double,
    is_value,
    iso_dates,
    iso_local,
    iso_utc,
    parse_text,
    plain_integers,
    plain_number,
    replaced_formats,
    usual_numbers,
    whole_number,
    without_null_texts,
)
from lakeload_jobs.sources.type_names import UnknownType, text_type

Origin = Literal["DECLARED", "RECORDED", "INFERRED"]


class Fits(Flag):
    """Types that a text can be read as."""

    NOTHING = 0
    WHOLE = auto()
    """An integer, of whatever size."""
    DECIMAL = auto()
    DOUBLE = auto()
    """`is_exact_double`, or one of the words."""
    BOOLEAN = auto()
    DATE = auto()
    TIMESTAMP = auto()
    TIMESTAMP_NTZ = auto()


class Form(Flag):
    """How values are written, as far as it matters for a type."""

    NONE = 0
    NUMBER = auto()
    PADDED = auto()
    """Zeros before a number, or a sign that says nothing: `007`, `+5`."""
    MINUS_ZERO = auto()
    """`-0`, which a double holds and an integer does not."""
    DATE = auto()
    LOCAL = auto()
    ZONED = auto()


_NUMBERS = Fits.WHOLE | Fits.DECIMAL | Fits.DOUBLE
_MOMENTS = Fits.DATE | Fits.TIMESTAMP | Fits.TIMESTAMP_NTZ
_ANY = _NUMBERS | Fits.BOOLEAN | _MOMENTS
_WITH_DATE = Form.DATE | Form.LOCAL | Form.ZONED
_FEW = 4
"""Values that are looked at sooner one by one than together."""
_EXACT_INTEGER = 1 << 53
"""Each integer up to this one is a double of its own."""


class TypeEvidence(Protocol):
    """What is known of all values of a column."""

    @property
    def values(self) -> int:
        """How many numbers there are, where `number_type` is not ''."""

    @property
    def number_type(self) -> str:
        """The type of numbers that all values are of; '' where they are of none."""

    def fits(self, kind: str) -> bool:
        """Return whether every value is exactly one of a type, which Spark names so."""

    def infer(self, mode: Infer = "SAFE") -> str:
        """Return the type of the column, as Spark names it."""


@dataclass
class ColumnEvidence:
    """What all values of a column seen so far are."""

    formats: TextFormats = DEFAULT_FORMATS
    values: int = 0
    """How many that are not null were looked at: none more when the column must be text."""
    all_fit: Fits = _ANY
    forms: Form = Form.NONE
    least: int = 0
    most: int = 0
    """The bounds of the integers seen."""
    whole_digits: int = 0
    scale: int = 0
    """The most digits before and after the point that a number needs, up to `_TOO_MANY`."""

    def add(self, column: Column) -> None:
        """Look at all values of a `pa.StringArray`."""
        if self.values and not self.all_fit:
            # It is text, whatever comes.
            return
        column = without_null_texts(column, self.formats.typed_null_texts)
        if column.null_count:
            column = column.drop_null()
        is_first = not self.values
        self.values += len(column)
        if is_first or len(column) <= _FEW:
            # Most columns of text are known by their first values.
            for text in dict.fromkeys(column[:_SAMPLE].to_pylist()):
                self._take(profile(text, self.formats))
            if len(column) <= _SAMPLE:
                return
        if len(column) and self.all_fit & _NUMBERS:
            self._numbers(column)
        if len(column) and self.all_fit & Fits.BOOLEAN:
            self._booleans(column)
        if len(column) and self.all_fit & _MOMENTS:
            self._moments(column)

    def merge(self, other: ColumnEvidence) -> None:
        """Take in what was seen of other rows."""
        self.values += other.values
        self.all_fit &= other.all_fit
        self.forms |= other.forms
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)
        self.whole_digits = max(self.whole_digits, other.whole_digits)
        self.scale = max(self.scale, other.scale)

    def fits(self, kind: str) -> bool:
        """Return whether every value is exactly one of a type, which Spark names so."""
        if not self.values:
            return True
        try:
            arrow = text_type(kind)
        except UnknownType:
            return False
        if pt.is_string(arrow):
            return True
        if pt.is_binary(arrow):
            return self.formats.binary == "UTF8"
        if pt.is_integer(arrow):
            most = 1 << (arrow.bit_width - 1)
            return Fits.WHOLE in self.all_fit and -most <= self.least and self.most < most
        if pt.is_decimal(arrow):
            whole = arrow.precision - arrow.scale
            fits = self.whole_digits <= whole and self.scale <= arrow.scale
            return Fits.DECIMAL in self.all_fit and fits
        if pt.is_float32(arrow):
            small = self.least >= -(1 << 24) and self.most <= 1 << 24
            return Fits.WHOLE in self.all_fit and small
        return _FITS[arrow] in self.all_fit

    def infer(self, mode: Infer = "SAFE") -> str:
        """Return the type of the column, as Spark names it."""
        if mode == "STRINGS" or not self.values or not self.all_fit:
            return "string"
        exact = mode == "FULL" or Form.PADDED not in self.forms
        if Fits.WHOLE in self.all_fit:
            exact = mode == "FULL" or not self.forms & (Form.PADDED | Form.MINUS_ZERO)
            return self._whole_type() if exact else "string"
        if Fits.BOOLEAN in self.all_fit:
            return "boolean"
        if Fits.DOUBLE in self.all_fit and (mode == "FULL" or Form.NUMBER in self.forms):
            return "double" if exact else "string"
        if Fits.DECIMAL in self.all_fit and mode == "FULL":
            digits = self.whole_digits + self.scale
            return f"decimal({digits},{self.scale})" if digits <= 38 else "string"
        if Fits.DATE in self.all_fit:
            return "date"
        one_form = len(self.forms & _WITH_DATE) == 1
        if Fits.TIMESTAMP in self.all_fit and (mode == "FULL" or one_form):
            return "timestamp"
        return "string"

    @property
    def number_type(self) -> str:
        """The type of numbers that all values are of, whatever their zeros and signs; '' where they
        are of none."""
        if Fits.WHOLE in self.all_fit and (kind := self._whole_type()) != "string":
            return kind
        return "double" if Fits.DOUBLE in self.all_fit else ""

    def _whole_type(self) -> str:
        if self.fits("bigint"):
            return "bigint"
        return "decimal(38,0)" if self.fits("decimal(38,0)") else "string"

    def _numbers(self, column: Column) -> None:
        usual, left = usual_numbers(column, self.formats)
        usual = usual[:0] if self._look_at_plain_integers(usual) else self._without_known(usual)
        for shape, look in _NUMBER_FORMS:
            if not len(usual):
                break
            matches = pc.match_substring_regex(usual, shape)
            matching = pc.sum(matches).as_py()
            if matching == len(usual):
                if look(self, usual):
                    usual = usual[:0]
            elif matching and look(self, usual.filter(matches)):
                usual = usual.filter(pc.invert(matches))
        for texts, formats in ((usual, replaced_formats(self.formats)), (left, self.formats)):
            for text in texts.unique().to_pylist():
                self._take_some(_number_profile(text, formats), _NUMBERS)
                if not self.all_fit & _NUMBERS:
                    return

    def _booleans(self, column: Column) -> None:
        _, bad = parse_text(column, pa.bool_(), self.formats)
        if len(bad):
            self.all_fit &= ~Fits.BOOLEAN

    def _moments(self, column: Column) -> None:
        if not has_iso_moments(self.formats):
            self._formatted_moments(column)
            return
        for cast, fits, form in _MOMENT_CASTS:
            # One cast is tried in vain at most: that of the first form that was seen.
            if (form in self.forms or not self.forms & _WITH_DATE) and cast(column) is not None:
                self._take_some(Profile(fits, form), _MOMENTS)
                return
        for shape, fits, form in _MOMENT_FORMS:
            matches = pc.match_substring_regex(column, shape)
            if pc.any(matches).as_py():
                self._take_some(Profile(fits, form), _MOMENTS)
                column = column.filter(pc.invert(matches))
            if not len(column):
                return
        for text in column.unique().to_pylist():
            self._take_some(_moment_profile(text, self.formats), _MOMENTS)
            if not self.all_fit & _MOMENTS:
                return

    def _formatted_moments(self, column: Column) -> None:
        """Look at dates and timestamps that are written in another way than ISO 8601 has them."""
        is_other = np.ones(len(column), bool)
        for kind, fit, form in _MOMENT_KINDS:
            _, bad = parse_text(column, kind, self.formats)
            is_bad = np.zeros(len(column), bool)
            is_bad[bad] = True
            if len(bad):
                self.all_fit &= ~fit
            if (is_other & ~is_bad).any():
                self.forms |= form
            is_other &= is_bad

    def _take(self, seen: Profile) -> None:
        self._take_some(seen, _ANY)

    def _take_some(self, seen: Profile, of: Fits) -> None:
        """Take what a text is among the types `of`."""
        self.all_fit &= seen.fits | ~of
        self.forms |= seen.form
        if seen.integer is not None:
            self._integers(seen.integer, seen.integer)
        self.whole_digits = max(self.whole_digits, seen.whole_digits)
        self.scale = max(self.scale, seen.scale)

    def _integers(self, least: int, most: int) -> None:
        self.least, self.most = min(self.least, least), max(self.most, most)
        self.whole_digits = max(self.whole_digits, _digits(least), _digits(most))

    def _look_at_plain_integers(self, column: Column) -> bool:
        if Fits.WHOLE not in self.all_fit or not len(column):
            return False
        numbers = plain_integers(column)
        return numbers is not None and self._take_integers(column, numbers)

    def _without_known(self, column: Column) -> Column:
        """Look at fractions that have no more digits than those before, and return the others."""
        whole, scale = max(self.whole_digits, 1), self.scale
        if not (scale and len(column) and whole + scale <= _MOST_DIGITS):
            return column
        shape = rf"^-?(0|[1-9][0-9]{{0,{whole - 1}}})\.[0-9]{{1,{scale}}}$"
        matches = pc.match_substring_regex(column, shape)
        matching = pc.sum(matches).as_py()
        if not matching:
            return column
        self.forms |= Form.NUMBER
        self.all_fit &= ~Fits.WHOLE
        if whole + scale >= EXACT_LENGTH:
            self._doubles(column if matching == len(column) else column.filter(matches))
        return column[:0] if matching == len(column) else column.filter(pc.invert(matches))

    def _look_at_integers(self, column: Column) -> bool:
        """Look at integers that are written as Python does; return whether all are 64 bits wide."""
        try:
            return self._take_integers(column, pc.cast(column, pa.int64()))
        except pa.ArrowInvalid:
            return False

    def _take_integers(self, column: Column, numbers: Column) -> bool:
        bounds = pc.min_max(numbers).as_py()
        self._integers(bounds["min"], bounds["max"])
        self.forms |= Form.NUMBER
        if max(-bounds["min"], bounds["max"]) > _EXACT_INTEGER and Fits.DOUBLE in self.all_fit:
            self._doubles(column)
        return True

    def _look_at_minus_zeros(self, column: Column) -> bool:
        self.forms |= Form.MINUS_ZERO
        return self._look_at_integers(column)

    def _look_at_padded_integers(self, column: Column) -> bool:
        self.forms |= Form.PADDED
        return self._look_at_integers(pc.replace_substring_regex(column, r"^\+", ""))

    def _look_at_fractions(self, column: Column) -> bool:
        """Look at numbers with a point, digits on both sides of it, and no exponent."""
        self.forms |= Form.NUMBER
        self.all_fit &= ~Fits.WHOLE
        if pc.max(pc.binary_length(column)).as_py() > EXACT_LENGTH:
            self._doubles(column)
        self.whole_digits = _most(column, r"^-?0*[1-9][0-9]{%d}", self.whole_digits)
        self.scale = _most(column, r"\.[0-9]{%d}[0-9]*[1-9]", self.scale)
        return True

    def _look_at_padded_fractions(self, column: Column) -> bool:
        self.forms |= Form.PADDED
        return self._look_at_fractions(column)

    def _look_at_exponents(self, column: Column) -> bool:
        """Look at numbers with an exponent, and one digit before the point."""
        self.forms |= Form.NUMBER
        self.all_fit &= ~Fits.WHOLE
        parts = pc.extract_regex(column, _EXPONENT_PARTS)
        fraction = pc.utf8_rtrim(pc.struct_field(parts, "fraction"), "0")
        digits = pc.cast(pc.binary_length(fraction), pa.int64())
        exponents = pc.cast(pc.struct_field(parts, "exponent"), pa.int64())
        scale = pc.max(pc.subtract(digits, exponents)).as_py()
        self.scale = max(self.scale, min(scale, _TOO_MANY))
        self.whole_digits = max(self.whole_digits, min(pc.max(exponents).as_py() + 1, _TOO_MANY))
        long = column.filter(pc.greater(digits, _EXACT_FRACTION))
        # Python writes 1e-07 where Arrow writes 1e-7.
        self._doubles(pc.replace_substring_regex(long, "e([+-])0", r"e\1"))
        return True

    def _doubles(self, column: Column) -> None:
        """Find a number that is not `is_exact_double`."""
        if Fits.DOUBLE not in self.all_fit:
            return
        again = pc.cast(pc.cast(column, pa.float64()), pa.string())
        differ = column.filter(pc.not_equal(again, column))
        differ = differ.filter(pc.greater_equal(pc.binary_length(differ), EXACT_LENGTH))
        differ = differ.filter(pc.invert(pc.match_substring_regex(differ, _EXACT_SMALL)))
        if not all(is_exact_double(text) for text in differ.unique().to_pylist()):
            self.all_fit &= ~Fits.DOUBLE


def _most(column: Column, shape: str, least: int) -> int:
    """Return how often a digit can be asked for in a shape that some value has, if more than
    `least`."""
    while pc.any(pc.match_substring_regex(column, shape % least)).as_py():
        least += 1
    return least


def _digits(number: int) -> int:
    return min(len(str(abs(number))), _TOO_MANY) if number else 0


Look = Callable[[ColumnEvidence, Column], bool]
"""Looks at values of one form; returns whether it could."""

_NUMBER_FORMS: tuple[tuple[str, Look], ...] = (
    ("^(0|-?[1-9][0-9]{0,18})$", ColumnEvidence._look_at_integers),
    (r"^-?(0|[1-9][0-9]{0,37})\.[0-9]{1,40}$", ColumnEvidence._look_at_fractions),
    (r"^(\+[0-9]{1,17}|-?0[0-9]{1,17})$", ColumnEvidence._look_at_padded_integers),
    ("^-0$", ColumnEvidence._look_at_minus_zeros),
    (r"^-?0[0-9]{1,37}\.[0-9]{1,40}$", ColumnEvidence._look_at_padded_fractions),
    (r"^-?[1-9](\.[0-9]{1,30})?[eE][+-]?[0-9]{1,2}$", ColumnEvidence._look_at_exponents),
)
_EXPONENT_PARTS = r"^-?[1-9](?:\.(?P<fraction>[0-9]*))?[eE]\+?(?P<exponent>-?[0-9]+)$"
_EXACT_FRACTION = 14
"""With one before them, so many digits are the shortest form of their double."""
_EXACT_SMALL = r"^-?0\.0{0,30}[0-9]{1,15}$"
_TOO_MANY = 99
_MOST_DIGITS = 60

_DAY = (
    "[12][0-9]{3}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"
    "|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"
)
_TIME = r"[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
_OFFSET = "( ?(Z|UTC|[+-](0[0-9]|1[0-7])(:?[0-5][0-9])?))"
_DATE_FITS = Fits.DATE | Fits.TIMESTAMP | Fits.TIMESTAMP_NTZ
_LOCAL_FITS = Fits.TIMESTAMP | Fits.TIMESTAMP_NTZ
_MOMENT_FORMS = (
    (f"^{_DAY}$", _DATE_FITS, Form.DATE),
    (f"^{_DAY}{_TIME}$", _LOCAL_FITS, Form.LOCAL),
    (f"^{_DAY}{_TIME}{_OFFSET}$", Fits.TIMESTAMP, Form.ZONED),
)
_MOMENT_CASTS = (
    (iso_dates, _DATE_FITS, Form.DATE),
    (iso_local, _LOCAL_FITS, Form.LOCAL),
    (iso_utc, Fits.TIMESTAMP, Form.ZONED),
)


_SAMPLE = 16
_FITS = {
    pa.float64(): Fits.DOUBLE,
    pa.bool_(): Fits.BOOLEAN,
    pa.date32(): Fits.DATE,
    pa.timestamp("us", "UTC"): Fits.TIMESTAMP,
    pa.timestamp("us"): Fits.TIMESTAMP_NTZ,
}


_MOMENT_KINDS = (
    (pa.date32(), Fits.DATE, Form.DATE),
    (pa.timestamp("us"), Fits.TIMESTAMP_NTZ, Form.LOCAL),
    (pa.timestamp("us", "UTC"), Fits.TIMESTAMP, Form.ZONED),
)


@dataclass(frozen=True)
class Profile:
    """What one text is."""

    fits: Fits
    form: Form = Form.NONE
    integer: int | None = None
    whole_digits: int = 0
    scale: int = 0


def profile(text: str, formats: TextFormats) -> Profile:
    """Return what one text is: the definition that columns are looked at by."""
    number, moment = _number_profile(text, formats), _moment_profile(text, formats)
    boolean = Fits.BOOLEAN if is_value(text, pa.bool_(), formats) else Fits.NOTHING
    fits, form = number.fits | moment.fits | boolean, number.form | moment.form
    return Profile(fits, form, number.integer, number.whole_digits, number.scale)


def _moment_profile(text: str, formats: TextFormats) -> Profile:
    fits = Fits.NOTHING
    for kind, fit in _FITS.items():
        if fit & _MOMENTS and is_value(text, kind, formats):
            fits |= fit
    if Fits.DATE in fits:
        return Profile(fits, Form.DATE)
    if fits:
        return Profile(fits, Form.LOCAL if Fits.TIMESTAMP_NTZ in fits else Form.ZONED)
    return Profile(fits)


def _number_profile(text: str, formats: TextFormats) -> Profile:
    try:
        plain = plain_number(text, formats)
        _, digits, exponent = decimal_parts(plain)
    except ValueError:
        is_word = is_value(text, pa.float64(), formats)
        return Profile(Fits.DOUBLE if is_word else Fits.NOTHING)
    whole = min(max(len(digits) + exponent, 0), _TOO_MANY) if digits else 0
    form = Form.NUMBER
    if re.match("[+-]?0[0-9]", plain):
        form |= Form.PADDED
    fits = Fits.DECIMAL | (Fits.DOUBLE if is_exact_double(plain) else Fits.NOTHING)
    if not re.fullmatch("[+-]?[0-9]+", plain):
        return Profile(fits, form, None, whole, min(max(-exponent, 0), _TOO_MANY))
    if plain == "-0":
        form |= Form.MINUS_ZERO
    elif plain[0] == "+":
        form |= Form.PADDED
    return Profile(fits | Fits.WHOLE, form, whole_number(plain), whole)


@dataclass(frozen=True)
class ColumnType:
    """The type that a column is read as, as Spark names it."""

    name: str
    origin: Origin


def reconcile(
    declared: str | None,
    recorded: str | None,
    evidence: TypeEvidence,
    mode: Infer = "SAFE",
    *,
    on_type_conflict: OnTypeConflict = "FAIL",
) -> ColumnType:
    """Return the type a column is read as: the declared one, else the one the column has in the
    table where it holds all values, else the inferred one.

    Under FAIL, text among values that are not text keeps the recorded type too: it is a bad value
    there, and no reason to change the table. What changes a type are values that another type
    holds, and under TEXT they are text, unless the type only gets wider. Values of a type that is
    not declared are read with `undeclared_formats`.
    """
    if declared is not None:
        return ColumnType(declared, "DECLARED")
    inferred = evidence.infer(mode)
    if recorded is None or not _is_text_type(recorded):
        return ColumnType(inferred, "INFERRED")
    is_bad = on_type_conflict == "FAIL" and inferred == "string" and mode != "STRINGS"
    if is_bad or evidence.fits(recorded):
        return ColumnType(recorded, "RECORDED")
    if on_type_conflict == "TEXT" and not _is_wider(inferred, recorded):
        return ColumnType("string", "INFERRED")
    return ColumnType(inferred, "INFERRED")


def _is_wider(inferred: str, recorded: str) -> bool:
    """Return whether some tables can widen the recorded type to the inferred one."""
    if inferred.startswith("decimal("):
        return recorded.startswith("decimal(")
    return recorded in _NARROWER.get(inferred, ())


_NARROWER = {"bigint": ("tinyint", "smallint", "int"), "double": ("float",)}


def undeclared_formats(formats: TextFormats) -> TextFormats:
    """Return how text is read whose type nobody has declared: no digit is lost silently."""
    return replace(formats, exact_doubles=True)


def _is_text_type(name: str) -> bool:
    try:
        text_type(name)
    except UnknownType:
        return False
    return True


class Values(Protocol):
    """How the values of a format are read; it travels to the tasks."""

    @property
    def formats(self) -> TextFormats:
        """How values are written whose types are not declared."""

    def evidence(self, recorded: str | None) -> Any:
        """Return the `TypeEvidence` of a column before a value was seen. `recorded` is the
        type that it has in the table."""

    def parse(self, column: Column, kind: Kind, formats: TextFormats) -> tuple[Column, Positions]:
        """Return the values of a column, null where bad, and the positions of the bad ones."""

    def describe_bad(self, value: Any, kind: Kind, formats: TextFormats) -> str:
        """Return a clause for messages: the value, shortened, and what was expected."""

    def as_text(self, column: Column) -> Column:
        """Return values as they are shown."""

    def record_hint(self, reason: str) -> str:
        """Return what to do about a broken record."""


@dataclass(frozen=True)
class ColumnValues:
    """Values that are nothing but text, or that Arrow has read."""

    formats: TextFormats

    def evidence(self, recorded: str | None) -> ColumnEvidence:
        """Return the evidence of a column before a value was seen."""
        return ColumnEvidence(self.formats)

    def parse(self, column: Column, kind: Kind, formats: TextFormats) -> tuple[Column, Positions]:
        """Return the values of a column, null where bad, and the positions of the bad ones."""
        if column.type == kind and kind != pa.string():
            return column, np.zeros(0, np.int64)
        return parse_text(column, kind, formats)

    def describe_bad(self, value: Any, kind: Kind, formats: TextFormats) -> str:
        """Return a clause for messages: the value, shortened, and what was expected."""
        return describe_bad(value, kind, formats)

    def as_text(self, column: Column) -> Column:
        """Return values as they are."""
        return column

    def record_hint(self, reason: str) -> str:
        """Return what to do about a broken record."""
        return f"fix the file, or {SET_ASIDE}"

"""Casts of `columns.types` that Arrow evaluates to the same values as `rows.casts`.

A cast is here where every value of its type becomes what Spark makes of it, or is bad where it is
bad in Spark. All others are Spark's.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
import pyarrow.types as pt
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, StringType

from lakeload_jobs.core.types import timestamp_unit
from lakeload_jobs.rows.arrow import Column, Kind, pc

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_INSTANT, _LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6}
_FIRST_SECOND, _END_SECOND = -62_135_596_800, 253_402_300_800
"""The years 1 to 9999, in seconds since 1970."""
_INTEGER_TEXT = r"^(0|-?[1-9][0-9]{0,18})$"
"""Spark writes integers so. A text that says one in another way is bad."""


@dataclass(frozen=True)
class ArrowCast:
    """The cast of a column of type `own` to `kind`. `unit` is that of `timestamp(ms)`, '' for other
    types. `may_be_bad`: some values have no place in `kind`."""

    own: Kind
    kind: Kind
    unit: str = ""
    may_be_bad: bool = True

    def __call__(self, column: Column) -> Column:
        """Return the values as `kind`, with null for those that are bad."""
        if self.unit:
            return _instants(column, self.unit).view(self.kind)
        if pt.is_boolean(self.kind):
            return _booleans(column)
        if pt.is_string(self.own):
            return _within(_numbers_of(column), self.kind)
        if pt.is_integer(self.own) and pt.is_integer(self.kind):
            return _within(column, self.kind)
        if pt.is_integer(self.own) and pt.is_decimal(self.kind):
            column = column.cast(pa.decimal128(19, 0))
        return _number(column, self.kind) if self.may_be_bad else column.cast(self.kind)


def arrow_cast(own: Kind, wanted: str) -> ArrowCast | None:
    """Return the cast of a column of type `own` to the type `wanted` of `columns.types`; None where
    only Spark casts it."""
    kind: Kind
    if given := timestamp_unit(wanted):
        name, unit = given
        kind = _INSTANT if name == "timestamp" else _LOCAL
        return ArrowCast(own, kind, unit) if own in _INTEGERS else None
    try:
        spark_type = DataType.fromDDL(wanted)
        kind = to_arrow_type(spark_type)
    except PySparkException:
        return None
    if pt.is_string(kind) and spark_type != StringType():
        return None
    if _never_bad(own, kind):
        return ArrowCast(own, kind, may_be_bad=False)
    exact = own in _INTEGERS or pt.is_decimal(own)
    number = kind in _INTEGERS or pt.is_decimal(kind)
    if exact and number:
        return ArrowCast(own, kind)
    if (own in _INTEGERS and pt.is_boolean(kind)) or (
        pt.is_string(own) and (kind in _INTEGERS or pt.is_boolean(kind))
    ):
        return ArrowCast(own, kind)
    return None


def _never_bad(own: Kind, kind: Kind) -> bool:
    if pt.is_boolean(own):
        return pt.is_string(kind) or kind in _INTEGERS
    if own in _INTEGERS and pt.is_string(kind):
        return True
    if own in _INTEGERS and kind in _INTEGERS:
        return bool(own.bit_width <= kind.bit_width)
    if pt.is_float32(own) or own in _INTEGERS[:3]:
        return bool(pt.is_float64(kind))
    return False


def _within(numbers: Column, kind: Kind) -> Column:
    """Return integers as another type of integers, with null for those that it does not have."""
    most = 2 ** (kind.bit_width - 1) - 1
    if numbers.type.bit_width <= kind.bit_width:
        return numbers.cast(kind)
    fits = pc.and_(pc.greater_equal(numbers, -most - 1), pc.less_equal(numbers, most))
    return pc.if_else(fits, numbers, pa.scalar(None, numbers.type)).cast(kind)


def _numbers_of(texts: Column) -> Column:
    """Return the 64-bit integers that texts say, with null for other texts."""
    says = pc.match_substring_regex(texts, _INTEGER_TEXT)
    texts = pc.if_else(says, texts, pa.scalar(None, texts.type))
    try:
        return texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return _cast_or_null(texts, pa.int64())


def _booleans(column: Column) -> Column:
    if pt.is_string(column.type):
        no, yes = pa.scalar("false"), pa.scalar("true")
    else:
        no, yes = pa.scalar(0, column.type), pa.scalar(1, column.type)
    is_true = pc.equal(column, yes)
    said = pc.or_(is_true, pc.equal(column, no))
    return pc.if_else(said, is_true, pa.scalar(None, pa.bool_()))


def _instants(numbers: Column, unit: str) -> Column:
    """Return the microseconds of instants so many units after 1970, with null for those before the
    year 1, after the year 9999, or with digits below a microsecond."""
    numbers = numbers.cast(pa.int64())
    if unit == "ns":
        micros = pc.divide(numbers, 1000)
        fits = pc.equal(pc.multiply(micros, 1000), numbers)
    else:
        per = _PER_SECOND[unit]
        fits = pc.and_(
            pc.greater_equal(numbers, _FIRST_SECOND * per), pc.less(numbers, _END_SECOND * per)
        )
        micros = pc.multiply(pc.if_else(fits, numbers, pa.scalar(None, pa.int64())), 10**6 // per)
    return pc.if_else(fits, micros, pa.scalar(None, pa.int64())).cast(_LOCAL)


def _number(column: Column, kind: Kind) -> Column:
    """Return decimals as another number, with null for those that it does not have."""
    own = column.type
    digits = kind.precision - kind.scale if pt.is_decimal(kind) else own.precision
    if digits < own.precision - own.scale:
        # Arrow's cast to a larger scale does not notice all values that have no place.
        fits = pc.less(pc.abs(column), pa.scalar(Decimal(10**digits), own))
        column = pc.if_else(fits, column, pa.scalar(None, own))
    return _cast_or_null(column, kind)


def _cast_or_null(column: Column, kind: Kind) -> Column:
    """Return values as Arrow casts them, with null for those that would not be the same."""
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        if len(column) == 1:
            return pa.nulls(1, kind)
    half = len(column) // 2
    parts = [_cast_or_null(one, kind) for one in (column.slice(0, half), column.slice(half))]
    return pa.concat_arrays(parts)

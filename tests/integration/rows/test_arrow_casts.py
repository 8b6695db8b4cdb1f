"""Casts that Arrow evaluates have the values of those of Spark, and the same values are bad."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakeload_jobs.rows.arrow_casts import arrow_cast
from lakeload_jobs.rows.casts import cast_types

_SECONDS = (-62_135_596_800, 253_402_300_800)
_EDGES = [
    0,
    1,
    -1,
    5,
    *(s * per + d for s in _SECONDS for per in (1, 10**3, 10**6) for d in (-1, 0)),
]
_NINES = "99999999999999999999999999999999999999"


def _integers(bits: int) -> list[int]:
    """Return the ends of all types of integers and their neighbours, as far as `bits` reach."""
    ends = [sign * 2**power for power in (7, 15, 31, 53, 63) for sign in (-1, 1)]
    drawn = random.Random(bits)  # noqa: S311 - the same each time
    some = [drawn.randint(-(2**63), 2**63 - 1) >> drawn.randint(0, 62) for _ in range(200)]
    near = [end + delta for end in ends for delta in (-1, 0, 1)]
    whole = [999, 1000, -1000, 1001, -999, *_EDGES, *near, *some]
    return [value for value in whole if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)]


TEXTS = [
    *("", " ", "0", "-0", "+1", "1", "-1", " 1", "1 ", "\t1", "1\n", "01", "1.0", "1e3", "1_0"),
    *("127", "128", "-128", "-129", "32767", "32768", "2147483647", "2147483648", "-2147483649"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808"),
    *("-9223372036854775809", "9999999999999999999", _NINES, "x", "0x1", "١", "1L", "--1", "-"),
    *("true", "false", "TRUE", "True", "t", "f", "yes", "no", "y", "n", " true", "truee", "nan"),
]
FLOATS = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.5, 3.4028234663852886e38, 1e-45]
WIDE = [_NINES, f"-{_NINES}", "0", "1", "-1", "127", "128", "9223372036854775808", "100"]
FINE = [
    *("0.000000001", "-0.1", "0", "1.5", "-1.50", "99.99", "99.999", "127", "127.9", "128"),
    *("12345678901234567890123456789.123456789", "-9223372036854775808", "-9223372036854775809"),
]

COLUMNS: dict[str, tuple[Any, list[Any]]] = {
    "tiny": (pa.int8(), _integers(8)),
    "small": (pa.int16(), _integers(16)),
    "int": (pa.int32(), _integers(32)),
    "big": (pa.int64(), _integers(64)),
    "flag": (pa.bool_(), [True, False]),
    "text": (pa.string(), TEXTS),
    "float": (pa.float32(), FLOATS),
    "wide": (pa.decimal128(38, 0), [Decimal(text) for text in WIDE]),
    "fine": (pa.decimal128(38, 9), [Decimal(text) for text in FINE]),
    "below": (pa.decimal128(5, 5), [Decimal("0.99999"), Decimal("-0.00001"), Decimal(0)]),
}
NUMBERS = ("tinyint", "smallint", "int", "bigint")
DECIMALS = (
    *("decimal(3,0)", "decimal(3,2)", "decimal(5,5)", "decimal(18,6)", "decimal(20,0)"),
    *("decimal(38,0)", "decimal(38,19)", "decimal(38,38)"),
)
UNITS = ("timestamp(s)", "timestamp(ms)", "timestamp_ntz(us)", "timestamp(ns)", "timestamp(us)")
TYPES = (*NUMBERS, *DECIMALS, *UNITS, "string", "boolean", "double", "float", "date", "timestamp")


def _cases(name: str) -> list[str]:
    own = COLUMNS[name][0]
    return [kind for kind in TYPES if (cast := arrow_cast(own, kind)) and cast.kind != own]


@pytest.mark.parametrize("name", COLUMNS)
def test_values_and_bad_values_are_those_of_spark(spark: SparkSession, name: str) -> None:
    own, values = COLUMNS[name]
    column = pa.array([None, *values], own)
    kinds = _cases(name)
    frame = spark.createDataFrame(pa.table({f"c{n}": column for n in range(len(kinds))}))
    types = {f"c{n}": kind for n, kind in enumerate(kinds)}

    expected = cast_types(frame, types, "NULL").toArrow()

    different = []
    for at, kind in types.items():
        cast = arrow_cast(own, kind)
        assert cast is not None
        found, wanted = cast(column), expected[at].combine_chunks()
        assert found.type == wanted.type
        if not cast.may_be_bad:
            assert found.null_count == 1
        # As text: a NaN is not equal to itself, and -0.0 is to 0.0.
        pairs = zip(values, found.to_pylist()[1:], wanted.to_pylist()[1:], strict=True)
        different += [(kind, *pair) for pair in pairs if str(pair[1]) != str(pair[2])]
    assert different == []
    assert len(kinds) >= LEAST[name]


LEAST = {"flag": 5, "text": 5, "float": 1}
for _name in COLUMNS:
    LEAST.setdefault(_name, 11)


@pytest.mark.parametrize(
    ("own", "kind"),
    [
        (pa.float64(), "float"),
        (pa.float64(), "int"),
        (pa.float64(), "string"),
        (pa.float32(), "string"),
        (pa.int64(), "double"),
        (pa.int32(), "float"),
        (pa.int64(), "timestamp"),
        (pa.float64(), "timestamp(ms)"),
        (pa.string(), "timestamp(ms)"),
        (pa.string(), "decimal(5,2)"),
        (pa.string(), "double"),
        (pa.string(), "date"),
        (pa.string(), "timestamp"),
        (pa.decimal128(5, 2), "string"),
        (pa.decimal128(5, 2), "double"),
        (pa.decimal128(5, 2), "boolean"),
        (pa.binary(), "string"),
        (pa.date32(), "string"),
        (pa.date32(), "timestamp"),
        (pa.timestamp("us", "UTC"), "string"),
        (pa.list_(pa.int32()), "array<bigint>"),
        (pa.int32(), "char(3)"),
        (pa.int32(), "string collate UNICODE"),
        (pa.int32(), "intt"),
    ],
)
def test_other_casts_are_those_of_spark(own: Any, kind: str) -> None:
    assert arrow_cast(own, kind) is None

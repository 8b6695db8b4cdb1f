"""Text to values, against Python's own decimal, float and datetime."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeload_jobs.sources.files.formats.csv.reader import CsvValues
from lakeload_jobs.sources.files.formats.csv.records import BlockParser, CsvBlock, Dialect, Layout
from lakeload_jobs.sources.files.text.patterns import BadPattern
from lakeload_jobs.sources.files.text.values import (
    DEFAULT_FORMATS,
    TextFormats,
    describe_bad,
    parse_text,
    reads_alike,
)
from lakeload_jobs.sources.type_names import TimestampUnit, UnknownType, declared_type, text_type
from tests.environments import many
from tests.unit.sources.files.text.texts import ANY_TEXT, TEXTS

BAD = object()


def parsed(text: str | None, kind: str, formats: TextFormats | None = None) -> Any:
    """Return the value of one text; BAD for a bad one."""
    arrow, unit = declared_type(kind)
    formats = formats or TextFormats(timestamp_unit=unit)
    values, bad = parse_text(pa.array([text], pa.string()), arrow, formats)
    assert values.type == arrow
    assert list(bad) in ([], [0])
    if len(bad):
        assert values.null_count == 1
        return BAD
    return values[0].as_py()


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("127", "tinyint", 127),
        ("-128", "tinyint", -128),
        ("0127", "tinyint", 127),
        ("007", "bigint", 7),
        ("+5", "int", 5),
        ("-0", "int", 0),
        ("0" * 50 + "1", "bigint", 1),
        ("-9223372036854775808", "bigint", -(2**63)),
        ("1.5", "double", 1.5),
        (".5", "double", 0.5),
        ("5.", "double", 5.0),
        ("+1.5e3", "double", 1500.0),
        ("1e-320", "double", 1e-320),
        ("0e-999", "double", 0.0),
        ("9007199254740993", "double", 9007199254740992.0),
        ("-Inf", "double", float("-inf")),
        ("0.1", "float", float(np.float32(0.1))),
        ("1.500", "decimal(4,2)", Decimal("1.50")),
        ("0012.5", "decimal(4,2)", Decimal("12.50")),
        ("1e2", "decimal(5,2)", Decimal("100.00")),
        ("12300e-2", "decimal(5,2)", Decimal("123.00")),
        ("0e99999999999", "decimal(5,2)", Decimal("0.00")),
        ("TRUE", "boolean", True),
        ("False", "boolean", False),
        ("2024-02-29", "date", date(2024, 2, 29)),
        ("0001-01-01", "date", date(1, 1, 1)),
        ("2024-01-05 10:00", "timestamp", datetime(2024, 1, 5, 10, tzinfo=UTC)),
        ("2024-01-05", "timestamp", datetime(2024, 1, 5, tzinfo=UTC)),
        ("2024-01-05T10:00:00.5+02:00", "timestamp", datetime(2024, 1, 5, 8, 0, 0, 500000, UTC)),
        ("2024-01-05 10:00:00 UTC", "timestamp", datetime(2024, 1, 5, 10, tzinfo=UTC)),
        ("2024-01-05 10:00:00 -0530", "timestamp", datetime(2024, 1, 5, 15, 30, tzinfo=UTC)),
        ("2024-01-05 10:00:00.123456000", "timestamp_ntz", datetime(2024, 1, 5, 10, 0, 0, 123456)),
        ("1577836800123", "timestamp(ms)", datetime(2020, 1, 1, 0, 0, 0, 123000, UTC)),
        ("-1", "timestamp(s)", datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("1577836800123456000", "timestamp(ns)", datetime(2020, 1, 1, 0, 0, 0, 123456, UTC)),
        ("", "string", ""),
        ("é", "binary", "é".encode()),
        (None, "int", None),
    ],
)
def test_text_is_exactly_the_value(text: str | None, kind: str, value: object) -> None:
    assert parsed(text, kind) == value


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("128", "tinyint"),
        ("9223372036854775808", "bigint"),
        ("1.9", "int"),
        ("1.0", "int"),
        ("1e3", "int"),
        ("0x10", "int"),
        ("1_000", "int"),
        ("1,000", "int"),
        (" 5", "int"),
        ("٥", "int"),
        ("", "int"),
        ("1e400", "double"),
        ("-1e400", "double"),
        ("1e-400", "double"),
        ("nanny", "double"),
        ("Infinity", "double"),
        ("1.5d", "double"),
        ("0x1p3", "double"),
        (".", "double"),
        ("1e39", "float"),
        ("1e-50", "float"),
        ("1.234", "decimal(12,2)"),
        ("12345", "decimal(6,2)"),
        ("1e-2000000000", "decimal(38,0)"),
        ("1e2000000000", "decimal(38,0)"),
        ("9" * 5000, "bigint"),
        ("9" * 5000, "double"),
        ("9" * 5000, "decimal(38,0)"),
        ("1e" + "9" * 5000, "decimal(38,0)"),
        ("9" * 5000, "timestamp(s)"),
        ("NaN", "decimal(6,2)"),
        ("1", "boolean"),
        ("yes", "boolean"),
        ("23:59", "date"),
        ("2024-02-30", "date"),
        ("2024-1-5", "date"),
        ("2024-01", "date"),
        ("24-01-05", "date"),
        ("0000-01-01", "date"),
        ("2024-01-05 00:00:00", "date"),
        ("10:00", "timestamp"),
        ("2024-01", "timestamp"),
        ("2024-01-05 10", "timestamp"),
        ("2024-01-05 24:00:00", "timestamp"),
        ("2024-01-05 10:00:60", "timestamp"),
        ("2024-01-05 10:00:00.1234567", "timestamp"),
        ("2024-01-05 10:00:00.", "timestamp"),
        ("2024-01-05 10:00:00+19:00", "timestamp"),
        ("2024-01-05Z", "timestamp"),
        ("0001-01-01T00:00:00+01:00", "timestamp"),
        ("1577836800123", "timestamp"),
        ("1577836800123456789", "timestamp(ns)"),
        ("99999999999999999999", "timestamp(s)"),
        ("2024-01-05T10:00:00Z", "timestamp_ntz"),
    ],
)
def test_text_that_is_no_value_is_bad(text: str, kind: str) -> None:
    assert parsed(text, kind) is BAD


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["double", "decimal(38,0)", "bigint"])
def test_long_text_of_digits_takes_no_time(kind: str) -> None:
    assert parsed("9" * 300_000 + "x", kind) is BAD


def test_values_are_found_between_bad_ones_and_nulls() -> None:
    column = pa.array(["zz", "1", None, "x", "+2", "300", "003"]).slice(1)
    values, bad = parse_text(column, pa.int8())
    assert values.to_pylist() == [1, None, None, 2, None, 3]
    assert bad.tolist() == [2, 4]


def test_null_texts_are_null_and_not_bad() -> None:
    formats = TextFormats(null_texts=("NA", "-"))
    for kind, values in ((pa.int64(), [None, None, 1]), (pa.string(), [None, None, "1"])):
        parsed_values, bad = parse_text(pa.array(["NA", "-", "1"]), kind, formats)
        assert parsed_values.to_pylist() == values
        assert len(bad) == 0


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1.234,5", "double", 1234.5),
        ("1.234.567", "bigint", 1234567),
        ("1234,50", "decimal(6,2)", Decimal("1234.50")),
        ("-12.345,67", "decimal(7,2)", Decimal("-12345.67")),
        ("1.23", "double", BAD),
        ("1234.567", "bigint", BAD),
        ("1,234.5", "double", BAD),
        ("1,5", "bigint", BAD),
        (".123", "bigint", BAD),
        ("1,234.567", "double", BAD),
    ],
)
def test_marks_of_numbers_are_those_of_the_formats(text: str, kind: str, value: object) -> None:
    formats = TextFormats(decimal_mark=",", thousands_mark=".")
    assert parsed(text, kind, formats) == value


def test_words_are_those_of_the_formats() -> None:
    formats = TextFormats(true_words=("ja", "1"), false_words=("nein",), nan_words=("n/a",))
    values, bad = parse_text(pa.array(["Ja", "1", "NEIN", "true"]), pa.bool_(), formats)
    assert values.to_pylist() == [True, True, False, None]
    assert bad.tolist() == [3]
    assert str(parsed("n/a", "double", formats)) == "nan"
    assert parsed("NaN", "double", formats) is BAD


def test_text_without_zone_is_in_the_zone_of_the_formats() -> None:
    formats = TextFormats(zone="Europe/Berlin")
    texts = ["2024-07-01 12:00", "2024-03-31 02:30", "2024-10-27 02:30", "2024-01-01 00:00Z"]
    values, bad = parse_text(pa.array(texts), pa.timestamp("us", "UTC"), formats)
    assert values[0].as_py() == datetime(2024, 7, 1, 10, tzinfo=UTC)
    assert values[3].as_py() == datetime(2024, 1, 1, tzinfo=UTC)
    assert bad.tolist() == [1, 2]


def test_binary_is_base64_where_the_formats_say_so() -> None:
    formats = TextFormats(binary="BASE64")
    assert parsed("aGVsbG8=", "binary", formats) == b"hello"
    assert parsed("hello", "binary", formats) is BAD


@pytest.mark.parametrize(
    ("pattern", "text", "value"),
    [
        ("dd.MM.yyyy", "05.01.2024", date(2024, 1, 5)),
        ("M/d/yyyy", "1/5/2024", date(2024, 1, 5)),
        ("yyyyMMdd", "20240105", date(2024, 1, 5)),
        ("yyyyMM", "202402", date(2024, 2, 1)),
        ("d-MMM-yy", "5-Jan-24", date(2024, 1, 5)),
        ("MMMM d, yyyy", "may 5, 2024", date(2024, 5, 5)),
        ("'day' dd/MM/yyyy", "day 05/01/2024", date(2024, 1, 5)),
        ("dd.MM.yyyy", "5.1.2024", BAD),
        ("dd.MM.yyyy", "31.02.2024", BAD),
        ("dd.MM.yyyy", "2024-01-05", BAD),
        ("M/d/yyyy", "13/5/2024", BAD),
    ],
)
def test_dates_follow_the_pattern(pattern: str, text: str, value: object) -> None:
    assert parsed(text, "date", TextFormats(date_pattern=pattern)) == value


@pytest.mark.parametrize(
    ("pattern", "text", "value"),
    [
        ("dd/MM/yyyy HH:mm", "05/01/2024 09:30", "2024-01-05T09:30"),
        ("M/d/yyyy h:mm a", "1/5/2024 12:30 am", "2024-01-05T00:30"),
        ("M/d/yyyy H:mm", "1/5/2024 9:30", "2024-01-05T09:30"),
        ("yyyyMMddHHmmss", "20240105093000", "2024-01-05T09:30"),
        ("dd/MMM/yyyy:HH:mm:ss xx", "05/Jan/2024:09:30:00 +0200", "2024-01-05T07:30"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2024-01-05t09:30:00.5Z", "2024-01-05T09:30:00.5"),
        ("yyyy-MM-dd HH:mm:ss[.SSSSSSSSS]", "2024-01-05 09:30:00", "2024-01-05T09:30"),
        ("yyyy-MM-dd HH:mm:ss[.SSSSSSSSS]", "2024-01-05 09:30:00.123456789", None),
        ("M/d/yyyy h:mm a", "1/5/2024 13:30 PM", None),
        ("yyyy-MM-dd HH:mm", "2024-01-05 24:00", None),
    ],
)
def test_timestamps_follow_the_pattern(pattern: str, text: str, value: str | None) -> None:
    moment = datetime.fromisoformat(f"{value}Z") if value else BAD
    assert parsed(text, "timestamp", TextFormats(timestamp_pattern=pattern)) == moment


def test_a_date_with_a_time_of_day_is_bad() -> None:
    formats = TextFormats(date_pattern="yyyy-MM-dd HH:mm")
    assert parsed("2024-01-05 00:00", "date", formats) == date(2024, 1, 5)
    assert parsed("2024-01-05 23:59", "date", formats) is BAD


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("dd.MM.YYYY", "`YYYY`"),
        ("HH:mm", "no year"),
        ("yyyy-MM-dd h:mm", "`h` without `a`"),
        ("yyyy-MM-dd [HH", "without `]`"),
        ("yyyy dd dd", "two fields"),
    ],
)
def test_patterns_that_cannot_be_translated_are_refused(pattern: str, says: str) -> None:
    with pytest.raises(BadPattern, match=re.escape(says)):
        parsed("x", "timestamp", TextFormats(timestamp_pattern=pattern))


def test_names_of_types() -> None:
    assert text_type("DECIMAL(12, 2)") == pa.decimal128(12, 2)
    assert text_type("decimal") == pa.decimal128(10, 0)
    assert text_type("varchar(5)") == pa.string()
    assert declared_type("timestamp(ms)") == (pa.timestamp("us", "UTC"), "ms")
    for name in ("decimal(39,2)", "array<int>", "time", "timestamp(min)"):
        with pytest.raises(UnknownType):
            declared_type(name)


def test_a_bad_value_is_described_short() -> None:
    text = describe_bad("x" * 100, pa.int8())
    assert text == f"`{'x' * 60}…` is not a whole number from -128 to 127"
    assert "\n" not in describe_bad("a\nb", pa.date32())


@pytest.mark.parametrize(
    ("value", "unit", "why"),
    [
        ("1577836800123", None, "numbers need a unit, as in the type `timestamp(ms)`"),
        ("1577836800123456789", "ns", "digits below a microsecond cannot be kept"),
        ("999999999999999999", "ms", "a whole number of `ms` since 1970"),
        ("13:30", None, "a timestamp like `yyyy-MM-dd HH:mm:ss[.SSSSSS][XXX]`"),
    ],
)
def test_bad_timestamp_has_its_reason(value: str, unit: TimestampUnit | None, why: str) -> None:
    said = describe_bad(value, pa.timestamp("us", "UTC"), TextFormats(timestamp_unit=unit))
    assert said.endswith(why)


# The oracle: exact arithmetic and Python's own parsers, one text at a time.

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def _integer(low: int, high: int) -> Callable[[str], object]:
    def value(text: str) -> object:
        if not re.fullmatch(r"[+-]?\d+", text, re.ASCII):
            return BAD
        return int(text) if low <= int(text) < high else BAD

    return value


def _decimal(precision: int, scale: int) -> Callable[[str], object]:
    def value(text: str) -> object:
        if not _NUMBER.fullmatch(text):
            return BAD
        if not Decimal(text).is_zero() and abs(Decimal(text).adjusted()) > 1000:
            return BAD
        scaled = Fraction(Decimal(text)) * 10**scale
        fits = scaled.denominator == 1 and abs(scaled) < 10**precision
        return Decimal(f"{int(scaled)}e-{scale}") if fits else BAD

    return value


def _double(text: str) -> object:
    words = {"nan": "nan", "inf": "inf", "-inf": "-inf"}
    if text.lower() in words:
        return float(words[text.lower()])
    if not _NUMBER.fullmatch(text):
        return BAD
    number = float(text)
    lost = number in (float("inf"), float("-inf")) or (number == 0 and not Decimal(text).is_zero())
    return BAD if lost else number


def _date(text: str) -> object:
    try:
        return date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.A) else BAD
    except ValueError:
        return BAD


def _moment(text: str) -> datetime | object:
    shape = r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?(Z|UTC|[+-]\d\d(:?\d\d)?))?)?"
    if not re.fullmatch(shape, text, re.ASCII):
        return BAD
    text = text[:11] + text[11:].replace("UTC", "Z").replace(" ", "")
    fraction = re.search(r"\.(\d+)", text)
    if fraction and len(fraction[1].rstrip("0")) > 6:
        return BAD
    try:
        moment = datetime.fromisoformat(re.sub(r"(\.\d{1,6})\d*", r"\1", text))
        offset = moment.utcoffset()
        return BAD if offset and abs(offset.total_seconds()) > 18 * 3600 else moment
    except ValueError:
        return BAD


def _instant(text: str) -> object:
    moment = _moment(text)
    if not isinstance(moment, datetime):
        return BAD
    try:
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError:
        return BAD


def _local(text: str) -> object:
    moment = _moment(text)
    return moment if isinstance(moment, datetime) and moment.tzinfo is None else BAD


def _boolean(text: str) -> object:
    return {"true": True, "false": False}.get(text.lower(), BAD)


ORACLE: dict[str, Callable[[str], object]] = {
    "tinyint": _integer(-(2**7), 2**7),
    "smallint": _integer(-(2**15), 2**15),
    "int": _integer(-(2**31), 2**31),
    "bigint": _integer(-(2**63), 2**63),
    "double": _double,
    "decimal(38,0)": _decimal(38, 0),
    "decimal(6,2)": _decimal(6, 2),
    "decimal(38,38)": _decimal(38, 38),
    "boolean": _boolean,
    "date": _date,
    "timestamp": _instant,
    "timestamp_ntz": _local,
}


def _compare(kind: str, texts: list[str | None]) -> None:
    values, bad = parse_text(pa.array(["", *texts], pa.string()).slice(1), text_type(kind))
    expected = [None if text is None else ORACLE[kind](text) for text in texts]
    assert bad.tolist() == [place for place, value in enumerate(expected) if value is BAD]
    for text, own, value in zip(texts, values.to_pylist(), expected, strict=True):
        same = own == (None if value is BAD else value) or (own != own and value != value)
        assert same, (text, own, value)


@pytest.mark.parametrize("kind", ORACLE)
def test_each_text_converts_as_the_oracle(kind: str) -> None:
    for text in TEXTS:
        _compare(kind, [text])


@pytest.mark.parametrize("kind", ORACLE)
def test_columns_of_mixed_texts_convert_as_the_oracle(kind: str) -> None:
    draw = random.Random(kind)  # noqa: S311
    for _ in range(many(60)):
        few = draw.sample(TEXTS, draw.choice((1, 2, 3, 8)))
        texts = [draw.choice((*few, None)) for _ in range(draw.randint(1, 12))]
        _compare(kind, texts)


@pytest.mark.parametrize("kind", ORACLE)
@settings(max_examples=many(40), deadline=None)
@given(texts=st.lists(st.none() | ANY_TEXT, max_size=6))
def test_any_text_converts_as_the_oracle(kind: str, texts: list[str | None]) -> None:
    _compare(kind, texts)


ALIKE = [kind for kind in (*ORACLE, "float") if reads_alike(text_type(kind), DEFAULT_FORMATS)]


def _in_csv(kind: str, texts: list[str | None]) -> tuple[list[Any], bool]:
    """Return the values of a CSV file, and whether Arrow read them."""
    rows = ["1," + ("" if text is None else '"' + text.replace('"', '""') + '"') for text in texts]
    layout = Layout(("n", "value"), (0, 1))
    parser = BlockParser(Dialect(), layout, {"value": text_type(kind)})
    batch = parser.parse(CsvBlock("\n".join([*rows, ""]).encode(), 1, proven=True))
    column = batch.rows.column(1)
    by_arrow = column.type == text_type(kind)
    values, bad = CsvValues(DEFAULT_FORMATS).parse(column, text_type(kind), DEFAULT_FORMATS)
    assert not len(bad)
    return values.to_pylist(), by_arrow


def test_types_whose_texts_arrow_reads_alike() -> None:
    assert set(ALIKE) == {*ORACLE, "float"} - {"decimal(38,0)", "decimal(6,2)", "decimal(38,38)"}
    assert not reads_alike(pa.int64(), TextFormats(thousands_mark=","))
    assert not reads_alike(pa.float64(), TextFormats(null_texts=("NA",)))


@pytest.mark.parametrize("kind", ALIKE)
def test_values_that_arrow_reads_are_those_of_their_texts(kind: str) -> None:
    read = 0
    for text in TEXTS:
        column = pa.array([text, None, text], pa.string())
        values, bad = parse_text(column, text_type(kind))
        if len(bad) or not text:
            continue
        found, by_arrow = _in_csv(kind, column.to_pylist())
        read += by_arrow
        assert repr(found) == repr(values.to_pylist()), text
    assert read


@pytest.mark.parametrize("kind", ALIKE)
@settings(max_examples=many(60), deadline=None)
@given(text=ANY_TEXT)
def test_any_value_that_arrow_reads_is_that_of_its_text(kind: str, text: str) -> None:
    values, bad = parse_text(pa.array([text], pa.string()), text_type(kind))
    if text and not len(bad):
        assert repr(_in_csv(kind, [text])[0]) == repr(values.to_pylist())


DECIMALS = [
    *("decimal(3,1)", "decimal(2,2)", "decimal(4,0)", "decimal(12,2)"),
    *("decimal(38,0)", "decimal(38,10)", "decimal(38,38)"),
]


@pytest.mark.parametrize("kind", DECIMALS)
@settings(max_examples=many(200), deadline=None)
@given(
    text=st.text("0019-+./e ", max_size=7) | st.from_regex(r"-?9{0,39}\.?9{0,39}", fullmatch=True)
)
def test_decimals_of_plain_and_other_forms_are_exact(kind: str, text: str) -> None:
    arrow, _ = declared_type(kind)
    value = parsed(text, kind)
    whole = 10 ** (arrow.precision - arrow.scale)
    expected: object = BAD
    if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", text):
        mantissa, _, power = text.partition("e")
        number = Fraction(mantissa) * Fraction(10) ** int(power or 0)
        if abs(number) < whole and (number * 10**arrow.scale).denominator == 1:
            expected = number
    assert (value if value is BAD else Fraction(value)) == expected

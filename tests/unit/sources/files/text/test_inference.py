"""Types of columns of text: what is inferred loses nothing, and parts add up."""

from __future__ import annotations

import itertools
import pickle
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from functools import cache

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeload_jobs.sources.files.formats.json.values import JsonEvidence, parse_json
from lakeload_jobs.sources.files.text.inference import (
    ColumnEvidence,
    ColumnType,
    profile,
    reconcile,
    undeclared_formats,
)
from lakeload_jobs.sources.files.text.values import TextFormats, parse_text
from lakeload_jobs.sources.type_names import text_type
from tests.environments import many
from tests.unit.sources.files.text.texts import ANY_TEXT, TEXTS

Texts = Sequence[str | None]


def evidence(texts: Texts, formats: TextFormats | None = None) -> ColumnEvidence:
    seen = ColumnEvidence(formats or TextFormats())
    seen.add(pa.array(["", *texts], pa.string()).slice(1))
    return seen


@pytest.mark.parametrize(
    ("texts", "safe", "full"),
    [
        (["1", "-2", None], "bigint", "bigint"),
        (["0"], "bigint", "bigint"),
        (["9223372036854775808"], "decimal(38,0)", "decimal(38,0)"),
        (["1" * 39], "string", "string"),
        (["01234", "5"], "string", "bigint"),
        (["+49301"], "string", "bigint"),
        (["-0"], "string", "bigint"),
        (["-0", "0.5"], "double", "double"),
        (["1.5", "10.50", "1e5", ".5", "5."], "double", "double"),
        (["1", "2.5"], "double", "double"),
        (["1", "NaN"], "double", "double"),
        (["NaN"], "string", "double"),
        (["007.5"], "string", "double"),
        (["40300.619960000004", "8.3945900000000009"], "double", "double"),
        (["0.1234567890123456789"], "string", "decimal(19,19)"),
        (["0.12345678901234567890"], "string", "decimal(19,19)"),
        (["8.39459000000000091"], "string", "decimal(18,17)"),
        (["9007199254740993", "0.5"], "string", "decimal(17,1)"),
        (["9007199254740992", "0.5"], "double", "double"),
        (["1e400"], "string", "string"),
        (["1e-400"], "string", "string"),
        (["1e3000", "1.5"], "string", "string"),
        (["true", "FALSE"], "boolean", "boolean"),
        (["true", "1"], "string", "string"),
        (["2024-02-29"], "date", "date"),
        (["2023-02-29"], "string", "string"),
        (["2024-01"], "string", "string"),
        (["13:30"], "string", "string"),
        (["2024-01-05 10:00:00"], "timestamp", "timestamp"),
        (["2024-01-05T10:00:00Z", "2024-01-05T10:00:00+02:00"], "timestamp", "timestamp"),
        (["2024-01-05T10:00:00Z", "2024-01-05T10:00:00"], "string", "timestamp"),
        (["2024-01-05", "2024-01-05 10:00:00"], "string", "timestamp"),
        (["2024-01-05 10:00:00.1234567"], "string", "string"),
        (["2024-01-05", "5"], "string", "string"),
        (["x"], "string", "string"),
        ([" 1"], "string", "string"),
        (["9" * 5000], "string", "string"),
        (["1", "9" * 5000], "string", "string"),
        (["0" * 5000 + "7"], "string", "bigint"),
        (["1e" + "9" * 5000], "string", "string"),
        ([""], "string", "string"),
        ([None], "string", "string"),
        ([], "string", "string"),
    ],
)
def test_types_are_inferred_from_all_values(texts: Texts, safe: str, full: str) -> None:
    seen = evidence(texts)
    assert (seen.infer("SAFE"), seen.infer("FULL")) == (safe, full)
    assert seen.infer("STRINGS") == "string"


def test_a_value_far_down_changes_the_type() -> None:
    seen = evidence(["1"] * 5000 + ["2.5"])
    assert seen.infer() == "double"
    assert evidence(["1"] * 5000 + ["x"] + ["1"] * 5000).infer() == "string"


def test_numbers_with_marks_are_numbers_where_the_formats_say_so() -> None:
    formats = TextFormats(decimal_mark=",", thousands_mark=".")
    assert evidence(["1.234", "5"], formats).infer() == "bigint"
    assert evidence(["1.234,5", "7"], formats).infer() == "double"
    assert evidence(["1.5"], formats).infer() == "string"


def test_words_are_numbers_where_the_formats_say_so() -> None:
    formats = TextFormats(nan_words=("n.d.",))
    assert evidence(["n.d.", "1.5"], formats).infer() == "double"
    assert evidence(["1.5", "n.d."], replace(formats, decimal_mark=",")).infer() == "string"
    assert evidence(["1,5", "n.d."], replace(formats, decimal_mark=",")).infer() == "double"
    assert evidence(["NaN", "1.5"], formats).infer() == "string"


def test_dates_follow_the_pattern_of_the_formats() -> None:
    formats = TextFormats(date_pattern="dd.MM.yyyy", timestamp_pattern="dd.MM.yyyy HH:mm")
    assert evidence(["05.01.2024"] * 20, formats).infer() == "date"
    assert evidence(["05.01.2024 10:00"], formats).infer() == "timestamp"
    assert evidence(["2024-01-05"], formats).infer() == "string"


@pytest.mark.parametrize(
    "formats",
    [
        TextFormats(zone="Europe/Berlin"),
        TextFormats(date_pattern="dd.MM.yyyy"),
        TextFormats(timestamp_pattern="dd.MM.yyyy HH:mm[:ss][ XXX]"),
        TextFormats(date_pattern="yyyyMMdd", timestamp_ntz_pattern="dd.MM.yyyy HH:mm"),
    ],
)
def test_moments_in_other_formats_are_what_their_texts_are(formats: TextFormats) -> None:
    texts = (
        *("05.01.2024", "05.01.2024 10:00", "05.01.2024 10:00:00", "05.01.2024 10:00 +02:00"),
        *("20240105", "2024-01-05", "2024-01-05 10:00", "2024-01-05 10:00Z", "32.01.2024", "x"),
        *("2024-03-31 02:30", "2024-10-27 02:30"),
    )
    for pair in itertools.product(texts, repeat=2):
        seen, alone = evidence(pair, formats), [profile(text, formats) for text in pair]
        assert seen.all_fit == alone[0].fits & alone[1].fits, pair
        if seen.fits("timestamp"):
            assert seen.forms == alone[0].form | alone[1].form, pair
        often = ColumnEvidence(formats, values=1)
        often.add(pa.array(pair))
        assert (often.all_fit, often.infer()) == (seen.all_fit, seen.infer()), pair


def test_null_texts_are_no_values() -> None:
    seen = evidence(["NA", "1", None], TextFormats(null_texts=("NA",)))
    assert (seen.values, seen.infer()) == (1, "bigint")


_KINDS = (
    *("tinyint", "smallint", "int", "bigint", "decimal(38,0)", "decimal(6,2)", "decimal(38,38)"),
    *("boolean", "date", "timestamp", "timestamp_ntz", "string"),
)


def _check_column(texts: Texts) -> None:
    seen = evidence(texts)
    column = pa.array(texts, pa.string())
    for kind in _KINDS:
        _, bad = parse_text(column, text_type(kind))
        assert seen.fits(kind) == (not len(bad)), (kind, texts)
    values = [text for text in texts if text is not None]
    assert seen.fits("double") == all(_double_is_exact(text) for text in values), texts
    exact = undeclared_formats(TextFormats())
    _, bad = parse_text(column, pa.float64(), exact)
    inexact = [text is not None and not _double_is_exact(text) for text in texts]
    assert bad.tolist() == [place for place, wrong in enumerate(inexact) if wrong]
    for mode in ("SAFE", "FULL"):
        kind = seen.infer(mode)
        assert seen.fits(kind), (mode, kind, texts)
    _check_lossless(texts, seen.infer("SAFE"))
    _check_widest(values, seen.infer("SAFE"))


@cache
def _double_is_exact(text: str) -> bool:
    value, bad = parse_text(pa.array([text]), pa.float64())
    if len(bad):
        return False
    number = value[0].as_py()
    if number != number or abs(number) == float("inf"):
        return True
    return _is_form_of_double(text)


def _is_form_of_double(text: str) -> bool:
    """Whether a text has the value of the shortest or of the 17-digit form of its double."""
    number = float(text)
    return Decimal(text) in (Decimal(repr(number)), Decimal(f"{number:.17g}"))


def _check_lossless(texts: Texts, kind: str) -> None:
    """Each text can be had back from its value, but for zeros at the end, exponents, and which of
    the two forms of a double it is."""
    values, bad = parse_text(pa.array(texts, pa.string()), text_type(kind))
    assert not len(bad)
    for text, value in zip(texts, values.to_pylist(), strict=True):
        if text is None:
            assert value is None
        elif kind == "double":
            assert value != value or (value == float(text) and _is_form_of_double(text))
        elif kind == "timestamp":
            written = datetime.fromisoformat(text.replace(" UTC", "Z").replace(" Z", "Z"))
            assert value.replace(tzinfo=written.tzinfo and value.tzinfo) == written
        else:
            assert str(value).lower() == (text if kind == "string" else text.lower()).lower()


def _check_widest(texts: list[str], kind: str) -> None:
    """Text is inferred only where it must be."""
    if kind != "string" or not texts:
        return
    assert not all(text.isascii() and text.isdigit() and str(int(text)) == text
                   and len(text) < 39 for text in texts)  # fmt: skip
    assert not all(text.lower() in ("true", "false") for text in texts)
    assert not all(_is_date(text) for text in texts)


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def test_inference_of_each_text_is_lossless() -> None:
    for text in TEXTS:
        _check_column([text])


def test_inference_of_mixed_texts_is_lossless() -> None:
    draw = random.Random(1)  # noqa: S311
    for _ in range(many(800)):
        few = draw.sample(TEXTS, draw.choice((1, 2, 2, 3)))
        _check_column([draw.choice((*few, None)) for _ in range(draw.randint(1, 10))])


@settings(max_examples=many(150), deadline=None)
@given(texts=st.lists(st.none() | ANY_TEXT, max_size=4))
def test_inference_of_any_column_is_lossless(texts: Texts) -> None:
    _check_column(texts)


@settings(max_examples=many(150), deadline=None)
@given(texts=st.lists(st.floats(allow_nan=False, allow_infinity=False).map(repr)
                      | st.decimals(-(10**20), 10**20, places=3).map(str), min_size=1))  # fmt: skip
def test_numbers_are_doubles_only_where_nothing_is_lost(texts: list[str]) -> None:
    exact = all(map(_is_form_of_double, texts))
    assert evidence(texts).fits("double") == exact
    if not exact:
        assert evidence(texts).infer() in ("string", "bigint", "decimal(38,0)")


@settings(max_examples=many(100), deadline=None)
@given(
    numbers=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30),
    before=st.sampled_from((0, 20)),
)
def test_inference_of_shortest_and_17_digit_forms_is_double(
    numbers: list[float], before: int
) -> None:
    """C, R and databases write doubles with 17 digits, Python and Java with as few as will do."""
    numbers = [0.5] * before + numbers
    texts = [text for number in numbers for text in (repr(number), f"{number:.17g}")]
    column, raw = pa.array(texts), pa.array([text.encode() for text in texts])
    of_json = JsonEvidence()
    of_json.add(raw)
    assert evidence(texts).infer() == of_json.infer() == "double"
    for formats in (TextFormats(), undeclared_formats(TextFormats())):
        for values, bad in (
            parse_text(column, pa.float64(), formats),
            parse_json(raw, pa.float64(), formats),
        ):
            assert not len(bad)
            assert values.to_pylist() == [number for number in numbers for _ in "ab"]


def test_inferred_column_type_holds_each_text() -> None:
    """The forms that are found in whole columns say what `profile` says of one text."""
    for text in TEXTS:
        once, often = profile(text, TextFormats()), ColumnEvidence(values=1)
        often.add(pa.array([text] * 3))
        assert often.all_fit == once.fits, text
        if once.fits:
            assert often.forms == once.form, text
            assert (often.whole_digits, often.scale) == (once.whole_digits, once.scale), text


@settings(max_examples=many(80), deadline=None)
@given(texts=st.lists(st.none() | st.sampled_from(TEXTS), max_size=8), cut=st.integers(0, 8))
def test_inference_of_parts_equals_inference_of_the_whole(texts: Texts, cut: int) -> None:
    whole = evidence(texts)
    first, second = evidence(texts[:cut]), evidence(texts[cut:])
    first.merge(pickle.loads(pickle.dumps(second)))  # noqa: S301
    assert first.values == whole.values
    for kind in (*_KINDS, "double"):
        assert first.fits(kind) == whole.fits(kind)
    for mode in ("SAFE", "FULL"):
        assert first.infer(mode) == whole.infer(mode)


@pytest.mark.parametrize(
    ("declared", "recorded", "texts", "kind"),
    [
        ("int", "bigint", ["x"], ColumnType("int", "DECLARED")),
        (None, None, ["1"], ColumnType("bigint", "INFERRED")),
        (None, "int", ["1", "007"], ColumnType("int", "RECORDED")),
        (None, "double", ["1"], ColumnType("double", "RECORDED")),
        (None, "decimal(12,2)", ["1"], ColumnType("decimal(12,2)", "RECORDED")),
        (None, "decimal(20,0)", ["99999999999"], ColumnType("decimal(20,0)", "RECORDED")),
        (None, "timestamp", ["2024-01-05"], ColumnType("timestamp", "RECORDED")),
        (None, "timestamp_ntz", ["2024-01-05"], ColumnType("timestamp_ntz", "RECORDED")),
        (None, "string", ["1"], ColumnType("string", "RECORDED")),
        (None, "double", [None], ColumnType("double", "RECORDED")),
        (None, "array<int>", [None], ColumnType("string", "INFERRED")),
        (None, "double", ["1.5", "x"], ColumnType("double", "RECORDED")),
        (None, "int", ["99999999999"], ColumnType("bigint", "INFERRED")),
        (None, "int", ["1", "1.5"], ColumnType("double", "INFERRED")),
        (None, "decimal(3,2)", ["12"], ColumnType("bigint", "INFERRED")),
        (None, "bigint", ["1.5"], ColumnType("double", "INFERRED")),
        (None, "boolean", ["5"], ColumnType("bigint", "INFERRED")),
        (None, "double", ["9" * 17], ColumnType("bigint", "INFERRED")),
        (None, "double", ["1.00000000000000000001"], ColumnType("double", "RECORDED")),
        (None, "date", ["2024-01-05 10:00"],
         ColumnType("timestamp", "INFERRED")),
        (None, "array<int>", ["x"], ColumnType("string", "INFERRED")),
    ],
)  # fmt: skip
def test_a_column_keeps_the_recorded_type_where_it_holds_all_values(
    declared: str | None, recorded: str | None, texts: Texts, kind: ColumnType
) -> None:
    assert reconcile(declared, recorded, evidence(texts)) == kind


@given(st.lists(ANY_TEXT, min_size=1, max_size=16))
@settings(max_examples=many(200), deadline=None)
def test_inference_of_distinct_values_equals_inference_of_all(texts: list[str]) -> None:
    few, many = evidence(texts), evidence(texts * 17)

    assert replace(few, values=0) == replace(many, values=0)

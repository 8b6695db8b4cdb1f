"""`_supa_id` is what docs/row-id.md says, for every type and however the rows arrive."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.rows.row_id import encoded_rows, row_ids
from tests.unit.golden import CASES
from tests.unit.rows.arrow_values import arrow_array

LINES = [
    line.split("\t")
    for line in (CASES / "row_ids.tsv").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]

NESTED = pa.list_(pa.struct([("a", pa.int64()), ("m", pa.map_(pa.string(), pa.bool_()))]))


@pytest.mark.parametrize(("key", "encoding", "row_id"), LINES)
def test_a_golden_vector_holds(key: str, encoding: str, row_id: str) -> None:
    columns = [arrow_array(kind, value) for kind, value in json.loads(key)]
    expected = json.loads(encoding).encode("latin-1")
    assert encoded_rows(columns).to_pylist() == [expected]
    assert row_ids(columns).to_pylist() == [row_id] == [hashlib.sha256(expected).hexdigest()]


def _rows(kind: pa.DataType, values: list[Any]) -> list[bytes]:
    encoded: list[bytes] = encoded_rows([pa.array(values, kind)]).to_pylist()
    return encoded


INTEGERS = st.none() | st.integers(-(2**63), 2**63 - 1)
TEXTS = st.none() | st.text(st.characters(codec="utf-8"), max_size=6)
BYTES = st.none() | st.binary(max_size=6)
FLOATS = st.none() | st.floats()
ELEMENTS = st.none() | st.lists(
    st.none()
    | st.fixed_dictionaries(
        {
            "a": st.none() | st.integers(-5, 5),
            "m": st.none() | st.dictionaries(st.text("ab", max_size=2), st.none() | st.booleans()),
        }
    ),
    max_size=3,
)
TUPLES = st.tuples(INTEGERS, TEXTS, BYTES, FLOATS, ELEMENTS)


def _columns(rows: list[tuple[Any, ...]]) -> list[pa.Array[Any]]:
    kinds = [pa.int64(), pa.string(), pa.binary(), pa.float64(), NESTED]
    entries = [[row[i] for row in rows] for i in range(5)]
    entries[4] = [
        None if value is None else [_entry(item) for item in value] for value in entries[4]
    ]
    return [pa.array(values, kind) for values, kind in zip(entries, kinds, strict=True)]


def _entry(item: dict[str, Any] | None) -> dict[str, Any] | None:
    if item is None or item["m"] is None:
        return item
    return {**item, "m": list(item["m"].items())}


@given(st.lists(TUPLES, min_size=1, max_size=6))
def test_rows_have_the_same_bytes_exactly_if_they_are_equal(rows: list[tuple[Any, ...]]) -> None:
    encoded = encoded_rows(_columns(rows)).to_pylist()
    for one, first in zip(rows, encoded, strict=True):
        for other, second in zip(rows, encoded, strict=True):
            assert (first == second) == (_comparable(one) == _comparable(other))


def _comparable(row: tuple[Any, ...]) -> Any:
    """Python's equality, but for what it sees otherwise: NaN is equal to itself here."""
    return tuple("NaN" if value != value else value for value in row)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=2, max_size=2, unique=True))
def test_row_id_separates_neighbouring_fields(rows: list[tuple[Any, Any]]) -> None:
    columns = [pa.array([row[i] for row in rows], pa.string()) for i in range(2)]
    first, second = encoded_rows(columns).to_pylist()
    assert first != second


@given(st.lists(TUPLES, min_size=1, max_size=8), st.integers(0, 8), st.integers(0, 8))
def test_ids_do_not_depend_on_the_batch_a_row_is_in(
    rows: list[tuple[Any, ...]], start: int, length: int
) -> None:
    columns = _columns(rows)
    whole = row_ids(columns).to_pylist()
    part = row_ids([column.slice(start, length) for column in columns]).to_pylist()
    assert part == whole[start : start + length]


@given(st.lists(st.none() | st.integers(-100, 100)))
def test_integers_of_all_widths_and_decimals_are_one_kind_of_number(
    values: list[int | None],
) -> None:
    expected = _rows(pa.int64(), values)
    kinds: list[pa.DataType] = [
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.decimal128(5, 0),
        pa.decimal128(38, 20),
    ]
    kinds += [pa.decimal256(50, 3), pa.decimal32(5, 2), pa.decimal64(9, 4)]
    for kind in kinds:
        assert _rows(kind, values) == expected


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, places=4, min_value=-(10**12), max_value=10**12
    )
)
def test_a_decimal_is_written_as_its_shortest_plain_text(value: Any) -> None:
    text = format(value.normalize(), "f")
    shortest = "0" if text == "-0" else text
    assert _rows(pa.decimal128(38, 10), [value]) == [f"n{shortest};".encode()]


def test_a_negative_scale_is_written_out() -> None:
    column = pa.array([7, 0, -7], pa.int64()).cast(pa.decimal128(19, 0))
    thousands = pa.Array.from_buffers(pa.decimal128(19, -3), 3, column.buffers())
    assert encoded_rows([thousands]).to_pylist() == [b"n7000;", b"n0;", b"n-7000;"]


@given(st.lists(TEXTS))
def test_text_is_the_same_in_every_arrow_layout(values: list[str | None]) -> None:
    expected = _rows(pa.string(), values)
    for kind in (pa.large_string(), pa.string_view()):
        assert _rows(kind, values) == expected
    coded = pa.array(values, pa.string()).dictionary_encode()
    assert encoded_rows([coded]).to_pylist() == expected


def test_lists_are_the_same_in_every_arrow_layout() -> None:
    values = [[1, 2], None, [None, 3]]
    expected = [b"[n1;n2;]", b"~", b"[~n3;]"]
    kinds: list[pa.DataType] = [pa.list_(pa.int64()), pa.large_list(pa.int64())]
    kinds += [pa.list_(pa.int64(), 2), pa.list_view(pa.int64())]
    for kind in kinds:
        assert _rows(kind, values) == expected
        sliced = pa.array(values, kind).slice(1, 2)
        assert encoded_rows([sliced]).to_pylist() == expected[1:]


def test_row_id_ignores_values_below_a_null() -> None:
    hidden = pa.StructArray.from_arrays(
        [pa.array([1, 2])], names=["a"], mask=pa.array([False, True])
    )
    assert encoded_rows([hidden]).to_pylist() == [b"{n1;}", b"~"]


def test_every_not_a_number_is_one_value() -> None:
    bits = pa.array([0x7FF8000000000000, 0x7FF0000000000001, -1], pa.int64()).view(pa.float64())
    assert len(set(encoded_rows([bits]).to_pylist())) == 1


def test_an_empty_batch_has_no_ids() -> None:
    assert row_ids([pa.array([], pa.int64())]).to_pylist() == []


def test_ids_are_valid_strings_of_64_lower_case_hex_digits() -> None:
    ids = row_ids([pa.array(range(1000))])
    ids.validate(full=True)
    assert ids.type == pa.string()
    assert all(len(text) == 64 and set(text) <= set("0123456789abcdef") for text in ids.to_pylist())


def test_a_type_without_an_encoding_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"type `duration\[s\]` has no row id"):
        row_ids([pa.array([1], pa.duration("s"))])


def test_a_row_id_needs_a_column() -> None:
    with pytest.raises(ValueError, match="at least one column"):
        row_ids([])

"""VARIANT of Parquet files: JSON text of what an encoder of its own wrote, or a bad value."""

from __future__ import annotations

import json
import random
import struct
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER
from lakeload_jobs.sources.files.typed.variant import (
    MAX_DEPTH,
    BadVariant,
    variant_text,
)
from tests.corpus.variant import Raw, encode, metadata, plain_type, with_note
from tests.unit.sources.files.formats.parquet.test_reader import PAGE, columns_of, read

UUID = uuid.UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")
SHREDDED = pa.struct([("value", pa.binary()), ("typed_value", pa.int64())])


def text(value: Any, *, spare: int = 0) -> str:
    encoded = encode(value, spare=spare)
    return variant_text(encoded["metadata"], encoded["value"])


TEXTS: dict[str, tuple[Any, str]] = {
    "null": (None, "null"),
    "true": (True, "true"),
    "int8": (-7, "-7"),
    "int64": (-(2**63), "-9223372036854775808"),
    "decimal": (Decimal("1.20"), "1.2"),
    "decimal of whole numbers": (Decimal("100"), "100"),
    "decimal below one": (Decimal("-0.05"), "-0.05"),
    "decimal of zero": (Decimal("0.00"), "0"),
    "longest decimal": (Decimal("9" * 30 + ".12345678"), "9" * 30 + ".12345678"),
    "double": (1234567.5, "1234567.5"),
    "large double": (1e10, "1.0E10"),
    "largest double": (1.7976931348623157e308, "1.7976931348623157E308"),
    "small double": (-1.25e-4, "-1.25E-4"),
    "least double": (5e-324, "5.0E-324"),
    "zero": (-0.0, "-0.0"),
    "not a number": (float("nan"), '"NaN"'),
    "infinity": (float("-inf"), '"-Infinity"'),
    "float": (Raw(14, struct.pack("<f", 0.1)), "0.1"),
    "largest float": (Raw(14, struct.pack("<f", 3.4028235e38)), "3.4028235E38"),
    "text": ("é🚀", '"é🚀"'),
    "escapes": ('a"\\/\n\x1f\x7f', '"a\\"\\\\/\\n\\u001F\x7f"'),
    "long text": ("x" * 70_000, f'"{"x" * 70_000}"'),
    "binary": (b"\x00\xff", '"AP8="'),
    "date": (date(2024, 2, 29), '"2024-02-29"'),
    "far date": (Raw(11, struct.pack("<i", 2_932_897)), '"+10000-01-01"'),
    "old date": (Raw(11, struct.pack("<i", -719_529)), '"-0001-12-31"'),
    "year 0": (Raw(11, struct.pack("<i", -719_528)), '"0000-01-01"'),
    "instant": (
        datetime(2024, 2, 29, 1, 2, 3, 400_000, tzinfo=UTC),
        '"2024-02-29 01:02:03.4+00:00"',
    ),
    "local": (datetime(1969, 12, 31, 23, 59), '"1969-12-31 23:59:00"'),
    "instant in ns": (Raw(18, struct.pack("<q", -1)), '"1969-12-31 23:59:59.999999999+00:00"'),
    "local in ns": (Raw(19, struct.pack("<q", 10**9)), '"1970-01-01 00:00:01"'),
    "time": (time(1, 2, 3), '"01:02:03.000000"'),
    "uuid": (UUID, f'"{UUID}"'),
    "empty": ([{}, [], ""], '[{},[],""]'),
    "object": ({"b": 1, "a": [None, {"é": "x"}], "": 2}, '{"":2,"a":[null,{"é":"x"}],"b":1}'),
}


@pytest.mark.parametrize("spare", [0, 1, 3])
@pytest.mark.parametrize("name", TEXTS)
def test_a_value_becomes_json_text(name: str, spare: int) -> None:
    value, expected = TEXTS[name]

    assert text(value, spare=spare) == expected
    assert text([value, {"k": value}], spare=spare) == f'[{expected},{{"k":{expected}}}]'


ON_PAGE = {
    "null": None,
    "integer": -7,
    "decimal `1.20`": Decimal("1.20"),
    "double `0.1`": 0.1,
    "double `1e10`": 1e10,
    "double without a number": float("nan"),
    "text": "a",
    "binary `0x00ff`": b"\x00\xff",
    "date": date(2024, 2, 29),
    "time": time(1, 2, 3),
    "timestamp in UTC": datetime(2024, 2, 29, 1, 2, 3, 400_000, tzinfo=UTC),
    "timestamp without zone": datetime(2024, 2, 29, 1, 2, 3, 400_000),
    "UUID": UUID,
}


def test_variant_page_equals_the_reader() -> None:
    page = PAGE.read_text(encoding="utf-8").split("## VARIANT")[1].split("\n- ")[0]
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]

    assert {name: shown.strip("`") for name, shown in rows[1:]} == {
        name: text(value) for name, value in ON_PAGE.items()
    }


def some_json(chosen: random.Random, depth: int = 0) -> Any:
    kinds = 5 if depth > 3 else 7
    match chosen.randrange(kinds):
        case 0:
            return chosen.choice([None, True, False])
        case 1:
            return chosen.randrange(-(2**63), 2**63) >> chosen.randrange(64)
        case 2:
            return chosen.uniform(-1, 1) * 10 ** chosen.randrange(-30, 30)
        case 3 | 4:
            return "".join(chosen.choices('aé🚀"\\\n\t ', k=chosen.randrange(80)))
        case 5:
            return [some_json(chosen, depth + 1) for _ in range(chosen.randrange(5))]
        case _:
            names = chosen.sample("abcdefghé🚀", chosen.randrange(6))
            return {name: some_json(chosen, depth + 1) for name in names}


def test_random_values_are_what_json_reads() -> None:
    chosen = random.Random(14)  # noqa: S311
    for _ in range(500):
        value = some_json(chosen)
        assert json.loads(text(value, spare=chosen.randrange(4))) == value


def test_an_object_of_many_fields_has_ids_and_offsets_of_any_size() -> None:
    value = {f"k{number:06}": "x" * 2 for number in range(70_000)}
    assert json.loads(text(value)) == value
    assert text(list(range(300))) == json.dumps(list(range(300)), separators=(",", ":"))


def test_bytes_that_are_no_variant_are_bad_or_json() -> None:
    """Whatever is broken: no other error, and no text of more than there are bytes."""
    chosen = random.Random(15)  # noqa: S311
    bad = 0
    for _ in range(3_000):
        encoded = encode(some_json(chosen), spare=chosen.randrange(4))
        parts = [bytearray(encoded["metadata"]), bytearray(encoded["value"])]
        for _ in range(chosen.randrange(1, 4)):
            part = chosen.choice([part for part in parts if part])
            part[chosen.randrange(len(part))] = chosen.randrange(256)
        if chosen.random() < 0.3:
            parts[1] = parts[1][: chosen.randrange(len(parts[1]) + 1)]
        try:
            json.loads(variant_text(bytes(parts[0]), bytes(parts[1])))
        except BadVariant:
            bad += 1
    assert 500 < bad < 3_000


def nested(depth: int) -> tuple[bytes, bytes]:
    value = b"\x00"
    for _ in range(depth):
        value = bytes([3 | 3 << 2, 1]) + struct.pack("<II", 0, len(value)) + value
    return metadata([]), value


BROKEN: dict[str, tuple[bytes, bytes, str]] = {
    "no metadata": (b"", b"\x00", "its metadata is empty"),
    "version 2": (b"\x02\x00\x00", b"\x00", "of version 2"),
    "metadata cut off": (b"\x01\x02\x00\x01", b"\x00", "its metadata ends too early"),
    "metadata offset": (b"\x01\x01\x00\x09a", b"\x00", "beyond its end"),
    "metadata text": (b"\x01\x01\x00\x01\xff", b"\x00", "not UTF-8"),
    "nothing": (metadata([]), b"", "ends too early"),
    "cut off": (metadata([]), encode("abc")["value"][:-1], "ends too early"),
    "text": (metadata([]), b"\x05\xff", "not UTF-8"),
    "unknown type": (metadata([]), bytes([33 << 2]), "type 33"),
    "no such name": (metadata([]), encode({"a": 1})["value"], "not in its metadata"),
    "key twice": (metadata(["a", "a"]), encode({"a": 1, "b": 2})["value"], "the key `a` twice"),
    "decimal": (metadata([]), bytes([8 << 2, 39, 0, 0, 0, 0]), "more than 38 digits"),
    "time": (metadata([]), bytes([17 << 2]) + struct.pack("<q", -1), "no time of day"),
    "too deep": (*nested(MAX_DEPTH + 1), "nested more than 500 deep"),
    "overlap": (metadata([]), bytes([3, 3, 0, 0, 0, 5]) + encode("abcd")["value"], "overlap"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_value_is_bad(name: str) -> None:
    dictionary, value, reason = BROKEN[name]
    with pytest.raises(BadVariant, match=reason):
        variant_text(dictionary, value)


def test_the_deepest_value_is_read() -> None:
    assert variant_text(*nested(MAX_DEPTH)) == "[" * MAX_DEPTH + "null" + "]" * MAX_DEPTH


def shredded_file(path: Path, rows: list[Any], kind: Any) -> Path:
    table = pa.table({"id": pa.array(range(len(rows)), pa.int64()), "v": pa.array(rows, kind)})
    pq.write_table(with_note(table, v="variant"), path)
    return path


def shredded_type(typed: Any) -> Any:
    return pa.struct([*plain_type(), ("typed_value", typed)])


def test_shredded_objects_are_put_together_again(tmp_path: Path) -> None:
    """The rows are those of the specification's own table."""
    fields = pa.struct(
        [
            ("event_type", pa.struct([("value", pa.binary()), ("typed_value", pa.string())])),
            (
                "event_ts",
                pa.struct([("value", pa.binary()), ("typed_value", pa.timestamp("us", "UTC"))]),
            ),
        ]
    )
    known = metadata(["email", "error_msg", "event_ts", "event_type", "click"])
    places = {"email": 0, "error_msg": 1, "event_ts": 2, "event_type": 3, "click": 4}

    def row(value: Any, typed: Any) -> dict[str, Any]:
        raw = None if value is ... else encode(value)["value"]
        if isinstance(value, dict):
            (name,) = value
            raw = encode(value)["value"]
            raw = raw[:2] + bytes([places[name]]) + raw[3:]
        return {"metadata": known, "value": raw, "typed_value": typed}

    def field(value: Any = ..., typed: Any = None) -> dict[str, Any]:
        return {"value": None if value is ... else encode(value)["value"], "typed_value": typed}

    at = datetime(2024, 10, 24, 18, 21, 54, 937, tzinfo=UTC)
    none = field()
    rows = [
        row(..., {"event_type": field(typed="noop"), "event_ts": field(typed=at)}),
        row({"email": "u"}, {"event_type": field(typed="login"), "event_ts": field(typed=at)}),
        row({"error_msg": "m"}, {"event_type": none, "event_ts": none}),
        row("no object", None),
        row({"click": "b"}, {"event_type": none, "event_ts": field(typed=at)}),
        row(..., {"event_type": field(None), "event_ts": field(typed=at)}),
        row(..., {"event_type": field(typed="noop"), "event_ts": field("2024-10-24")}),
        row(..., {"event_type": none, "event_ts": none}),
        row(None, None),
        row(..., None),
        None,
    ]
    path = shredded_file(tmp_path / "a.parquet", rows, shredded_type(fields))

    found = read(path)["v"].to_pylist()

    shown = '"2024-10-24 18:21:54.000937+00:00"'
    assert found == [
        f'{{"event_ts":{shown},"event_type":"noop"}}',
        f'{{"email":"u","event_ts":{shown},"event_type":"login"}}',
        '{"error_msg":"m"}',
        '"no object"',
        f'{{"click":"b","event_ts":{shown}}}',
        f'{{"event_ts":{shown},"event_type":null}}',
        '{"event_ts":"2024-10-24","event_type":"noop"}',
        "{}",
        "null",
        "null",
        None,
    ]


LEAVES: dict[str, tuple[Any, Any, str]] = {
    "boolean": (pa.bool_(), False, "false"),
    "int8": (pa.int8(), -7, "-7"),
    "int64": (pa.int64(), 2**63 - 1, "9223372036854775807"),
    "float": (pa.float32(), 0.1, "0.1"),
    "double": (pa.float64(), 1e10, "1.0E10"),
    "decimal": (pa.decimal128(38, 5), Decimal("-1.20000"), "-1.2"),
    "date": (pa.date32(), date(2024, 2, 29), '"2024-02-29"'),
    "time": (pa.time64("us"), time(1, 2, 3, 4), '"01:02:03.000004"'),
    "local": (pa.timestamp("us"), datetime(2024, 2, 29), '"2024-02-29 00:00:00"'),
    "instant in ns": (pa.timestamp("ns", "UTC"), 1, '"1970-01-01 00:00:00.000000001+00:00"'),
    "local beyond Python": (pa.timestamp("us"), -(2**62), '"-144169-06-28 09:59:32.612096"'),
    "text": (pa.string(), 'a"', '"a\\""'),
    "large text": (pa.large_string(), "a", '"a"'),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), "a", '"a"'),
    "binary": (pa.binary(), b"\x00\xff", '"AP8="'),
    "uuid": (pa.uuid(), UUID.bytes, f'"{UUID}"'),
}


@pytest.mark.parametrize("name", LEAVES)
def test_each_type_of_a_typed_value_is_read(tmp_path: Path, name: str) -> None:
    kind, value, expected = LEAVES[name]
    typed = pa.array([value, None, value], kind)
    raw = pa.array([None, encode("x")["value"], None], pa.binary())
    names = pa.array([metadata([])] * 3, pa.binary())
    column = pa.StructArray.from_arrays([names, raw, typed], ["metadata", "value", "typed_value"])
    pq.write_table(with_note(pa.table({"v": column}), v="variant"), tmp_path / "a.parquet")

    assert read(tmp_path / "a.parquet")["v"].to_pylist() == [expected, '"x"', expected]


def test_shredded_arrays_are_put_together_again(tmp_path: Path) -> None:
    kind = shredded_type(pa.list_(SHREDDED))
    null = {"value": encode(None)["value"], "typed_value": None}
    missing = {"value": None, "typed_value": None}

    def typed(number: int) -> dict[str, Any]:
        return {"value": None, "typed_value": number}

    elements: list[Any] = [[typed(1), null, missing], [], None, [typed(2)]]
    rows = [{"metadata": metadata([]), "value": None, "typed_value": one} for one in elements]
    rows[2]["value"] = encode("x")["value"]
    path = shredded_file(tmp_path / "a.parquet", rows, kind)

    assert read(path)["v"].to_pylist() == ["[1,null,null]", "[]", '"x"', "[2]"]


CONFLICTS: dict[str, tuple[Any, Any, Any, str]] = {
    "leaf": (pa.int64(), 1, 1, "both a value and a typed value"),
    "array": (pa.list_(SHREDDED), [], 1, "both a value and a typed value"),
    "no object": (
        pa.struct([("a", SHREDDED)]),
        {"a": {"value": None, "typed_value": 1}},
        "x",
        "both a value and a typed value",
    ),
    "key": (
        pa.struct([("a", SHREDDED)]),
        {"a": {"value": None, "typed_value": None}},
        {"a": 1},
        "the key `a` is in its value and has a column, too",
    ),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_values_that_are_stored_twice_are_bad(tmp_path: Path, name: str) -> None:
    typed, stored, value, reason = CONFLICTS[name]
    rows = [None, {**encode(value), "typed_value": stored}]
    path = shredded_file(tmp_path / "a.parquet", rows, shredded_type(typed))

    with pytest.raises(LoadFailed) as raised:
        read(path)
    counted = read(path, on_bad_value="NULL")

    assert f"`{path}`, row group 1, row 2: column `v`: the value `0x" in raised.value.message
    assert reason in raised.value.message
    assert counted[BAD_VALUES_HELPER].to_pylist() == [0, 1]


def test_a_type_that_shredding_does_not_know_is_refused(tmp_path: Path) -> None:
    path = shredded_file(tmp_path / "a.parquet", [None], shredded_type(pa.uint32()))

    with pytest.raises(LoadFailed, match="a VARIANT with a `typed_value` of the type `uint32`"):
        read(path)
    assert read(path, without=["v"])["id"].to_pylist() == [0]


def test_variants_inside_of_other_values_are_read(tmp_path: Path) -> None:
    kind = pa.struct(
        [
            ("v", plain_type()),
            ("l", pa.list_(plain_type())),
            ("n", pa.map_(pa.string(), plain_type())),
        ]
    )
    rows: list[Any] = [
        {"v": encode({"a": 1}), "l": [encode(1), None, encode("x")], "n": [("k", encode([]))]},
        None,
        {"v": None, "l": [], "n": None},
        {"v": encode(1), "l": [encode(2), {**encode(3), "value": b"\x05"}], "n": []},
    ]
    table = pa.table({"s": pa.array(rows[:3], kind)})
    spark = {
        "type": "struct",
        "fields": [
            {"name": "v", "type": "variant"},
            {"name": "l", "type": {"type": "array", "elementType": "variant"}},
            {"name": "n", "type": {"type": "map", "keyType": "string", "valueType": "variant"}},
        ],
    }
    pq.write_table(with_note(table, s=spark), tmp_path / "a.parquet")
    broken = pa.table({"s": pa.array(rows, kind)})
    pq.write_table(with_note(broken, s=spark), tmp_path / "b.parquet")

    (column,) = columns_of(tmp_path / "a.parquet")
    found = read(tmp_path / "a.parquet")["s"].to_pylist()

    assert column.kind == pa.struct(
        [
            ("v", pa.string()),
            ("l", pa.list_(pa.string())),
            ("n", pa.map_(pa.string(), pa.string())),
        ]
    )
    assert found == [
        {"v": '{"a":1}', "l": ["1", None, '"x"'], "n": [("k", "[]")]},
        None,
        {"v": None, "l": [], "n": None},
    ]
    with pytest.raises(LoadFailed, match=r"row 4: column `s\.l\.element`: the value `0x05`"):
        read(tmp_path / "b.parquet")


def test_a_variant_is_not_mixed_with_text(tmp_path: Path) -> None:
    first = shredded_file(tmp_path / "a.parquet", [encode("x")], plain_type())
    pq.write_table(pa.table({"id": [1], "v": ["x"]}), tmp_path / "b.parquet")

    with pytest.raises(LoadFailed, match=r"`v` is variant in .* and text in"):
        read(first, tmp_path / "b.parquet")

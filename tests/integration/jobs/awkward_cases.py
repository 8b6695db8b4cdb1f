"""Awkward tables: how each is written down, and the rows that must come out of it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakeload_jobs.contract.spec import ColumnsSpec, FileFormatName

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """One table: how it is written down, and the rows that must come out under target names."""

    source: str
    write: Callable[[Path], FileFormatName]
    expected: Rows
    columns: ColumnsSpec = field(default_factory=ColumnsSpec)


def csv_case(
    source: str, header: list[str], *rows: list[str], expected: Rows, **changes: Any
) -> Case:
    def write(path: Path) -> FileFormatName:
        text = io.StringIO()
        csv.writer(text, quoting=csv.QUOTE_MINIMAL, lineterminator="\n").writerows([header, *rows])
        path.write_text(text.getvalue(), encoding="utf-8")
        return "CSV"

    return Case(source, write, expected, **changes)


def json_case(source: str, *records: dict[str, Any], expected: Rows, **changes: Any) -> Case:
    def write(path: Path) -> FileFormatName:
        lines = (json.dumps(record, ensure_ascii=False) for record in records)
        path.write_text("\n".join(lines), encoding="utf-8")
        return "NDJSON"

    return Case(source, write, expected, **changes)


def parquet_case(
    source: str, table: pa.Table, *, expected: Rows | None = None, **changes: Any
) -> Case:
    def write(path: Path) -> FileFormatName:
        pq.write_table(table, path)
        return "PARQUET"

    return Case(source, write, table.to_pylist() if expected is None else expected, **changes)


LONG = "very long name " * 20
INSTANT = datetime(2026, 3, 29, 1, 30, 0, 123456, tzinfo=UTC)
CASES = [
    csv_case(
        "quotes \"in\" 'names'", ['a "b"', "it's"], ["1", "x"], expected=[{"a_b_": 1, "it_s": "x"}]
    ),
    csv_case(
        "public.dots.everywhere", ["a.b", "a.c.d"], ["1", "2"], expected=[{"a_b": 1, "a_c_d": 2}]
    ),
    csv_case(
        "Größe 日本語",
        ["Straße", "日本", "Δ"],
        ["1", "2", "3"],
        expected=[{"Strasse": 1, "_": 2, "_1": 3}],
    ),
    csv_case(
        "select",
        ["from", "where", "table", "order"],
        ["1", "2", "3", "4"],
        expected=[{"from": 1, "where": 2, "table": 3, "order": 4}],
    ),
    csv_case(LONG, [LONG, LONG + "!"], ["1", "2"], expected=[]),
    csv_case(
        "Case",
        ["Orders", "orders", "ORDERS"],
        ["1", "2", "3"],
        expected=[{"Orders": 1, "orders_1": 2, "ORDERS_2": 3}],
    ),
    csv_case("case", ["id"], ["7"], expected=[{"id": 7}]),
    csv_case(
        "123 starts with digits", ["1st", "2 nd"], ["1", "2"], expected=[{"_1st": 1, "_2_nd": 2}]
    ),
    csv_case(
        "emoji 🚀",
        ["rocket 🚀", "plain"],
        ["🚀🎉", "é́"],
        expected=[{"rocket_": "🚀🎉", "plain": "é́"}],
    ),
    csv_case(
        "../../escape",
        ["../x", "$(rm)", "`tick`"],
        ["1", "2", "3"],
        expected=[{"_x": 1, "_rm_": 2, "_tick_": 3}],
    ),
    csv_case(
        "[markup] {0} %s",
        ["[bold]a[/]", "{b}", "%c"],
        ["1", "2", "3"],
        expected=[{"_bold_a_": 1, "_b_": 2, "_c": 3}],
    ),
    csv_case(
        "'; drop table x; --",
        ["a; --", "b' or '1'='1"],
        ["1", "2"],
        expected=[{"a_": 1, "b_or_1_1": 2}],
    ),
    csv_case(
        "many columns",
        [f"column {n}" for n in range(400)],
        [str(n) for n in range(400)],
        expected=[{f"column_{n}": n for n in range(400)}],
    ),
    csv_case(
        "decimals",
        ["a", "b"],
        ["1.10", "12345678901234567890.12345678"],
        ["", "-0.00000001"],
        columns=ColumnsSpec(types={"a": "decimal(9,2)", "b": "decimal(38,8)"}),
        expected=[
            {"a": Decimal("1.10"), "b": Decimal("12345678901234567890.12345678")},
            {"a": None, "b": Decimal("-0.00000001")},
        ],
    ),
    csv_case(
        "timestamps",
        ["zoned", "plain", "day"],
        ["2026-03-29T03:30:00.123456+02:00", "2026-03-29 02:30:00.000001", "0001-01-01"],
        columns=ColumnsSpec(types={"plain": "timestamp_ntz", "day": "date"}),
        expected=[
            {"zoned": INSTANT, "plain": datetime(2026, 3, 29, 2, 30, 0, 1), "day": date(1, 1, 1)}
        ],
    ),
    json_case(
        "nested.json",
        {"id": 1, "who": {"First Name": "A", "tags": ["x", None]}, "list": [{"k.v": 1}]},
        {"id": 2, "who": None, "list": []},
        expected=[
            {"id": 1, "list": [{"k_v": 1}], "who": {"First_Name": "A", "tags": ["x", None]}},
            {"id": 2, "list": [], "who": None},
        ],
    ),
    json_case(
        "mixed json",
        {"v": 1, "n": None},
        {"v": "text", "n": None},
        {"v": {"a": 1}},
        expected=[{"n": None, "v": "1"}, {"n": None, "v": "text"}, {"n": None, "v": '{"a": 1}'}],
    ),
    json_case(
        "odd keys",
        {"": 1, "a.b": {"x.y": 1, "X": 2, "x": [{"": "\u0000"}]}, "A": 1, "a": 2, "`q`": "🚀\n"},
        {"A": 10**25, "a.b": {"X": 3.5}},
        expected=[
            {
                "_": 1,
                "a_b": {"x_y": 1, "X": 2.0, "x_1": [{"_": "\u0000"}]},
                "A": Decimal(1),
                "a_1": 2,
                "_q_": "🚀\n",
            },
            {
                "_": None,
                "a_b": {"x_y": None, "X": 3.5, "x_1": None},
                "A": Decimal(10**25),
                "a_1": None,
                "_q_": None,
            },
        ],
    ),
    parquet_case(
        "types",
        pa.table(
            {
                "i8": pa.array([1, None], pa.int8()),
                "i16": pa.array([-1, None], pa.int16()),
                "i64": pa.array([-(1 << 63), None], pa.int64()),
                "f": pa.array([1.5, None], pa.float32()),
                "bin": pa.array([b"\x00\xff", None]),
                "b": pa.array([True, None]),
                "ts": pa.array([INSTANT, None], pa.timestamp("us", "UTC")),
                "ntz": pa.array([datetime(1900, 1, 1), None], pa.timestamp("us")),
            }
        ),
    ),
    parquet_case(
        "maps and structs",
        pa.table(
            {
                "m": pa.array(
                    [[("k", {"x": 1})], None], pa.map_(pa.string(), pa.struct([("x", pa.int32())]))
                ),
                "deep": pa.array([[[1], None, []], []], pa.list_(pa.list_(pa.int64()))),
            }
        ),
    ),
    parquet_case(
        "all null",
        pa.table(
            {
                "text": pa.nulls(3, pa.string()),
                "number": pa.nulls(3, pa.int32()),
                "void": pa.nulls(3),
            }
        ),
        # A column without a type is not in the table before it has one.
        expected=[{"text": None, "number": None}] * 3,
    ),
    parquet_case(
        "wide decimals",
        pa.table(
            {
                "d4": pa.array([Decimal("1.2345")], pa.decimal128(5, 4)),
                "d18": pa.array([Decimal("123456789012345678")], pa.decimal128(18, 0)),
                "d38": pa.array([Decimal("-" + "9" * 38)], pa.decimal128(38, 0)),
            }
        ),
    ),
]

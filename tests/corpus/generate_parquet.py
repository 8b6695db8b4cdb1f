"""Writes the Parquet files of the corpus: `python -m tests.corpus.generate_parquet`.

Each type of docs/parquet-files.md is written by pyarrow in several encodings, by pandas, polars and
DuckDB. What is expected are the values that were given to them, as text: the writers are trusted
with them where they read them back themselves.
"""

from __future__ import annotations

import json
import math
import shutil
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from tests.corpus.given import Given
from tests.corpus.oracle import said

HERE = Path(__file__).parent
FILES, EXPECTED = HERE / "files" / "parquet", HERE / "expected" / "parquet.jsonl"

FIRST = datetime(2024, 2, 29, 13, 30, 59)
NAIVE = [FIRST, datetime(1970, 1, 1), None, datetime(1901, 12, 31, 23)]
MILLIS = [FIRST.replace(microsecond=7_000), *NAIVE[1:]]
MICROS = [FIRST.replace(microsecond=123_456), *NAIVE[1:]]
AWARE = [None if at is None else at.replace(tzinfo=UTC) for at in MICROS]
TIMES = [time(13, 30, 59), time(0), None, time(23, 59, 59)]
UUID = uuid.UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")
STRUCT = pa.struct([("n", pa.int32()), ("t", pa.string())])


def ints(bits: int, *, signed: bool) -> list[int | None]:
    """Return the least and the greatest number of a type, and what is between."""
    least = -(2 ** (bits - 1)) if signed else 0
    return [least, 0, None, 2 ** (bits - signed) - 1]


GIVEN: dict[str, Given] = {
    "boolean": Given(pa.bool_(), [True, False, None, True]),
    **{
        f"int{bits}": Given(getattr(pa, f"int{bits}")(), ints(bits, signed=True))
        for bits in (8, 16, 32, 64)
    },
    **{
        f"uint{bits}": Given(getattr(pa, f"uint{bits}")(), ints(bits, signed=False))
        for bits in (8, 16, 32, 64)
    },
    "float16": Given(pa.float16(), [1.5, -0.0, None, 65504.0]),
    "float": Given(pa.float32(), [1.5, -0.0, None, math.inf]),
    "double": Given(pa.float64(), [0.1, 1e308, None, math.nan]),
    "decimal_5_2": Given(pa.decimal128(5, 2), [Decimal("1.20"), Decimal("-999.99"), None]),
    "decimal_18_0": Given(pa.decimal128(18, 0), [Decimal(10**18 - 1), Decimal(0), None]),
    "decimal_38_10": Given(pa.decimal128(38, 10), [Decimal("1" * 28 + ".0000000001"), None]),
    "decimal_50_3": Given(
        pa.decimal256(50, 3), [Decimal("1" * 40 + ".125"), None], ["1" * 40 + ".125", None]
    ),
    "text": Given(pa.string(), ["a", "é🚀\n", "", None]),
    "large_text": Given(pa.large_string(), ["a", "é🚀", "", None]),
    "binary": Given(pa.binary(), [b"\x00\xff", b"", None]),
    "fixed_binary": Given(pa.binary(3), [b"abc", b"\x00\x01\x02", None]),
    "date": Given(pa.date32(), [date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), None]),
    "time_ms": Given(pa.time32("ms"), TIMES, [t and f"{t}.000000" for t in TIMES]),
    "time_us": Given(pa.time64("us"), TIMES, [t and f"{t}.000000" for t in TIMES]),
    "time_ns": Given(pa.time64("ns"), TIMES, [t and f"{t}.000000" for t in TIMES]),
    "timestamp_s": Given(pa.timestamp("s"), NAIVE),
    "timestamp_ms": Given(pa.timestamp("ms"), MILLIS),
    "timestamp_us": Given(pa.timestamp("us"), MICROS),
    "timestamp_ns": Given(pa.timestamp("ns"), MICROS),
    "timestamp_far": Given(pa.timestamp("us"), [datetime(1, 1, 1), datetime(9999, 12, 31), None]),
    "instant_us": Given(pa.timestamp("us", "UTC"), AWARE),
    "instant_ns": Given(pa.timestamp("ns", "UTC"), AWARE),
    "instant_berlin": Given(pa.timestamp("us", "Europe/Berlin"), AWARE),
    "dictionary": Given(pa.dictionary(pa.int8(), pa.string()), ["a", "b", None, "a"]),
    "uuid": Given(pa.uuid(), [UUID.bytes, None], [str(UUID), None]),
    "list": Given(pa.list_(pa.int32()), [[1, None], [], None, [3]]),
    "large_list": Given(pa.large_list(pa.string()), [["a", None], [], None]),
    "fixed_list": Given(pa.list_(pa.int32(), 2), [[1, 2], [3, None]]),
    "list_of_lists": Given(
        pa.list_(pa.list_(STRUCT)), [[[{"n": 1, "t": "x"}, None], []], None, [None]]
    ),
    "list_of_times": Given(
        pa.list_(pa.time64("us")), [[TIMES[0], None], None], [["13:30:59.000000", None], None]
    ),
    "struct": Given(STRUCT, [{"n": 1, "t": "x"}, {"n": None, "t": None}, None]),
    "struct_of_uint64": Given(
        pa.struct([("u", pa.uint64()), ("at", pa.timestamp("ns"))]),
        [{"u": 2**64 - 1, "at": MICROS[0]}, None],
    ),
    "map": Given(pa.map_(pa.string(), pa.int32()), [[("a", 1), ("b", None)], [], None]),
    "map_of_ints": Given(pa.map_(pa.int32(), STRUCT), [[(1, {"n": 1, "t": "x"})], None]),
}

Writer = Callable[[pa.Table, Path], object]


def by_pandas(table: pa.Table, path: Path) -> None:
    table.to_pandas(types_mapper=pd.ArrowDtype).to_parquet(path)


def by_duckdb(table: pa.Table, path: Path) -> None:
    connection = duckdb.connect()
    connection.register("t", table)
    connection.execute(f"COPY t TO '{path}' (FORMAT PARQUET)")


WRITERS: dict[str, Writer] = {
    "pyarrow": pq.write_table,
    "pyarrow_plain": lambda table, path: pq.write_table(
        table,
        path,
        store_schema=False,
        use_dictionary=False,
        data_page_version="2.0",
        compression="zstd",
        row_group_size=2,
    ),
    "pyarrow_old": lambda table, path: pq.write_table(
        table, path, version="1.0", use_compliant_nested_type=False, compression="gzip"
    ),
    "pandas": by_pandas,
    "polars": lambda table, path: pl.DataFrame(pl.from_arrow(table)).write_parquet(path),
    "duckdb": by_duckdb,
}
NOT_WRITTEN = {
    # The library does not know the type.
    ("polars", "decimal_50_3"),
    ("duckdb", "decimal_50_3"),
    ("duckdb", "float16"),
    # It puts another type into the file: plain bytes, and lists of structs.
    ("polars", "uuid"),
    ("polars", "map"),
    ("polars", "map_of_ints"),
}


def cases() -> Iterator[dict[str, Any]]:
    """Write the files and yield the cases."""
    for writer, write in WRITERS.items():
        for name, given in GIVEN.items():
            if (writer, name) in NOT_WRITTEN:
                continue
            file = f"{name}_{writer}.parquet"
            column = pa.array(given.values, given.kind)
            table = pa.table({"id": pa.array(range(len(column)), pa.int64()), "v": column})
            write(table, FILES / file)
            yield {
                "name": f"{name}_{writer}",
                "by": writer,
                "files": [file],
                "values": [said(value) for value in given.expected],
            }
    yield from int96()
    yield from refused()
    yield from united()
    yield from of_duckdb()


def int96() -> Iterator[dict[str, Any]]:
    """Timestamps of old Spark, Hive and Impala: instants, whatever they were."""
    for name in ("timestamp_us", "timestamp_far", "struct_of_uint64"):
        given = GIVEN[name]
        file = f"int96_{name}.parquet"
        table = pa.table({"id": range(len(given.values)), "v": pa.array(given.values, given.kind)})
        pq.write_table(table, FILES / file, use_deprecated_int96_timestamps=True)

        def instant(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: instant(one) for key, one in value.items()}
            return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value

        yield {
            "name": f"int96_{name}",
            "by": "pyarrow",
            "files": [file],
            "values": [said(instant(value)) for value in given.values],
        }


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "ns": (pa.array([1_000, 1_001], pa.timestamp("ns")), {}, "row 2: column `v`"),
    "instant_ns": (pa.array([-1], pa.timestamp("ns", "UTC")), {}, "row 1: column `v`"),
    "time_ns": (pa.array([0, 1], pa.time64("ns")), {}, "row 2: column `v`"),
    "int96": (
        pa.array([1_000, 1_001], pa.timestamp("ns")),
        {"use_deprecated_int96_timestamps": True},
        "row 2: column `v`",
    ),
    "int96_in_lists": (
        pa.array([[1_000], [0, 1_001]], pa.list_(pa.timestamp("ns"))),
        {"use_deprecated_int96_timestamps": True},
        "row 2: column `v.element`",
    ),
    "key_twice": (
        pa.array([[(1, 1)], [(2, 1), (2, 2)]], pa.map_(pa.int32(), pa.int32())),
        {},
        "row 2: column `v`: the value `2`",
    ),
    "ms_too_far": (pa.array([2**60], pa.timestamp("ms")), {}, "row 1: column `v`"),
}


def refused() -> Iterator[dict[str, Any]]:
    """Values that have no place in the lake."""
    for name, (column, options, text) in REFUSED.items():
        file = f"refused_{name}.parquet"
        pq.write_table(pa.table({"v": column}), FILES / file, **options)
        yield {"name": f"refused_{name}", "by": "pyarrow", "files": [file], "refused": text}


UNITED: dict[str, list[Any]] = {
    "ints": [pa.array([1], pa.int8()), pa.array([2**40]), pa.array([-3], pa.int32())],
    "floats": [pa.array([0.5], pa.float32()), pa.array([0.1])],
    "decimals": [
        pa.array([Decimal("1.5")], pa.decimal128(5, 1)),
        pa.array([Decimal("123456.125")], pa.decimal128(9, 3)),
    ],
    "nulls": [pa.nulls(1), pa.array(["x"]), pa.nulls(1)],
    "structs": [
        pa.array([{"a": 1}], pa.struct([("a", pa.int32())])),
        pa.array([{"b": "x", "a": 2**40}], pa.struct([("b", pa.string()), ("a", pa.int64())])),
    ],
    "int_and_double": [pa.array([1]), pa.array([1.5])],
    "text_and_bytes": [pa.array(["a"]), pa.array([b"a"])],
    "date_and_timestamp": [pa.array([date(2024, 1, 1)]), pa.array([NAIVE[0]])],
    "local_and_instant": [pa.array([MICROS[0]]), pa.array([AWARE[0]], pa.timestamp("us", "UTC"))],
}
CANNOT = ("text_and_bytes", "date_and_timestamp", "local_and_instant")


def united() -> Iterator[dict[str, Any]]:
    """Several files of one table."""
    for name, columns in UNITED.items():
        files = [f"united_{name}_{number}.parquet" for number in range(len(columns))]
        for file, column in zip(files, columns, strict=True):
            pq.write_table(pa.table({"v": column}), FILES / file)
        case = {"name": f"united_{name}", "by": "pyarrow", "files": files}
        values = [said(value) for column in columns for value in column.to_pylist()]
        if name == "structs":
            values[0] = {"a": "1", "b": None}
        if name == "decimals":
            values = ["1.500", "123456.125"]
        yield {**case, **({"refused": "column `v`"} if name in CANNOT else {"values": values})}


OF_DUCKDB: dict[str, tuple[tuple[str, ...], list[Any]]] = {
    "interval": (
        ("interval '1 month 2 days 3.004 seconds'", "interval '23 hours 30 minutes'", "null"),
        ["P1M2DT3.004S", "PT84600S", None],
    ),
    "intervals_inside": (
        ("{'i': interval '1 day', 'l': [interval '1 year', null]}",),
        [{"i": "P1D", "l": ["P12M", None]}],
    ),
    "enum": (("'b'::enum('a', 'b')", "null", "'a'"), ["b", None, "a"]),
    "list_of_enums": (("['b', null]::enum('a', 'b')[]",), [["b", None]]),
    "map_of_instants": (
        ("map {timestamptz '2024-02-29 01:02:03.000004+02:00': 1}", "null"),
        [[(datetime(2024, 2, 28, 23, 2, 3, 4, tzinfo=UTC), 1)], None],
    ),
    "map_of_dates": (("map {date '2024-02-29': null::int}",), [[(date(2024, 2, 29), None)]]),
    "map_of_decimals": (("map {1.20::decimal(5, 2): 'x'}",), [[(Decimal("1.20"), "x")]]),
    "map_of_uuids": ((f"map {{uuid '{UUID}': [1, null]}}",), [[(str(UUID), [1, None])]]),
    "map_of_times": (("map {time '01:02:03': 1}",), [[("01:02:03.000000", 1)]]),
    "map_of_structs": (("map {{'n': 1}: true}",), [[({"n": 1}, True)]]),
    "json": (("""'{"a": 1.10}'::json""",), ['{"a": 1.10}']),
    "fixed_array": (("[1, 2]::int[2]", "[3, null]"), [[1, 2], [3, None]]),
    "timestamp_ns": (
        ("timestamp_ns '2024-02-29 01:02:03.000004'",),
        [FIRST.replace(hour=1, minute=2, second=3, microsecond=4)],
    ),
    "variant": (
        ("""{'b': 1, 'a': [1.50, null]}::variant""", "'x'::variant", "null"),
        ['{"b":1,"a":[1.5,null]}', '"x"', None],
    ),
    "variant_of_objects": (
        (
            "{'a': 1, 'd': date '2024-02-29', 's': {'t': 'x'}}::variant",
            "{'a': 2, 'd': date '2024-03-01', 's': {'t': null}}::variant",
        ),
        [
            '{"a":1,"d":"2024-02-29","s":{"t":"x"}}',
            '{"a":2,"d":"2024-03-01","s":{"t":null}}',
        ],
    ),
}


def of_duckdb() -> Iterator[dict[str, Any]]:
    """Types that DuckDB has and Arrow has not, or writes in another way."""
    for name, (values, expected) in OF_DUCKDB.items():
        file = f"duckdb_{name}.parquet"
        rows = " union all ".join(f"select {n} id, {value} v" for n, value in enumerate(values))
        duckdb.connect().execute(f"copy (from ({rows}) order by id) to '{FILES / file}'")
        yield {
            "name": f"duckdb_{name}",
            "by": "duckdb",
            "files": [file],
            "values": [said(value) for value in expected],
        }


def main() -> None:
    """Write all of it anew."""
    shutil.rmtree(FILES, ignore_errors=True)
    FILES.mkdir(parents=True)
    lines = [json.dumps(case, sort_keys=False) for case in cases()]
    EXPECTED.write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()

"""Avro files have the types and values that Spark's reader of Avro finds in them."""

from __future__ import annotations

import base64
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.integration.sources.files.spark.recorded import SparkOracle
from tests.integration.sources.files.spark.spark_rows import (
    Found,
    Intended,
    SparkFiles,
    answered,
    by_lakeload,
    check,
)
from tests.unit.sources.files.formats.avro import test_reader as test_avro
from tests.unit.sources.files.formats.avro.test_reader import fixed, logical, packed, write

CODECS = ("null", "deflate", "bzip2", "xz", "snappy", "zstandard")
FLOATS = [0.0, -0.0, 1.5, -1e-40, float("nan"), float("inf"), float("-inf")]
TEXTS = ["", "a", "é🚀", "\x00", " a ", "\r\n", "\u2028", "null", "x" * 1000]
BYTES = [b"", b"\x00\xff", b"a" * 300]
SECONDS = [0, -1, 1, 1_709_168_523, -62_135_596_800, 253_402_300_799, -12_219_292_801]
"""The first and the last second of the years 1 to 9999, and the last one of the Julian calendar."""
PAIR = [{"name": "n", "type": ["null", "int"]}, {"name": "t", "type": "string"}]
ENUM = {"type": "enum", "name": "e", "symbols": ["A", "B", "null"]}


def record(name: str, fields: Sequence[Any]) -> dict[str, Any]:
    """Return the schema of a record."""
    return {"type": "record", "name": name, "fields": list(fields)}


def _bytes(*numbers: int, size: int = 0) -> list[bytes]:
    """Return whole numbers as decimals store them; with `size`, of so many bytes."""
    least = [max(size, (number.bit_length() + 8) // 8) for number in numbers]
    pairs = zip(numbers, least, strict=True)
    return [number.to_bytes(length, "big", signed=True) for number, length in pairs]


NINES = 10**38 - 1
DAYS = [0, -1, 19_782, -719_162, 2_932_896, -141_428, -141_427]
MILLIS = [second * 1000 + more for second in SECONDS for more in (0, 123)]
MICROS = [second * 10**6 + more for second in SECONDS for more in (0, 1, 123_456)]
KINDS: dict[str, tuple[Any, list[Any]]] = {
    "null": ("null", [None, None]),
    "boolean": ("boolean", [True, False]),
    "int": ("int", [0, -1, 2**31 - 1, -(2**31)]),
    "long": ("long", [0, -1, 2**63 - 1, -(2**63), 2**53 + 1]),
    "float": ("float", FLOATS),
    "double": ("double", [*FLOATS, 5e-324, 1.7976931348623157e308]),
    "bytes": ("bytes", BYTES),
    "string": ("string", TEXTS),
    "fixed": ({"type": "fixed", "name": "f", "size": 3}, [b"abc", b"\x00\x00\xff"]),
    "empty_fixed": ({"type": "fixed", "name": "f", "size": 0}, [b""]),
    "enum": (ENUM, ["A", "B", "null"]),
    "enum_default": ({**ENUM, "default": "A"}, ["B"]),
    "decimal_bytes": (logical("bytes", "decimal", precision=5, scale=2), _bytes(0, 120, -99999)),
    "decimal_long_bytes": (
        logical("bytes", "decimal", precision=5, scale=2),
        _bytes(1, -1, size=40),
    ),
    "decimal_no_scale": (logical("bytes", "decimal", precision=9), _bytes(7, -(10**9) + 1)),
    "decimal_38": (logical("bytes", "decimal", precision=38, scale=10), _bytes(NINES, -NINES, 1)),
    "decimal_38_38": (logical("bytes", "decimal", precision=38, scale=38), _bytes(NINES, -1)),
    "decimal_fixed": (fixed(4, "decimal", precision=9, scale=2), _bytes(1, -120, size=4)),
    "decimal_fixed_38": (fixed(16, "decimal", precision=38), _bytes(NINES, -NINES, size=16)),
    "decimal_large": (fixed(21, "decimal", precision=50, scale=3), _bytes(10**50 - 1, size=21)),
    "decimal_over": (logical("bytes", "decimal", precision=5, scale=2), _bytes(1, 100_000)),
    "decimal_of_text": (logical("string", "decimal", precision=5, scale=2), ["1.20"]),
    "decimal_no_precision": (logical("bytes", "decimal"), _bytes(7)),
    "uuid": (logical("string", "uuid"), ["f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "no uuid"]),
    "uuid_fixed": (fixed(16, "uuid"), [bytes(range(16))]),
    "date": (logical("int", "date"), DAYS),
    "time_millis": (logical("int", "time-millis"), [0, 86_399_999]),
    "time_micros": (logical("long", "time-micros"), [0, 86_399_999_999]),
    "timestamp_millis": (logical("long", "timestamp-millis"), MILLIS),
    "timestamp_micros": (logical("long", "timestamp-micros"), MICROS),
    "timestamp_nanos": (logical("long", "timestamp-nanos"), [0, -1000, 1000]),
    "local_millis": (logical("long", "local-timestamp-millis"), MILLIS),
    "local_micros": (logical("long", "local-timestamp-micros"), MICROS),
    "local_nanos": (logical("long", "local-timestamp-nanos"), [0, -1000, 1000]),
    "duration": (fixed(12, "duration"), [bytes(12), bytes(range(12))]),
    "unknown_logical": (logical("long", "of-mine"), [7]),
    "logical_of_another": (logical("string", "date"), ["2024-02-29"]),
    "millis_of_int": (logical("int", "timestamp-millis"), [7]),
    "record": (record("r1", PAIR), [{"n": 1, "t": "a"}, {"n": None, "t": ""}]),
    "record_empty": (record("r1", []), [{}]),
    "record_deep": (
        record(
            "r1", [{"name": "x", "type": record("r2", [{"name": "y", "type": record("r3", PAIR)}])}]
        ),
        [{"x": {"y": {"n": 7, "t": "é"}}}],
    ),
    "record_of_names": (
        record("r1", [{"name": "A", "type": "int"}, {"name": "_b1", "type": "string"}]),
        [{"A": 1, "_b1": "x"}],
    ),
    "record_again": (
        record("r1", [{"name": "x", "type": record("r2", PAIR)}, {"name": "y", "type": "r2"}]),
        [{"x": {"n": 1, "t": "a"}, "y": {"n": None, "t": "b"}}],
    ),
    "key_twice": ({"type": "map", "values": "int"}, [{"ab": 1, "cd": 2}]),
    "array": ({"type": "array", "items": "int"}, [[], [1, 2], [-1]]),
    "array_of_null": ({"type": "array", "items": ["null", "string"]}, [[None], ["", None, "a"]]),
    "array_of_arrays": (
        {"type": "array", "items": {"type": "array", "items": ["double", "null"]}},
        [[[]], [[1.5, None], [float("nan")]], []],
    ),
    "array_of_records": (
        {"type": "array", "items": record("r1", PAIR)},
        [[{"n": 1, "t": "a"}, {"n": None, "t": "b"}], []],
    ),
    "array_of_instants": (
        {"type": "array", "items": ["null", logical("long", "timestamp-micros")]},
        [[1, None, -1]],
    ),
    "array_of_decimals": (
        {"type": "array", "items": logical("bytes", "decimal", precision=5, scale=2)},
        [_bytes(120, -1)],
    ),
    "array_of_enums": ({"type": "array", "items": ENUM}, [["A", "null"]]),
    "map": ({"type": "map", "values": "int"}, [{}, {"a": 1}, {"": 2, "é": 3}]),
    "map_of_null": ({"type": "map", "values": ["null", "bytes"]}, [{"a": None, "b": b"\xff"}]),
    "map_of_maps": (
        {"type": "map", "values": {"type": "map", "values": record("r1", PAIR)}},
        [{"a": {"b": {"n": 1, "t": "x"}}, "c": {}}],
    ),
    "nullable_record": (["null", record("r1", PAIR)], [None, {"n": None, "t": "a"}]),
    "nullable_array": (["null", {"type": "array", "items": "long"}], [None, [], [1]]),
    "nullable_map": ([{"type": "map", "values": "long"}, "null"], [None, {}, {"a": 1}]),
    "nullable_date": (["null", logical("int", "date")], [None, *DAYS]),
    "nullable_decimal": (
        [logical("bytes", "decimal", precision=5, scale=2), "null"],
        [None, *_bytes(1)],
    ),
    "union_of_one": (["string"], ["a", "b"]),
    "union_of_null": (["null"], [None]),
    "union_of_records": (
        [record("r1", PAIR), "null", record("r2", [{"name": "b", "type": "int"}])],
        [("r1", {"n": 1, "t": "a"}), ("r2", {"b": 2}), None],
    ),
    "union_of_named": ([ENUM, {"type": "fixed", "name": "f", "size": 1}], ["A", b"x"]),
    "union_of_nested": (
        ["null", {"type": "array", "items": "int"}, {"type": "map", "values": "string"}],
        [None, [1], {"a": "b"}],
    ),
    "union_of_logical": (
        ["string", logical("int", "date"), logical("long", "timestamp-micros")],
        [7, "a", 2**40],
    ),
    "array_of_unions": ({"type": "array", "items": ["int", "null", "string"]}, [[1, None, "a"]]),
}
UNIONS: dict[str, tuple[list[str], list[Any]]] = {
    "int_long": (["int", "long"], [7, 2**40]),
    "float_double": (["float", "double"], [0.1, float("nan")]),
    "int_string": (["int", "string"], [7, "a"]),
    "long_double": (["long", "double"], [7, 1.5]),
    "boolean_bytes": (["boolean", "bytes"], [True, b"a"]),
    "int_long_string": (["int", "long", "string"], [7, 2**40, "a"]),
    "int_float": (["int", "float"], [7, 1.5]),
}


@dataclass(frozen=True)
class Case:
    """A column `v` and its values, and how they are written."""

    kind: Any
    values: Sequence[Any]
    codec: str = "null"
    options: dict[str, Any] = field(default_factory=dict)


def _cases() -> Iterator[tuple[str, Case]]:
    for name, (kind, values) in KINDS.items():
        yield name, Case(kind, values)
    for name, (kinds, some) in UNIONS.items():
        for number, order in enumerate(itertools.permutations([*kinds, "null"])):
            yield f"union_{name}_{number}", Case(list(order), [*some, None])
        yield f"union_{name}", Case(kinds, some)
    drawn = random.Random(3)  # noqa: S311 - the same each time
    kind = record("r1", [*PAIR, {"name": "l", "type": {"type": "array", "items": "double"}}])
    rows = [
        {"n": drawn.choice([None, n]), "t": "é" * drawn.randint(0, 9), "l": FLOATS[: n % 8]}
        for n in range(300)
    ]
    for codec in CODECS:
        yield f"codec_{codec}", Case(kind, rows, codec)
        yield f"blocks_{codec}", Case(kind, rows, codec, {"sync_interval": 100})
        yield f"empty_{codec}", Case(kind, [], codec)


def files(folder: Path) -> dict[str, Path]:
    """Write the files of the corpus."""
    made = {}
    for name, case in _cases():
        by_fastavro = case.codec not in ("snappy", "zstandard")
        rows = [{"id": n, "v": value} for n, value in enumerate(case.values)]
        columns = [{"name": "id", "type": "int"}, {"name": "v", "type": case.kind}]
        codec = case.codec if by_fastavro else "null"
        made[name] = write(folder / f"{name}.avro", columns, rows, codec, **case.options)
        if not by_fastavro:
            packed(made[name], case.codec)
    twice = made["key_twice"]
    twice.write_bytes(twice.read_bytes().replace(b"cd", b"ab"))
    return made


INNER = [{"name": "a", "type": "int"}]
GROWN = [{"name": "b", "type": ["null", "string"]}, {"name": "a", "type": "long"}]
UNITED: dict[str, list[tuple[Any, list[Any]] | None]] = {
    "int_and_long": [("int", [7, -1]), ("long", [2**40]), ("int", [8])],
    "float_and_double": [("double", [0.1]), ("float", [0.5, float("nan")])],
    "null_and_text": [("null", [None]), ("string", ["a"]), (["null", "string"], [None])],
    "a_column_that_comes_and_goes": [("string", ["a"]), None, ("string", ["b"])],
    "unions_in_another_order": [(["null", "int"], [None, 7]), (["int", "null"], [8, None])],
    "records": [
        (record("r1", INNER), [{"a": 1}]),
        (record("r1", GROWN), [{"a": 2**40, "b": "x"}, {"a": 1, "b": None}]),
    ],
    "lists_of_records": [
        ({"type": "array", "items": record("r1", GROWN)}, [[{"a": 2**40, "b": "x"}], []]),
        ({"type": "array", "items": record("r1", INNER)}, [[{"a": 1}]]),
    ],
    "maps": [
        ({"type": "map", "values": "int"}, [{"a": 1}]),
        ({"type": "map", "values": "long"}, [{}]),
    ],
    "enums": [(ENUM, ["A"]), ({**ENUM, "symbols": ["B", "A"]}, ["A", "B"]), ("string", ["C"])],
    "decimals": [
        (logical("bytes", "decimal", precision=5, scale=1), _bytes(15)),
        (logical("bytes", "decimal", precision=9, scale=3), _bytes(123_456_125)),
    ],
}


def united_files(folder: Path) -> dict[str, list[Path]]:
    """Write the files of several schemas that are one table."""
    made: dict[str, list[Path]] = {}
    for name, tables in UNITED.items():
        for number, table in enumerate(tables):
            kind, values = table or ("int", [])
            columns = [{"name": "id", "type": "int"}]
            columns += [{"name": "v", "type": kind}] if table else []
            rows = [{"id": n, "v": value} for n, value in enumerate(values)] or [{"id": 0}]
            path = folder / f"{name}_{number}.avro"
            made.setdefault(name, []).append(write(path, columns, rows))
    return made


BY_SPARK = {
    "tiny": "cast(id - 128 as smallint)",
    "number": "id * 1000000007",
    "share": "if(id = 3, double('nan'), id / -7)",
    "small": "cast(id / 3 as float)",
    "amount": "cast(id / 7 as decimal(20,6))",
    "text": "if(id % 7 = 0, null, concat('é', id))",
    "raw": "cast(cast(id as string) as binary)",
    "flag": "id % 3 = 0",
    "at": "timestamp_micros(id * 1000000000000001 - 62135596800000000)",
    "wall": "timestamp_ntz'0001-01-01 00:00:00.000001' + make_dt_interval(cast(id * 999 as int))",
    "day": "date_add(date'0001-01-01', cast(id * 9999 as int))",
    "seconds": "make_dt_interval(1, 2, 3, id)",
    "tags": "if(id % 5 = 0, null, array(id, null, id + 1))",
    "pairs": "map('a', struct(id as n, timestamp_micros(id) as at), '', null)",
    "inner": "if(id % 4 = 0, null, struct(id as a, array(struct('x' as b)) as c))",
}


def files_of_spark(spark: SparkSession, folder: Path) -> dict[str, Path]:
    """Write a file of Spark with each codec."""
    frame = spark.range(300).selectExpr("id", *(f"{e} as {n}" for n, e in BY_SPARK.items()))
    found = {}
    for codec in ("uncompressed", *CODECS[1:]):
        own = folder / f"spark_{codec}"
        frame.coalesce(1).write.format("avro").option("compression", codec).save(str(own))
        (part,) = own.glob("*.avro")
        found[own.name] = part.rename(folder / f"{own.name}.avro")
    return found


def _with_intervals(found: Found) -> Found:
    """Return numbers of microseconds as Spark's intervals."""
    rows = [
        {**row, "seconds": str(timedelta(microseconds=int(row["seconds"])))}
        for row in found.rows
        if "seconds" in row
    ]
    return replace(
        found, types=found.types.replace("seconds:bigint", "seconds:" + _INTERVAL), rows=rows
    )


_INTERVAL = "interval day to second"
AVRO_PAGE = "avro-files.md"
PARQUET_PAGE = "parquet-files.md"
INTENDED = {
    "no value at all": Intended(
        r"v:struct<>>$", "v:void>$", 1, "| null | no type | `null` |", AVRO_PAGE
    ),
    "decimals of more than 38 digits": Intended(
        "^DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION$",
        "v:string>$",
        1,
        "| decimal(50,3) | text |",
        AVRO_PAGE,
    ),
    "what Spark takes for numbers and bytes": Intended(
        "v:(binary|int|bigint)>$",
        "v:(string|timestamp|timestamp_ntz)>$",
        6,
        "**Columns that earlier versions loaded as numbers or binary** (`time-…`, `…-nanos`, "
        "`uuid` and `duration` of fixed bytes)",
        AVRO_PAGE,
    ),
    "records without fields": Intended(
        "v:struct<>>$", "which has no fields", 1, "A record without fields is refused", AVRO_PAGE
    ),
    "intervals": Intended(
        "", "", 6, "**Intervals** of Spark are numbers of microseconds", AVRO_PAGE, _with_intervals
    ),
    "keys that are there twice": Intended(
        "v:map<", "has this key twice$", 1, "**Maps** that have a key twice are bad.", PARQUET_PAGE
    ),
}


QUESTION = Path(__file__).read_bytes()
"""What makes the files: their own bytes are others each time."""


def test_avro_files_are_read_as_spark_reads_them(oracle: SparkOracle, tmp_path: Path) -> None:
    made = files(tmp_path) | _kept_files_of_spark(oracle, tmp_path)
    lakeload = by_lakeload(test_avro.read, {name: [path] for name, path in made.items()})

    def ask(spark: SparkSession) -> dict[str, Found]:
        bad = [path for name, path in made.items() if lakeload[name].error]
        by_path = SparkFiles(spark, "avro").read(made.values(), bad)
        return {name: by_path[path] for name, path in made.items()}

    by_spark = answered(oracle, "avro", QUESTION, ask)

    assert len(made) == 157
    check({name: (by_spark[name], lakeload[name]) for name in made}, INTENDED)


def _kept_files_of_spark(oracle: SparkOracle, folder: Path) -> dict[str, Path]:
    """Return files that Spark has written, with its names and types, as they are recorded."""

    def ask(spark: SparkSession) -> dict[str, str]:
        written = files_of_spark(spark, folder)
        return {
            name: base64.b64encode(path.read_bytes()).decode() for name, path in written.items()
        }

    paths = {}
    for name, content in oracle.answer("avro_files", BY_SPARK, ask, alike=False).items():
        paths[name] = folder / f"{name}.avro"
        paths[name].write_bytes(base64.b64decode(content))
    return paths


def test_avro_files_of_several_schemas_are_read_as_spark_reads_them_with_one(
    oracle: SparkOracle, tmp_path: Path
) -> None:
    made = united_files(tmp_path)
    lakeload = by_lakeload(test_avro.read, made)
    types = {name: lakeload[name].types for name in made}

    def ask(spark: SparkSession) -> dict[str, Found]:
        reader = SparkFiles(spark, "avro")
        return {name: reader.together(paths, types[name]) for name, paths in made.items()}

    by_spark = answered(oracle, "avro_united", [QUESTION, types], ask)
    found = {name: (by_spark[name], lakeload[name]) for name in made}

    nulls = Intended(
        "^FAILED_READ_FILE", "v:string>$", 1, "| any type | NULL | that type |", PARQUET_PAGE
    )
    check(found, {"a type and null": nulls})

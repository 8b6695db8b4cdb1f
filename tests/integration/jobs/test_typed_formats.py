"""ORC and Avro files: what another writer put in is what is loaded."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc

from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import ColumnsSpec, FileFormatName, OnBadValue, RejectLimit
from tests.integration.jobs.conftest import Job

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
WALL = datetime(2026, 1, 2, 3, 4, 5, 678901)


def orc_file(job: Job, name: str, table: pa.Table) -> str:
    """Write a table as ORC and return its path."""
    path = job.file(name, b"")
    orc.write_table(table, path, compression="ZSTD")
    return path


def avro_bytes(schema: dict[str, Any], records: list[dict[str, Any]], codec: str = "null") -> bytes:
    """Return records as an Avro file."""
    buffer = io.BytesIO()
    fastavro.writer(buffer, {"type": "record", "name": "r", **schema}, records, codec=codec)
    return buffer.getvalue()


def test_orc_keeps_types_and_nested_values(job: Job) -> None:
    table = pa.table(
        {
            "id": pa.array([1, 2], pa.int64()),
            "amount": pa.array([Decimal("12.30"), None], pa.decimal128(12, 2)),
            "wall": pa.array([WALL, None], pa.timestamp("us")),
            "day": pa.array([date(2026, 1, 2), None]),
            "raw": pa.array([b"\x00\xff", None]),
            "tags": pa.array([["x", None], []], pa.list_(pa.string())),
            "who": pa.array([{"name": "Zoë", "age": 7}, None]),
        }
    )

    result = job.load_one(job.table(orc_file(job, "a.orc", table), file_format="ORC"))

    assert (result.status, result.error) == ("LOADED", None)
    rows = job.rows(result)
    assert rows.schema.field("amount").type == pa.decimal128(12, 2)
    assert rows.schema.field("wall").type == pa.timestamp("us")
    assert job.values(result) == table.to_pylist()


def test_orc_is_read_by_the_direct_reader(job: Job) -> None:
    """What Spark's reader shifts, cuts or refuses."""
    old = datetime(1500, 2, 3, 1, 2, 3, 500_000)
    table = pa.table(
        {
            "at": pa.array([AT, None], pa.timestamp("us", "UTC")),
            "old": pa.array([old, WALL], pa.timestamp("us")),
            "day": pa.array([date(1, 1, 1), date(9999, 12, 31)]),
            "before": pa.array([datetime(1969, 12, 31, 23, 59, 59, 999_999), None]),
        }
    )

    result = job.load_one(job.table(orc_file(job, "a.orc", table), file_format="ORC"))

    assert (result.error, result.reader) == (None, "direct")
    assert job.values(result) == table.to_pylist()


@pytest.mark.parametrize("kind", ["ORC", "AVRO"])
def test_orc_and_avro_are_cast_and_filtered_without_spark(
    job: Job, kind: FileFormatName, through_spark: set[str]
) -> None:
    if kind == "ORC":
        path = orc_file(job, "a.orc", pa.table({"n": [1, 2, 300], "s": ["7", "x", "9"]}))
    else:
        fields = [{"name": "n", "type": "long"}, {"name": "s", "type": "string"}]
        records = [{"n": 1, "s": "7"}, {"n": 2, "s": "x"}, {"n": 300, "s": "9"}]
        path = job.file("a.avro", avro_bytes({"fields": fields}, records))
    columns = ColumnsSpec(types={"n": "string", "s": "int"})

    table = job.table(path, file_format=kind, columns=columns, where="n <> '1'")
    result = job.load_one(replace(table, on_bad_value="NULL"))

    assert (result.error, result.reader) == (None, "direct")
    assert through_spark == set()
    assert job.values(result) == [{"n": "2", "s": None}, {"n": "300", "s": 9}]
    assert "1 values" in str(result.warnings)


def test_an_orc_column_that_cannot_be_read_is_left_out_with_columns_exclude(job: Job) -> None:
    twins = pa.table([[1, 2], ["a", "b"], [3, 4]], names=["v", "t", "v"])
    table = job.table(orc_file(job, "a.orc", twins), file_format="ORC")

    refused = job.load_one(table)
    loaded = job.load_one(replace(table, columns=ColumnsSpec(exclude=("v",))))

    assert refused.error is not None
    assert "has two columns named `v`" in refused.error.message
    assert refused.error.hint == "leave it out with `columns.exclude`"
    assert (loaded.error, loaded.reader) == (None, "direct")
    assert job.values(loaded) == [{"t": "a"}, {"t": "b"}]


def test_an_orc_timestamp_stays_one_where_it_was_loaded_as_one(job: Job) -> None:
    path = orc_file(job, "a.orc", pa.table({"at": pa.array([WALL], pa.timestamp("us"))}))
    table = job.table(path, file_format="ORC")

    first = job.load_one(replace(table, columns=ColumnsSpec(types={"at": "timestamp"})))
    second = job.load_one(table)

    assert (first.error, second.error) == (None, None)
    assert job.values(first) == job.values(second) == [{"at": WALL.replace(tzinfo=UTC)}]


def test_bad_values_of_orc_are_named_counted_or_set_aside(job: Job) -> None:
    table = pa.table({"at": pa.array([1000, 1001, 2000], pa.timestamp("ns"))})
    path = orc_file(job, "a.orc", table)

    def load(policy: OnBadValue, **options: str) -> TableResult:
        given = job.table(path, file_format="ORC", name=policy.lower(), options=options)
        limit = RejectLimit(percent=100)
        return job.run(replace(job.spec(given), on_bad_value=policy, max_rejected=limit)).tables[0]

    failed, nulls, aside = load("FAIL"), load("NULL"), load("QUARANTINE")
    cut = load("FAIL", on_loss="TRUNCATE")

    assert failed.error is not None
    assert failed.error.message == (
        f"reading `{path}`, row 2: column `at`: the value `1970-01-01 00:00:00.000001001` cannot "
        "be loaded: it has digits below a microsecond"
    )
    assert [row["at"] and row["at"].microsecond for row in job.values(nulls)] == [1, None, 2]
    assert (aside.error, aside.rows) == (None, 2)
    assert [row["at"].microsecond for row in job.values(cut)] == [1, 1, 2]


def test_orc_files_of_spark_are_read_as_spark_reads_them(job: Job) -> None:
    """Random rows in several files, of what Spark's own reader has exactly."""
    places = {
        "small": "cast(rand(1) * 200 - 100 as tinyint)",
        "number": "cast(rand(2) * 1e18 as bigint) - 500000000000000000",
        "share": "rand(3)",
        "amount": "cast(rand(4) * 1e9 as decimal(20,6))",
        "text": "if(id % 7 = 0, null, concat('é', cast(cast(rand(5) * 50 as int) as string)))",
        "raw": "cast(cast(id as string) as binary)",
        "flag": "id % 3 = 0",
        "at": "timestamp_micros(cast(rand(6) * 4e15 as bigint) - 1000000000000000)",
        "day": "date_add(date'1000-01-01', cast(rand(7) * 700000 as int))",
        "tags": "if(id % 5 = 0, null, array(id, null, id + 1))",
        "pairs": "map('a', struct(id as n, timestamp_micros(id) as at))",
    }
    frame = job.spark.range(2000).selectExpr("id", *(f"{e} as {n}" for n, e in places.items()))
    folder = str(Path(job.file("made.txt", "")).parent / "by-spark")
    frame.repartition(3).write.orc(folder, compression="snappy")
    expected = [row.asDict(recursive=True) for row in job.spark.read.orc(folder).collect()]

    result = job.load_one(job.table(folder, file_format="ORC"))

    assert (result.error, result.reader) == (None, "direct")
    found = job.values(result)
    assert len(found) == 2000
    for row in expected:  # Spark gives local times of this machine
        row["at"] = row["at"].astimezone(UTC)
        row["raw"] = bytes(row["raw"])
        pair = row["pairs"]["a"]
        row["pairs"] = [("a", pair | {"at": pair["at"].astimezone(UTC)})]
    key = itemgetter("id")
    assert sorted(found, key=key) == sorted(expected, key=key)


def test_orc_files_of_different_columns_are_united(job: Job) -> None:
    first = orc_file(job, "a.orc", pa.table({"id": [1], "a": ["x"]}))
    second = orc_file(job, "b.orc", pa.table({"id": [2], "b": [2.5]}))

    result = job.load_one(job.table(first, second, file_format="ORC"))

    found = sorted(job.values(result), key=lambda row: row["id"])
    assert found == [{"id": 1, "a": "x", "b": None}, {"id": 2, "a": None, "b": 2.5}]
    assert job.rows(result)["_supa_index"].to_pylist() == [1, 2]


def test_orc_files_of_wider_types_are_united(job: Job) -> None:
    def kinds(n: pa.DataType, f: pa.DataType, digits: int, scale: int, value: str) -> pa.Table:
        return pa.table(
            {
                "n": pa.array([7], n),
                "f": pa.array([0.5], f),
                "d": pa.array([Decimal(value)], pa.decimal128(digits, scale)),
            }
        )

    narrow = orc_file(job, "a.orc", kinds(pa.int16(), pa.float32(), 5, 1, "1.5"))
    wide = orc_file(job, "b.orc", kinds(pa.int64(), pa.float64(), 9, 3, "123456.125"))
    text = orc_file(job, "c.orc", pa.table({"n": ["x"]}))

    result = job.load_one(job.table(narrow, wide, narrow, file_format="ORC"))
    refused = job.load_one(job.table(narrow, text, file_format="ORC", name="refused"))

    assert result.error is None
    rows = job.rows(result)
    kept = [str(rows.schema.field(name).type) for name in ("n", "f", "d")]
    assert kept == ["int64", "double", "decimal128(9, 3)"]
    assert sorted(str(row["d"]) for row in job.values(result)) == ["1.500", "123456.125"]
    assert refused.error is not None
    assert refused.error.message == (
        f"the column `n` is smallint in `{narrow}` and text in `{text}`"
    )


def test_a_file_that_is_not_orc_is_named(job: Job) -> None:
    path = job.file("a.orc", "id\n1\n")

    result = job.load_one(job.table(path, file_format="ORC"))

    assert result.error is not None
    assert result.error.exit_code == 1
    assert path in result.error.message


AVRO = {
    "fields": [
        {"name": "id", "type": "long"},
        {
            "name": "amount",
            "type": [
                "null",
                {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
            ],
        },
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "wall", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "kind", "type": {"type": "enum", "name": "k", "symbols": ["A", "B"]}},
        {"name": "raw", "type": "bytes"},
        {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "more", "type": {"type": "map", "values": "double"}},
        {
            "name": "who",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "w",
                    "fields": [
                        {"name": "name", "type": "string"},
                        {"name": "age", "type": "int"},
                    ],
                },
            ],
        },
    ]
}


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_avro_keeps_logical_types_and_nested_values(job: Job, codec: str) -> None:
    records = [
        {
            "id": 1,
            "amount": Decimal("12.30"),
            "at": AT,
            "wall": WALL,
            "day": date(2026, 1, 2),
            "kind": "B",
            "raw": b"\x00\xff",
            "tags": ["x", None],
            "more": {"k": 1.5},
            "who": {"name": "Zoë", "age": 7},
        }
    ]
    records.append(records[0] | {"id": 2, "amount": None, "who": None, "tags": []})
    path = job.file("a.avro", avro_bytes(AVRO, records, codec))

    result = job.load_one(job.table(path, file_format="AVRO"))

    assert (result.status, result.error) == ("LOADED", None)
    rows = job.rows(result)
    assert rows.schema.field("amount").type == pa.decimal128(12, 2)
    assert rows.schema.field("at").type == pa.timestamp("us", "UTC")
    assert rows.schema.field("wall").type == pa.timestamp("us")
    assert job.values(result) == [{**record, "more": [("k", 1.5)]} for record in records]


def test_avro_files_of_different_columns_are_united(job: Job) -> None:
    """Spark alone takes the schema of one file, and drops what only others have."""
    first = {"fields": [{"name": "id", "type": "int"}, {"name": "a", "type": "string"}]}
    second = {"fields": [{"name": "id", "type": "long"}, {"name": "b", "type": ["null", "float"]}]}
    paths = [
        job.file("a.avro", avro_bytes(first, [{"id": 1, "a": "x"}])),
        job.file("b.avro", avro_bytes(second, [{"id": 2**40, "b": 2.5}])),
    ]

    result = job.load_one(job.table(*paths, file_format="AVRO"))

    assert (result.status, result.error) == ("LOADED", None)
    found = sorted(job.values(result), key=lambda row: row["id"])
    assert found == [{"id": 1, "a": "x", "b": None}, {"id": 2**40, "a": None, "b": 2.5}]


def test_an_avro_column_of_two_types_names_both_files(job: Job) -> None:
    paths = [
        job.file("a.avro", avro_bytes({"fields": [{"name": "v", "type": "int"}]}, [{"v": 1}])),
        job.file("b.avro", avro_bytes({"fields": [{"name": "v", "type": "string"}]}, [{"v": "x"}])),
    ]

    result = job.load_one(job.table(*paths, file_format="AVRO"))

    assert result.error is not None
    assert all(path in result.error.message for path in paths)
    assert "is int in" in result.error.message
    assert "text in" in result.error.message


def test_a_file_that_is_not_avro_is_named(job: Job) -> None:
    path = job.file("a.avro", "id\n1\n")

    result = job.load_one(job.table(path, file_format="AVRO"))

    assert result.error is not None
    assert f"reading `{path}`: it is not an Avro file" in result.error.message


def test_a_damaged_avro_file_fails_the_table(job: Job) -> None:
    records = [{"id": n} for n in range(20_000)]
    content = avro_bytes({"fields": [{"name": "id", "type": "long"}]}, records)
    path = job.file("a.avro", content[: len(content) // 2])

    result = job.load_one(job.table(path, file_format="AVRO"))

    assert (result.status, job.lake.data_keys()) == ("FAILED", [])
    assert result.error is not None
    assert path in result.error.message


def test_types_and_columns_apply_to_avro_as_to_parquet(job: Job) -> None:
    schema = {"fields": [{"name": "n", "type": "string"}, {"name": "t", "type": "string"}]}
    job.file("avro/day=2026-01-01/a.avro", avro_bytes(schema, [{"n": "7", "t": "x"}]))
    path = job.file("avro/day=2026-01-02/b.avro", avro_bytes(schema, [{"n": "8", "t": "y"}]))
    columns = ColumnsSpec(types={"n": "bigint"}, exclude=("t",))
    table = job.table(str(Path(path).parent.parent), file_format="AVRO", columns=columns)

    found = sorted(job.values(job.load_one(table)), key=lambda row: row["n"])

    assert found == [{"n": 7, "day": date(2026, 1, 1)}, {"n": 8, "day": date(2026, 1, 2)}]


def test_an_avro_time_is_text_and_stays_a_number_where_it_was_loaded_as_one(job: Job) -> None:
    schema = {"fields": [{"name": "t", "type": {"type": "long", "logicalType": "time-micros"}}]}
    path = job.file("a.avro", avro_bytes(schema, [{"t": time(1, 2, 3)}]))
    table, numbers = (job.table(path, file_format="AVRO", name=name) for name in ("t", "numbers"))
    by_spark = {"datetimeRebaseMode": "CORRECTED"}  # with which Spark reads, as it once did

    (text,) = job.values(job.load_one(table))
    first = job.load_one(job.table(path, file_format="AVRO", name="numbers", options=by_spark))
    second = job.load_one(numbers)

    assert text == {"t": "01:02:03.000000"}
    assert (first.reader, second.reader, second.error) == ("jvm", "direct", None)
    assert job.values(first) == job.values(second) == [{"t": 3_723_000_000}]


def test_bad_values_of_avro_are_named_counted_or_set_aside(job: Job) -> None:
    kind = {"type": "int", "logicalType": "time-millis"}
    plain = avro_bytes({"fields": [{"name": "t", "type": "int"}]}, [{"t": 1}, {"t": -1}])
    start = avro_bytes({"fields": [{"name": "t", "type": kind}]}, [])
    block = plain[plain.rindex(plain[-16:], 0, -16) + 16 : -16]
    path = job.file("a.avro", start + block + start[-16:])

    def load(policy: OnBadValue) -> TableResult:
        table = job.table(path, file_format="AVRO", name=policy.lower())
        return job.run(replace(job.spec(table), on_bad_value=policy)).tables[0]

    failed, nulls = load("FAIL"), load("NULL")

    assert failed.error is not None
    assert failed.error.message.startswith(
        f"reading `{path}`, row 2: column `t`: the value `-1` cannot be loaded: as a number of ms"
    )
    assert nulls.error is None
    assert any("1 " in note for note in (*nulls.notes, *nulls.warnings)), nulls
    assert job.values(nulls) == [{"t": "00:00:00.001000"}, {"t": None}]


@pytest.mark.parametrize("file_format", ["ORC", "AVRO", "NDJSON"])
def test_a_number_is_no_timestamp_without_a_unit(job: Job, file_format: FileFormatName) -> None:
    paths = {
        "ORC": lambda: orc_file(job, "a+b c.orc", pa.table({"ms": [1577836800123]})),
        "AVRO": lambda: job.file(
            "a+b c.avro",
            avro_bytes({"fields": [{"name": "ms", "type": "long"}]}, [{"ms": 1577836800123}]),
        ),
        "NDJSON": lambda: job.file("a.ndjson", '{"ms": 1577836800123}\n'),
    }
    path = paths[file_format]()

    def load(name: str, kind: str) -> TableResult:
        columns = ColumnsSpec(types={"ms": kind})
        return job.load_one(job.table(path, name=name, file_format=file_format, columns=columns))

    plain = load("plain", "timestamp")
    known, wrong = load("known", "timestamp(ms)"), load("wrong", "timestamp(s)")

    assert plain.error is not None
    assert "column `ms`" in plain.error.message
    assert known.error is None
    (row,) = job.values(known)
    assert row == {"ms": datetime(2020, 1, 1, microsecond=123_000, tzinfo=UTC)}
    assert wrong.error is not None
    if file_format == "NDJSON":
        clause = "`1577836800123` is not a timestamp or a whole number of `s` since 1970"
        assert f"reading `{path}`: line 1, column `ms`: {clause}" in wrong.error.message
    else:
        assert "the value `1577836800123` is no timestamp(s)" in wrong.error.message
        assert f"reading `{path}`, row 1: column `ms`" in wrong.error.message

"""Each Spark type as it is written, natively and as JSON."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import ColumnsSpec, Nested
from lakeload_jobs.core.types import TYPE_RULES, type_rule
from lakeload_jobs.rows.casts import written_frame, written_schema
from lakeload_jobs.rows.columns import map_columns

# One expression for each type that a column can have, with what is written of it.
SCALARS = {
    "boolean": ("true", True),
    "byte": ("1Y", 1),
    "short": ("1S", 1),
    "integer": ("1", 1),
    "long": ("1L", 1),
    "float": ("1.5F", 1.5),
    "double": ("1.5D", 1.5),
    "decimal": ("cast('1.50' as decimal(38,2))", Decimal("1.50")),
    "string": ("'x'", "x"),
    "binary": ("X'00FF'", bytearray(b"\x00\xff")),
    "date": ("date'2024-02-29'", date(2024, 2, 29)),
    "timestamp_ntz": (
        "timestamp_ntz'2024-02-29 01:02:03.000004'",
        datetime(2024, 2, 29, 1, 2, 3, 4),
    ),
    "time": ("time'01:02:03'", "01:02:03.000000"),
    "yearmonthinterval": ("interval '1-2' year to month", "INTERVAL '1-2' YEAR TO MONTH"),
    "daytimeinterval": ("interval '1 02' day to hour", "INTERVAL '1 02' DAY TO HOUR"),
    "interval": ("make_interval(1, 2, 0, 3)", "1 years 2 months 3 days"),
    "void": ("null", None),
    "variant": ("""parse_json('{"a": [1, null]}')""", '{"a":[1,null]}'),
}


def _written(frame: DataFrame, nested: Nested, *, lower: bool = False) -> DataFrame:
    mapping = map_columns(frame.columns, ColumnsSpec())
    written = written_frame(frame, mapping, nested=nested, lower=lower)
    known = written_schema(frame.schema, mapping, nested=nested, lower=lower)
    assert known is None or _types(known) == _types(written.schema)
    return written


def _types(schema: T.StructType) -> list[tuple[str, T.DataType]]:
    return [(field.name, field.dataType) for field in schema]


def test_written_schema_is_known_without_a_frame_unless_fields_change(spark: SparkSession) -> None:
    scalars = ", ".join(f"{sql} as c_{name}" for name, (sql, _) in SCALARS.items())
    frame = spark.sql(f"select {scalars}, named_struct('A b', array(1)) as renamed")
    changed = spark.sql("select named_struct('t', time'10:00:00') as changed")
    mapping = map_columns(frame.columns, ColumnsSpec())
    other = map_columns(changed.columns, ColumnsSpec())
    assert written_schema(frame.schema, mapping, nested="NATIVE") is not None
    assert written_schema(changed.schema, other, nested="JSON") is not None
    assert written_schema(changed.schema, other, nested="NATIVE") is None


@pytest.fixture(scope="module")
def nested_frame(spark: SparkSession) -> DataFrame:
    """Structs, arrays and maps with names that must change and types that must be cast."""
    return spark.sql(
        """select
        named_struct('a b', 1, 'A-b', time'10:00:00.5', 'é', cast(null as int)) as st,
        array(named_struct('x y', 1L, 'X.Y', 2L)) as ar,
        map('k k', named_struct('ts', timestamp'2024-02-29 01:02:03.000004',
                                'local', timestamp_ntz'2024-02-29 01:02:03')) as mp,
        map(time'01:00:00', array(interval '1' day)) as deep,
        named_struct('v', parse_json('{"q": 1}')) as sv,
        named_struct('d', cast('1.50' as decimal(10,2))) as dec,
        cast(null as struct<a: time(6)>) as missing"""
    )


@pytest.mark.parametrize("nested", ["NATIVE", "JSON"])
def test_every_scalar_type_is_written_as_the_table_says(
    spark: SparkSession, nested: Nested
) -> None:
    expressions = ", ".join(f"{sql} as c_{name}" for name, (sql, _) in SCALARS.items())
    frame = spark.sql(f"select {expressions}")
    assert [field.dataType.typeName() for field in frame.schema] == list(SCALARS)
    written = _written(frame, nested)
    (row,) = written.collect()
    for name, (_, expected) in SCALARS.items():
        kind = written.schema[f"c_{name}"].dataType.typeName()
        rule = type_rule(name)
        assert rule is not None
        assert row[f"c_{name}"] == expected, name
        assert kind == (name if rule.written == "AS_IS" else "string"), name


def test_an_instant_keeps_its_microseconds_and_its_zone(spark: SparkSession) -> None:
    frame = _written(spark.sql("select timestamp'2024-02-29 01:02:03.000004+02:00' as t"), "JSON")
    assert frame.schema["t"].dataType == T.TimestampType()
    (row,) = frame.collect()
    assert row["t"].astimezone(UTC) == datetime(2024, 2, 28, 23, 2, 3, 4, UTC)


def test_every_row_of_the_type_table_is_tested() -> None:
    nested = {"struct", "array", "map", "timestamp"}
    # Spark itself turns char and varchar into string unless a table declares them.
    declared = {"char", "varchar"}
    refused = {rule.spark for rule in TYPE_RULES if rule.written == "UNSUPPORTED"}
    assert {rule.spark for rule in TYPE_RULES} == {*SCALARS, *nested, *declared, *refused}


def test_names_inside_structs_are_normalised_at_every_depth(nested_frame: DataFrame) -> None:
    frame = _written(nested_frame, "NATIVE")
    assert {field.name: field.dataType.simpleString() for field in frame.schema} == {
        "st": "struct<a_b:int,A_b_1:string,e:int>",
        "ar": "array<struct<x_y:bigint,X_Y_1:bigint>>",
        "mp": "map<string,struct<ts:timestamp,local:timestamp_ntz>>",
        "deep": "map<string,array<string>>",
        "sv": "struct<v:string>",
        "dec": "struct<d:decimal(10,2)>",
        "missing": "struct<a:string>",
    }


def test_names_inside_structs_are_lower_case_for_glue(nested_frame: DataFrame) -> None:
    frame = _written(nested_frame, "NATIVE", lower=True)

    kinds = {field.name: field.dataType.simpleString() for field in frame.schema}

    assert kinds["st"] == "struct<a_b:int,a_b_1:string,e:int>"
    assert kinds["ar"] == "array<struct<x_y:bigint,x_y_1:bigint>>"


def test_nested_values_are_kept(nested_frame: DataFrame) -> None:
    (row,) = _written(nested_frame, "NATIVE").collect()
    assert tuple(row["st"]) == (1, "10:00:00.500000", None)
    assert [tuple(item) for item in row["ar"]] == [(1, 2)]
    assert row["deep"] == {"01:00:00.000000": ["INTERVAL '1' DAY"]}
    assert row["sv"]["v"] == '{"q":1}'
    assert row["missing"] is None


def test_nested_values_as_json_keep_names_nulls_and_microseconds(nested_frame: DataFrame) -> None:
    frame = _written(nested_frame, "JSON")
    assert {field.dataType.simpleString() for field in frame.schema} == {"string"}
    (row,) = frame.collect()
    assert json.loads(row["st"]) == {"a b": 1, "A-b": "10:00:00.500000", "é": None}
    assert json.loads(row["ar"]) == [{"x y": 1, "X.Y": 2}]
    assert json.loads(row["mp"]) == {
        "k k": {"ts": "2024-02-29T01:02:03.000004Z", "local": "2024-02-29T01:02:03.000000"}
    }
    assert json.loads(row["deep"]) == {"01:00:00.000000": ["INTERVAL '1' DAY"]}
    assert row["dec"] == '{"d":1.50}'
    assert row["missing"] is None


def test_fields_that_are_twins_in_case_stay_apart(spark: SparkSession) -> None:
    frame = spark.sql("select named_struct('A', time'01:00:00', 'a', 2) as s")
    (native,) = _written(frame, "NATIVE").collect()
    assert native["s"].asDict() == {"A": "01:00:00.000000", "a_1": 2}
    (text,) = _written(frame, "JSON").collect()
    assert json.loads(text["s"]) == {"A": "01:00:00.000000", "a": 2}


def test_times_of_a_parquet_file_are_written_as_text(spark: SparkSession, tmp_path: Path) -> None:
    times = pa.array([3_723_000_004, None, 0], pa.int64()).cast(pa.time64("us"))
    pq.write_table(pa.table({"t": times}), tmp_path / "times.parquet")
    frame = _written(spark.read.parquet(str(tmp_path)), "NATIVE")
    assert sorted(str(row["t"]) for row in frame.collect()) == [
        "00:00:00.000000",
        "01:02:03.000004",
        "None",
    ]


class StringType(T.UserDefinedType):
    """A user-defined type that is called like one of Spark's own."""

    @classmethod
    def sqlType(cls) -> T.DataType:
        """Return the type that Spark stores."""
        return T.DoubleType()

    @classmethod
    def module(cls) -> str:
        """Return the module Spark imports the class from."""
        return __name__

    @classmethod
    def scalaUDT(cls) -> str:
        """Return '': there is no class of Scala."""
        return ""


@pytest.mark.parametrize("nested", ["NATIVE", "JSON"])
def test_a_type_that_cannot_be_written_is_refused_with_the_column(
    spark: SparkSession, nested: Nested
) -> None:
    deep = T.ArrayType(T.StructType([T.StructField("p", StringType())]))
    frame = spark.createDataFrame([], T.StructType([T.StructField("where is", deep)]))
    with pytest.raises(InvalidInput, match="column `where is` has the type `udt`") as raised:
        _written(frame, nested)
    assert "columns.types" in (raised.value.hint or "")

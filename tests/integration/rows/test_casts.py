"""`columns.types`, `where` and `deleted_when` as Spark carries them out."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import ColumnsSpec
from lakeload_jobs.rows.casts import cast_types, written_frame
from lakeload_jobs.rows.columns import map_columns
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER, DELETED_HELPER

ALL_COLUMNS = ColumnsSpec()
STRANGE = "`a.b` string, `c``d` string, `E` string, `e` string"


@pytest.fixture(scope="module")
def strange(spark: SparkSession) -> DataFrame:
    """Names with a dot, a back tick and twins in case; values that are numbers, or not."""
    rows = [("1", "2024-02-30", "x", "y"), ("zz", None, None, "y"), (None, "2024-02-29", "x", "n")]
    return spark.createDataFrame(rows, STRANGE)


def _written(frame: DataFrame, columns: ColumnsSpec = ALL_COLUMNS, **conditions: str) -> DataFrame:
    names = [name for name in frame.columns if name != BAD_VALUES_HELPER]
    return written_frame(
        frame,
        map_columns(names, columns),
        nested="NATIVE",
        where=conditions.get("where"),
        deleted_when=conditions.get("deleted_when"),
    )


def _rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return [tuple(row) for row in frame.collect()]


def test_columns_with_strange_names_are_selected_and_renamed(strange: DataFrame) -> None:
    spec = ColumnsSpec(exclude=("c`d",), rename={"e": "état"})
    frame = _written(strange, spec)
    assert frame.columns == ["a_b", "E", "etat"]
    assert _rows(frame)[0] == ("1", "x", "y")


def test_cast_with_fail_names_the_column_and_the_value(strange: DataFrame) -> None:
    frame = cast_types(strange, {"a.b": "int"}, "FAIL")
    assert frame.schema["a.b"].dataType.simpleString() == "int"
    with pytest.raises(PySparkException, match=r"column `a\.b`: the value `zz` is no int"):
        frame.collect()


def test_cast_with_null_counts_bad_values(strange: DataFrame) -> None:
    frame = cast_types(strange, {"a.b": "int", "c`d": "date"}, "NULL")
    rows = frame.select("`a.b`", "`c``d`", BAD_VALUES_HELPER).collect()
    assert [(row[0], str(row[1]), row[2]) for row in rows] == [
        (1, "None", 1),
        (None, "None", 1),
        (None, "2024-02-29", 0),
    ]


def test_cast_count_of_bad_values_is_part_of_the_rows(strange: DataFrame) -> None:
    frame = _written(cast_types(strange, {"a.b": "int"}, "NULL"), deleted_when="E = 'x'")
    assert frame.columns == ["a_b", "c_d", "E", "e_1", DELETED_HELPER, BAD_VALUES_HELPER]
    assert [row[BAD_VALUES_HELPER] for row in frame.collect()] == [0, 1, 0]


def test_a_value_that_does_not_fit_is_bad_as_well(spark: SparkSession) -> None:
    frame = spark.sql("select 300 as n, '12345.678' as d")
    null = cast_types(frame, {"n": "tinyint", "d": "decimal(5,2)"}, "NULL")
    assert _rows(null) == [(None, None, 2)]
    with pytest.raises(PySparkException, match="column `n`: the value `300` is no tinyint"):
        cast_types(frame, {"n": "tinyint"}, "FAIL").collect()


@pytest.mark.parametrize("kind", ["intt", "decimal(99,2)", "int; drop table x", ""])
def test_cast_to_an_unknown_type_names_setting_and_column(strange: DataFrame, kind: str) -> None:
    with pytest.raises(InvalidInput, match=r"`columns.types` cannot make column `a.b`"):
        cast_types(strange, {"a.b": kind}, "FAIL")


def test_cast_unsupported_by_spark_is_rejected_before_the_load(spark: SparkSession) -> None:
    with pytest.raises(InvalidInput, match="cannot make column `n` `date`"):
        cast_types(spark.sql("select 1 as n"), {"n": "date"}, "NULL")


def test_conditions_use_source_names_and_excluded_columns(strange: DataFrame) -> None:
    frame = _written(
        strange,
        ColumnsSpec(include=("a.b",)),
        where="e = 'y' and `c``d` is null",
        deleted_when="E is null",
    )
    assert frame.columns == ["a_b", DELETED_HELPER]
    assert _rows(frame) == [("zz", True)]


def test_deleted_is_false_where_the_condition_is_null(strange: DataFrame) -> None:
    frame = _written(strange, deleted_when="E = 'x'")
    assert [row[DELETED_HELPER] for row in frame.collect()] == [True, False, True]


@pytest.mark.parametrize("setting", ["where", "deleted_when"])
@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("nope > 1", "`nope` cannot be resolved"),
        ("1 +", "Syntax error"),
        ("1", "not a boolean"),
        ("rand() > 0.5", "another result each time"),
        ("uuid() = 'x'", "another result each time"),
    ],
)
def test_invalid_condition_is_rejected(
    strange: DataFrame, setting: str, condition: str, reason: str
) -> None:
    with pytest.raises(InvalidInput) as raised:
        _written(strange, ALL_COLUMNS, **{setting: condition})
    assert f"`{setting}: {condition}`" in raised.value.message
    assert reason in raised.value.message


EXACT = [
    # An expression of Spark's, a type, and the text of the value that it becomes: None if bad.
    ("1.9d", "int", None),
    ("2d", "int", "2"),
    ("double('NaN')", "bigint", None),
    ("1e30d", "bigint", None),
    ("cast(1.9 as decimal(5,1))", "int", None),
    ("300", "tinyint", None),
    ("9007199254740993", "double", None),
    ("9007199254740992", "double", "9.007199254740992E15"),
    ("0.1d", "float", None),
    ("0.5d", "float", "0.5"),
    ("1.15d", "decimal(3,1)", None),
    ("1.5d", "decimal(3,1)", "1.5"),
    ("cast(1.25 as decimal(5,2))", "decimal(5,1)", None),
    ("cast(1.20 as decimal(5,2))", "decimal(5,1)", "1.2"),
    ("5", "boolean", None),
    ("1", "boolean", "true"),
    ("timestamp'2024-01-01 23:59:00'", "date", None),
    ("timestamp'2024-01-01 00:00:00'", "date", "2024-01-01"),
    ("timestamp_ntz'2024-01-01 23:59:00'", "date", None),
    ("timestamp'2024-01-01 00:00:00.5'", "bigint", None),
    ("date'2024-01-01'", "timestamp", "2024-01-01 00:00:00"),
    ("x'ff'", "string", None),
    ("x'41'", "string", "A"),
    ("1577836800123", "timestamp(ms)", "2020-01-01 00:00:00.123"),
    ("1577836800", "TIMESTAMP( s )", "2020-01-01 00:00:00"),
    ("1577836800123456", "timestamp_ntz(us)", "2020-01-01 00:00:00.123456"),
    ("1577836800123456000", "timestamp(ns)", "2020-01-01 00:00:00.123456"),
    ("1577836800123456789", "timestamp(ns)", None),
    ("-1", "timestamp(ns)", None),
    ("-1000", "timestamp(ns)", "1969-12-31 23:59:59.999999"),
    ("1577836800123", "timestamp(s)", None),
    ("253402300799", "timestamp(s)", "9999-12-31 23:59:59"),
    ("253402300800", "timestamp(s)", None),
    ("-62135596801", "timestamp(s)", None),
    ("1577836800.5d", "timestamp(s)", None),
    ("1577836800d", "timestamp(s)", "2020-01-01 00:00:00"),
    ("'1577836800123'", "timestamp(ms)", "2020-01-01 00:00:00.123"),
    ("'x'", "timestamp(ms)", None),
    ("'1577836800123'", "timestamp", None),
    ("'13:30'", "timestamp", None),
    ("'2024-01'", "timestamp", None),
    ("'2024-01-01 10:00:00.1234567'", "timestamp", None),
    ("'2024-01-01T10:00:00.123456000Z'", "timestamp", "2024-01-01 10:00:00.123456"),
    ("'2024-01-01 10:00:00 Europe/Berlin'", "timestamp", "2024-01-01 09:00:00"),
    ("'2024-01-01 10:00:00+01:00'", "timestamp_ntz", None),
    ("'2024-01-01 10:00'", "timestamp_ntz", "2024-01-01 10:00:00"),
    ("'2024-01-01 23:59'", "date", None),
    ("'2024-01-01T00:00:00Z'", "date", "2024-01-01"),
    ("'2024-1-2'", "date", "2024-01-02"),
    ("'2024'", "date", None),
    ("'1e400'", "double", None),
    ("'1d'", "double", None),
    ("'-Infinity'", "double", "-Infinity"),
    ("' 1.5e3 '", "double", "1500.0"),
    ("'1.005'", "decimal(5,2)", None),
    ("'1.500'", "decimal(5,2)", "1.50"),
    ("'1.5e1'", "decimal(5,2)", "15.00"),
    ("'1.2345e1'", "decimal(5,2)", None),
    ("'7'", "int", "7"),
    ("named_struct('a', 1.9d)", "struct<a:int>", None),
    ("array(1, 2)", "array<bigint>", "[1, 2]"),
    ("array(1, 300)", "array<tinyint>", None),
]


def test_a_value_is_cast_exactly_or_is_bad(spark: SparkSession) -> None:
    columns = {f"c{number}": case for number, case in enumerate(EXACT)}
    frame = spark.sql(
        f"select {', '.join(f'{value} as {name}' for name, (value, _, _) in columns.items())}"
    )

    cast = cast_types(frame, {name: kind for name, (_, kind, _) in columns.items()}, "NULL")

    texts = [cast[name].cast("string").alias(name) for name in columns]
    (row,) = cast.select(*texts, BAD_VALUES_HELPER).collect()
    found = [(*case[:2], row[name]) for name, case in columns.items()]
    assert found == EXACT
    assert row[BAD_VALUES_HELPER] == sum(text is None for _, _, text in EXACT)


@pytest.mark.parametrize(
    ("value", "kind", "hint"),
    [
        ("1577836800123", "timestamp", "`timestamp(ms)`"),
        ("1.5d", "timestamp_ntz", "`timestamp_ntz(ms)`"),
        ("array(1)", "array<timestamp>", "leave them as numbers"),
        ("named_struct('a', map(1, 2))", "struct<a:map<int,timestamp>>", "leave them as numbers"),
    ],
)
def test_numbers_become_timestamps_with_a_unit_only(
    spark: SparkSession, value: str, kind: str, hint: str
) -> None:
    with pytest.raises(
        InvalidInput, match=r"cannot make column `n` .* whose unit is not known"
    ) as raised:
        cast_types(spark.sql(f"select {value} as n"), {"n": kind}, "FAIL")
    assert hint in (raised.value.hint or "")

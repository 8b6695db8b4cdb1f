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


def test_fail_names_the_column_and_the_value(strange: DataFrame) -> None:
    frame = cast_types(strange, {"a.b": "int"}, "FAIL")
    assert frame.schema["a.b"].dataType.simpleString() == "int"
    with pytest.raises(PySparkException, match=r"column `a\.b`: the value `zz` is no int"):
        frame.collect()


def test_null_counts_what_it_drops(strange: DataFrame) -> None:
    frame = cast_types(strange, {"a.b": "int", "c`d": "date"}, "NULL")
    rows = frame.select("`a.b`", "`c``d`", BAD_VALUES_HELPER).collect()
    assert [(row[0], str(row[1]), row[2]) for row in rows] == [
        (1, "None", 1),
        (None, "None", 1),
        (None, "2024-02-29", 0),
    ]


def test_the_count_of_bad_values_travels_with_the_rows(strange: DataFrame) -> None:
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
def test_a_type_spark_does_not_know_names_setting_and_column(strange: DataFrame, kind: str) -> None:
    with pytest.raises(InvalidInput, match=r"`columns.types` cannot make column `a.b`"):
        cast_types(strange, {"a.b": kind}, "FAIL")


def test_a_cast_spark_does_not_have_is_refused_before_the_load(spark: SparkSession) -> None:
    with pytest.raises(InvalidInput, match="cannot make column `n` `date`"):
        cast_types(spark.sql("select 1 as n"), {"n": "date"}, "NULL")


def test_conditions_see_source_names_and_excluded_columns(strange: DataFrame) -> None:
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
        ("rand() > 0.5", "another answer each time"),
        ("uuid() = 'x'", "another answer each time"),
    ],
)
def test_a_condition_that_cannot_be_used_is_refused(
    strange: DataFrame, setting: str, condition: str, reason: str
) -> None:
    with pytest.raises(InvalidInput) as raised:
        _written(strange, ALL_COLUMNS, **{setting: condition})
    assert f"`{setting}: {condition}`" in raised.value.message
    assert reason in raised.value.message

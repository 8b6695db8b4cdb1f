"""Recorded types as Glue says them."""

from __future__ import annotations

import pytest

from lakeload_jobs.core.types import TYPE_RULES
from lakeload_jobs.formats.parquet.glue.tables import (
    MAX_TYPE_LENGTH,
    NoGlueType,
    glue_type,
    same_glue_type,
)


def test_every_type_that_is_written_as_itself_has_a_glue_type() -> None:
    spark_names = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
    for rule in TYPE_RULES:
        if rule.written != "AS_IS":
            continue
        recorded = spark_names.get(rule.spark, rule.spark)
        recorded = "decimal(10,2)" if recorded == "decimal" else recorded
        expected = rule.glue.replace("(p,s)", "(10,2)")
        assert glue_type(recorded) == expected
        assert glue_type(f"array<struct<a:{recorded}>>") == f"array<struct<a:{expected}>>"


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        ("decimal(38, 18)", "decimal(38,18)"),
        ("timestamp_ntz", "timestamp"),
        ("struct<_A:int,b_1:timestamp_ntz>", "struct<_a:int,b_1:timestamp>"),
        ("struct<struct:struct<map:int>>", "struct<struct:struct<map:int>>"),
        ("map<string,array<map<date,binary>>>", "map<string,array<map<date,binary>>>"),
    ],
)
def test_nested_types_are_written_at_every_depth(recorded: str, expected: str) -> None:
    assert glue_type(recorded) == expected
    assert same_glue_type(glue_type(recorded), expected)


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "interval",
        "void",
        "char",
        "userdefinedtype",
        "struct<>",
        "struct<a>",
        "struct<a:int",
        "array<int>>",
        "map<int>",
        "map<array<int>,int>",
        "decimal",
        "decimal(10,-2)",
        "array<" * 5000 + "int" + ">" * 5000,
        "struct<" + ",".join(f"f{number}:bigint" for number in range(11_000)) + ">",
    ],
)
def test_what_athena_cannot_read_has_no_glue_type(kind: str) -> None:
    assert len(kind) < 2 * MAX_TYPE_LENGTH
    with pytest.raises(NoGlueType):
        glue_type(kind)


def test_spellings_of_one_type_are_one_type() -> None:
    assert same_glue_type("STRUCT<a: INTEGER, b: decimal(10, 2)>", "struct<a:int,b:decimal(10,2)>")
    assert not same_glue_type("int", "bigint")
    assert not same_glue_type("varchar(10)", "string")

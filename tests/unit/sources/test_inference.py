"""Inferred types keep to what earlier loads wrote, as long as nothing is lost."""

from __future__ import annotations

import pytest

from lakeload_jobs.sources.files.spark.reader import reads_as


@pytest.mark.parametrize(
    ("inferred", "earlier"),
    [
        ("int", "bigint"),
        ("int", "double"),
        ("int", "decimal(12,2)"),
        ("bigint", "decimal(20,0)"),
        ("date", "timestamp"),
        ("date", "timestamp_ntz"),
        ("int", "string"),
        ("struct<a:int>", "string"),
        ("string", "double"),
    ],
)
def test_values_are_read_as_the_earlier_type(inferred: str, earlier: str) -> None:
    assert reads_as(inferred, earlier)


@pytest.mark.parametrize(
    ("inferred", "earlier"),
    [
        ("int", "int"),
        ("bigint", "int"),
        ("bigint", "double"),
        ("int", "decimal(11,2)"),
        ("double", "decimal(12,2)"),
        ("double", "bigint"),
        ("timestamp", "date"),
        ("int", "boolean"),
        ("struct<a:int>", "struct<a:bigint>"),
        ("string", "array<int>"),
    ],
)
def test_a_type_that_would_lose_something_stays_as_inferred(inferred: str, earlier: str) -> None:
    assert not reads_as(inferred, earlier)

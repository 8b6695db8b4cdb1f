"""Rows of one load with the same key, and numbers of a MERGE that Spark counts twice."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.types import LongType, NestedField, StringType

from lakeload_jobs.contract.result import RowChanges, SameKey, TableResult
from lakeload_jobs.contract.spec import RunOptions
from tests.integration.formats.iceberg.conftest import Loads, Row

APPEND = RunOptions(table_handling="APPEND")


def upserted(loads: Loads, rows: list[Row], **changes: Any) -> TableResult:
    table = loads.table(loads.file(rows), mode="UPSERT", primary_key=("id",), **changes)
    return loads.load(table, options=APPEND)


def made(loads: Loads, rows: list[Row], *, sort: bool = False, **properties: str) -> None:
    catalog = load_catalog("maker", type="rest", uri=loads.uri, **loads.store)
    catalog.create_namespace_if_not_exists((loads.schema,))
    columns = (NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
    table = catalog.create_table(
        (loads.schema, "orders"),
        Schema(*columns),
        sort_order=SortOrder(SortField(2)) if sort else SortOrder(),
        properties=properties,
    )
    table.append(pa.Table.from_pylist(rows, table.schema().as_arrow()))


def test_rows_with_the_same_key_are_named(loads: Loads) -> None:
    rows = [{"id": key, "name": f"{key}{place}"} for place, key in enumerate((1, 2, 2, 1, 2))]
    first = upserted(loads, rows)
    again = upserted(loads, rows[:2])
    refused = upserted(loads, rows, on_same_key="FAIL")
    allowed = upserted(loads, rows[1:3], on_same_key="ALLOW")

    assert (first.rows, first.same_key) == (5, SameKey(3, "`id` = 2"))
    assert first.warnings == (
        "3 of 5 rows were replaced by later rows of this load with the same `primary_key`, such "
        "as `id` = 2; if they are different records, it lacks a column",
    )
    assert (again.same_key, again.warnings) == (None, ())
    assert refused.error is not None
    assert refused.error.type == "KeyNotUnique"
    assert (allowed.warnings, allowed.same_key) == ((), SameKey(1, "`id` = 2"))
    assert allowed.notes[-1].startswith("1 of 2 rows were replaced")
    assert [row["name"] for row in loads.rows()] == ["10", "22"]


@pytest.mark.parametrize(
    "properties",
    [
        {"write.merge.mode": "copy-on-write"},
        {"write.merge.mode": "merge-on-read", "write.merge.distribution-mode": "range"},
    ],
    ids=["copy-on-write", "merge-on-read"],
)
def test_rows_that_spark_samples_are_counted_once(loads: Loads, properties: dict[str, str]) -> None:
    made(loads, [{"id": n, "name": "old"} for n in range(9)], sort=True, **properties)
    rows = [{"id": n, "name": "new"} for n in (3, 4, 4, 40)]

    first = upserted(loads, rows)
    again = upserted(loads, [rows[0], {"id": 4, "name": "newer"}])

    assert (first.error, again.error) == (None, None)
    assert (first.changes, first.same_key) == (
        RowChanges(1, 2, 0, unchanged=0, ignored=0),
        SameKey(1, "`id` = 4"),
    )
    assert again.changes == RowChanges(0, 1, 0, unchanged=1, ignored=0)


def test_a_key_that_the_table_has_twice_is_merged_into_both_rows(loads: Loads) -> None:
    made(loads, [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}, {"id": 2, "name": "c"}])

    result = upserted(loads, [{"id": 1, "name": "new"}, {"id": 3, "name": "new"}])

    assert result.error is None
    assert result.changes == RowChanges(1, 2, 0, unchanged=0, ignored=0)
    assert [row["name"] for row in loads.rows()] == ["new", "new", "c", "new"]

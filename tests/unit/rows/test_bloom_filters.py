"""Which columns of a load `bloom_filters` names."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import ColumnsSpec
from lakeload_jobs.rows.bloom_filters import bloom_filter_columns
from lakeload_jobs.rows.columns import map_columns

SCHEMA = T.StructType(
    [
        T.StructField("Order_Id", T.LongType()),
        T.StructField("customer", T.StringType()),
        T.StructField("paid", T.BooleanType()),
        T.StructField("tags", T.ArrayType(T.StringType())),
        T.StructField("address", T.StructType([T.StructField("city", T.StringType())])),
    ]
)
MAPPING = map_columns(
    ["Order Id", "client", "paid", "tags", "address", "left out"],
    ColumnsSpec(exclude=("left out",), rename={"client": "customer"}),
)


def test_columns_are_found_by_any_spelling_and_returned_by_target() -> None:
    found = bloom_filter_columns(["order id", "client"], MAPPING, SCHEMA)
    assert found == ("Order_Id", "customer")
    assert found == bloom_filter_columns(["Order_Id", "client"], MAPPING, SCHEMA)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "names the column `missing`, which is not among those that are loaded"),
        ("left out", "names the column `left out`, which is not among those that are loaded"),
        ("paid", "names the column `paid`, a boolean: Parquet has no bloom filters for booleans"),
        ("tags", "names the column `tags`, a nested column (array)"),
        ("address", "names the column `address`, a nested column (struct)"),
    ],
)
def test_columns_without_filters_are_rejected_with_the_reason(name: str, message: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        bloom_filter_columns([name], MAPPING, SCHEMA)
    assert f"`bloom_filters` {message}" in str(raised.value)
    assert raised.value.hint


def test_the_nearest_column_is_named_for_one_that_is_not_loaded() -> None:
    with pytest.raises(InvalidInput) as raised:
        bloom_filter_columns(["clients"], MAPPING, SCHEMA)
    assert raised.value.hint == "did you mean `client`?"

"""What is said of the columns of files that bring their types."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakeload_jobs.sources.files.typed.columns import Column, lists_of_spark

_LIST = Column("l", pa.struct([("x", pa.list_(pa.int32()))]), "a.parquet")


@pytest.mark.parametrize(
    ("columns", "may_read"),
    [
        ([_LIST], True),
        ([Column("n", pa.int64(), "a.parquet")], False),
        ([_LIST, Column("t", pa.string(), "a.parquet", not_spark="`t` is TIME")], False),
    ],
)
def test_spark_is_offered_only_for_lists_that_it_may_read(
    columns: list[Column], may_read: bool
) -> None:
    assert lists_of_spark(columns) == may_read

"""Which structs of a load become those of a table by null in the fields that they lack."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T

from lakeload_jobs.rows.casts import fills

TEXT, LONG = T.StringType(), T.LongType()


def struct(**fields: T.DataType) -> T.StructType:
    return T.StructType([T.StructField(name, kind) for name, kind in fields.items()])


BOTH = struct(s=TEXT, t=LONG)


@pytest.mark.parametrize(
    ("now", "table", "filled"),
    [
        (struct(s=TEXT), BOTH, True),
        (struct(t=LONG, s=TEXT), BOTH, True),
        (struct(S=TEXT), BOTH, True),
        (struct(s=TEXT, w=TEXT), BOTH, False),
        (struct(s=LONG), BOTH, False),
        (struct(a=struct(s=TEXT)), struct(a=BOTH, b=TEXT), True),
        (struct(a=struct(w=TEXT)), struct(a=BOTH), False),
        (T.ArrayType(struct(s=TEXT)), T.ArrayType(BOTH), True),
        (T.ArrayType(struct(s=TEXT)), BOTH, False),
        (T.MapType(TEXT, struct(s=TEXT)), T.MapType(TEXT, BOTH), True),
        (T.MapType(LONG, struct(s=TEXT)), T.MapType(TEXT, BOTH), False),
        (LONG, TEXT, False),
    ],
)
def test_only_struct_fields_may_be_absent(
    now: T.DataType, table: T.DataType, *, filled: bool
) -> None:
    assert fills(now, table) is filled

"""The columns of Avro files that Spark reads."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import ColumnsSpec, FilesInput, TableSpec
from lakeload_jobs.sources.files.spark.schemas import merge
from lakeload_jobs.sources.paths.file_state import FileState

INT, LONG, FLOAT, DOUBLE = IntegerType(), LongType(), FloatType(), DoubleType()
TEXT, DAY = StringType(), DateType()


def struct(**kinds: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def merged(
    *schemas: StructType, columns: ColumnsSpec | None = None, where: str | None = None
) -> StructType:
    """Return the columns of the files a, b, … as the table reads them."""
    given = FilesInput("AVRO", ("/in",), {})
    columns = columns or ColumnsSpec()
    table = TableSpec("t", "s", "t", given, "", columns=columns, where=where)
    files = [FileState(f"/in/{name}", 1, 1) for name in "abc"[: len(schemas)]]
    return merge(list(zip(files, schemas, strict=True)), table)


def test_columns_are_united_by_name_and_the_wider_number_holds_both() -> None:
    files = (struct(a=INT, b=FLOAT), struct(c=TEXT, a=LONG), struct(b=DOUBLE))

    assert merged(*files) == struct(a=LONG, b=DOUBLE, c=TEXT)


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (INT, TEXT, "column `v` is int in `/in/a` and string in `/in/b`"),
        (
            struct(x=INT, y=struct(z=INT)),
            struct(x=INT, y=struct(z=TEXT)),
            "column `v.y.z` is int in `/in/a` and string in `/in/b`",
        ),
        (
            ArrayType(struct(x=INT)),
            ArrayType(struct(x=DAY)),
            "column `v.element.x` is int in `/in/a` and date in `/in/b`",
        ),
        (
            MapType(TEXT, INT),
            MapType(TEXT, DAY),
            "column `v.value` is int in `/in/a` and date in `/in/b`",
        ),
        (
            struct(x=INT),
            struct(y=INT),
            "column `v` is struct<x:int> in `/in/a` and struct<y:int> in `/in/b`",
        ),
    ],
)
def test_two_types_are_named_with_files_and_the_field(
    one: DataType, other: DataType, message: str
) -> None:
    with pytest.raises(LoadFailed) as failed:
        merged(struct(v=one), struct(v=other))

    assert message in failed.value.message


def test_two_types_of_a_column_that_is_not_read_are_no_conflict() -> None:
    files = (struct(id=INT, V_1=INT), struct(id=INT, V_1=TEXT))

    for columns in (
        ColumnsSpec(exclude=("V_1",)),
        ColumnsSpec(exclude=("v_1",)),
        ColumnsSpec(include=("id",)),
    ):
        assert merged(*files, columns=columns) == files[0]
    with pytest.raises(LoadFailed, match="the column `V_1` is int"):
        merged(*files, columns=ColumnsSpec(exclude=("V_1",)), where="V_1 > 1")

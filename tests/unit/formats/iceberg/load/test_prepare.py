"""Settings of a table that name its columns."""

from __future__ import annotations

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import TRACKING_COLUMNS, TRACKING_TYPES, ColumnsSpec
from lakeload_jobs.formats.data_files.tracked import tracking_fields
from lakeload_jobs.formats.iceberg.load.prepare import _columns, _target
from lakeload_jobs.rows.columns import map_columns

MAPPING = map_columns(["region", "updated_at"], ColumnsSpec())


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("regoin", "did you mean `region`?"),
        ("update", "did you mean `updated_at`?"),
        ("xyz", "name a column of the source, or of the table"),
    ],
)
def test_the_nearest_column_is_named_for_one_that_is_not_loaded(name: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        _target(MAPPING, name, "partition_by")
    assert raised.value.hint == hint


def test_columns_of_a_load_have_their_types_without_the_jvm() -> None:
    data = StructType(
        [StructField("region", StringType()), StructField("__lakeload_x", LongType())]
    )
    found = _columns(data, ["_supa_id", "_supa_synced", "_supa_index"], {"_supa_id": "its id"})
    assert [(one.name, one.dataType.simpleString()) for one in found] == [
        ("region", "string"),
        *((name, TRACKING_TYPES[name]) for name in ("_supa_synced", "_supa_index", "_supa_id")),
    ]
    assert found["_supa_id"].metadata == {"comment": "its id"}
    fields = tracking_fields(TRACKING_COLUMNS)
    assert {one.name: one.dataType.simpleString() for one in fields} == TRACKING_TYPES

"""Settings of a table that name its columns."""

from __future__ import annotations

import pytest

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import ColumnsSpec
from lakeload_jobs.formats.iceberg.load.prepare import _target
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

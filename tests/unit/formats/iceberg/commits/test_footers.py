"""Which columns have metrics, and how much of them."""

from __future__ import annotations

import pytest

from lakeload_jobs.formats.iceberg.commits.errors import Unsupported
from lakeload_jobs.formats.iceberg.commits.footers import Metrics, metrics_by_id
from lakeload_jobs.formats.iceberg.commits.metadata import Json

POINT: Json = {"type": "struct", "fields": [{"id": 5, "name": "x", "type": "double"}]}
TAGS: Json = {"type": "list", "element-id": 6, "element": "string"}
SCHEMA: Json = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "point", "type": POINT},
        {"id": 2, "name": "tags", "type": TAGS},
        {"id": 3, "name": "a", "type": "long"},
        {"id": 4, "name": "b", "type": "string"},
    ],
}
_PREFIX = "write.metadata.metrics."
_MOST = f"{_PREFIX}max-inferred-column-defaults"


def with_metrics(**properties: str) -> set[int]:
    modes = metrics_by_id(SCHEMA, properties)
    return {number for number, metrics in modes.items() if metrics.mode != "none"}


def test_columns_of_the_table_come_before_those_within_them() -> None:
    assert with_metrics() == {3, 4, 5, 6}
    assert with_metrics(**{_MOST: "1"}) == {3}
    assert with_metrics(**{_MOST: "3"}) == {3, 4, 5}
    assert with_metrics(**{_MOST: "0", f"{_PREFIX}default": "counts"}) == {3, 4, 5, 6}
    with pytest.raises(Unsupported, match="the value `all` in its property"):
        with_metrics(**{_MOST: "all"})


def test_property_of_a_column_goes_before_the_default() -> None:
    given = {
        f"{_PREFIX}default": "full",
        f"{_PREFIX}column.point.x": "Truncate(3)",
        f"{_PREFIX}column.tags.element": "none",
        f"{_PREFIX}column.b": "nonsense",
    }
    assert metrics_by_id(SCHEMA, given) == {
        3: Metrics("full"),
        4: Metrics("truncate", 16),
        5: Metrics("truncate", 3),
        6: Metrics("none"),
    }

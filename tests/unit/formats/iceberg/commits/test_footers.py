"""Which columns have metrics, and how much of them."""

from __future__ import annotations

import io
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeload_jobs.formats.iceberg.commits.errors import Unsupported
from lakeload_jobs.formats.iceberg.commits.footers import (
    Metrics,
    WrittenFile,
    data_file,
    metrics_by_id,
)
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


def test_metrics_are_those_of_all_row_groups_and_of_floats_those_of_the_task() -> None:
    kinds = {"id": "long", "name": "string", "ratio": "double", "none": "double"}
    fields = [{"id": at, "name": n, "type": kinds[n]} for at, n in enumerate(kinds, start=1)]
    rows = pa.table(
        {
            "id": pa.array([7, -3, None, 2], pa.int64()),
            "name": ["b" * 20, "a", None, None],
            "ratio": [1.5, float("nan"), -0.0, None],
            "none": pa.nulls(4, pa.float64()),
        }
    )
    out = io.BytesIO()
    pq.write_table(rows, out, row_group_size=2)
    data = out.getvalue()
    size = int.from_bytes(data[-8:-4], "little")
    double = struct.Struct("<d").pack
    floats: dict[int, dict[str, object]] = {
        3: {"nan": 1, "low": double(-0.0).hex(), "high": double(1.5).hex()},
        4: {"nan": 0, "low": None, "high": None},
    }
    written = WrittenFile("s3://lake/a", len(data), 4, data[-8 - size : -8], floats)
    found = data_file({"type": "struct", "fields": fields}, {}, written)

    def by_column(name: str) -> dict[int, object]:
        return {one["key"]: one["value"] for one in found[name]}

    whole = struct.Struct("<q").pack
    assert by_column("value_counts") == {1: 4, 2: 4, 3: 4, 4: 4}
    assert by_column("null_value_counts") == {1: 1, 2: 2, 3: 1, 4: 4}
    assert by_column("nan_value_counts") == {3: 1, 4: 0}
    assert by_column("lower_bounds") == {1: whole(-3), 2: b"a", 3: double(-0.0)}
    assert by_column("upper_bounds") == {1: whole(7), 2: b"b" * 15 + b"c", 3: double(1.5)}
    assert len(found["split_offsets"]) == 2
    # The mode `counts` leaves bounds out.
    counts = {f"{_PREFIX}column.{name}": "counts" for name in ("id", "ratio")}
    found = data_file({"type": "struct", "fields": fields}, counts, written)
    assert by_column("lower_bounds").keys() == {2}
    assert by_column("nan_value_counts") == {3: 1, 4: 0}

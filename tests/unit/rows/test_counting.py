"""Bounds of columns, by which a MERGE leaves out files."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

from lakeload_jobs.rows.counting import Bounds, Counted, bounds_of, united


def test_bounds_are_of_types_whose_values_python_does_not_change() -> None:
    batch = pa.record_batch(
        {
            "n": pa.array([3, None, -7], pa.int16()),
            "d": pa.array([Decimal("1.50"), Decimal("-2.25"), None], pa.decimal128(9, 2)),
            "t": ["b", "\U0001f381", "a"],
            "day": [date(2026, 1, 2), date(1, 1, 1), None],
            "at": [datetime(2026, 1, 1, tzinfo=UTC), None, None],
            "x": [1.5, float("nan"), 0.0],
            "none": pa.array([None, None, None], pa.int64()),
        }
    )

    assert bounds_of(batch, batch.schema.names) == {
        "n": (-7, 3),
        "d": (Decimal("-2.25"), Decimal("1.50")),
        "t": ("a", "\U0001f381"),
        "day": (date(1, 1, 1), date(2026, 1, 2)),
    }


def test_united_bounds_hold_for_all() -> None:
    parts: list[Bounds] = [{"n": (1, 5)}, {}, {"n": (-3, 2), "t": ("b", "c")}, {"t": ("a", "a")}]

    assert united(parts) == {"n": (-3, 5), "t": ("a", "c")}
    assert united([]) == {}


def test_rejected_rows_are_counted_and_not_loaded() -> None:
    counted = Counted((3, 4), rejected=2)

    assert (counted.rows, counted.loaded) == (7, 5)

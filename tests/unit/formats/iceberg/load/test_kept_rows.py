"""Rows for Spark's SQL: packed by tasks with what they found in them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from lakeload_jobs.formats.data_files.tracked import Tracking
from lakeload_jobs.formats.iceberg.load.kept_rows import KeepRows, _tracked
from lakeload_jobs.formats.spool import unpacked
from lakeload_jobs.rows.counting import RowsReport
from lakeload_jobs.rows.failures import TaskFailed
from lakeload_jobs.rows.rejects import REJECTED_HELPER, Reject, reject_column
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER, DELETED_HELPER

TRACKING = Tracking(
    "job",
    "attempt",
    datetime(2026, 11, 21, tzinfo=UTC),
    ("_supa_deleted", "_supa_index"),
    ("id",),
    (2, 4),
    marks=True,
)
WORK = KeepRows(TRACKING, "orders", pa.schema([]), None)


def batches() -> Iterator[pa.RecordBatch]:
    """Two batches of part 1; the second row of the first one is rejected."""
    rejected = {1: Reject("a.csv", "no number", b"x")}
    for ids, gone in (([4, None], [True, None]), ([9, 2], [None, False])):
        rows = len(ids)
        yield pa.record_batch(
            {
                "id": pa.array(ids, pa.int64()),
                DELETED_HELPER: pa.array(gone, pa.bool_()),
                BAD_VALUES_HELPER: pa.array([1] * rows, pa.int64()),
                REJECTED_HELPER: reject_column(rows, rejected if None in ids else {}),
            }
        )


def kept(work: KeepRows, rows: Iterator[pa.RecordBatch]) -> tuple[pa.Table, RowsReport]:
    """Return the rows that a task of part 1 keeps, and its report."""
    packed = pa.Table.from_batches(work(1, rows))
    assert set(packed["part"].to_pylist()) == {1}
    only = packed.filter(packed["batch"].is_valid()).select(["batch"])
    end: Any = packed["end"].drop_null()[0].as_py()
    return pa.Table.from_batches(unpacked(iter(only.to_batches()))), pickle.loads(end)  # noqa: S301


def test_rows_are_kept_with_their_tracking_columns_and_counted() -> None:
    rows, report = kept(WORK, batches())

    assert rows.to_pydict() == {
        "id": [4, 9, 2],
        "_supa_deleted": [True, False, False],
        "_supa_index": [3, 5, 6],
        DELETED_HELPER: [True, False, False],
    }
    assert (report.rows, report.dropped, report.bad_values) == (4, 0, 4)
    assert report.bounds == {"id": (2, 9)}
    assert (report.rejected.rows, report.rejected.of, report.rejected.files) == (1, 4, ("a.csv",))
    both = report + replace(report, bounds={"id": (-1, 3)})
    assert (both.rows, both.rejected.of, both.bounds) == (8, 8, {"id": (-1, 9)})


def test_columns_of_kept_rows_are_unpacked_alone() -> None:
    packed = pa.Table.from_batches(WORK(1, batches())).select(["batch"]).drop_null()

    rows = unpacked(iter(packed.to_batches()), ("_supa_index", "id"))

    assert [row for batch in rows for row in batch.to_pylist()] == [
        {"_supa_index": 3, "id": 4},
        {"_supa_index": 5, "id": 9},
        {"_supa_index": 6, "id": 2},
    ]


def test_rows_that_nobody_counted_have_an_index_with_gaps() -> None:
    work = replace(WORK, tracking=replace(TRACKING, counts=None))

    rows, _ = kept(work, batches())

    assert rows["_supa_index"].to_pylist() == [(1 << 33) + at for at in (1, 3, 4)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tracking": replace(TRACKING, counts=(2, 3))}, "had 3 rows when counted and 4 when"),
        ({"schema": pa.schema([pa.field("n", pa.int64(), nullable=False)])}, "`n` is required"),
    ],
)
def test_rows_that_may_not_be_loaded_fail(changes: dict[str, Any], message: str) -> None:
    rows = [
        batch.append_column("n", pa.array([None] * batch.num_rows, pa.int64()))
        for batch in batches()
    ]

    with pytest.raises(TaskFailed, match=message):
        kept(replace(WORK, **changes), iter(rows))


def test_a_null_in_the_key_fails() -> None:
    rows = [batch.drop_columns([REJECTED_HELPER]) for batch in batches()]

    with pytest.raises(TaskFailed, match="the primary key column `id` is null"):
        kept(WORK, iter(rows))


def test_rows_of_a_union_have_the_number_of_their_own_part() -> None:
    (first, _) = _tracked(TRACKING, 1, 7, iter([batches_of(4, 9), batches_of(2)]))

    assert first["_supa_index"].to_pylist() == [3, 4]


def batches_of(*ids: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": list(ids)})

"""Rejected records that tasks read again: they have the index of the first read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from lakeload_jobs.formats.data_files.tracked import ReadRejects, Tracking
from lakeload_jobs.rows.failures import TaskFailed
from lakeload_jobs.rows.rejects import (
    REJECT,
    REJECTED_HELPER,
    SIDE_SCHEMA,
    Reject,
    reject_column,
)

SCHEMA = pa.schema([("id", pa.int64()), (REJECTED_HELPER, REJECT)])
TRACKING = Tracking("job", "attempt", datetime(2026, 11, 21, tzinfo=UTC), (), (), None)


def _batches(ids: Any) -> Iterator[pa.RecordBatch]:
    """Yield a batch for each list of ids; negative ones are rejected."""
    for values in ids:
        bad = {row: Reject("a.csv", str(value)) for row, value in enumerate(values) if value < 0}
        columns = [pa.array(values, pa.int64()), reject_column(len(values), bad)]
        yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def test_rejects_of_each_part_are_numbered_behind_the_parts_before() -> None:
    parts = ([[1, -2], [3]], [[4, 5, 6]], [[-7], [8, -9], [10]])
    counts = tuple(sum(map(len, part)) for part in parts)
    read = ReadRejects(replace(TRACKING, counts=counts))

    batches = [batch for number, part in enumerate(parts) for batch in read(number, _batches(part))]
    found = pa.Table.from_batches(batches, SIDE_SCHEMA).to_pylist()

    assert [(row["reason"], row["_supa_index"]) for row in found] == [
        ("-2", 2),
        ("-7", 7),
        ("-9", 9),
    ]
    assert {(row["_supa_job_id"], row["attempt_id"]) for row in found} == {("job", "attempt")}


def test_rejects_of_parts_that_nobody_counted_are_numbered_with_gaps() -> None:
    (found,) = ReadRejects(TRACKING)(2, _batches([[1, -2]]))

    assert found["_supa_index"].to_pylist() == [(2 << 33) + 2]


@pytest.mark.parametrize("ids", [[[1], [-2, 3]], [[-1]], []])
def test_rejects_of_other_rows_than_were_loaded_fail(ids: list[list[int]]) -> None:
    read = ReadRejects(replace(TRACKING, counts=(4, 2)))

    with pytest.raises(TaskFailed, match=rf"had 2 rows when counted and {sum(map(len, ids))} when"):
        list(read(1, _batches(ids)))

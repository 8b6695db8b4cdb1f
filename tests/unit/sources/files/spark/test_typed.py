"""Parts that Spark is handed: each has the rows that were counted, or the load fails."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from lakeload_jobs.rows.failures import TaskFailed
from lakeload_jobs.sources.base import Splits
from lakeload_jobs.sources.spark_frames import _ReadParts


def read(rows: int) -> Iterator[pa.RecordBatch]:
    for number in range(rows):
        yield pa.RecordBatch.from_pydict({"id": [number]})


def numbered(*parts: int) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"part": list(parts)})


def test_a_part_with_other_rows_than_were_counted_fails_with_the_numbers() -> None:
    whole = _ReadParts(Splits((2, 3), read, (2, 3)))
    short = _ReadParts(Splits((2, 3), read, (2, 4)))

    assert sum(batch.num_rows for batch in whole(numbered(0, 1))) == 5
    with pytest.raises(TaskFailed, match="partition 1 had 4 rows when counted and 3 when loaded"):
        list(short(numbered(0, 1)))


def test_a_read_that_ends_at_a_limit_is_not_compared() -> None:
    limited = _ReadParts(Splits((2,), read, (4,)))(numbered(0))

    assert [next(limited).num_rows for _ in range(2)] == [1, 1]

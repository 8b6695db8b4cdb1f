"""Parts that Spark is handed: each has the rows that were counted, or the load fails."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from lakeload_jobs.rows.failures import TaskFailed
from lakeload_jobs.sources.spark_frames import _HandOn


def read(rows: int) -> Iterator[pa.RecordBatch]:
    for number in range(rows):
        yield pa.RecordBatch.from_pydict({"id": [number]})


def test_a_part_with_other_rows_than_were_counted_fails_with_the_numbers() -> None:
    whole, short = (_HandOn(read, counts) for counts in ((2, 3), (2, 4)))

    assert [batch.num_rows for number in (0, 1) for batch in whole(number, 2 + number)] == [1] * 5
    assert len(list(short(0, 2))) == 2
    with pytest.raises(TaskFailed, match="partition 1 had 4 rows when counted and 3 when loaded"):
        list(short(1, 3))


def test_a_read_that_ends_at_a_limit_is_not_compared() -> None:
    limited = _HandOn(read, (4,))(0, 2)

    assert [next(limited).num_rows for _ in range(2)] == [1, 1]

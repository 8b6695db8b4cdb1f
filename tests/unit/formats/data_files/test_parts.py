"""Parts of a table's rows, as tasks read them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute
import pytest

from lakeload_jobs.formats.data_files.parts import (
    LoadedRows,
    ReadWritten,
    SplitPart,
    TableParts,
    _Packed,
    _ReadAndWork,
)
from lakeload_jobs.rows.conditions import Condition
from lakeload_jobs.sources.spark_frames import _OnNumbers, _OnPartition, as_handed_over

SCHEMA = pa.schema([("n", pa.int64())])
TARGET = pa.schema([("number", pa.int64())])


def batch(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": list(values)}, SCHEMA)


def read(first: int) -> Iterator[pa.RecordBatch]:
    yield batch(first, first + 1)
    yield batch(first + 2)


def handed_on(number: int, rows: LoadedRows) -> Iterator[pa.RecordBatch]:
    yield from rows


def values(batches: Iterator[pa.RecordBatch], name: str = "number") -> list[Any]:
    return [value for one in batches for value in one[name].to_pylist()]


def numbered(*parts: int) -> Iterator[pa.RecordBatch]:
    """Return what a task of Spark is given that reads these parts."""
    yield pa.record_batch({"id": list(parts)})


OWN = ReadWritten(read, ("n",), TARGET)
HANDED_OVER = ReadWritten(as_handed_over, ("n",), TARGET)


def test_tasks_read_the_rows_that_are_loaded_of_each_part() -> None:
    parts = (SplitPart(10, 3), SplitPart(20, 2, cut=True), SplitPart(30, None))
    made = pickle.dumps(_OnNumbers(parts, _ReadAndWork(OWN, handed_on, of_frame=False)))
    task = pickle.loads(made)  # noqa: S301

    assert values(task(numbered(1))) == [20, 21]
    assert values(task(numbered(0, 2))) == [10, 11, 12, 30, 31, 32]


def test_a_part_is_read_to_its_end_where_no_limit_cuts_it() -> None:
    ended = []

    def one_more(part: int) -> Iterator[pa.RecordBatch]:
        yield from read(part)
        ended.append(part)

    # Rows that were not counted are for whoever counts them again to notice.
    more = replace(OWN, read=one_more)
    assert values(more(SplitPart(10, 2))) == [10, 11, 12]
    assert ended == [10]
    assert values(more(SplitPart(20, 2, cut=True))) == [20, 21]
    assert ended == [10]


def test_partitions_of_a_frame_are_handed_over_whole() -> None:
    # Other rows than were counted are for the writer to notice.
    work = _ReadAndWork(HANDED_OVER, handed_on, of_frame=True)

    assert values(_OnPartition(work)(iter([batch(1, 2), batch(3)]))) == [1, 2, 3]


def test_results_come_back_from_the_partitions_of_a_frame() -> None:
    def count(number: int, rows: LoadedRows) -> tuple[int, int]:
        return number, rows.count()

    work = _ReadAndWork(HANDED_OVER, _Packed(count), of_frame=True)
    (packed,) = _OnPartition(work)(iter([batch(1, 2), batch(3)]))

    assert pickle.loads(packed["result"][0].as_py()) == (0, 3)  # noqa: S301


@pytest.mark.parametrize(
    ("rows", "total", "counts", "small"),
    [((2, 3), 5, (2, 3), True), ((2, None), None, None, False), ((), 0, (), True)],
)
def test_rows_are_counted_where_each_part_is(
    rows: tuple[int | None, ...],
    total: int | None,
    counts: tuple[int, ...] | None,
    small: bool,
) -> None:
    parts = TableParts(tuple(SplitPart(number, own) for number, own in enumerate(rows)), OWN, 100)

    assert (parts.total, parts.counts, parts.small) == (total, counts, small)
    above = replace(OWN, where=Condition(pa.compute.field("n") > 0, ("n",)))
    # How many rows a condition leaves nobody knows.
    assert replace(parts, read=above).counts is None
    assert not replace(parts, frame=cast("Any", object())).small


def test_renamed_rows_are_read_under_their_new_names() -> None:
    parts = TableParts((SplitPart(10, 2, cut=True),), OWN).renamed(["Number"])

    assert values(parts.read(parts.parts[0]), "Number") == [10, 11]

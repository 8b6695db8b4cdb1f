"""Few rows are read and written in the driver, and no task of Spark is started for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute
import pytest

from lakeload_jobs.contract.errors import Interrupted, LoadFailed
from lakeload_jobs.contract.spec import RuntimeSpec
from lakeload_jobs.formats.data_files.parts import (
    SMALL_BYTES,
    SMALL_PARTS,
    SMALL_ROWS,
    ReadWritten,
    SplitPart,
    TableParts,
)
from lakeload_jobs.formats.data_files.stage import Driver, PartitionWriter, count_parts, stage_parts
from lakeload_jobs.rows.conditions import Condition

SCHEMA = pa.schema([("n", pa.int64())])


def read(number: int) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"n": [number, number + 1]}, SCHEMA)


ROWS = TableParts(
    tuple(SplitPart(number, 2) for number in (10, 20)), ReadWritten(read, ("n",), SCHEMA), 100
)


class Writer:
    """Tells what it is given in place of a report."""

    def __init__(self, ends: threading.Event | None = None) -> None:
        self._ends = ends

    def stage(self, number: int, batches: Iterator[pa.RecordBatch], connection: Any) -> Any:
        if self._ends is not None:
            self._ends.wait(60)
        objects, _ = connection
        if objects == "broken":
            raise LoadFailed("no")
        return number, [batch["n"].to_pylist() for batch in batches], objects


def driver(**changes: Any) -> Driver:
    """Return a driver without Spark: a task would fail."""
    given: dict[str, Any] = {"spark": None, "objects": "S3", "runtime": RuntimeSpec()}
    return Driver(**(given | {"check": lambda: None} | changes))


def stage(given: Driver, writer: Writer) -> list[Any]:
    return list(stage_parts(given, ROWS, cast("PartitionWriter", writer)))


def test_small_rows_are_staged_without_spark() -> None:
    assert stage(driver(), Writer()) == [(0, [[10, 11]], "S3"), (1, [[20, 21]], "S3")]


def test_small_rows_are_counted_without_spark() -> None:
    above = Condition(pa.compute.field("n") > 10, ("n",))
    rows = replace(ROWS, read=replace(ROWS.read, where=above))

    assert count_parts(driver(), rows) == (1, 2)


def test_rows_that_a_condition_drops_are_counted() -> None:
    above = Condition(pa.compute.field("n") > 10, ("n",))
    read_above = replace(ROWS.read, where=above)
    parts = [read_above(part) for part in ROWS.parts]

    assert [[batch["n"].to_pylist() for batch in part] for part in parts] == [[[11]], [[20, 21]]]
    assert [part.dropped for part in parts] == [1, 0]


def test_failure_of_a_part_is_raised_as_it_is() -> None:
    with pytest.raises(LoadFailed, match="no"):
        stage(driver(objects="broken"), Writer())


def test_stop_does_not_wait_for_an_upload() -> None:
    ends = threading.Event()

    def check() -> None:
        raise Interrupted("stopped")

    started = time.monotonic()
    try:
        with pytest.raises(Interrupted):
            stage(driver(check=check), Writer(ends))
        assert time.monotonic() - started < 30
    finally:
        ends.set()


@pytest.mark.parametrize(
    ("runtime", "rows"),
    [
        (RuntimeSpec(tasks_share_driver=False), ROWS),
        (RuntimeSpec(tasks_retried=True), ROWS),
        (RuntimeSpec(), replace(ROWS, size=None)),
        (RuntimeSpec(), replace(ROWS, size=SMALL_BYTES + 1)),
        (RuntimeSpec(), replace(ROWS, parts=(SplitPart(1, SMALL_ROWS + 1),))),
        (RuntimeSpec(), replace(ROWS, parts=(SplitPart(1, 2),) * (SMALL_PARTS + 1))),
    ],
)
def test_other_rows_are_left_to_tasks(runtime: RuntimeSpec, rows: TableParts) -> None:
    assert driver().takes(ROWS)
    assert not driver(runtime=runtime).takes(rows)

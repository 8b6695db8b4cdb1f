"""The rows of a part with their tracking columns, and what is counted and set aside on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField

from lakeload_jobs.contract.spec import JobSpec
from lakeload_jobs.formats.data_files.parts import LoadedRows, TableParts
from lakeload_jobs.rows.arrow import pc
from lakeload_jobs.rows.counting import RowsReport
from lakeload_jobs.rows.failures import failures_for_driver
from lakeload_jobs.rows.rejects import (
    REJECTED_HELPER,
    SIDE_COLUMNS,
    RejectedJob,
    SideRows,
    loaded_rows,
    side_rows,
)
from lakeload_jobs.rows.tracking import (
    ARROW_TYPES,
    DELETED_HELPER,
    POSITION_BITS,
    add_tracking,
    bad_values,
)
from lakeload_jobs.sources.base import check_part


def tracking_fields(columns: Sequence[str]) -> list[StructField]:
    """Return tracking columns in Spark's types. Its JVM is not asked: to parse the name of a type,
    and to find that it is no list of columns, takes milliseconds."""
    return [StructField(name, from_arrow_type(ARROW_TYPES[name])) for name in columns]


@dataclass(frozen=True)
class Tracking:
    """What tracking columns say of the rows of a load; it travels to the tasks.

    `counts` are the rows of each part, None where nobody has counted them: one needs no count, and
    over several the index then has gaps.
    """

    job_id: str
    attempt_id: str
    synced: datetime
    columns: tuple[str, ...]
    key: tuple[str, ...]
    counts: tuple[int, ...] | None
    marks: bool = False
    """Whether `DELETED_HELPER` stays, at the end, without nulls."""

    @classmethod
    def of(cls, spec: JobSpec, key: tuple[str, ...], counts: tuple[int, ...] | None) -> Tracking:
        """Return what they say of rows with this key, which are target names."""
        columns = spec.tracking_columns
        return cls(spec.job_id, spec.attempt_id, spec.synced, columns, key, counts)

    @property
    def job(self) -> RejectedJob:
        """Whose rejected records they are."""
        return RejectedJob(self.synced, self.job_id, self.attempt_id)

    def first_index(self, part: int) -> int:
        """Return the index of the first row of a part."""
        counts = self.counts
        return 1 + (part << POSITION_BITS if counts is None else sum(counts[:part]))

    def check_count(self, part: int, rows: int) -> None:
        """Raise `LoadFailed` where a part has other rows than were counted."""
        if self.counts is not None:
            check_part(part, self.counts[part], rows)


class TrackedRows:
    """The batches of a part with tracking columns, without empty ones and without rejected records,
    which go to `side`. All are counted."""

    def __init__(
        self,
        tracking: Tracking,
        part: int,
        batches: Iterator[pa.RecordBatch],
        side: SideRows,
        tell: Callable[[int], None] | None = None,
    ) -> None:
        self.count = 0
        self._bad_values = 0
        self._tell = tell
        self._tracking = tracking
        self._batches = batches
        self._side = side
        self._first_index = tracking.first_index(part)

    @property
    def report(self) -> RowsReport:
        """What was found so far. Rows that Spark's SQL has dropped are not among the dropped."""
        dropped = self._batches.dropped if isinstance(self._batches, LoadedRows) else 0
        rejected = replace(self._side.found, of=self.count)
        return RowsReport(self.count, dropped, self._bad_values, rejected)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        tracking = self._tracking
        for batch in self._batches:
            if batch.num_rows == 0:
                continue
            self._bad_values += bad_values(batch)
            marked = DELETED_HELPER if DELETED_HELPER in batch.schema.names else None
            index = self._first_index + self.count
            tracked = add_tracking(
                batch,
                first_index=index,
                synced=tracking.synced,
                job_id=tracking.job_id,
                key_columns=tracking.key,
                deleted=marked,
                columns=tracking.columns,
            )
            if tracking.marks:
                marks = pa.repeat(pa.scalar(value=False), batch.num_rows)
                if marked is not None:
                    marks = pc.fill_null(batch.column(marked), fill_value=False)
                tracked = tracked.append_column(DELETED_HELPER, marks)
            if REJECTED_HELPER in batch.schema.names:
                rejects = batch.column(REJECTED_HELPER)
                self._side.add(rejects, index, tracking.job)
                tracked = loaded_rows(tracked, rejects)
            self.count += batch.num_rows
            if self._tell is not None:
                self._tell(self.count)
            if tracked.num_rows:
                yield tracked


def rejected_frame(spark: SparkSession, rows: TableParts, tracking: Tracking) -> DataFrame:
    """Return the rejected records of all parts, which tasks read again, as `SIDE_COLUMNS`."""
    columns = ", ".join(f"{name} {kind}" for name, kind in SIDE_COLUMNS.items())
    return rows.tasks(spark, ReadRejects(tracking), columns)


@dataclass(frozen=True)
class ReadRejects:
    """The function of tasks that read the rejected records of a part."""

    tracking: Tracking

    def __call__(self, number: int, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with failures_for_driver("stage"):
            first = index = self.tracking.first_index(number)
            for batch in rows:
                found = side_rows(batch.column(REJECTED_HELPER), index, self.tracking.job)
                if found is not None:
                    yield found
                index += batch.num_rows
            # Read after the rows were: other rows would have other records set aside.
            self.tracking.check_count(number, index - first)

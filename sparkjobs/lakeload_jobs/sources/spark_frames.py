"""Rows of sources as DataFrames, where Spark reads or checks them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeload_jobs.rows.batches import map_batches, numbers, part_numbers
from lakeload_jobs.rows.casts import cast_types
from lakeload_jobs.rows.deferred_frame import DeferredFrame
from lakeload_jobs.rows.failures import failures_for_driver
from lakeload_jobs.rows.rejects import REJECTED_HELPER
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER
from lakeload_jobs.sources.base import BadValue, BadValuesFound, Splits, check_part, place_text


def no_rows(spark: SparkSession) -> DeferredFrame:
    """Return a DataFrame without columns and rows."""
    empty = StructType([])
    return DeferredFrame(empty, lambda: spark.createDataFrame([], empty))


def split_frame(spark: SparkSession, splits: Splits, schema: StructType) -> DeferredFrame:
    """Return the rows of splits as a DataFrame, part n as its partition n."""

    def make() -> DataFrame:
        return map_batches(part_numbers(spark, len(splits.parts)), _ReadParts(splits), schema)

    return DeferredFrame(schema, make)


@dataclass(frozen=True)
class _ReadParts:
    """The function of tasks that hand on what they read, with failures as they cross to the
    driver."""

    splits: Splits

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with failures_for_driver("stage"):
            for number in numbers(batches):
                rows = 0
                for batch in self.splits.read(self.splits.parts[number]):
                    rows += batch.num_rows
                    yield batch
                # Not where a limit ends the read. Behind a condition of Spark nobody counts them.
                if self.splits.counts is not None:
                    check_part(number, self.splits.counts[number], rows)


def check_casts(frame: DataFrame, types: Mapping[str, str], source: str = "") -> None:
    """Raise `BadValuesFound` with the first values that are no `types` and how many there are.
    `frame` are the rows before the cast, with `PLACE_HELPER` where that is known; else they are of
    `source`."""
    counted = cast_types(frame, types, "NULL").agg(F.sum(BAD_VALUES_HELPER)).head()
    count = int(counted[0] or 0) if counted is not None else 0
    if not count:
        return
    rejected = cast_types(frame, types, "QUARANTINE").select(f"{REJECTED_HELPER}.*")
    some = rejected.where("reason is not null").orderBy(*_PLACE).limit(_SHOWN).collect()
    found = []
    for row in some:
        place = place_text(row.row_group, row.row_number) if row.source_file else ""
        text = f": column `{row.column_name}`: {row.reason}"
        found.append(BadValue(row.source_file or source, place, text))
    raise BadValuesFound.of(found, count, hint="set `on_bad_value: 'NULL'`")


_SHOWN = 10
_PLACE = ("source_file", "row_group", "row_number")

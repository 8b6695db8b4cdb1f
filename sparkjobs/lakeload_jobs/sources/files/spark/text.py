"""CSV and JSON as rows: read by our own readers, in the driver or in Spark's tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DataType, StructField, StructType

from lakeload_jobs.contract.spec import FilesInput, JobSpec, TableSpec
from lakeload_jobs.rows.failures import failures_for_driver
from lakeload_jobs.rows.rejects import REJECT_TYPE, REJECTED_HELPER
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER
from lakeload_jobs.session import setting
from lakeload_jobs.sources.base import NO_COLUMNS, EarlierColumns, Rows
from lakeload_jobs.sources.files.formats.registry import TEXT_FORMATS
from lakeload_jobs.sources.files.spark.reader import check_options, unchanged
from lakeload_jobs.sources.files.spark.s3a import S3Source
from lakeload_jobs.sources.files.text.splits import Scan, Scanned, TextPart, put_together, weight
from lakeload_jobs.sources.files.text.stored import StoredFiles
from lakeload_jobs.sources.files.text.table import TextTable, text_files
from lakeload_jobs.sources.part_sizes import Parallelism
from lakeload_jobs.sources.paths.file_state import FileState, is_s3

_SMALL = 4 << 20
"""Up to so many bytes are looked through in the driver, which takes less than starting tasks."""

_AT_ONCE = 8


def open_text_files(
    spark: SparkSession,
    spec: JobSpec,
    table: TableSpec,
    given: FilesInput,
    s3: S3Source,
    *,
    files: Sequence[FileState],
    earlier: EarlierColumns = NO_COLUMNS,
    stored: StoredFiles | None = None,
    typed_by: Sequence[FileState] | None = None,
) -> Rows:
    """Open CSV or JSON files and read them once for what they hold. `files` are those that are
    read. `typed_by` are those that the columns are found by; None: the same. `earlier` is what
    earlier loads made of source columns. `stored` has rejected records, which are read in their
    place.

    Raises `LoadFailed` for what cannot be read, `InvalidInput` for options, types and columns that
    are not there, and `AwsError`.
    """
    check_options(given)
    listed = tuple(files)
    if stored is None:
        s3.check_runtime(listed)
    opener = stored or s3.opener(given)
    as_text = spec.nested == "JSON"
    reading = TEXT_FORMATS[given.format].reading(given.options, nested_as_text=as_text)
    read = text_files(spec, table, reading, listed, earlier, opener, spec.max_rejected_of(table))
    if typed_by is not None:
        read = replace(read, files=tuple(typed_by), loaded=frozenset(listed))
    parallelism = _parallelism(spark)
    found = read.split(_Runner(spark, parallelism), parallelism)
    return Rows(
        spark,
        _schema(found),
        found.names,
        found.splits,
        warnings=found.warnings,
        spellings=found.spellings,
        check_unchanged=unchanged(listed, given, s3),
    )


def _parallelism(spark: SparkSession) -> Parallelism:
    given = setting(spark, "spark.sql.files.maxPartitionBytes")
    jvm: Any = spark._jvm
    size = jvm.org.apache.spark.network.util.JavaUtils.byteStringAsBytes(given)
    return Parallelism(spark.sparkContext.defaultParallelism, int(size))


@dataclass(frozen=True)
class _Runner:
    """Scans a small input in the driver, and a large one in tasks."""

    spark: SparkSession
    parallelism: Parallelism

    def __call__(self, scan: Scan, parts: Sequence[TextPart]) -> list[Scanned]:
        if sum(map(weight, parts)) > _SMALL:
            tasks = list(put_together(parts, self.parallelism))
            context = self.spark.sparkContext
            return context.parallelize(tasks, len(tasks)).flatMap(_InTask(scan)).collect()
        if not any(is_s3(part.file.path) for part in parts):
            return list(map(scan, parts))
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="scan") as pool:
            return list(pool.map(scan, parts))


@dataclass(frozen=True)
class _InTask:
    """A scan in tasks, with failures as they cross to the driver."""

    scan: Scan

    def __call__(self, parts: Iterable[TextPart]) -> Iterator[Scanned]:
        with failures_for_driver("open"):
            yield from map(self.scan, parts)


def _schema(table: TextTable) -> StructType:
    if not table.schema.names or (not table.names and not table.splits.parts):
        return StructType([])
    helpers = {BAD_VALUES_HELPER: "int", REJECTED_HELPER: REJECT_TYPE}
    columns = from_arrow_schema(pa.schema(table.columns), prefer_timestamp_ntz=True)
    own = [name for name in table.schema.names if name in helpers]
    fields = [*columns, *(StructField(name, DataType.fromDDL(helpers[name])) for name in own)]
    return StructType(fields)

"""SPARK source: tables read by one of Spark's own readers.

Nobody knows whether such a reader gives the same rows twice, so they are read once and kept until
the load has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.spec import JobSpec, SparkInput, TableSpec
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.rows.casts import cast_types
from lakeload_jobs.sources.base import (
    AllRows,
    EarlierColumns,
    Rows,
)
from lakeload_jobs.sources.paths.local_listing import expand
from lakeload_jobs.sources.paths.spark_paths import spark_path
from lakeload_jobs.sources.settings import check_types
from lakeload_jobs.sources.spark_frames import frame_splits

_NOT_FOUND = "DATA_SOURCE_NOT_FOUND"
_ONLY_SPARK = "`type: SPARK` is read by Spark"


def connect_spark(
    spec: JobSpec, aws: AwsSession
) -> Callable[[TableSpec, SparkInput], SparkReaderSource]:
    """Return what makes the source of a table."""
    return lambda table, given: SparkReaderSource(spec, table, given)


@dataclass(frozen=True)
class SparkReaderSource:
    """The input of one table."""

    spec: JobSpec
    table: TableSpec
    given: SparkInput
    incremental: bool = False

    def slice(self, bookmark: Bookmark) -> SparkReaderSlice:
        """Return all of it: nothing is remembered."""
        return SparkReaderSlice(self.spec, self.table, self.given)

    def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class SparkReaderSlice(AllRows):
    """All that the reader reads."""

    spec: JobSpec
    table: TableSpec
    given: SparkInput

    def open(self, spark: SparkSession, earlier: EarlierColumns) -> Rows:
        """Open the reader.

        Raises `LoadFailed` for paths that name nothing and what the reader refuses, `InvalidInput`
        for a format that Spark does not have, and for columns and types of `columns.types`.
        """
        given = self.given
        if self.spec.reader == "DIRECT":
            raise InvalidInput(
                f"the table cannot be read with `spark: {{reader: DIRECT}}`: {_ONLY_SPARK}",
                hint="`spark: {reader: AUTO}` lets Spark read where it is needed",
            )
        paths = [spark_path(path) for path in expand(given.paths)]
        reader = spark.read.format(given.format).options(**given.options)
        try:
            frame = reader.load(paths) if paths else reader.load()
        except (PySparkException, Py4JJavaError) as error:
            if _NOT_FOUND in str(error):
                raise InvalidInput(
                    f"Spark has no format `{given.format}`",
                    hint="write one that Spark includes, such as `csv`, `text` or `xml`",
                ) from error
            if not isinstance(error, PySparkException):
                raise
            said = " ".join(str(error).split("JVM stacktrace")[0].split())[:300]
            raise LoadFailed(
                f"Spark's reader of `{given.format}` rejects the input: {said}",
                hint="check the options in the documentation of Spark",
            ) from error
        names = tuple(frame.columns)
        types = check_types(self.table.columns.types or {}, names)
        if types:
            frame = cast_types(frame, types, self.spec.on_bad_value_of(self.table))
        return Rows(
            spark,
            frame.schema,
            names,
            frame_splits(frame),
            _ONLY_SPARK,
            repeatable=False,
        )

"""Files that bring their schema: Parquet, ORC and Avro, with the columns of all files united."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import FilesInput
from lakeload_jobs.sources.files.file_state import FileState, is_s3
from lakeload_jobs.sources.files.spark.avro import merge, one_file_of_each_schema
from lakeload_jobs.sources.files.spark.paths import spark_path
from lakeload_jobs.sources.files.spark.s3a import S3Source

_INSTANT = "timestamp with local time zone"

TYPED_FORMATS = ("PARQUET", "ORC", "AVRO")


def open_typed(
    reader: DataFrameReader,
    source: FilesInput,
    files: Sequence[FileState],
    paths: Sequence[str],
    s3: S3Source | None,
) -> DataFrame:
    """Open files of one of `TYPED_FORMATS`; `paths` are those of `files` as Spark takes them.

    Raises `LoadFailed` where files have no schema, or schemas that cannot be united.
    """
    options = {name.lower(): value for name, value in source.options.items()}
    reader = reader.format(source.format.lower())
    if source.format == "AVRO":
        if "avroschema" not in options:
            reader = _with_all_columns(reader, source, files, s3)
        return reader.load(list(paths))
    try:
        return reader.option("mergeSchema", options.get("mergeschema", "true")).load(list(paths))
    except AnalysisException as error:
        if error.getCondition() != "UNABLE_TO_INFER_SCHEMA":
            raise
        raise LoadFailed(
            f"none of the files has a schema, `{files[0].path}` among them",
            hint=f"are they {source.format} files, and complete?",
        ) from error
    except Py4JJavaError as error:
        if source.format != "ORC" or _INSTANT not in str(error):
            raise
        raise LoadFailed(
            f"Spark cannot read ORC columns of the type `{_INSTANT}`, as the files have",
            hint="write them as `timestamp`, which is read as UTC, or load Parquet",
        ) from error


def _with_all_columns(
    reader: DataFrameReader, source: FilesInput, files: Sequence[FileState], s3: S3Source | None
) -> DataFrameReader:
    def read_start(file: FileState, size: int) -> bytes:
        if s3 is not None and is_s3(file.path):
            return s3.readers.objects(source).read_start(file, size)
        with Path(file.path).open("rb") as opened:
            return opened.read(size)

    different = one_file_of_each_schema(files, read_start)
    if len(different) == 1:
        return reader
    schemas = [(file, reader.load(spark_path(file.path)).schema) for file in different]
    return reader.schema(merge(schemas))

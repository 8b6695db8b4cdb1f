"""The rows of files, and Avro files that Spark reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.spec import FilesInput, OnBadValue, TableSpec
from lakeload_jobs.rows.arrow import Column as Array
from lakeload_jobs.rows.arrow import pc
from lakeload_jobs.rows.batches import map_batches
from lakeload_jobs.rows.casts import RECORD_HELPER, cast_types
from lakeload_jobs.rows.rejects import REJECTED_HELPER, ROW_HELPERS
from lakeload_jobs.rows.tracking import PLACE_HELPER
from lakeload_jobs.sources.base import (
    Rows,
    UnreadableFile,
)
from lakeload_jobs.sources.files.formats.avro.reader import read_avro_headers
from lakeload_jobs.sources.files.formats.registry import FILE_FORMATS
from lakeload_jobs.sources.files.listing import check_unchanged
from lakeload_jobs.sources.files.spark.paths import by_name, shortest
from lakeload_jobs.sources.files.spark.s3a import S3Source
from lakeload_jobs.sources.files.spark.schemas import open_avro
from lakeload_jobs.sources.files.typed.columns import Column, FileSchema
from lakeload_jobs.sources.files.typed.exact import column_notes, record_bytes
from lakeload_jobs.sources.files.typed.rows import DAMAGED_HINT
from lakeload_jobs.sources.paths.file_state import FileState, hidden, partition_base
from lakeload_jobs.sources.paths.spark_paths import plain_path, spark_path
from lakeload_jobs.sources.settings import check_types
from lakeload_jobs.sources.spark_frames import frame_splits


def open_files(
    spark: SparkSession,
    source: FilesInput,
    table: TableSpec,
    on_bad_value: OnBadValue,
    *,
    only_spark: str,
    s3: S3Source,
    files: Sequence[FileState],
) -> Rows:
    """Open the Avro files of a table, whose schema is that of the files; `columns.types` casts.
    `only_spark` says why Spark reads them. `files` are those that are read, some of what
    `list_files` returned.

    Raises `LoadFailed` for files that are missing or cannot be read, `InvalidInput` for options
    and types that Spark does not have.
    """
    check_options(source)
    listed = tuple(files)
    s3.connect(spark, source, listed)
    types = table.columns.types or {}

    def read(reader: DataFrameReader, paths: tuple[str, ...]) -> tuple[DataFrame, tuple[str, ...]]:
        frame = open_avro(reader, source, table, listed, paths, s3)
        names = tuple(frame.columns)
        return frame, names

    frame, names = read_listed(spark, source, listed, read)
    check = partial(_check_avro, frame, listed, source, s3)
    if own := check_types(types, names):
        frame = cast_rows(with_places(frame), own, on_bad_value)
    return Rows(
        spark,
        frame.schema,
        names,
        frame_splits(frame),
        only_spark,
        count_reads_all_columns=table.where is not None,
        check_read=check,
        check_unchanged=unchanged(listed, source, s3),
    )


def unchanged(files: Sequence[FileState], given: FilesInput, s3: S3Source) -> Callable[[], None]:
    """Return what raises `LoadFailed` when a file is not what it was when it was listed."""
    return partial(check_unchanged, files, given, s3.readers)


def _check_avro(
    frame: DataFrame,
    files: Sequence[FileState],
    given: FilesInput,
    s3: S3Source,
    count: int | None,
) -> None:
    check_rows(frame, read_avro_headers(files, s3.opener(given)), count)


def check_rows(frame: DataFrame, schemas: Sequence[FileSchema], count: int | None) -> None:
    """Raise `UnreadableFile` where Spark reads other rows than files say they have. `count` are
    those of `frame`, None where they were not counted."""
    rows = {schema.file.path: sum(unit.rows for unit in schema.units) for schema in schemas}
    if (frame.count() if count is None else count) == sum(rows.values()):
        return
    counted = frame.groupBy(F.input_file_name().alias("uri")).count().collect()
    read = {plain_path(row["uri"]): row["count"] for row in counted}
    for path, own in rows.items():
        if read.get(path, 0) != own:
            raise UnreadableFile(
                path,
                f"it says that it has {own:,} rows, and Spark reads {read.get(path, 0):,}",
                hint=DAMAGED_HINT,
            )


def cast_rows(
    frame: DataFrame,
    types: Mapping[str, str],
    on_bad_value: OnBadValue,
    columns: Sequence[Column] = (),
) -> DataFrame:
    """Cast as `cast_types` does. Rows that are rejected keep their exact form, except those with
    types that only Spark has; `columns` are those of `frame` as the files have them."""
    kinds = None
    if on_bad_value == "QUARANTINE" and not any(column.only_spark for column in columns):
        with suppress(PySparkException):
            kinds = to_arrow_schema(frame.schema)
    if kinds is None:
        return cast_types(frame, types, on_bad_value)
    known = {column.name: column for column in columns}
    names = [name for name in frame.columns if name not in (*ROW_HELPERS, PLACE_HELPER)]
    own = [known.get(name) or Column(name, kinds.field(name).type, "") for name in names]
    cast = cast_types(frame, types, on_bad_value, keep_records=True)
    schema = StructType([field for field in cast.schema if field.name != RECORD_HELPER])
    return map_batches(cast, _KeepRecords(column_notes(own)), schema)


@dataclass(frozen=True)
class _KeepRecords:
    """The function of tasks that puts the exact form of rejected rows in place of
    `RECORD_HELPER`."""

    notes: Mapping[bytes, bytes]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            records = batch.column(RECORD_HELPER)
            kept = batch.drop_columns([RECORD_HELPER])
            if records.null_count < len(records):
                place = kept.schema.get_field_index(REJECTED_HELPER)
                field, rejects = kept.schema.field(place), kept.column(place)
                kept = kept.set_column(place, field, self._with_records(rejects, records))
            yield kept

    def _with_records(self, rejects: Array, records: Array) -> Array:
        columns = {field.name: records.field(at) for at, field in enumerate(records.type)}
        exact: list[bytes | None] = rejects.field("raw_bytes").to_pylist()
        for row in pc.indices_nonzero(records.is_valid()).to_pylist():
            exact[row] = record_bytes(columns, row, self.notes)
        arrays = [
            pa.array(exact, field.type) if field.name == "raw_bytes" else rejects.field(at)
            for at, field in enumerate(rejects.type)
        ]
        fields = list(rejects.type)
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=rejects.is_null())


Read = Callable[[DataFrameReader, tuple[str, ...]], tuple[DataFrame, tuple[str, ...]]]
"""Opens paths as Spark takes them; returns the frame and the names of the source's columns."""


def read_listed(
    spark: SparkSession, source: FilesInput, listed: Sequence[FileState], read: Read
) -> tuple[DataFrame, tuple[str, ...]]:
    """Return what `read` opens, which is the files that were listed and no other.

    Raises `LoadFailed` where Spark reads others, and for a name that it takes for an empty file.
    """
    for file in listed:
        for path in (file.path, file.root):
            if hidden(path.rpartition("/")[2]):
                raise LoadFailed(
                    f"`{path}` cannot be read: Spark reads this table and ignores names "
                    "that begin with `_` or `.`",
                    hint="rename it",
                )
    opening = shortest(spark, source, listed)
    own = {name: value for name, value in source.options.items() if name.lower() != "on_loss"}
    while True:
        reader = spark.read.options(**own).options(**opening.options)
        if base := partition_base(listed, source.options):
            reader = reader.option("basePath", spark_path(base, literal=False))
        frame, names = read(reader, opening.paths)
        different = _difference(frame, listed)
        if not different:
            return frame, names
        if opening.by_name:
            break
        opening = by_name(listed)  # a file was added to the folder meanwhile
    raise LoadFailed(
        f"Spark and lakeload list different files: `{different}`",
        hint=(
            "check whether it is being renamed or moved, and the reader options that "
            "choose files (`pathGlobFilter`, `modifiedAfter`, `modifiedBefore`)"
        ),
    )


def with_places(frame: DataFrame, *, numbered: bool = False) -> DataFrame:
    """Add the helper column that names a row's file in messages; `numbered`: Spark knows the row in
    the file too, as it does of Parquet."""
    if "_metadata" in frame.columns:
        return frame  # The files have a column that hides what Spark knows of them.
    # Spark writes a blank as `%20`, but a `+` as it is.
    path = F.url_decode(F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B")))
    path = F.regexp_replace(F.regexp_replace(path, "^file:/+", "/"), "^s3a:", "s3:")
    row = F.col("_metadata.row_index") + 1 if numbered else F.lit(None)
    place = F.struct(
        path.alias("source_file"),
        F.lit(None).cast("int").alias("row_group"),
        row.cast("bigint").alias("row_number"),
    )
    return frame.withColumn(PLACE_HELPER, place)


def _difference(frame: DataFrame, files: Sequence[FileState]) -> str | None:
    """Return a file that Spark reads and was not listed, or the other way round: what is recorded
    as loaded, and watched for changes, must be what is loaded."""
    opened = {plain_path(uri) for uri in frame.inputFiles()}
    return min({file.path for file in files} ^ opened, default=None)


def check_options(source: FilesInput) -> None:
    """Raise `InvalidInput` for a reader option that the format does not have."""
    for problem in FILE_FORMATS[source.format].option_problems(source.options):
        raise InvalidInput(problem.message, hint=problem.hint)

"""Types that Spark infers from the values at hand, kept in step with what was loaded before.

A column that holds `7` in one export and `7.5` in the next, or nothing at all, would change its
type from run to run, and no Parquet reader accepts a column of two types. So what earlier loads
wrote decides, as long as the values at hand can be read as it without loss.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructField, StructType

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.spec import ColumnsSpec, FilesInput, OnBadValue
from lakeload_jobs.contract.state import StateChange
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.core.types import timestamp_unit
from lakeload_jobs.rows.casts import cast_types
from lakeload_jobs.rows.columns import types_of
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER, HELPER_PREFIX, PLACE_HELPER
from lakeload_jobs.sources.base import Reader, Splits
from lakeload_jobs.sources.files.file_state import FileState, partition_base
from lakeload_jobs.sources.files.listing import check_unchanged, list_files
from lakeload_jobs.sources.files.reader_options import option_problems
from lakeload_jobs.sources.files.spark.paths import by_name, plain_path, shortest, spark_path
from lakeload_jobs.sources.files.spark.s3a import S3Source
from lakeload_jobs.sources.files.spark.text_checks import check_text
from lakeload_jobs.sources.files.spark.typed import TYPED_FORMATS, open_typed

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_ATOMIC = re.compile(r"[a-z_]+|decimal\(\d+,\d+\)")


def reads_as(inferred: str, earlier: str) -> bool:
    """Return whether values inferred as one type are to be read as the type they had earlier.

    Both are Spark's names. Text may be anything: Spark infers it for a column without a value
    too, and a value that does not fit is a bad value.
    """
    if inferred == earlier or not _ATOMIC.fullmatch(earlier):
        return False
    if not _ATOMIC.fullmatch(inferred):
        return earlier == "string"
    if earlier == "string" or inferred == "string":
        return True
    if inferred == "date":
        return earlier in ("timestamp", "timestamp_ntz")
    return _number_fits(inferred, earlier)


def _number_fits(inferred: str, earlier: str) -> bool:
    digits = _INTEGER_DIGITS.get(inferred)
    if digits is None:
        return False
    if earlier in _INTEGER_DIGITS:
        return digits <= _INTEGER_DIGITS[earlier]
    if decimal := _DECIMAL.fullmatch(earlier):
        return digits <= int(decimal[1]) - int(decimal[2])
    # Integers of up to 15 digits are exact in a double.
    return earlier == "double" and digits <= 15


NO_TYPES: Mapping[str, str] = {}
_CORRUPT = HELPER_PREFIX + "corrupt"


@dataclass(frozen=True)
class FilesRows:
    """The rows of a table's files (`sources.base.Rows`)."""

    frame: DataFrame
    names: tuple[str, ...]
    files: tuple[FileState, ...]
    count_reads_all_columns: bool
    given: FilesInput
    s3: S3Source | None = None
    reader: Reader = "jvm"
    splits: Splits | None = None
    why_no_splits: str = ""
    counts: tuple[int, ...] | None = None
    repeatable: bool = True
    warnings: tuple[str, ...] = ()

    def check_unchanged(self) -> None:
        """Raise `LoadFailed` when a file is not what it was when it was listed."""
        check_unchanged(self.files, self.given, self.s3.readers if self.s3 else None)

    def finish(self, ends: Sequence[Any]) -> StateChange | None:
        """Return None: which files are loaded is known before they are read."""


def open_files(
    spark: SparkSession,
    source: FilesInput,
    columns: ColumnsSpec,
    on_bad_value: OnBadValue,
    *,
    s3: S3Source | None = None,
    files: Sequence[FileState] | None = None,
    earlier: Mapping[str, str] = NO_TYPES,
    filtered: bool = False,
) -> FilesRows:
    """Open the files of a table, of other formats than Parquet and CSV. Its schema comes from
    `columns.types` and, where these do not say it, from reading the data once. `s3` is needed for
    `s3://` paths alone. `files` are those that are read, some of what `list_files` returned; None
    lists them here. `earlier` are the types that source columns had in earlier loads; inference
    keeps to them where it can. `filtered`: some rows are left out for what is in them.

    Raises `LoadFailed` for files that are missing or cannot be read, `InvalidInput` for options
    and types that Spark does not have.
    """
    check_options(source)
    if files is None:
        files = list_files(source, s3.readers if s3 else None)
    listed = tuple(files)
    if s3 is not None:
        s3.connect(spark, source, listed)
    check_text(spark, source, listed, s3)
    types = columns.types or {}

    def read(reader: DataFrameReader, paths: tuple[str, ...]) -> tuple[DataFrame, tuple[str, ...]]:
        given = _Given(source, listed, paths, s3)
        return _open(_with_mode(reader, source, on_bad_value), given, types, on_bad_value, earlier)

    frame, names = read_listed(spark, source, listed, read)
    # JSON must be parsed to know its rows; files that bring their schema have those they have.
    all_columns = source.format not in TYPED_FORMATS or filtered
    return FilesRows(frame, names, listed, all_columns, source, s3)


Read = Callable[[DataFrameReader, tuple[str, ...]], tuple[DataFrame, tuple[str, ...]]]
"""Opens paths as Spark takes them; returns the frame and the names of the source's columns."""


def read_listed(
    spark: SparkSession, source: FilesInput, listed: Sequence[FileState], read: Read
) -> tuple[DataFrame, tuple[str, ...]]:
    """Return what `read` opens, which is the files that were listed and no other.

    Raises `LoadFailed` where Spark reads others.
    """
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
        f"Spark and lakeload do not agree on whether `{different}` is to be read",
        hint="is it being renamed or moved? else the reader options that choose files "
        "(`pathGlobFilter`, `modifiedAfter`, `modifiedBefore`) can be read in two ways",
    )


@dataclass(frozen=True)
class _Given:
    """What is opened: the files, and the paths that name them to Spark."""

    source: FilesInput
    files: tuple[FileState, ...]
    paths: tuple[str, ...]
    s3: S3Source | None


def _open(
    reader: DataFrameReader,
    given: _Given,
    types: Mapping[str, str],
    on_bad_value: OnBadValue,
    earlier: Mapping[str, str],
) -> tuple[DataFrame, tuple[str, ...]]:
    """Return the frame and the names of the source's columns in it."""
    source, paths = given.source, list(given.paths)
    if source.format in TYPED_FORMATS:
        frame = open_typed(reader, source, given.files, paths, given.s3)
        names = tuple(frame.columns)
        if check_types(types, names):
            frame = cast_types(with_places(frame), types, on_bad_value)
        return frame, names
    later = {name: kind for name, kind in types.items() if _is_cast_from_text(source, kind)}
    types = {**types, **dict.fromkeys(later, "string")}
    schema = _json_schema(reader, paths, types, earlier)
    frame = _read_json(reader, schema, paths, on_bad_value)
    return cast_types(frame, later, on_bad_value), tuple(schema.names)


def with_places(frame: DataFrame) -> DataFrame:
    """Add the helper column that names a row's file in messages."""
    if "_metadata" in frame.columns:
        return frame  # The files have a column that hides what Spark knows of them.
    # Spark writes a blank as `%20`, but a `+` as it is.
    path = F.url_decode(F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B")))
    path = F.regexp_replace(F.regexp_replace(path, "^file:/+", "/"), "^s3a:", "s3:")
    place = F.struct(
        path.alias("source_file"),
        F.lit(None).cast("int").alias("row_group"),
        F.lit(None).cast("bigint").alias("row_number"),
    )
    return frame.withColumn(PLACE_HELPER, place)


def _is_cast_from_text(source: FilesInput, kind: str) -> bool:
    """Whether a type of `columns.types` is cast from a value's text: Spark's readers know no unit,
    and that of JSON takes a number under `timestamp` for seconds."""
    if timestamp_unit(kind):
        return True
    names = {name.lower() for name in source.options}
    own_patterns = {"timestampformat", "timestampntzformat", "timezone"} & names
    is_timestamp = kind.strip().lower() in ("timestamp", "timestamp_ltz", "timestamp_ntz")
    return is_timestamp and not own_patterns


def _difference(frame: DataFrame, files: Sequence[FileState]) -> str | None:
    """Return a file that Spark reads and was not listed, or the other way round: what is recorded
    as loaded, and watched for changes, must be what is loaded."""
    opened = {plain_path(uri) for uri in frame.inputFiles()}
    return min({file.path for file in files} ^ opened, default=None)


def check_options(source: FilesInput) -> None:
    """Raise `InvalidInput` for a reader option that the format does not have."""
    for problem in option_problems(source.format, source.options):
        raise InvalidInput(problem.message, hint=problem.hint)


def _with_mode(
    reader: DataFrameReader, source: FilesInput, on_bad_value: OnBadValue
) -> DataFrameReader:
    if source.format in TYPED_FORMATS:
        return reader
    if source.format == "JSON":
        reader = reader.option("multiLine", "true")
    return reader.option("mode", "FAILFAST" if on_bad_value == "FAIL" else "PERMISSIVE").option(
        "columnNameOfCorruptRecord", _CORRUPT
    )


def _json_schema(
    reader: DataFrameReader,
    paths: list[str],
    types: Mapping[str, str],
    earlier: Mapping[str, str],
) -> StructType:
    """Infer, then let `types` decide; a field that no record has yet may be named there."""
    found = [field for field in reader.json(paths).schema.fields if field.name != _CORRUPT]
    absent = [name for name in types if name not in {field.name for field in found}]
    fields = [*found, *(StructField(name, StringType()) for name in absent)]
    return _with_types(StructType(fields), types, earlier)


def _with_types(
    schema: StructType, types: Mapping[str, str], earlier: Mapping[str, str]
) -> StructType:
    """Replace the types of a schema by those given, else by those of earlier loads."""
    fields = []
    known = types_of(schema.names, earlier)
    for field in schema.fields:
        kind = field.dataType
        before = known.get(field.name)
        if field.name in types:
            kind = _parse(field.name, types[field.name])
        elif before is not None and reads_as(kind.simpleString(), before):
            kind = DataType.fromDDL(before)
        fields.append(StructField(field.name, kind))
    return StructType(fields)


def _parse(name: str, kind: str) -> DataType:
    try:
        return DataType.fromDDL(kind)
    except PySparkException as error:
        reason = (str(error).strip().splitlines() or [""])[0]
        raise InvalidInput(
            f"`columns.types` gives column `{name}` the type `{kind}`: {reason}",
            hint="use a Spark SQL type such as `bigint`, `decimal(12,2)` or `timestamp`",
        ) from error


def check_types(types: Mapping[str, str], names: Sequence[str]) -> Mapping[str, str]:
    """Return `types`. Raises `InvalidInput` for a column that the source does not have."""
    for name in types:
        if name not in names:
            raise InvalidInput(
                f"`columns.types` names the column `{name}`, which the source does not have",
                hint=did_you_mean(name, names) or f"the columns are `{'`, `'.join(names)}`",
            )
    return types


def _read_json(
    reader: DataFrameReader, schema: StructType, paths: list[str], on_bad_value: OnBadValue
) -> DataFrame:
    if on_bad_value == "FAIL":
        return reader.schema(schema).json(paths)
    marked = StructType([*schema.fields, StructField(_CORRUPT, StringType())])
    frame = reader.schema(marked).json(paths)
    bad = F.col(_CORRUPT).isNotNull().cast("int").alias(BAD_VALUES_HELPER)
    return frame.withColumn(_CORRUPT, bad).withColumnRenamed(_CORRUPT, BAD_VALUES_HELPER)

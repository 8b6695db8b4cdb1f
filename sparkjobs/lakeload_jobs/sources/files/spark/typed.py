"""Parquet, ORC and Avro files as the rows of a table: columns by what the files say of them, values
by Arrow and fastavro, and by Spark's reader of Parquet where only that reads them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema, to_arrow_type
from pyspark.sql.types import DataType, StructField, StructType, _parse_datatype_json_value

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import FilesInput, JobSpec, OnBadValue, TableSpec
from lakeload_jobs.rows.arrow import Kind
from lakeload_jobs.rows.arrow_casts import ArrowCast, arrow_cast
from lakeload_jobs.rows.casts import quoted
from lakeload_jobs.rows.columns import in_condition, in_source_spelling, is_read, types_of
from lakeload_jobs.rows.failures import failures_for_driver
from lakeload_jobs.session import setting
from lakeload_jobs.sources.base import (
    EarlierColumns,
    ReadAgain,
    Rows,
    Splits,
    UnreadableFile,
    set_aside_warnings,
    unchecked,
)
from lakeload_jobs.sources.files.files_in_use import in_use
from lakeload_jobs.sources.files.formats.base import TypedFormat
from lakeload_jobs.sources.files.formats.parquet.reader import ParquetReader
from lakeload_jobs.sources.files.formats.registry import TYPED_FORMATS
from lakeload_jobs.sources.files.spark.reader import (
    cast_rows,
    check_options,
    check_rows,
    read_listed,
    unchanged,
    with_places,
)
from lakeload_jobs.sources.files.spark.s3a import S3Source
from lakeload_jobs.sources.files.typed.columns import (
    Column,
    FileSchema,
    kind_in_table,
    readable_by_spark,
    set_aside,
    settled,
    unite,
    unreadable,
)
from lakeload_jobs.sources.files.typed.rows import (
    DAMAGED_HINT,
    Failures,
    FormatReader,
    OnLoss,
    ReadCast,
    ReadTyped,
    TypedPart,
    UnknownFolderValue,
    folder_columns,
    split_files,
)
from lakeload_jobs.sources.files.typed.stored import StoredRecords, stored_schemas
from lakeload_jobs.sources.files.united_columns import (
    OTHER_TABLE_HINT,
    SharedNames,
    check_one_table,
    names_by_file,
    other_spellings,
    shared_names,
)
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState, folder_base
from lakeload_jobs.sources.settings import check_types
from lakeload_jobs.sources.spark_frames import check_casts, frame_splits, split_frame

_CALENDARS = {
    "datetimerebasemode": "spark.sql.parquet.datetimeRebaseModeInRead",
    "int96rebasemode": "spark.sql.parquet.int96RebaseModeInRead",
}
"""Reader options that may choose another calendar for old dates, and the same as properties."""

_SHIFTED = "spark.sql.parquet.int96TimestampConversion"
_CHECKSUMS = "parquet.page.verify-checksum.enabled"


@dataclass(frozen=True)
class TypedTable:
    """The Parquet, ORC or Avro files of one table, and how the table is loaded. `unreadable` are
    files that are set aside for what was found when their rows were read. `stored` has rejected
    records, which are read in their place."""

    spark: SparkSession
    spec: JobSpec
    table: TableSpec
    given: FilesInput
    files: tuple[FileState, ...]
    s3: S3Source
    unreadable: dict[FileState, UnreadableFile] = field(default_factory=dict)
    stored: StoredRecords | None = None
    typed_by: tuple[FileState, ...] | None = None
    """The files that the columns are found by; None: those whose rows are loaded."""

    @property
    def format(self) -> TypedFormat:
        """The format of the files."""
        return TYPED_FORMATS[self.given.format]

    @property
    def on_bad_value(self) -> OnBadValue:
        """What becomes of bad values and broken records."""
        return self.spec.on_bad_value_of(self.table)

    @property
    def sets_aside(self) -> bool:
        """Whether files that cannot be read are set aside."""
        return self.on_bad_value == "QUARANTINE"

    @property
    def options(self) -> dict[str, str]:
        """The reader options, by names in lower case."""
        return {name.lower(): value for name, value in self.given.options.items()}

    def in_source_spelling(self, names: Collection[str]) -> TypedTable:
        """Return the table with settings that name columns as the source does."""
        columns = in_source_spelling(self.table.columns, names)
        return replace(self, table=replace(self.table, columns=columns))

    @property
    def opener(self) -> FileBytes:
        """What opens the files, in tasks too."""
        return self.s3.opener(self.given)


def open_typed_files(table: TypedTable, earlier: EarlierColumns) -> Rows:
    """Return the rows of a table. `earlier` is what earlier loads made of columns.

    Raises `LoadFailed` for files that cannot be read or united, naming the column, and
    `InvalidInput` for settings that they do not bear out.
    """
    check_options(table.given)
    if table.stored is None:
        table.s3.check_runtime(table.files)
    loaded = frozenset(table.files)
    all_files = _schemas(replace(table, files=table.typed_by or table.files))
    faults = [schema.fault for schema in all_files if schema.fault is not None]
    schemas = tuple(schema for schema in all_files if schema.fault is None)
    aside = set_aside_warnings(
        [
            (schema.fault.path, schema.fault.why)
            for schema in all_files
            if schema.fault is not None and schema.file in loaded
        ]
    )
    if faults and not schemas:
        return replace(_only_rejects(table, all_files, faults[0]), warnings=aside)
    shared = _spellings(table, schemas, earlier)
    all_files = tuple(schema.renamed(shared.get(schema.file.path, {})) for schema in all_files)
    schemas = tuple(schema for schema in all_files if schema.fault is None)
    named = _names(table, schemas)
    # Rejected records have the values of their folders with those of their file.
    base = None if table.stored else folder_base(table.files, table.given.options)
    folders = folder_columns(schemas, base)
    table = table.in_source_spelling({*named, *folders})
    in_files = [name for name in named if name not in folders]
    united = unite(schemas, [name for name in in_files if is_read(table.table, name)])
    known = types_of(named, earlier.types)
    columns = tuple(_in_table(column, table, known) for column in united)
    only_spark = _only_spark(table, schemas, columns)
    if only_spark and faults:
        raise faults[0]
    schema = _schema(table, columns, has_folders=base is not None, by_spark=bool(only_spark))
    names = (*named, *(name for name in schema.names if name not in named))
    casts = _casts(table, names, schema)
    all_files = tuple(one for one in all_files if one.file in loaded)
    schemas = tuple(one for one in schemas if one.file in loaded)
    if not only_spark:
        try:
            arrow = to_arrow_schema(schema)
            read = _reader(table, united, arrow, places=bool(casts), sets_aside=bool(faults))
            cores = table.spark.sparkContext.defaultParallelism
            splits = split_files(all_files, read, base=base, parallelism=cores)
        except UnknownFolderValue as reason:
            only_spark = str(reason)
            if faults:
                raise faults[0] from None
        else:
            rows = _by_arrow(table, read, splits, names, casts)
            return replace(rows, warnings=aside, spellings=other_spellings(shared, names))
    _check_spark_reads(table, columns, only_spark)
    for path, others in shared.items():
        own, name = next(iter(others.items()))
        raise InvalidInput(
            f"column `{own}` of `{path}` is `{name}` in other files, which Spark's reader does not "
            f"unite, and Spark has to read this table: {only_spark}",
            hint="set `spark: {reader: AUTO}`"
            if table.spec.reader == "JVM"
            else "load the files with one spelling each in a load of their own",
        )
    frame = _by_spark(table, columns, by_spark=True)
    read_frame = frame
    values: Callable[[], None] = unchecked
    if casts:
        placed = with_places(frame, numbered=True)
        values = partial(check_casts, placed, casts)
        frame = cast_rows(placed, casts, table.on_bad_value, united)
    return Rows(
        table.spark,
        frame.schema,
        names,
        frame_splits(frame),
        only_spark,
        check_values=values,
        check_read=partial(_check_spark_read, table, read_frame, schemas, columns),
        check_unchanged=unchanged(table.files, table.given, table.s3),
    )


def _check_spark_read(
    table: TypedTable,
    frame: DataFrame,
    schemas: Sequence[FileSchema],
    columns: Sequence[Column],
    count: int | None,
) -> None:
    """Raise `UnreadableFile` where Spark reads other rows of Parquet files than they have, or where
    Arrow finds columns damaged that Spark reads as nulls."""
    check_rows(frame, schemas, count)
    reader = ParquetReader(table.opener, exact=False)
    nothing = ReadTyped(pa.schema([]), reader)
    cores = table.spark.sparkContext.defaultParallelism
    parts = split_files(schemas, nothing, base=None, parallelism=cores).parts
    names = tuple(column.name for column in columns)
    check = _CheckColumns(reader, names)
    table.spark.sparkContext.parallelize(parts, max(len(parts), 1)).foreach(check)


@dataclass(frozen=True)
class _CheckColumns:
    """The function of tasks that let Arrow decode what Spark is to read."""

    reader: ParquetReader
    names: tuple[str, ...]

    def __call__(self, parts: Sequence[TypedPart]) -> None:
        with failures_for_driver("count"):
            for part in parts:
                try:
                    with in_use(part.path):
                        self.reader.check(part, self.names)
                except OSError as error:
                    raise unreadable(part.path, error, hint=DAMAGED_HINT) from error


def _schemas(table: TypedTable) -> tuple[FileSchema, ...]:
    if table.stored is not None:
        return stored_schemas(table.stored, table.files)
    schemas = table.format.schemas(
        table.files,
        table.opener,
        sets_aside=table.sets_aside,
        setting=partial(setting, table.spark),
    )
    return tuple(
        set_aside(schema.file, fault) if (fault := table.unreadable.get(schema.file)) else schema
        for schema in schemas
    )


def _spellings(
    table: TypedTable, schemas: Sequence[FileSchema], earlier: EarlierColumns
) -> SharedNames:
    """Return names that other files spell in another way. Raises `LoadFailed` for a file of
    another table."""
    names = names_by_file(
        (schema.file.path, (column.name for column in schema.columns)) for schema in schemas
    )
    rename = table.table.columns.rename or {}
    if table.stored is None:
        check_one_table(names, earlier, rename, lambda own, wanted: OTHER_TABLE_HINT)
    return shared_names(names, earlier, rename)


def _only_rejects(table: TypedTable, schemas: Sequence[FileSchema], fault: UnreadableFile) -> Rows:
    """Return the rows of files that are all set aside: they have no columns. Raises `fault` where
    Spark is to read them."""
    if table.spec.reader == "JVM":
        raise fault
    read = _reader(table, (), pa.schema([]), places=False, sets_aside=True)
    cores = table.spark.sparkContext.defaultParallelism
    splits = split_files(schemas, read, base=None, parallelism=cores)
    return _by_arrow(table, read, splits, (), {})


def _schema(
    table: TypedTable, columns: Sequence[Column], *, has_folders: bool, by_spark: bool
) -> StructType:
    """Return the columns in the types in which they are read, and those of `column=value` folders,
    whose types Spark knows."""
    if has_folders:
        return _by_spark(table, columns, by_spark=by_spark).schema
    return _struct_type(columns, by_spark=by_spark)


def _struct_type(columns: Sequence[Column], *, by_spark: bool) -> StructType:
    return StructType([_spark_field(column, by_spark=by_spark) for column in columns])


def _by_spark(table: TypedTable, columns: Sequence[Column], *, by_spark: bool) -> DataFrame:
    """Return the rows as Spark reads these columns, and those of `column=value` folders: these
    alone are of use where Spark does not read the format, or the columns."""
    as_stored = [replace(one, kind=one.null_as_numbers or one.kind) for one in columns]
    schema = _struct_type(as_stored, by_spark=by_spark)

    def read(reader: DataFrameReader, paths: tuple[str, ...]) -> tuple[DataFrame, tuple[str, ...]]:
        # With a schema no file is opened before rows are read, whatever its format.
        return reader.option(_CHECKSUMS, "true").schema(schema).parquet(*paths), ()

    table.s3.connect(table.spark, table.given, table.files)
    frame = read_listed(table.spark, table.given, table.files, read)[0]
    for column in columns:
        if column.null_as_numbers is not None:
            kind = _spark_field(column, by_spark=by_spark).dataType
            is_nested = pt.is_nested(column.null_as_numbers)
            value = F.col(quoted(column.name)) if is_nested else F.lit(None)
            frame = frame.withColumn(column.name, value.cast(kind))
    return frame


def _by_arrow(
    table: TypedTable,
    read: ReadTyped,
    splits: Splits,
    names: tuple[str, ...],
    casts: Mapping[str, str],
) -> Rows:
    schema = from_arrow_schema(read.batch_schema, prefer_timestamp_ntz=True)
    values: Callable[[], None] = _Values(table.spark, read, splits.parts, table.unreadable)
    if casts:
        frame = split_frame(table.spark, splits, schema)
        values = partial(_check_read_and_cast, values, frame, casts)
        cast = cast_rows(frame, casts, table.on_bad_value, read.columns)
        schema = cast.schema
        in_arrow = _arrow_casts(table, read.schema, casts)
        if in_arrow is None:
            splits = frame_splits(cast, splits.counts)
        else:
            kinds, plain = to_arrow_schema(schema), replace(read, places=False)
            cast_read = ReadCast(plain, in_arrow, kinds, table.on_bad_value)
            splits = replace(splits, read=cast_read, of_columns=cast_read.of_columns)
    return Rows(
        table.spark,
        schema,
        names,
        splits,
        check_values=values,
        check_unchanged=unchanged(table.files, table.given, table.s3),
    )


def _arrow_casts(
    table: TypedTable, schema: pa.Schema, casts: Mapping[str, str]
) -> dict[str, ArrowCast] | None:
    """Return the casts, all in Arrow; None where Spark has to cast a column."""
    found = {}
    on_bad_value, given = table.on_bad_value, table.table
    conditions = given.where is not None or given.deleted_when is not None
    for name, kind in casts.items():
        cast = arrow_cast(schema.field(name).type, kind)
        if cast is None:
            return None
        # Spark sets bad values aside, and fails for those of rows alone that it casts.
        chooses = on_bad_value == "FAIL" and (conditions or table.spec.options.limit is not None)
        if cast.may_be_bad and (on_bad_value == "QUARANTINE" or chooses):
            return None
        found[name] = cast
    return found


def _check_read_and_cast(
    check_read: Callable[[], None], frame: DataFrame, casts: Mapping[str, str]
) -> None:
    check_read()
    check_casts(frame, casts)


@dataclass(frozen=True)
class _Values:
    """Looks for bad values in all parts, and puts files to set aside into `unreadable`."""

    spark: SparkSession
    read: ReadTyped
    parts: tuple[Any, ...]
    unreadable: dict[FileState, UnreadableFile]

    def __call__(self) -> None:
        """Raise `BadValuesFound` where there are any, and `ReadAgain` for files to set aside."""
        parts = self.spark.sparkContext.parallelize(self.parts, len(self.parts))
        found = sum(parts.mapPartitions(_FailuresOf(self.read)).collect(), Failures())
        if found.unreadable:
            self.unreadable.update(found.unreadable)
            first = next(iter(found.unreadable.values()))
            raise ReadAgain(f"`{first.path}` cannot be read and is set aside")
        found.check()


@dataclass(frozen=True)
class _FailuresOf:
    """The function of tasks that look for bad values."""

    read: ReadTyped

    def __call__(self, parts: Iterable[Any]) -> Iterator[Failures]:
        with failures_for_driver("stage"):
            yield from map(self.read.failures, parts)


def _names(table: TypedTable, schemas: Sequence[FileSchema]) -> tuple[str, ...]:
    """Return the names of all columns; those of the first file alone without `mergeSchema`."""
    if table.options.get("mergeschema", "true").lower() == "false":
        schemas = schemas[:1]
    return tuple(dict.fromkeys(column.name for schema in schemas for column in schema.columns))


def _in_table(column: Column, table: TypedTable, earlier: Mapping[str, str]) -> Column:
    """Return the column in the type that `columns.types` declares, or that the table has, where
    that is how it can be read."""
    types = table.table.columns.types or {}
    wanted = types.get(column.name, earlier.get(column.name))
    kind = None if wanted is None or column.only_spark else _arrow_type(wanted)
    readable = readable_by_spark(column.kind)
    return replace(
        column,
        kind=kind_in_table(column, kind, declared=column.name in types),
        null_as_numbers=None if readable == column.kind else readable,
    )


def _arrow_type(kind: str) -> Kind | None:
    """Return the Arrow type of one of Spark's; None for what is none, or has none."""
    try:
        return to_arrow_type(DataType.fromDDL(kind))
    except PySparkException:
        return None


def _spark_field(column: Column, *, by_spark: bool) -> StructField:
    if by_spark and column.spark_type is not None:
        return StructField(column.name, _parse_datatype_json_value(column.spark_type))
    arrow = pa.schema([(column.name, settled(column.kind))])
    (field,) = from_arrow_schema(arrow, prefer_timestamp_ntz=True)
    return StructField(field.name, field.dataType)


def _reader(
    table: TypedTable,
    columns: Sequence[Column],
    schema: pa.Schema,
    *,
    places: bool,
    sets_aside: bool,
) -> ReadTyped:
    may_be_bad = sets_aside or any(column.may_be_bad for column in columns)
    truncates = table.options.get("on_loss", "FAIL").upper() == "TRUNCATE"
    on_loss: OnLoss = "TRUNCATE" if truncates else "FAIL"
    # What cannot be bad is read as with FAIL, where it costs nothing.
    on_bad_value = table.on_bad_value if may_be_bad else "FAIL"
    reader: FormatReader | None = table.stored
    if reader is None:
        reader = table.format.reader(table.opener, exact=on_loss == "FAIL")
    in_files = {column.name for column in columns}
    folders = (Column(own.name, own.type, "") for own in schema if own.name not in in_files)
    return ReadTyped(
        schema,
        reader,
        on_loss,
        on_bad_value,
        places,
        table.format.damage_hint(columns),
        table.sets_aside,
        (*columns, *folders),
    )


def _casts(table: TypedTable, names: Sequence[str], schema: StructType) -> dict[str, str]:
    """Return the types that values have to be cast to. Raises `InvalidInput` for a column that
    the source does not have."""
    if not names:
        return {}  # Files without columns have none that is wrong.
    types = check_types(table.table.columns.types or {}, names)
    read = {field.name: field.dataType for field in schema}
    return {
        name: kind
        for name, kind in types.items()
        if name in read and not _is_type(kind, read[name])
    }


def _is_type(kind: str, own: DataType) -> bool:
    try:
        return DataType.fromDDL(kind) == own
    except PySparkException:
        return False


def _only_spark(table: TypedTable, schemas: Sequence[FileSchema], columns: Sequence[Column]) -> str:
    """Return why Spark's reader has to read the files, as a clause; '' where it has not."""
    if table.stored is not None:
        return next((text for column in columns if (text := _sparks_variant(table, column))), "")
    old = next((schema.file.path for schema in schemas if schema.old_calendar), None)
    has_old_days = old is not None and any(_has_dates(column.kind) for column in columns)
    julian = f"`{old}` was written with dates of the Julian calendar" if has_old_days else ""
    if not table.format.spark_reads:
        return julian
    if table.spec.reader == "JVM":
        return "`spark.reader` is `JVM`"
    if reason := next((column.only_spark for column in columns if column.only_spark), None):
        return reason
    if reason := next((text for column in columns if (text := _sparks_variant(table, column))), ""):
        return reason
    for option, name in _CALENDARS.items():
        if table.options.get(option, setting(table.spark, name)).upper() != "CORRECTED":
            return f"`{name}` is set"
    if setting(table.spark, _SHIFTED).lower() != "false":
        return f"`{_SHIFTED}` is set"
    return julian


def _sparks_variant(table: TypedTable, column: Column) -> str:
    """Return why a VARIANT has to be one of Spark's, as a clause; '' where it is text."""
    if column.spark_type is None:
        return ""
    if column.name in (table.table.columns.types or {}):
        return f"`columns.types` casts the VARIANT `{column.name}`"
    if in_condition(table.table, column.name):
        return f"a condition has the VARIANT `{column.name}`"
    return ""


def _has_dates(kind: Kind) -> bool:
    if pt.is_date(kind) or pt.is_timestamp(kind):
        return True
    return any(_has_dates(kind.field(number).type) for number in range(kind.num_fields))


def _check_spark_reads(table: TypedTable, columns: Sequence[Column], why: str) -> None:
    """Raise `InvalidInput` where Spark's reader has to read the files, and cannot."""
    if table.stored is not None:
        raise InvalidInput(
            f"the rejected records cannot be loaded: {why}, and only Spark can do that, which does "
            "not read rejected records",
            hint="remove it from `columns.types`: a VARIANT is then loaded as text"
            if "`columns.types`" in why
            else "remove it from `where` and `deleted_when`",
        )
    if not table.format.spark_reads:
        raise InvalidInput(
            f"the {table.given.format} files cannot be read: {why}",
            hint="set the reader option `recursiveFileLookup: true`, with which folders are no "
            "columns"
            if "folder" in why
            else "set the reader option `datetimeRebaseMode: LEGACY`, with which Spark reads them",
        )
    for column in columns:
        if column.not_spark:
            raise InvalidInput(
                f"{column.not_spark}, which Spark's reader does not read, and Spark has to read "
                f"this table: {why}",
                hint="set `spark: {reader: AUTO}`"
                if table.spec.reader == "JVM"
                else "leave the column out with `columns.exclude`",
            )

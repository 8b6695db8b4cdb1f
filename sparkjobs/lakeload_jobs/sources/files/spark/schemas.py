"""Avro files that Spark reads: the columns of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from pyspark.sql import DataFrame, DataFrameReader
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StructField,
    StructType,
)

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import FilesInput, TableSpec
from lakeload_jobs.rows.columns import in_source_spelling, is_read
from lakeload_jobs.sources.files.formats.avro.reader import schema_text
from lakeload_jobs.sources.files.spark.s3a import S3Source
from lakeload_jobs.sources.paths.file_state import FileState
from lakeload_jobs.sources.paths.spark_paths import spark_path

_AT_ONCE = 16
_WIDER: tuple[tuple[DataType, ...], ...] = (
    (ByteType(), ShortType(), IntegerType(), LongType()),
    (FloatType(), DoubleType()),
)
"""Types of which a later one holds all values of those before it."""


def one_file_of_each_schema(
    files: Sequence[FileState], schema: Callable[[FileState], bytes]
) -> list[FileState]:
    """Return the first file of each schema that `files` were written with, by its text."""
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="schemas") as pool:
        schemas = list(pool.map(schema, files))
    first: dict[bytes, FileState] = {}
    for file, text in zip(files, schemas, strict=True):
        first.setdefault(text, file)
    return list(first.values())


def merge(schemas: Sequence[tuple[FileState, StructType]], table: TableSpec) -> StructType:
    """Unite the columns of all files; of two integers or floats the wider holds both. Columns that
    the table does not read have the type of the first file that has them.

    Raises `LoadFailed` naming both files, and the field, where a column has two types.
    """
    names = dict.fromkeys(name for _, schema in schemas for name in schema.names)
    table = replace(table, columns=in_source_spelling(table.columns, names))
    fields: dict[str, DataType] = {}
    origin: dict[str, FileState] = {}
    for file, schema in schemas:
        for field in schema.fields:
            before = fields.setdefault(field.name, field.dataType)
            first = origin.setdefault(field.name, file)
            if before == field.dataType or not is_read(table, field.name):
                continue
            kind = _wider(before, field.dataType)
            if kind is None:
                name, one, other = _different(field.name, before, field.dataType)
                raise LoadFailed(
                    f"the column `{name}` is {one.simpleString()} in `{first.path}` and "
                    f"{other.simpleString()} in `{file.path}`",
                    hint="load the files as two tables, or leave the column out with "
                    "`columns.exclude`",
                )
            fields[field.name] = kind
    return StructType([StructField(name, kind) for name, kind in fields.items()])


def _wider(one: DataType, other: DataType) -> DataType | None:
    for kinds in _WIDER:
        if one in kinds and other in kinds:
            return max(one, other, key=kinds.index)
    return None


def _different(name: str, one: DataType, other: DataType) -> tuple[str, DataType, DataType]:
    """Return the field within a column that has two types, and these; the column itself where they
    have other fields."""
    if isinstance(one, ArrayType) and isinstance(other, ArrayType):
        return _different(f"{name}.element", one.elementType, other.elementType)
    if isinstance(one, MapType) and isinstance(other, MapType):
        return _different(f"{name}.value", one.valueType, other.valueType)
    if isinstance(one, StructType) and isinstance(other, StructType):
        kinds = {field.name: field.dataType for field in one}
        for field in other:
            if kinds.get(field.name, field.dataType) != field.dataType:
                return _different(f"{name}.{field.name}", kinds[field.name], field.dataType)
    return name, one, other


def open_avro(
    reader: DataFrameReader,
    source: FilesInput,
    table: TableSpec,
    files: Sequence[FileState],
    paths: Sequence[str],
    s3: S3Source,
) -> DataFrame:
    """Open Avro files of a table; `paths` are those of `files` as Spark takes them.

    Raises `LoadFailed` where files have no schema, or schemas that cannot be united.
    """
    reader = reader.format("avro")
    if "avroschema" not in {name.lower() for name in source.options}:
        reader = _with_all_columns(reader, source, table, files, s3)
    return reader.load(list(paths))


def _with_all_columns(
    reader: DataFrameReader,
    source: FilesInput,
    table: TableSpec,
    files: Sequence[FileState],
    s3: S3Source,
) -> DataFrameReader:
    opener = s3.opener(source)
    different = one_file_of_each_schema(files, lambda file: schema_text(file, opener))
    if len(different) == 1:
        return reader
    schemas = [(file, reader.load(spark_path(file.path)).schema) for file in different]
    return reader.schema(merge(schemas, table))

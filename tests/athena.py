"""Reads a Glue table as Athena would: its partitions, their locations, files by column name.

Stricter than Athena where engines differ, so that what passes here passes there: a partition's
columns must have the table's types by name and by position, and a file's column exactly the type
that Glue says. Structs of a partition and of a file may lack the last fields of the table's; what
the struct of a partition lacks is null, whatever its files have. Nothing of lakeload is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient
    from mypy_boto3_s3 import S3Client

_SCALARS: dict[str, Any] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}
_DATE_FORMATS = {
    "yyyy/MM/dd": ("%Y/%m/%d", timedelta(days=1), "DAYS"),
    "yyyy/MM/dd/HH": ("%Y/%m/%d/%H", timedelta(hours=1), "HOURS"),
}
_FORMATS = {
    "SerializationLibrary": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    "InputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "OutputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
}


class HiveError(Exception):
    """What Athena would answer; `code` is its error code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


def query(
    glue: GlueClient,
    s3: S3Client,
    database: str,
    table: str,
    *,
    now: datetime | None = None,
    injected: Sequence[str] = (),
) -> pa.Table:
    """`SELECT *`. `now` ends a projected range; `injected` are the values of a WHERE clause."""
    found: dict[str, Any] = dict(glue.get_table(DatabaseName=database, Name=table)["Table"])
    _check_format(found["StorageDescriptor"])
    columns = _columns(found["StorageDescriptor"])
    keys = [key["Name"] for key in found["PartitionKeys"]]
    if set(keys) & {name for name, _ in columns}:
        raise HiveError("HIVE_INVALID_METADATA", f"a partition key is a column too: {keys}")
    parameters = found["Parameters"]
    types = dict(columns)
    places: list[tuple[str | None, str, dict[str, str]]]
    if not keys:
        places = [(None, found["StorageDescriptor"]["Location"], types)]
    elif parameters.get("projection.enabled") == "true":
        projected = _projected(parameters, keys[0], now, injected)
        places = [(value, location, types) for value, location in projected]
    else:
        places = [*_registered(glue, database, table, columns)]
    schema = pa.schema([(name, hive_type(kind)) for name, kind in columns])
    rows = [
        _with_key(_read(s3, bucket, key, schema, own), keys, value)
        for value, location, own in places
        for bucket, key in _files(s3, location)
    ]
    empty = _with_key(schema.empty_table(), keys, "" if keys else None)
    return pa.concat_tables([empty, *rows])


def hive_type(text: str) -> pa.DataType:
    """Return the Arrow type of the files that Athena reads as this Glue type."""
    kind, rest = _parse(text)
    if rest:
        raise HiveError("HIVE_INVALID_METADATA", f"`{text}` is no type")
    return kind


def _parse(text: str) -> tuple[pa.DataType, str]:
    if found := re.match(r"decimal\((\d+),(\d+)\)", text):
        return pa.decimal128(int(found[1]), int(found[2])), text[found.end() :]
    if text.startswith("array<"):
        inner, rest = _parse(text[6:])
        return pa.list_(inner), _after(rest, ">")
    if text.startswith("map<"):
        key, rest = _parse(text[4:])
        value, rest = _parse(_after(rest, ","))
        return pa.map_(key, value), _after(rest, ">")
    if text.startswith("struct<"):
        fields, rest = [], "," + text[7:]
        while rest.startswith(","):
            name, _, rest = rest[1:].partition(":")
            kind, rest = _parse(rest)
            fields.append(pa.field(name, kind))
        return pa.struct(fields), _after(rest, ">")
    word = re.match(r"[a-z_]*", text)
    name = word[0] if word else ""
    if name not in _SCALARS:
        raise HiveError("HIVE_INVALID_METADATA", f"`{text}` is no type")
    return _SCALARS[name], text[len(name) :]


def _after(text: str, mark: str) -> str:
    if not text.startswith(mark):
        raise HiveError("HIVE_INVALID_METADATA", f"`{mark}` expected before `{text}`")
    return text[len(mark) :]


def _columns(storage: dict[str, Any]) -> list[tuple[str, str]]:
    columns = [(column["Name"], column["Type"]) for column in storage["Columns"]]
    if any(name != name.lower() for name, _ in columns) or not columns:
        raise HiveError("HIVE_INVALID_METADATA", f"not in lower case, or none: {columns}")
    return columns


def _check_format(storage: dict[str, Any]) -> None:
    found = {**storage, **storage["SerdeInfo"]}
    for name, value in _FORMATS.items():
        if found.get(name) != value:
            raise HiveError("HIVE_UNSUPPORTED_FORMAT", f"{name} is {found.get(name)}")


def _registered(
    glue: GlueClient, database: str, table: str, columns: list[tuple[str, str]]
) -> Iterator[tuple[str, str, dict[str, str]]]:
    types = dict(columns)
    pages = glue.get_paginator("get_partitions").paginate(DatabaseName=database, TableName=table)
    for page in pages:
        for partition in page["Partitions"]:
            storage: dict[str, Any] = dict(partition["StorageDescriptor"])
            _check_format(storage)
            own = _columns(storage)
            by_name = [(kind, types.get(name, kind)) for name, kind in own]
            by_place = [(a[1], b[1]) for a, b in zip(own, columns, strict=False)]
            if not all(_begins(hive_type(a), hive_type(b)) for a, b in (*by_name, *by_place)):
                raise HiveError("HIVE_PARTITION_SCHEMA_MISMATCH", f"{partition['Values']}: {own}")
            yield partition["Values"][0], storage["Location"], types | dict(own)


def _begins(own: Any, table: Any) -> bool:
    """Whether a type is the table's, but for the last fields of its structs."""
    if pa.types.is_struct(own) and pa.types.is_struct(table) and own.num_fields <= table.num_fields:
        pairs = zip(own, table, strict=False)
        return all(a.name == b.name and _begins(a.type, b.type) for a, b in pairs)
    if pa.types.is_map(own) and pa.types.is_map(table):
        return own.key_type == table.key_type and _begins(own.item_type, table.item_type)
    if pa.types.is_list(own) and pa.types.is_list(table):
        return _begins(own.value_type, table.value_type)
    return bool(own == table)


def _projected(
    parameters: dict[str, str], key: str, now: datetime | None, injected: Sequence[str]
) -> Iterator[tuple[str, str]]:
    own = f"projection.{key}."
    template = parameters["storage.location.template"]
    if parameters[f"{own}type"] == "injected":
        if not injected:
            raise HiveError("CONSTRAINT_VIOLATION", f"a WHERE clause has to name `{key}`")
        values = list(injected)
    else:
        pattern, step, unit = _DATE_FORMATS[parameters[f"{own}format"]]
        assert (parameters[f"{own}interval"], parameters[f"{own}interval.unit"]) == ("1", unit)
        start, end = parameters[f"{own}range"].split(",")
        assert end == "NOW"
        assert now is not None, "a projected range needs an end"
        instant, values = datetime.strptime(start, pattern).replace(tzinfo=now.tzinfo), []
        while instant <= now:
            values.append(instant.strftime(pattern))
            instant += step
    yield from ((value, template.replace(f"${{{key}}}", value)) for value in values)


def _files(s3: S3Client, location: str) -> Iterator[tuple[str, str]]:
    """Everything below the location but hidden files; a folder's name needs its final slash."""
    assert location.startswith("s3://")
    assert location.endswith("/")
    bucket, _, prefix = location.removeprefix("s3://").partition("/")
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for entry in page.get("Contents", []):
            name = entry["Key"].removeprefix(prefix)
            if not any(part.startswith(("_", ".")) for part in name.split("/")):
                yield bucket, entry["Key"]


def _read(
    s3: S3Client, bucket: str, key: str, schema: pa.Schema, types: dict[str, str]
) -> pa.Table:
    """Return the rows of a file: `types` are those of its partition."""
    body = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    file = pq.ParquetFile(pa.BufferReader(body)).read(use_threads=False)
    names = {name.lower(): name for name in file.column_names}
    values = []
    for field in schema:
        if field.name not in names:
            values.append(pa.nulls(file.num_rows, field.type))
            continue
        column = file.column(names[field.name])
        if not _same(column.type, field.type):
            raise HiveError("HIVE_BAD_DATA", f"{key}: {field.name} {column.type}, not {field.type}")
        own, plain = hive_type(types[field.name]), column.combine_chunks()
        values.append(_as_table(plain, own, field.type))
    return pa.table(values, schema=schema)


def _as_table(column: Any, own: Any, table: Any) -> Any:
    """Return a column as the table's type, as far as the type of the partition shows it."""
    if pa.types.is_struct(table):
        shown = {field.name: field.type for field in own}
        fields = [
            _as_table(column.field(field.name), shown[field.name], field.type)
            if field.name in shown and column.type.get_field_index(field.name) >= 0
            else pa.nulls(len(column), field.type)
            for field in table
        ]
        return pa.StructArray.from_arrays(fields, fields=list(table), mask=column.is_null())
    if pa.types.is_list(table):
        values = _as_table(column.values, own.value_type, table.value_type)
        offsets, gaps = column.offsets, column.is_null()
        return pa.ListArray.from_arrays(offsets, values, type=table, mask=gaps)
    if pa.types.is_map(table):
        items = _as_table(column.items, own.item_type, table.item_type)
        gaps = column.is_null()
        made: Any = pa.MapArray.from_arrays
        return made(column.offsets, column.keys, items, type=table, mask=gaps)
    return column.cast(table)


def _same(file: pa.DataType, table: pa.DataType) -> bool:
    """Whether the types are one; Glue has one timestamp for both of Parquet's."""
    if pa.types.is_timestamp(file):
        return bool(table == pa.timestamp("us")) and file.unit == "us"
    if pa.types.is_struct(file) and pa.types.is_struct(table):
        own, theirs = list(file), list(table)
        known = {field.name: field.type for field in theirs}
        return all(field.name in known and _same(field.type, known[field.name]) for field in own)
    if pa.types.is_map(file) and pa.types.is_map(table):
        return _same(file.key_type, table.key_type) and _same(file.item_type, table.item_type)
    if pa.types.is_list(file) and pa.types.is_list(table):
        return _same(file.value_type, table.value_type)
    return bool(file == table)


def _with_key(rows: pa.Table, keys: list[str], value: str | None) -> pa.Table:
    if not keys:
        return rows
    return rows.append_column(keys[0], pa.array([value] * rows.num_rows, pa.string()))

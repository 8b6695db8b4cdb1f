"""The columns of a table, from the footers of its Parquet files (docs/file-formats.md).

A column's kind is the Arrow type in which its values are handed on: `string` for what becomes
text. Kinds of several files are united by name, and a kind grows where it then holds the values of
both exactly.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.rows.row_id import Kind
from lakeload_jobs.sources.files.file_state import FileState
from lakeload_jobs.sources.files.listing import changed

_AT_ONCE = 16
_BUFFER = 1 << 20
_INSTANT, _LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_SPARK_VERSION = b"org.apache.spark.version"
_OLD_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_INTEGERS: Mapping[Kind, int] = {pa.int8(): 10, pa.int16(): 10, pa.int32(): 10, pa.int64(): 19}
"""How many digits a decimal needs to hold what they are stored as: Spark's reader asks for them."""
_UNSIGNED: Mapping[Kind, Kind] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}
_MAX_DIGITS = 38
_NAMES: Mapping[Kind, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.binary(): "binary",
    pa.date32(): "date",
    _INSTANT: "timestamp",
    _LOCAL: "timestamp_ntz",
}


class UnreadableFile(LoadFailed):
    """A file that is damaged, or of another format."""


@dataclass(frozen=True)
class ParquetSettings:
    """What a user may have set of Spark's reader: tables that exist have the types that follow."""

    bytes_are_text: bool = False
    nanoseconds_are_numbers: bool = False
    local_times_are_instants: bool = False


@dataclass(frozen=True)
class Column:
    """A column of one file, or of all files.

    `not_spark` says why Spark's reader cannot read it, and `only_spark` why nothing else can, each
    as a sentence with the file; '' where it is not so. `spark_type` is then Spark's type, as JSON.
    `refused` says why nobody can read it. `may_be_bad`: values are converted, and some may have no
    place in the kind.
    """

    name: str
    kind: Kind
    path: str
    not_spark: str = ""
    only_spark: str = ""
    refused: str = ""
    spark_type: Any = None
    may_be_bad: bool = False


@dataclass(frozen=True)
class Footer:
    """What the footer of a file tells; `sizes` are the rows and stored bytes of its row groups."""

    file: FileState
    columns: tuple[Column, ...]
    sizes: tuple[tuple[int, int], ...]
    old_calendar: bool


OpenFile = Callable[[FileState], AbstractContextManager[Any]]
"""Opens a source file for random access: a path, or a file object, as Arrow takes it."""


def open_parquet_file(source: Any, *, int96_unit: str = "us") -> pq.ParquetFile:
    """Open a file; nanoseconds, which Arrow takes for INT96 otherwise, end in 1677 and 2262."""
    return pq.ParquetFile(
        source, coerce_int96_timestamp_unit=int96_unit, pre_buffer=False, buffer_size=_BUFFER
    )


def read_footers(
    files: Sequence[FileState], open_file: OpenFile, settings: ParquetSettings
) -> tuple[Footer, ...]:
    """Return the footers of `files`, in their order.

    Raises `LoadFailed` naming a file that is not there any more, or is no Parquet file.
    """

    def read(file: FileState) -> Footer:
        try:
            with open_file(file) as source, open_parquet_file(source) as opened:
                return _footer(file, opened, settings)
        except (OSError, pa.ArrowException) as error:
            raise unreadable(file.path, error) from error

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="footers") as pool:
        return tuple(pool.map(read, files))


def unreadable(path: str, error: Exception, *, hint: str = "") -> LoadFailed:
    """Return the error of a file that Arrow could not read."""
    if isinstance(error, FileNotFoundError):
        return changed(path, "was removed")
    said = " ".join(str(error).split())[:300]
    return UnreadableFile(f"reading `{path}`: {said}", hint=hint or "check the file and `format`")


def unite(footers: Sequence[Footer], names: Collection[str]) -> tuple[Column, ...]:
    """Return the columns of all files, in the order in which they first come; `null` is the kind
    of what has no value anywhere (`settled`).

    Raises `LoadFailed` naming the column, both types and both files where no type holds both, and
    for a column that nobody can read.
    """
    united: dict[str, Column] = {}
    for footer in footers:
        for column in footer.columns:
            if column.name not in names:
                continue
            if column.refused:
                raise LoadFailed(column.refused, hint="leave it out with `columns.exclude`")
            before = united.get(column.name)
            united[column.name] = column if before is None else _united(before, column)
    return tuple(united.values())


def widened(kind: Kind, other: Kind) -> Kind | None:
    """Return the type that holds the values of both exactly; None where there is none."""
    try:
        return _widened(kind, other, "")
    except _NoCommonType:
        return None


def type_name(kind: Kind, *, text: str = "text") -> str:
    """Return a kind as messages name it, and with `text="string"` as `columns.types` does."""

    def named(kind: Kind) -> str:
        if pt.is_string(kind):
            return text
        if kind in _NAMES:
            return _NAMES[kind]
        if pt.is_decimal(kind):
            return f"decimal({kind.precision},{kind.scale})"
        if pt.is_struct(kind):
            return f"struct<{','.join(f'{field.name}:{named(field.type)}' for field in kind)}>"
        if pt.is_map(kind):
            return f"map<{named(kind.key_type)},{named(kind.item_type)}>"
        if pt.is_list(kind):
            return f"array<{named(kind.value_type)}>"
        return str(kind)

    return named(kind)


def _footer(file: FileState, opened: pq.ParquetFile, settings: ParquetSettings) -> Footer:
    metadata, own = opened.metadata, opened.schema_arrow
    notes: Mapping[bytes, bytes] = metadata.metadata or {}
    walk = _Walk(file.path, metadata.schema, settings)
    spark_types = _spark_types(notes)
    columns = tuple(walk.column(child, spark_types.get(child.name)) for child in own)
    twins = {name for name, count in Counter(own.names).items() if count > 1}
    if twins:
        columns = tuple(
            replace(column, refused=f"`{file.path}` has two columns named `{column.name}`")
            if column.name in twins
            else column
            for column in columns
        )
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    unpacked = max(sum(group.total_byte_size for group in groups), 1)
    sizes = ((group.num_rows, group.total_byte_size * file.size // unpacked) for group in groups)
    return Footer(file, columns, tuple(sizes), _counts_as_julian(notes))


def _counts_as_julian(notes: Mapping[bytes, bytes]) -> bool:
    """Whether the days before 1582 are those of old versions of Spark."""
    version = notes.get(_SPARK_VERSION, b"")
    return any(name in notes for name in _OLD_CALENDAR) or version.startswith(
        (b"1.", b"2.", b"3.0.")
    )


def _spark_types(notes: Mapping[bytes, bytes]) -> dict[str, Any]:
    """Return the types of columns that Spark wrote as another and reads as its own."""
    try:
        fields = json.loads(notes[_SPARK_SCHEMA])["fields"]
    except (KeyError, ValueError, TypeError):
        return {}
    types = {field["name"]: field["type"] for field in fields}
    return {name: kind for name, kind in types.items() if _is_sparks_own(kind)}


def _is_sparks_own(kind: Any) -> bool:
    return bool(re.search(r'"(variant|interval [a-z ]+)"', json.dumps(kind)))


class _Walk:
    """Goes through the columns of one file and their leaves, which come in the same order."""

    def __init__(self, path: str, schema: pq.ParquetSchema, settings: ParquetSettings) -> None:
        self._path = path
        self._schema = schema
        self._leaves = (schema.column(number) for number in range(len(schema)))
        self._settings = settings
        self._not_spark = self._refused = ""
        self._variant = self._may_be_bad = False

    def column(self, own: Kind, spark_type: Any) -> Column:
        """Return the next column. `own` is its Arrow field, `spark_type` what Spark wrote it as."""
        self._not_spark = self._refused = ""
        self._variant = self._may_be_bad = False
        kind = self._kind(own.name, own.type)
        where = f"column `{own.name}` of `{self._path}`"
        only_spark = ""
        if self._variant and spark_type is None:
            if self._is_variant(own.name, own.type):
                spark_type = "variant"
            else:
                self._refused = "VARIANT inside of other values"
        if spark_type == "variant":
            # What is inside depends on the values: two files may have the same in other types.
            kind, self._not_spark, self._may_be_bad = pa.string(), "", False
        if spark_type is not None:
            shown = spark_type if isinstance(spark_type, str) else "type of Spark's own"
            only_spark = f"{where} is a {shown}"
        return Column(
            own.name,
            kind,
            self._path,
            not_spark=f"{where} is {self._not_spark}" if self._not_spark else "",
            only_spark=only_spark,
            refused=f"{where} has {self._refused}, which is not read" if self._refused else "",
            spark_type=spark_type,
            may_be_bad=self._may_be_bad,
        )

    def _kind(self, name: str, own: Kind) -> Kind:
        if isinstance(own, pa.BaseExtensionType):
            return self._extension(name, own)
        if pt.is_dictionary(own):
            return self._kind(name, own.value_type)
        if pt.is_struct(own):
            self._variant = self._variant or self._is_variant(name, own)
            if not own.num_fields:
                self._refused = f"the group `{name}`, which has no fields"
            if len({child.name for child in own}) < own.num_fields:
                self._refused = f"two fields of one name in `{name}`"
            return pa.struct([(child.name, self._kind(child.name, child.type)) for child in own])
        if pt.is_map(own):
            self._may_be_bad = True
            key = self._kind("key", own.key_type)
            return pa.map_(key, self._kind("value", own.item_type))
        if _is_list(own):
            return pa.list_(self._kind("element", own.value_type))
        return self._leaf(own, next(self._leaves))

    def _is_variant(self, name: str, own: Kind) -> bool:
        """Whether a group is a VARIANT: Arrow shows what it consists of."""
        if not pt.is_struct(own) or own.get_field_index("metadata") < 0:
            return False
        group = rf"group (field_id=\S+ )?{re.escape(name)} \(Variant"
        return re.search(group, str(self._schema)) is not None

    def _extension(self, name: str, own: Kind) -> Kind:
        if own.extension_name == "arrow.uuid":
            next(self._leaves)
            self._not_spark = "UUID"
            return pa.string()
        return self._kind(name, own.storage_type)

    def _leaf(self, own: Kind, leaf: pq.ColumnSchema) -> Kind:
        physical, logical = leaf.physical_type, leaf.logical_type.type
        if own in _UNSIGNED:
            return _UNSIGNED[own]
        if pt.is_float16(own):
            self._not_spark = "FLOAT16"
            return pa.float32()
        if pt.is_decimal(own):
            if own.precision > _MAX_DIGITS:
                self._not_spark = f"DECIMAL({own.precision},{own.scale})"
                return pa.string()
            return pa.decimal128(own.precision, own.scale)
        if pt.is_time(own):
            self._not_spark, self._may_be_bad = f"TIME in {own.unit}", True
            return pa.string()
        if pt.is_timestamp(own):
            return self._timestamp(own, leaf)
        if pt.is_duration(own):
            return pa.int64()
        if pt.is_date(own):
            return pa.date32()
        if _is_text(own):
            self._may_be_bad = True
            return pa.string()
        if logical == "UUID" or leaf.converted_type == "INTERVAL":
            self._not_spark = "UUID" if logical == "UUID" else "INTERVAL"
            return pa.string()
        if _is_bytes(own):
            plain = logical == "NONE" and physical == "BYTE_ARRAY"
            is_text = logical in ("ENUM", "JSON") or (plain and self._settings.bytes_are_text)
            self._may_be_bad = self._may_be_bad or is_text
            return pa.string() if is_text else pa.binary()
        if own in _NAMES or pt.is_null(own):
            return own
        self._refused = f"the type `{own}`"
        return pa.binary()

    def _timestamp(self, own: Kind, leaf: pq.ColumnSchema) -> Kind:
        if leaf.physical_type == "INT96":
            self._may_be_bad = True
            return _INSTANT
        if own.unit == "ns":
            if self._settings.nanoseconds_are_numbers:
                return pa.int64()
            self._not_spark = "TIMESTAMP in ns"
        self._may_be_bad = self._may_be_bad or own.unit != "us"
        # Arrow's zone may be that of the program which wrote the file, or none.
        stored = json.loads(leaf.logical_type.to_json())
        is_instant = stored.get("isAdjustedToUTC", own.tz is not None)
        return _INSTANT if is_instant or self._settings.local_times_are_instants else _LOCAL


def _is_list(own: Kind) -> bool:
    return (
        pt.is_list(own)
        or pt.is_large_list(own)
        or pt.is_fixed_size_list(own)
        or pt.is_list_view(own)
        or pt.is_large_list_view(own)
    )


def _is_text(own: Kind) -> bool:
    return pt.is_string(own) or pt.is_large_string(own) or pt.is_string_view(own)


def _is_bytes(own: Kind) -> bool:
    return (
        pt.is_binary(own)
        or pt.is_large_binary(own)
        or pt.is_binary_view(own)
        or pt.is_fixed_size_binary(own)
    )


class _NoCommonType(Exception):
    """Two types of which none holds the other; `args` are the name of a field, and they."""


def _united(one: Column, other: Column) -> Column:
    try:
        kind = _widened(one.kind, other.kind, one.name)
        if one.spark_type != other.spark_type:
            raise _NoCommonType(
                one.name, one.spark_type or one.kind, other.spark_type or other.kind
            )
    except _NoCommonType as error:
        name, first, second = error.args
        raise LoadFailed(
            f"the column `{name}` is {_shown(first)} in `{one.path}` and {_shown(second)} in "
            f"`{other.path}`",
            hint="load the files as two tables, or leave the column out with `columns.exclude`",
        ) from None
    return replace(
        one,
        kind=kind,
        # So the next one that does not fit is compared with the file that made the type what it is.
        path=other.path if kind == other.kind != one.kind else one.path,
        not_spark=one.not_spark or other.not_spark,
        only_spark=one.only_spark or other.only_spark,
        may_be_bad=one.may_be_bad or other.may_be_bad,
    )


def _shown(kind: Any) -> str:
    return type_name(kind) if isinstance(kind, pa.DataType) else str(kind)


def _widened(one: Kind, other: Kind, name: str) -> Kind:
    if one == other or pt.is_null(other):
        return one
    if pt.is_null(one):
        return other
    if pt.is_floating(one) and pt.is_floating(other):
        return pa.float64()
    if one in _INTEGERS and other in _INTEGERS:
        return max(one, other, key=lambda kind: kind.bit_width)
    if (first := _digits(one)) and (second := _digits(other)):
        scale = max(first[1], second[1])
        precision = max(first[0] - first[1], second[0] - second[1]) + scale
        if precision <= _MAX_DIGITS:
            return pa.decimal128(precision, scale)
    if pt.is_struct(one) and pt.is_struct(other):
        return _widened_struct(one, other, name)
    if pt.is_map(one) and pt.is_map(other):
        key = _widened(one.key_type, other.key_type, f"{name}.key")
        return pa.map_(key, _widened(one.item_type, other.item_type, f"{name}.value"))
    if pt.is_list(one) and pt.is_list(other):
        return pa.list_(_widened(one.value_type, other.value_type, f"{name}.element"))
    raise _NoCommonType(name, one, other)


def _widened_struct(one: Kind, other: Kind, name: str) -> Kind:
    kinds = {child.name: child.type for child in one}
    for child in other:
        before = kinds.get(child.name, child.type)
        kinds[child.name] = _widened(before, child.type, f"{name}.{child.name}")
    return pa.struct(list(kinds.items()))


def _digits(kind: Kind) -> tuple[int, int] | None:
    """Return precision and scale of the decimal that holds an exact number."""
    if pt.is_decimal(kind):
        return kind.precision, kind.scale
    return (_INTEGERS[kind], 0) if kind in _INTEGERS else None


def settled(kind: Kind) -> Kind:
    """Return the kind with `int` for what has no value in any file, as which it is stored."""
    if pt.is_null(kind):
        return pa.int32()
    if pt.is_struct(kind):
        return pa.struct([(child.name, settled(child.type)) for child in kind])
    if pt.is_map(kind):
        return pa.map_(settled(kind.key_type), settled(kind.item_type))
    if pt.is_list(kind):
        return pa.list_(settled(kind.value_type))
    return kind

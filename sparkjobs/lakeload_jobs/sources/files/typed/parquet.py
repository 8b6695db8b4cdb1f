"""Parquet files: the columns that their footers name, and row groups as Arrow reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from lakeload_jobs.rows.row_id import Column as Array
from lakeload_jobs.rows.row_id import Kind
from lakeload_jobs.sources.files.file_state import FileState, is_s3
from lakeload_jobs.sources.files.listing import ObjectFile
from lakeload_jobs.sources.files.text.opening import FileBytes
from lakeload_jobs.sources.files.typed.columns import (
    INSTANT,
    LOCAL,
    MAX_DIGITS,
    TYPE_NAMES,
    VARIANT,
    Column,
    FileSchema,
    OpenFile,
    Unit,
    read_all,
    without_twins,
)
from lakeload_jobs.sources.files.typed.rows import Batch, TypedPiece
from lakeload_jobs.sources.files.typed.variant import is_variant, unknown_type

_BUFFER = 1 << 20
_BATCH_BYTES = 2 << 20
_MAX_BATCH_ROWS = 1 << 16
_MIN_BATCH_ROWS = 1 << 10
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_SPARK_VERSION = b"org.apache.spark.version"
_VARIANT_GROUP = re.compile(r" .* group .*\(Variant(\(\d+\))?\) \{$")
_OLD_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_UNSIGNED: Mapping[Kind, Kind] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


@dataclass(frozen=True)
class ParquetSettings:
    """What a user may have set of Spark's reader: tables that exist have the types that follow."""

    bytes_are_text: bool = False
    nanoseconds_are_numbers: bool = False
    local_times_are_instants: bool = False


def open_parquet_file(source: Any, *, int96_unit: str = "us") -> pq.ParquetFile:
    """Open a file; nanoseconds, which Arrow takes for INT96 otherwise, end in 1677 and 2262."""
    return pq.ParquetFile(
        source, coerce_int96_timestamp_unit=int96_unit, pre_buffer=False, buffer_size=_BUFFER
    )


def read_footers(
    files: Sequence[FileState],
    open_file: OpenFile,
    settings: ParquetSettings,
    *,
    sets_aside: bool = False,
) -> tuple[FileSchema, ...]:
    """Return what the footers of `files` say, in their order. `sets_aside` is for `read_all`.

    Raises `LoadFailed` naming a file that is not there any more, or is no Parquet file.
    """

    def read(file: FileState) -> FileSchema:
        with open_file(file) as source, open_parquet_file(source) as opened:
            return _footer(file, opened, settings)

    return read_all(files, read, sets_aside=sets_aside)


def _footer(file: FileState, opened: pq.ParquetFile, settings: ParquetSettings) -> FileSchema:
    metadata, own = opened.metadata, opened.schema_arrow
    notes: Mapping[bytes, bytes] = metadata.metadata or {}
    walk = _Walk(file.path, metadata.schema, settings)
    spark_types = _spark_types(notes)
    columns = [walk.column(child, spark_types.get(child.name)) for child in own]
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    unpacked = max(sum(group.total_byte_size for group in groups), 1)
    units = tuple(
        Unit(group.num_rows, group.total_byte_size * file.size // unpacked, number, number + 1)
        for number, group in enumerate(groups)
    )
    return FileSchema(file, without_twins(file.path, columns), units, _counts_as_julian(notes))


def _counts_as_julian(notes: Mapping[bytes, bytes]) -> bool:
    """Whether the days before 1582 are those of old versions of Spark."""
    version = notes.get(_SPARK_VERSION, b"")
    return any(name in notes for name in _OLD_CALENDAR) or version.startswith(
        (b"1.", b"2.", b"3.0.")
    )


def _spark_types(notes: Mapping[bytes, bytes]) -> dict[str, Any]:
    """Return the types of columns as Spark wrote them, in JSON."""
    try:
        fields = json.loads(notes[_SPARK_SCHEMA])["fields"]
    except (KeyError, ValueError, TypeError):
        return {}
    return {field["name"]: field["type"] for field in fields}


def _has_spark_type(kind: Any, pattern: str) -> bool:
    """Whether a type of Spark, or one inside of it, is called so."""
    return bool(re.search(f'"({pattern})"', json.dumps(kind)))


def _variant_places(schema: pq.ParquetSchema) -> frozenset[int]:
    """Return the numbers of the leaves that groups begin with which are VARIANT: Arrow shows of
    such groups what they consist of."""
    places, leaves = set(), 0
    for line in str(schema).splitlines():
        leaves += line.startswith(" ") and line.endswith(";")
        if _VARIANT_GROUP.match(line):
            places.add(leaves)
    # Names with line breaks in them are shown as they are.
    return frozenset(places) if leaves == len(schema) else frozenset()


class _Walk:
    """Goes through the columns of one file and their leaves, which come in the same order."""

    def __init__(self, path: str, schema: pq.ParquetSchema, settings: ParquetSettings) -> None:
        self._path = path
        self._schema = schema
        self._variants = _variant_places(schema)
        self._leaves_read = 0
        self._settings = settings
        self._not_spark = self._refused = ""
        self._may_be_bad = False

    def column(self, own: Kind, spark_type: Any) -> Column:
        """Return the next column. `own` is its Arrow field, `spark_type` what Spark wrote it as."""
        self._not_spark = self._refused = ""
        self._may_be_bad = False
        kind = self._kind(own.name, own.type, spark_type)
        where = f"column `{own.name}` of `{self._path}`"
        only_spark = ""
        if _has_spark_type(spark_type, "interval [a-z ]+"):
            shown = spark_type if isinstance(spark_type, str) else "type of Spark's own"
            only_spark = f"{where} is a {shown}"
        elif kind == VARIANT:
            spark_type, self._not_spark = "variant", ""
        elif not _has_spark_type(spark_type, "variant"):
            spark_type = None
        return Column(
            own.name,
            kind,
            self._path,
            not_spark=f"{where} is {self._not_spark}" if self._not_spark else "",
            only_spark=only_spark,
            refused=f"{where} has {self._refused}, which is not supported" if self._refused else "",
            spark_type=spark_type,
            may_be_bad=self._may_be_bad,
        )

    def _kind(self, name: str, own: Kind, spark_type: Any = None) -> Kind:
        within = spark_type if isinstance(spark_type, dict) else {}
        if isinstance(own, pa.BaseExtensionType):
            return self._extension(name, own)
        if pt.is_dictionary(own):
            return self._kind(name, own.value_type)
        if is_variant(own) and (spark_type == "variant" or self._leaves_read in self._variants):
            return self._variant(own, spark_type)
        if pt.is_struct(own):
            if not own.num_fields:
                self._refused = f"the group `{name}`, which has no fields"
            if len({child.name for child in own}) < own.num_fields:
                self._refused = f"two fields of one name in `{name}`"
            types = {field["name"]: field["type"] for field in within.get("fields", ())}
            return pa.struct(
                [
                    (child.name, self._kind(child.name, child.type, types.get(child.name)))
                    for child in own
                ]
            )
        if pt.is_map(own):
            self._may_be_bad = True
            key = self._kind("key", own.key_type)
            return pa.map_(key, self._kind("value", own.item_type, within.get("valueType")))
        if _is_list(own):
            return pa.list_(self._kind("element", own.value_type, within.get("elementType")))
        place = self._leaves_read
        self._leaves_read += 1
        return self._leaf(own, self._schema.column(place))

    def _variant(self, own: Kind, spark_type: Any) -> Kind:
        self._leaves_read += _leaf_count(own)
        self._may_be_bad = True
        if spark_type is None:
            self._not_spark = "VARIANT inside of other values"
        if (unknown := unknown_type(own)) is not None:
            self._refused = f"a VARIANT with a `typed_value` of the type `{unknown}`"
        return VARIANT

    def _extension(self, name: str, own: Kind) -> Kind:
        if own.extension_name == "arrow.uuid":
            self._leaves_read += 1
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
            if own.precision > MAX_DIGITS:
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
        if own in TYPE_NAMES or pt.is_null(own):
            return own
        self._refused = f"the type `{own}`"
        return pa.binary()

    def _timestamp(self, own: Kind, leaf: pq.ColumnSchema) -> Kind:
        if leaf.physical_type == "INT96":
            self._may_be_bad = True
            return INSTANT
        if own.unit == "ns":
            if self._settings.nanoseconds_are_numbers:
                return pa.int64()
            self._not_spark = "TIMESTAMP in ns"
        self._may_be_bad = self._may_be_bad or own.unit != "us"
        # Arrow's zone may be that of the program which wrote the file, or none.
        stored = json.loads(leaf.logical_type.to_json())
        is_instant = stored.get("isAdjustedToUTC", own.tz is not None)
        return INSTANT if is_instant or self._settings.local_times_are_instants else LOCAL


def _leaf_count(own: Kind) -> int:
    """Return how many columns of the file a type is."""
    if not pt.is_nested(own):
        return 1
    return sum(_leaf_count(own.field(place).type) for place in range(own.num_fields))


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


@dataclass(frozen=True)
class ParquetReader:
    """Opens row groups; it travels to the tasks. `exact`: digits below a microsecond of INT96 are
    read as well. `files` opens objects in S3."""

    files: FileBytes
    exact: bool

    @contextmanager
    def open(self, piece: TypedPiece, names: Sequence[str]) -> Iterator[Iterator[Batch]]:
        """Open those columns of a piece that its file has."""
        with ExitStack() as stack:
            file = stack.enter_context(self._open(piece.file))
            present = set(file.parquet.schema_arrow.names)
            own = [name for name in names if name in present]
            batches = file.batches(piece, own)
            nanos: Iterator[_Columns] = repeat(({}, 0))
            if self.exact and (old := _int96_columns(file.parquet.metadata, own)):
                again = stack.enter_context(self._open(piece.file, int96_unit="ns"))
                nanos = again.batches(piece, old)
            yield (
                Batch(columns, rows, in_nanos)
                for (columns, rows), (in_nanos, _) in zip(batches, nanos, strict=False)
            )

    @contextmanager
    def _open(self, file: FileState, *, int96_unit: str = "us") -> Iterator[_OpenFile]:
        ranges = self.files.object_file(file) if is_s3(file.path) else None
        source = file.path if ranges is None else pa.PythonFile(ranges, mode="r")
        with open_parquet_file(source, int96_unit=int96_unit) as opened:
            yield _OpenFile(opened, ranges)


_Columns: TypeAlias = tuple[dict[str, Array], int]
"""Columns by name, and how many rows they have."""


def _int96_columns(metadata: pq.FileMetaData, names: Sequence[str]) -> list[str]:
    """Return those columns that are INT96, or have it in them, which holds nanoseconds."""
    leaves = (metadata.schema.column(number) for number in range(metadata.num_columns))
    paths = [leaf.path for leaf in leaves if leaf.physical_type == "INT96"]
    return [n for n in names if any(path == n or path.startswith(f"{n}.") for path in paths)]


@dataclass(frozen=True)
class _OpenFile:
    """An open file; `ranges` is what it is read from in S3."""

    parquet: pq.ParquetFile
    ranges: ObjectFile | None

    def batches(self, piece: TypedPiece, names: Sequence[str]) -> Iterator[_Columns]:
        """Yield the columns `names` of a piece batch by batch, with the number of rows."""
        groups = [unit.number for unit in piece.units]
        if not names:
            yield {}, piece.rows
            return
        if self.ranges is None:
            yield from self._batches(groups, names)
            return
        for group in groups:
            self.ranges.prefetch(_ranges(self.parquet.metadata.row_group(group), names))
            yield from self._batches((group,), names)

    def _batches(self, groups: Sequence[int], names: Sequence[str]) -> Iterator[_Columns]:
        batches = self.parquet.iter_batches(
            batch_size=_batch_rows(self.parquet.metadata, groups),
            row_groups=list(groups),
            columns=list(names),
            use_threads=False,
        )
        for batch in batches:
            yield {name: batch.column(name) for name in names}, batch.num_rows


def _ranges(group: pq.RowGroupMetaData, names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where the columns of a row group lie."""
    for number in range(group.num_columns):
        chunk = group.column(number)
        path = chunk.path_in_schema
        if any(path == name or path.startswith(f"{name}.") for name in names):
            # Writers have put 0 where there is no dictionary.
            start = min(chunk.data_page_offset, chunk.dictionary_page_offset or 2**63)
            yield start, start + chunk.total_compressed_size


def _batch_rows(metadata: pq.FileMetaData, groups: Sequence[int]) -> int:
    """Return how many rows make a batch of a few megabytes."""
    rows = sum(metadata.row_group(number).num_rows for number in groups)
    size = sum(metadata.row_group(number).total_byte_size for number in groups)
    return max(_MIN_BATCH_ROWS, min(_MAX_BATCH_ROWS, _BATCH_BYTES * rows // max(size, 1)))

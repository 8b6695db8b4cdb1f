"""Parquet files: the columns that their footers name, and row groups as Arrow reads them."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from lakeload_jobs.rows.arrow import Column as Array
from lakeload_jobs.rows.arrow import Kind
from lakeload_jobs.sources.base import UnreadableFile
from lakeload_jobs.sources.batch_sizes import (
    BATCH_BYTES,
    BATCH_ROWS,
    LARGE_VALUE_HINT,
    batch_bytes,
    is_too_large,
    too_large,
)
from lakeload_jobs.sources.files.formats.parquet.pages import pages, read_struct
from lakeload_jobs.sources.files.typed.columns import (
    INSTANT,
    LOCAL,
    MAX_DIGITS,
    TYPE_NAMES,
    VARIANT,
    Column,
    FileSchema,
    Unit,
    read_all,
    without_twins,
)
from lakeload_jobs.sources.files.typed.rows import DAMAGED_HINT, Batch, TypedPart, other_rows
from lakeload_jobs.sources.files.typed.variant import is_variant, unknown_type
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState, is_s3
from lakeload_jobs.sources.paths.objects import ObjectFile

_BUFFER = 1 << 20
_END_BYTES = 64 << 10
"""So many bytes at the end of a file Arrow reads first."""
_LENGTH_AND_MAGIC = 8
_ENCRYPTION_ALGORITHM = 8
"""A field of a footer."""
_BATCH_BYTES = 2 << 20
"""Bytes of a batch before decompression: decoded, it has more."""
_FEW_ROWS, _GROWTH = 1 << 10, 8
"""Batches of fewer rows are larger than that: each column of a batch takes its time. The first one
has no more, because nothing is known of the size of decoded rows until some have come."""
_VERY_FEW_ROWS = 4
"""Where the first rows are enough."""
_DICTIONARY = 32 << 10
"""Where a column is smaller, its dictionary is not looked at."""
_DICTIONARY_BYTES = 64 << 20
"""Bytes of so many average values of a dictionary as a batch has rows, at most."""
_LARGE_CHUNK = 32 << 20
"""The pages of larger columns of text or bytes are looked at: rows may be narrow, then wide."""
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

    @classmethod
    def of_session(cls, setting: Callable[[str], str] | None) -> Self:
        """Return what a session says, None for Spark as it starts."""
        if setting is None:
            return cls()
        is_set = {name: setting(f"spark.sql.{name}").lower() == "true" for name in _SETTINGS}
        return cls(
            bytes_are_text=is_set["parquet.binaryAsString"],
            nanoseconds_are_numbers=is_set["legacy.parquet.nanosAsLong"],
            local_times_are_instants=not is_set["parquet.inferTimestampNTZ.enabled"],
        )


_SETTINGS = (
    *("parquet.binaryAsString", "legacy.parquet.nanosAsLong"),
    "parquet.inferTimestampNTZ.enabled",
)


def as_arrow_opens(file: FileState, opener: FileBytes) -> Any:
    """Return a file as `open_parquet_file` takes it: a path, or an object of which the end is at
    hand, which is one request for what Arrow and `_check_columns` read of most footers."""
    if not is_s3(file.path):
        return file.path
    opened = opener.object_file(file)
    opened.prefetch([(max(file.size - _END_BYTES, 0), file.size)] if file.size else [])
    return pa.PythonFile(opened, mode="r")


def open_parquet_file(source: Any, *, int96_unit: str = "us") -> pq.ParquetFile:
    """Open a file; nanoseconds, which Arrow takes for INT96 otherwise, end in 1677 and 2262.

    A page that its writer gave a checksum is compared with it when it is read.
    """
    return pq.ParquetFile(
        source,
        coerce_int96_timestamp_unit=int96_unit,
        pre_buffer=False,
        buffer_size=_BUFFER,
        page_checksum_verification=True,
    )


def read_footers(
    files: Sequence[FileState],
    opener: FileBytes,
    settings: ParquetSettings,
    *,
    sets_aside: bool = False,
) -> tuple[FileSchema, ...]:
    """Return what the footers of `files` say, in their order. `sets_aside` is for `read_all`.

    Raises `LoadFailed` naming a file that is not there any more, or is no Parquet file.
    """

    def read(file: FileState) -> FileSchema:
        source = as_arrow_opens(file, opener)
        _check_footer(file, source)
        with open_parquet_file(source) as opened:
            _check_columns(file, source, opened.metadata)
            return _footer(file, opened, settings)

    return read_all(files, read, sets_aside=sets_aside)


def _check_footer(file: FileState, source: Any) -> None:
    """Raise `UnreadableFile` for an encrypted footer, before Arrow is asked for columns, which ends
    the process. `source` is the file as Arrow takes it."""
    with _seekable(source) as stream:
        size = stream.seek(0, io.SEEK_END)
        stream.seek(max(size - len(b"PARE"), 0))
        if stream.read(len(b"PARE")) == b"PARE":
            raise _encrypted(file, "an encrypted footer")


def _check_columns(file: FileState, source: Any, metadata: pq.FileMetaData) -> None:
    """Raise `UnreadableFile` for encrypted columns below a footer that is not encrypted, and for a
    footer with other bytes."""
    with _seekable(source) as stream:
        end = stream.seek(0, io.SEEK_END) - _LENGTH_AND_MAGIC
        stream.seek(end)
        length = int.from_bytes(stream.read(4), "little")
        # A signature follows such a footer. Others are not read twice, which takes a while.
        if length == metadata.serialized_size:
            return
        stream.seek(end - length)
        try:
            footer = read_struct(stream.read(length))
        except (IndexError, ValueError, RecursionError) as error:
            # Whether it is encrypted cannot be told, and Arrow would end the process.
            why = "the file is damaged: its footer is longer than what it says"
            raise UnreadableFile(file.path, why, hint=DAMAGED_HINT) from error
    if _ENCRYPTION_ALGORITHM in footer:
        raise _encrypted(file, "encrypted columns")


def _encrypted(file: FileState, what: str) -> UnreadableFile:
    return UnreadableFile(file.path, f"it has {what}", hint="write it without encryption")


@contextmanager
def _seekable(source: Any) -> Iterator[Any]:
    if not isinstance(source, str):
        yield source
        return
    with Path(source).open("rb") as stream:
        yield stream


def _footer(file: FileState, opened: pq.ParquetFile, settings: ParquetSettings) -> FileSchema:
    metadata, own = opened.metadata, opened.schema_arrow
    notes: Mapping[bytes, bytes] = metadata.metadata or {}
    walk = _Walk(file.path, metadata.schema, settings)
    spark_types = _spark_types(notes)
    columns = [walk.column(child, spark_types.get(child.name)) for child in own]
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    rows = sum(group.num_rows for group in groups)
    if metadata.num_rows != rows or any(group.num_rows < 0 for group in groups):
        raise UnreadableFile(
            file.path,
            f"its footer says that it has {metadata.num_rows:,} rows, and its row groups have "
            f"{rows:,}",
            hint=DAMAGED_HINT,
        )
    unpacked = max(sum(group.total_byte_size for group in groups), 1)
    units = tuple(
        Unit(group.num_rows, group.total_byte_size * file.size // unpacked, number, number + 1)
        for number, group in enumerate(groups)
    )
    # A damaged file may have rows and no column.
    codec = next((group.column(0).compression for group in groups if group.num_columns), "")
    return FileSchema(
        file,
        without_twins(file.path, columns),
        units,
        _counts_as_julian(notes),
        codec.lower().replace("uncompressed", ""),
    )


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
    read as well. `whole`: all rows are read, for which objects in S3 are fetched in few requests.
    `files` opens them."""

    files: FileBytes
    exact: bool
    whole: bool = True

    @contextmanager
    def open(self, part: TypedPart, names: Sequence[str]) -> Iterator[Iterator[Batch]]:
        """Open those columns of a part that its file has."""
        with ExitStack() as stack:
            file = stack.enter_context(self._open(part.file))
            present = set(file.parquet.schema_arrow.names)
            own = [name for name in names if name in present]
            batches = file.batches(part, own) if self.whole else file.first_rows(part, own)
            if self.exact and (old := _int96_columns(file.parquet.metadata, own)):
                again = stack.enter_context(self._open(part.file, int96_unit="ns"))
                yield _with_nanos(batches, again.batches(part, old))
            else:
                yield (Batch(columns, rows) for columns, rows in batches)

    def check(self, part: TypedPart, names: Sequence[str]) -> None:
        """Decode columns of a part, one after the other, but what Arrow has no type for. Raises
        `UnreadableFile` for other rows than the part has, and `OSError` for damage."""
        groups = [unit.number for unit in part.units]
        with self._open(part.file) as file:
            metadata = file.parquet.metadata
            present = set(file.parquet.schema_arrow.names)
            for name in names:
                if name not in present:
                    continue
                for group in groups:
                    for place, _ in _chunks(metadata.row_group(group), [name]):
                        _check_values(metadata, group, place, part.path)
                with suppress(pa.ArrowException):
                    rows = sum(file.rows(group, name) for group in groups)
                    if rows != part.rows:
                        raise other_rows(part, rows)

    @contextmanager
    def _open(self, file: FileState, *, int96_unit: str = "us") -> Iterator[_OpenFile]:
        ranges = self.files.object_file(file) if is_s3(file.path) else None
        source = file.path if ranges is None else pa.PythonFile(ranges, mode="r")
        with open_parquet_file(source, int96_unit=int96_unit) as opened:
            yield _OpenFile(opened, ranges)


_Columns: TypeAlias = tuple[dict[str, Array], int]
"""Columns by name, and how many rows they have."""


def _with_nanos(batches: Iterator[_Columns], nanos: Iterator[_Columns]) -> Iterator[Batch]:
    """Yield batches with other columns of the same rows, which come in batches of other sizes."""
    held: list[tuple[dict[str, Array], int]] = []
    for columns, rows in batches:
        while (known := sum(count for _, count in held)) < rows:
            held.append(next(nanos))
        names = held[0][0]
        whole = {name: pa.concat_arrays([own[name] for own, _ in held]) for name in names}
        held = [({name: column.slice(rows) for name, column in whole.items()}, known - rows)]
        yield Batch(columns, rows, {name: one.slice(0, rows) for name, one in whole.items()})


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

    def batches(self, part: TypedPart, names: Sequence[str]) -> Iterator[_Columns]:
        """Yield the columns `names` of a part batch by batch, with the number of rows. Raises
        `UnreadableFile` for a value that is too large."""
        groups = [unit.number for unit in part.units]
        if not names:
            yield {}, part.rows
            return
        if self.ranges is None:
            with Path(part.path).open("rb") as stream:
                yield from self._batches(part, stream, groups, names)
            return
        for group in groups:
            self.ranges.prefetch(_ranges(self.parquet.metadata.row_group(group), names))
            yield from self._batches(part, self.ranges, (group,), names)

    def first_rows(self, part: TypedPart, names: Sequence[str]) -> Iterator[_Columns]:
        """Yield the columns `names` of a part in batches of few rows."""
        batches = self.parquet.iter_batches(
            batch_size=_VERY_FEW_ROWS,
            row_groups=[unit.number for unit in part.units],
            columns=list(names),
            use_threads=False,
        )
        return (({name: batch.column(name) for name in names}, batch.num_rows) for batch in batches)

    def rows(self, group: int, name: str) -> int:
        """Return how many rows of a column can be decoded in a row group."""
        if self.ranges is not None:
            self.ranges.prefetch(_ranges(self.parquet.metadata.row_group(group), [name]))
        batches = self.parquet.iter_batches(
            batch_size=_FEW_ROWS, row_groups=[group], columns=[name], use_threads=False
        )
        return sum(batch.num_rows for batch in batches)

    def _batches(
        self, part: TypedPart, stream: Any, groups: Sequence[int], names: Sequence[str]
    ) -> Iterator[_Columns]:
        widths = _Widths.of(self.parquet.metadata, groups, names, part.path, stream)
        most, done = _FEW_ROWS, 0
        batches = self.parquet.iter_batches(
            batch_size=widths.rows_from(0, most),
            row_groups=list(groups),
            columns=list(names),
            use_threads=False,
        )
        for batch in batches:
            done += batch.num_rows
            fitting = batch.num_rows * BATCH_BYTES // max(batch_bytes(batch), 1)
            most = max(1, min(BATCH_ROWS, most * _GROWTH, fitting))
            yield {name: batch.column(name) for name in names}, batch.num_rows
            # Arrow asks for it before each batch.
            self.parquet.reader.set_batch_size(widths.rows_from(done, most))


@dataclass(frozen=True)
class _Widths:
    """How many bytes the rows of row groups have, as far as the file tells: `sizes` are those of
    the first rows, as many as `rows` has at the same place. `most` is how many rows a batch has at
    most, because a value of a dictionary may stand in all of them."""

    rows: npt.NDArray[np.float64]
    sizes: npt.NDArray[np.float64]
    most: int

    @classmethod
    def of(
        cls,
        metadata: pq.FileMetaData,
        groups: Sequence[int],
        names: Sequence[str],
        path: str,
        stream: Any,
    ) -> _Widths:
        """Raises `UnreadableFile` for a value that is too large, and for a column that has other
        rows than its row group."""
        rows, sizes, most = [np.zeros(1)], [np.zeros(1)], BATCH_ROWS
        for number in groups:
            group = metadata.row_group(number)
            size, curves = 0, []
            for place, chunk in _chunks(group, names):
                is_flat = _check_values(metadata, number, place, path)
                is_text = chunk.physical_type == "BYTE_ARRAY"
                if is_text and chunk.total_uncompressed_size > _DICTIONARY:
                    first = next(pages(stream, *_extent(chunk)), None)
                    if first is not None and first.is_dictionary:
                        width = first.size // max(first.values, 1)
                        most = max(1, min(most, _DICTIONARY_BYTES // max(width, 1)))
                if is_text and chunk.total_uncompressed_size > _LARGE_CHUNK:
                    where = f"row group {number + 1}"
                    curves.append(_curve(group, chunk, stream, path, where, is_flat=is_flat))
                else:
                    size += chunk.total_uncompressed_size
            ends = np.unique(np.concatenate([[0, group.num_rows], *(own for own, _ in curves)]))
            own = ends * (size / max(group.num_rows, 1))
            own += sum((np.interp(ends, *curve) for curve in curves), np.zeros(len(ends)))
            rows.append(ends[1:] + rows[-1][-1])
            sizes.append(own[1:] + sizes[-1][-1])
        return cls(np.concatenate(rows), np.concatenate(sizes), most)

    def rows_from(self, first: int, most: int) -> int:
        """Return how many rows from one on make a batch."""
        before = float(np.interp(first, self.rows, self.sizes))

        def rows(size: int) -> int:
            return int(np.interp(before + size, self.sizes, self.rows)) - first

        usual, largest = rows(_BATCH_BYTES), rows(BATCH_BYTES)
        return max(1, min(most, self.most, max(usual, min(_FEW_ROWS, largest))))


def _check_values(metadata: pq.FileMetaData, number: int, place: int, path: str) -> bool:
    """Return whether a leaf of a row group has one value in each row. Raises `UnreadableFile` where
    it does not have as many as it should."""
    group = metadata.row_group(number)
    chunk, is_flat = group.column(place), metadata.schema.column(place).max_repetition_level == 0
    if is_flat and chunk.num_values != group.num_rows:
        raise UnreadableFile(
            path,
            f"row group {number + 1} has {group.num_rows:,} rows, and its column "
            f"`{chunk.path_in_schema}` {chunk.num_values:,} values",
            hint=DAMAGED_HINT,
        )
    return is_flat


def _curve(
    group: pq.RowGroupMetaData, chunk: Any, stream: Any, path: str, where: str, *, is_flat: bool
) -> tuple[Any, Any]:
    """Return numbers of rows, and the bytes that so many first rows have in one column."""
    values, sizes = [0], [0]
    for page in pages(stream, *_extent(chunk)):
        if is_too_large(page.size, page.values):
            # Values of lists are no rows, and those of a dictionary are in any.
            row = f", row {values[-1] + 1:,}" if is_flat and not page.is_dictionary else ""
            raise UnreadableFile(
                path,
                f"{where}{row}: a value of column `{chunk.path_in_schema}` "
                f"{too_large(page.size // max(page.values, 1))}",
                hint=LARGE_VALUE_HINT,
            )
        if not page.is_dictionary:
            values.append(values[-1] + page.values)
            sizes.append(sizes[-1] + page.size)
    if values[-1] == 0:
        return np.array([0, group.num_rows]), np.array([0, chunk.total_uncompressed_size])
    return np.array(values) * (group.num_rows / values[-1]), np.array(sizes)


def _chunks(group: pq.RowGroupMetaData, names: Sequence[str]) -> Iterator[tuple[int, Any]]:
    """Yield the leaves of columns, and their places."""
    known = set(names)
    for place in range(group.num_columns):
        chunk = group.column(place)
        path = chunk.path_in_schema
        if path in known or any(path[: dot.start()] in known for dot in re.finditer(r"\.", path)):
            yield place, chunk


def _ranges(group: pq.RowGroupMetaData, names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where the columns of a row group lie."""
    return (_extent(chunk) for _, chunk in _chunks(group, names))


def _extent(chunk: Any) -> tuple[int, int]:
    """Return where a column of a row group lies."""
    # Writers have put 0 where there is no dictionary.
    start = min(chunk.data_page_offset, chunk.dictionary_page_offset or 2**63)
    return start, start + chunk.total_compressed_size

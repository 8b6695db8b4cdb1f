"""Parquet files read inside the tasks by Arrow: no row passes through the JVM.

Spark says which columns and types a table has. Each file's own schema is compared with them, and
only what Arrow reads exactly as Spark does is read here; anything else raises `NotDirect` with the
reason, before a task has started.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.rows.row_id import Column, Kind, with_child
from lakeload_jobs.sources.base import Splits
from lakeload_jobs.sources.files.file_state import FileState

_AT_ONCE = 16
_PART_BYTES = 128 << 20
_LEAST_PART_BYTES = 4 << 20
"""Spark's own measures: parts no larger than the one, and no smaller than the other."""

_BATCH_BYTES = 8 << 20
_MAX_BATCH_ROWS = 1 << 16
_MIN_BATCH_ROWS = 1 << 10
_BUFFER = 1 << 20
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_WHOLE_NUMBER = re.compile(r"-?\d{1,18}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_SPARK_VERSION = b"org.apache.spark.version"
_OLD_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


class NotDirect(Exception):
    """Spark has to read these files; the message says why, as part of a sentence."""


@dataclass(frozen=True)
class _Piece:
    """Some row groups of one file, and the values that its folders name."""

    path: str
    groups: tuple[int, ...]
    rows: int
    folders: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class _File:
    """What the footer of a file tells; `sizes` are rows and bytes of its row groups."""

    path: str
    names: tuple[str, ...]
    sizes: tuple[tuple[int, int], ...]
    folders: tuple[tuple[str, Any], ...]


def split_parquet(
    files: Sequence[FileState],
    schema: pa.Schema,
    *,
    base: str | None = None,
    typed: Collection[str] = (),
    parallelism: int = 1,
) -> Splits:
    """Return the rows of local Parquet files, in the order of their paths.

    `schema` are the columns to read, in the types that Spark hands over (`to_arrow_schema`). `base`
    is the folder below which `column=value` folders are columns, `typed` are columns of which the
    user gave the types.

    Raises `NotDirect`, and `LoadFailed` for a file that is not there any more.
    """
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="footers") as pool:
        footers = list(pool.map(lambda file: _footer(file, schema, base), files))
    named = {name for footer in footers for name in dict(footer.folders)}
    if both := sorted(named.intersection(typed)):
        raise NotDirect(f"`columns.types` gives the type of the folders' column `{both[0]}`")
    known = {name for footer in footers for name in (*footer.names, *dict(footer.folders))}
    if strange := [name for name in schema.names if name not in known]:
        raise NotDirect(f"column `{strange[0]}` is in no file and in no folder's name")
    parts = _parts(footers, parallelism)
    counts = tuple(sum(piece.rows for piece in part) for part in parts)
    return Splits(tuple(parts), ReadParquet(schema), counts)


@dataclass(frozen=True)
class ReadParquet:
    """Reads parts of `split_parquet`; it travels to the tasks."""

    schema: pa.Schema

    def __call__(self, part: Sequence[_Piece]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one part. Raises `LoadFailed` naming the file."""
        for piece in part:
            try:
                yield from self._read(piece)
            except (OSError, pa.ArrowException) as error:
                raise _unreadable(piece.path, error) from error

    def _read(self, piece: _Piece) -> Iterator[pa.RecordBatch]:
        folders = dict(piece.folders)
        with _opened(piece.path) as file:
            there = set(file.schema_arrow.names)
            names = [n for n in self.schema.names if n in there and n not in folders]
            if not names:
                yield self._batch({}, folders, piece.rows)
                return
            batches = file.iter_batches(
                batch_size=_batch_rows(file.metadata, piece.groups),
                row_groups=list(piece.groups),
                columns=names,
                use_threads=False,
            )
            for batch in batches:
                columns = {name: batch.column(name) for name in names}
                yield self._batch(columns, folders, batch.num_rows)

    def _batch(
        self, columns: Mapping[str, Column], folders: Mapping[str, Any], rows: int
    ) -> pa.RecordBatch:
        arrays: list[Column] = []
        for field in self.schema:
            if field.name in folders:
                arrays.append(pa.repeat(pa.scalar(folders[field.name], field.type), rows))
            elif field.name in columns:
                arrays.append(as_type(columns[field.name], field.type))
            else:
                arrays.append(pa.nulls(rows, field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def as_type(column: Column, kind: Kind) -> Column:
    """Return a column as it would be had Spark read it as `kind`, as far as `_exact`."""
    own = column.type
    if own == kind:
        return column
    if pt.is_null(own):
        return pa.nulls(len(column), kind)
    if pt.is_dictionary(own):
        return as_type(column.dictionary_decode(), kind)
    if pt.is_struct(kind):
        fields = [_field_as_type(column, field) for field in kind]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=column.is_null())
    if pt.is_map(kind):
        keys, items = as_type(column.keys, kind.key_type), as_type(column.items, kind.item_type)
        fields = [kind.key_field, kind.item_field]
        entries = pa.StructArray.from_arrays([keys, items], fields=fields)
        return with_child(column, kind, entries)
    if pt.is_list(kind):
        if pt.is_large_list(own):
            column = column.cast(pa.list_(own.value_field))
        return with_child(column, kind, as_type(column.values, kind.value_type))
    if pt.is_duration(own):
        return column.view(pa.int64())
    if pt.is_timestamp(own) and pt.is_timestamp(kind):
        # Both are microseconds since 1970: the zone of the session is UTC.
        return column.cast(pa.timestamp("us", own.tz)).view(kind)
    if pt.is_binary(own) and pt.is_string(kind):
        return column.view(kind)
    return column.cast(kind)


def _field_as_type(column: Column, field: Kind) -> Column:
    place = column.type.get_field_index(field.name)
    if place < 0:
        return pa.nulls(len(column), field.type)
    return as_type(column.field(place), field.type)


def _exact(own: Kind, kind: Kind) -> bool:
    """Whether `as_type` makes of a file's values of type `own` the values that Spark reads as
    `kind`."""
    if own == kind or pt.is_null(own):
        return True
    if pt.is_dictionary(own):
        return _exact(own.value_type, kind)
    if pt.is_struct(own) and pt.is_struct(kind):
        return _exact_fields(own, kind)
    if pt.is_map(own) or pt.is_map(kind):
        if not (pt.is_map(own) and pt.is_map(kind)):
            return False
        return _exact(own.key_type, kind.key_type) and _exact(own.item_type, kind.item_type)
    if pt.is_list(kind):
        is_list = pt.is_list(own) or pt.is_large_list(own)
        return is_list and _exact(own.value_type, kind.value_type)
    if pt.is_decimal(kind):
        if own == pa.uint64():
            return bool(kind == pa.decimal128(20, 0))
        small = pt.is_decimal(own) and not pt.is_decimal256(own)
        return small and own.scale == kind.scale and own.precision <= kind.precision
    if pt.is_timestamp(kind):
        return pt.is_timestamp(own) and own.unit != "ns"
    if pt.is_fixed_size_binary(own):
        return bool(kind == pa.binary())
    return any(kind == wide and own in narrow for wide, narrow in _WIDER)


def _exact_fields(own: Kind, kind: Kind) -> bool:
    """A field that only other files have is null; a struct without any of its fields is null
    itself to Spark, and is left to it."""
    names = {field.name for field in own}
    common = [field for field in kind if field.name in names]
    if len(names) < own.num_fields or not common:
        return False
    return all(_exact(own.field(field.name).type, field.type) for field in common)


_WIDER: tuple[tuple[pa.DataType, tuple[pa.DataType, ...]], ...] = (
    (pa.string(), (pa.large_string(), pa.string_view())),
    (pa.binary(), (pa.large_binary(), pa.binary_view())),
    (pa.date32(), (pa.date64(),)),
    (pa.float64(), (pa.float32(),)),
    (pa.int16(), (pa.int8(), pa.uint8())),
    (pa.int32(), (pa.int8(), pa.int16(), pa.uint8(), pa.uint16())),
    (
        pa.int64(),
        (
            *(pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32()),
            *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
        ),
    ),
)


def _footer(file: FileState, schema: pa.Schema, base: str | None) -> _File:
    """Read a footer and compare it with what is wanted."""
    folders = _folders(file.path, base, schema)
    try:
        with _opened(file.path) as opened:
            metadata, own = opened.metadata, opened.schema_arrow
    except FileNotFoundError as error:
        raise _unreadable(file.path, error) from error
    except (OSError, pa.ArrowException) as error:
        said = _short(error)
        raise NotDirect(f"Arrow cannot read the footer of `{file.path}`: {said}") from error
    _check_calendar(file.path, metadata.metadata or {})
    if len(set(own.names)) < len(own.names):
        raise NotDirect(f"two columns of `{file.path}` have one name")
    given = dict(folders)
    for field in schema:
        if field.name in given or field.name not in own.names:
            continue
        kind = own.field(field.name).type
        if not _exact(kind, field.type) and not _is_text(metadata, field, kind):
            raise NotDirect(
                f"column `{field.name}` is `{kind}` in `{file.path}` and `{field.type}` to Spark"
            )
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    unpacked = max(sum(group.total_byte_size for group in groups), 1)
    sizes = ((group.num_rows, group.total_byte_size * file.size // unpacked) for group in groups)
    return _File(file.path, tuple(own.names), tuple(sizes), folders)


def _is_text(metadata: pq.FileMetaData, field: Kind, kind: Kind) -> bool:
    """Whether Arrow calls bytes what the file, and so Spark, calls text of another kind."""
    if not (pt.is_string(field.type) and pt.is_binary(kind)):
        return False
    columns = (metadata.schema.column(number) for number in range(metadata.num_columns))
    found = next((column for column in columns if column.path == field.name), None)
    return found is not None and found.logical_type.type in ("ENUM", "JSON")


def _check_calendar(path: str, notes: Mapping[bytes, bytes]) -> None:
    """Old versions of Spark count the days before 1582 by the Julian calendar."""
    version = notes.get(_SPARK_VERSION, b"")
    if any(name in notes for name in _OLD_CALENDAR) or version.startswith((b"1.", b"2.", b"3.0.")):
        raise NotDirect(f"`{path}` was written with dates of the Julian calendar")


def _folders(path: str, base: str | None, schema: pa.Schema) -> tuple[tuple[str, Any], ...]:
    """Return the values that the `column=value` folders of a file have."""
    if base is None:
        return ()
    found = []
    for folder in path.removeprefix(f"{base.rstrip('/')}/").split("/")[:-1]:
        name, equals, text = folder.partition("=")
        place = schema.get_field_index(_unescaped(name))
        if equals and place >= 0:
            field = schema.field(place)
            found.append((field.name, _folder_value(folder, text, field)))
    return tuple(found)


def _unescaped(name: str) -> str:
    """Spark takes each `%XX` for one sign, and leaves other letters alone."""
    return re.sub("%([0-9A-Fa-f]{2})", lambda found: chr(int(found[1], 16)), name)


def _folder_value(folder: str, text: str, field: Kind) -> Any:
    """Return what Spark makes of a folder's name, where there can be no doubt about it."""
    if text == _NO_VALUE:
        return None
    value = _unescaped(text)
    if pt.is_string(field.type) and value:
        return value
    if field.type in (pa.int32(), pa.int64()) and _WHOLE_NUMBER.fullmatch(value):
        return int(value)
    if pt.is_date32(field.type) and _DATE.fullmatch(value):
        return date.fromisoformat(value)
    raise NotDirect(f"the folder `{folder}` stands for a `{field.type}`")


def _parts(files: Sequence[_File], parallelism: int) -> list[tuple[_Piece, ...]]:
    """Put row groups together until a part is large enough."""
    total = sum(size for file in files for _, size in file.sizes)
    enough = max(_LEAST_PART_BYTES, min(_PART_BYTES, total // max(parallelism, 1)))
    parts: list[tuple[_Piece, ...]] = []
    part: list[_Piece] = []
    held = 0
    for file in files:
        groups: list[int] = []
        for number, (rows, size) in enumerate(file.sizes):
            if held and held + size > enough:
                parts.append((*part, *_piece(file, groups)))
                part, groups, held = [], [], 0
            if rows:
                groups.append(number)
                held += size
        part += _piece(file, groups)
    return [*parts, tuple(part)] if part else parts


def _piece(file: _File, groups: Sequence[int]) -> list[_Piece]:
    rows = sum(file.sizes[number][0] for number in groups)
    return [_Piece(file.path, tuple(groups), rows, file.folders)] if rows else []


def _opened(path: str) -> pq.ParquetFile:
    # Nanoseconds, which Arrow takes for INT96 otherwise, wrap around in 1677 and 2262.
    return pq.ParquetFile(
        path, coerce_int96_timestamp_unit="us", pre_buffer=False, buffer_size=_BUFFER
    )


def _batch_rows(metadata: pq.FileMetaData, groups: Sequence[int]) -> int:
    """Return how many rows make a batch of a few megabytes."""
    rows = sum(metadata.row_group(number).num_rows for number in groups)
    size = sum(metadata.row_group(number).total_byte_size for number in groups)
    return max(_MIN_BATCH_ROWS, min(_MAX_BATCH_ROWS, _BATCH_BYTES * rows // max(size, 1)))


def _unreadable(path: str, error: Exception) -> LoadFailed:
    if isinstance(error, FileNotFoundError):
        return LoadFailed(
            f"the source changed while it was read: `{path}` was removed",
            hint="load files that are complete; write new ones beside them and rename",
            retryable=True,
        )
    return LoadFailed(f"reading `{path}`: {_short(error)}", hint="check the file and `format`")


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:300]

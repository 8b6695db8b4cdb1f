"""The rows of Parquet files, in parts that Arrow reads inside the tasks."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from itertools import repeat
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import OnBadValue
from lakeload_jobs.rows.rejects import REJECT, REJECTED_HELPER, Reject, reject_column
from lakeload_jobs.rows.row_id import Column, Kind, pc
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER, PLACE_HELPER
from lakeload_jobs.sources.base import Splits
from lakeload_jobs.sources.files.parquet.columns import Footer, open_parquet_file, unreadable
from lakeload_jobs.sources.files.parquet.values import BadValues, Conversion

OnLoss = Literal["FAIL", "TRUNCATE"]

_PART_BYTES = 128 << 20
_LEAST_PART_BYTES = 4 << 20
"""Spark's own measures: parts no larger than the one, and no smaller than the other."""

_BATCH_BYTES = 8 << 20
_MAX_BATCH_ROWS = 1 << 16
_MIN_BATCH_ROWS = 1 << 10
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_WHOLE_NUMBER = re.compile(r"-?\d{1,18}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_SHOWN = 60


class NotDirect(Exception):
    """Spark has to read these files; the message says why, as part of a sentence."""


@dataclass(frozen=True)
class _Piece:
    """Some row groups of one file, and the values that its folders name."""

    path: str
    groups: tuple[int, ...]
    rows: int
    folders: tuple[tuple[str, Any], ...]


def split_parquet(
    footers: Sequence[Footer], read: ReadParquet, *, base: str | None, parallelism: int
) -> Splits:
    """Return the rows of local files, in the order of `footers`.

    `base` is the folder below which `column=value` folders are columns. Raises `NotDirect` for
    folders of which only Spark knows the value.
    """
    folders = [_folders(footer.file.path, base, read.schema) for footer in footers]
    parts = _parts(list(zip(footers, folders, strict=True)), parallelism)
    counts = tuple(sum(piece.rows for piece in part) for part in parts)
    return Splits(tuple(parts), read, counts)


@dataclass(frozen=True)
class ReadParquet:
    """Reads parts of `split_parquet`; it travels to the tasks.

    `schema` are the columns to read, in their kinds. A bad value fails the load (FAIL), is null and
    counted in `BAD_VALUES_HELPER` (NULL), or its row is rejected, with the reason in
    `REJECTED_HELPER` (QUARANTINE). `places` adds `PLACE_HELPER`.
    """

    schema: pa.Schema
    on_loss: OnLoss = "FAIL"
    on_bad_value: OnBadValue = "FAIL"
    places: bool = False

    @property
    def batch_schema(self) -> pa.Schema:
        """The columns of the batches, helpers included."""
        helpers: list[Any] = []
        if self.on_bad_value == "NULL":
            helpers.append(pa.field(BAD_VALUES_HELPER, pa.int64()))
        elif self.on_bad_value == "QUARANTINE":
            helpers.append(pa.field(REJECTED_HELPER, REJECT))
        if self.places:
            helpers.append(pa.field(PLACE_HELPER, _PLACE))
        return pa.schema([*self.schema, *helpers])

    def __call__(self, part: Sequence[_Piece]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one part. Raises `LoadFailed` naming the file."""
        for piece in part:
            try:
                yield from self._read(piece)
            except (OSError, pa.ArrowException) as error:
                # Such as arrays of DuckDB with nulls among them, which only Spark reads.
                hint = "check the file; `spark: {reader: JVM}` lets Spark read it"
                raise unreadable(piece.path, error, hint=hint) from error

    def _read(self, piece: _Piece) -> Iterator[pa.RecordBatch]:
        folders = dict(piece.folders)
        with ExitStack() as opened:
            file = opened.enter_context(open_parquet_file(piece.path))
            there = set(file.schema_arrow.names)
            names = [n for n in self.schema.names if n in there and n not in folders]
            batches = _batches(file, piece, names)
            nanos: Iterator[_Batch] = repeat(({}, 0))
            if self.on_loss == "FAIL" and (old := _int96_columns(file.metadata, names)):
                again = opened.enter_context(open_parquet_file(piece.path, int96_unit="ns"))
                nanos = _batches(again, piece, old)
            first = 0
            for (columns, rows), (in_nanos, _) in zip(batches, nanos, strict=False):
                yield self._batch(file.metadata, piece, first, rows, columns, in_nanos)
                first += rows

    def _batch(
        self,
        metadata: pq.FileMetaData,
        piece: _Piece,
        first: int,
        rows: int,
        columns: Mapping[str, Column],
        in_nanos: Mapping[str, Column],
    ) -> pa.RecordBatch:
        """Return some rows of a piece, which begin at its row `first`."""
        folders = dict(piece.folders)
        conversion = Conversion(truncates=self.on_loss == "TRUNCATE")
        arrays: list[Column] = []
        for field in self.schema:
            if field.name in folders:
                arrays.append(pa.repeat(pa.scalar(folders[field.name], field.type), rows))
            elif field.name in columns:
                column = columns[field.name]
                if field.name in in_nanos:
                    column = conversion.without_lost_digits(
                        field.name, column, in_nanos[field.name]
                    )
                arrays.append(conversion.column(field.name, column, field.type))
            else:
                arrays.append(pa.nulls(rows, field.type))
        for bad in conversion.bad:
            rejected = self.on_bad_value == "QUARANTINE"
            if not rejected and (bad.is_key or self.on_bad_value == "FAIL"):
                group, row = _place(metadata, piece.groups, first + bad.rows[0])
                raise _bad_value(piece.path, group, row, bad)
        if self.on_bad_value == "NULL":
            arrays.append(_bad_counts(conversion.bad, rows))
        elif self.on_bad_value == "QUARANTINE":
            rejects = _rejects(metadata, piece, first, {**columns, **in_nanos}, conversion.bad)
            arrays.append(reject_column(rows, rejects))
        if self.places:
            arrays.append(_places(metadata, piece, first, rows))
        return pa.RecordBatch.from_arrays(arrays, schema=self.batch_schema)


_Batch: TypeAlias = tuple[dict[str, Column], int]
"""Columns by name, and how many rows they have."""


def _int96_columns(metadata: pq.FileMetaData, names: Sequence[str]) -> list[str]:
    """Return those columns that are INT96, which hold nanoseconds: fields of structs are not
    among them."""
    leaves = (metadata.schema.column(number) for number in range(metadata.num_columns))
    return [leaf.path for leaf in leaves if leaf.physical_type == "INT96" and leaf.path in names]


def _batches(file: pq.ParquetFile, piece: _Piece, names: Sequence[str]) -> Iterator[_Batch]:
    """Yield the columns `names` of a piece batch by batch, with the number of rows."""
    if not names:
        yield {}, piece.rows
        return
    batches = file.iter_batches(
        batch_size=_batch_rows(file.metadata, piece.groups),
        row_groups=list(piece.groups),
        columns=list(names),
        use_threads=False,
    )
    for batch in batches:
        yield {name: batch.column(name) for name in names}, batch.num_rows


def _place(metadata: pq.FileMetaData, groups: Sequence[int], row: int) -> tuple[int, int]:
    """Return row group and row in it, counted from 1, of a row of a piece."""
    for group in groups:
        rows = metadata.row_group(group).num_rows
        if row < rows:
            return group + 1, row + 1
        row -= rows
    raise IndexError(row)


def _bad_value(path: str, group: int, row: int, bad: BadValues) -> LoadFailed:
    ways = "exclude the column" if bad.is_key else "set `on_bad_value: 'NULL'`"
    if bad.is_loss:
        ways = f"cut such digits off with the reader option `on_loss: TRUNCATE`, or {ways}"
    more = f" (and {len(bad.rows) - 1} more in rows that follow)" if len(bad.rows) > 1 else ""
    return LoadFailed(
        f"reading `{path}`, row group {group}, row {row}: column `{bad.column}`: the value "
        f"`{bad.first[:_SHOWN]}` cannot be loaded: {bad.reason}{more}",
        hint=ways,
    )


def _bad_counts(found: Sequence[BadValues], rows: int) -> Column:
    counts = [0] * rows if found else None
    if counts is None:
        return pa.repeat(pa.scalar(0, pa.int64()), rows)
    for bad in found:
        for row in bad.rows:
            counts[row] += 1
    return pa.array(counts, pa.int64())


def _rejects(
    metadata: pq.FileMetaData,
    piece: _Piece,
    first: int,
    columns: Mapping[str, Column],
    found: Sequence[BadValues],
) -> dict[int, Reject]:
    """Return the rows of a batch with a bad value, each with the first one. `columns` are as they
    were read, with all their digits."""
    rejects: dict[int, Reject] = {}
    for bad in found:
        for number, row in enumerate(bad.rows):
            if row in rejects:
                continue
            values = {name: json_value(column[row]) for name, column in columns.items()}
            own = values.get(bad.column.partition(".")[0])
            text = bad.first if number == 0 else own if isinstance(own, str) else json.dumps(own)
            group, place = _place(metadata, piece.groups, first + row)
            rejects[row] = Reject(
                piece.path,
                f"the value `{text[:_SHOWN]}` cannot be loaded: {bad.reason}",
                json.dumps(values, ensure_ascii=False).encode(),
                row_group=group,
                row_number=place,
                column_name=bad.column,
                column_value=text,
            )
    return rejects


def json_value(value: Any) -> Any:
    """Return an Arrow scalar as JSON has it: bytes in base64, and text for what it has no type
    for."""
    if not value.is_valid:
        return None
    kind = value.type
    if isinstance(value, pa.ExtensionScalar):
        return json_value(value.value)
    if pt.is_dictionary(kind):
        return json_value(value.value) if hasattr(value, "value") else str(value)
    if pt.is_struct(kind):
        return {field.name: json_value(value[field.name]) for field in kind}
    if pt.is_map(kind):
        pairs = value.values
        return [[json_value(pair["key"]), json_value(pair["value"])] for pair in pairs]
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        return [json_value(item) for item in value.values]
    if pt.is_boolean(kind) or pt.is_integer(kind):
        return value.as_py()
    if pt.is_string(kind) or pt.is_large_string(kind):
        return value.as_buffer().to_pybytes().decode(errors="backslashreplace")
    if pt.is_floating(kind):
        number = float(value.as_py())
        return number if math.isfinite(number) else str(number)
    if pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind):
        return b64encode(value.as_py()).decode()
    return str(pc.cast(value, pa.string()))


_PLACE: Any = pa.struct(
    [("source_file", pa.string()), ("row_group", pa.int32()), ("row_number", pa.int64())]
)


def _places(metadata: pq.FileMetaData, piece: _Piece, first: int, rows: int) -> Column:
    """Return where each row is from."""
    found: list[Column] = []
    while rows:
        group, row = _place(metadata, piece.groups, first)
        here = min(rows, metadata.row_group(group - 1).num_rows - row + 1)
        arrays: list[Column] = [
            pa.repeat(pa.scalar(piece.path), here),
            pa.repeat(pa.scalar(group, pa.int32()), here),
            pa.array(range(row, row + here), pa.int64()),
        ]
        found.append(pa.StructArray.from_arrays(arrays, fields=list(_PLACE)))
        first, rows = first + here, rows - here
    return pa.concat_arrays(found)


def folder_columns(footers: Sequence[Footer], base: str | None) -> frozenset[str]:
    """Return the columns that `column=value` folders below `base` give."""
    if base is None:
        return frozenset()
    names = (name for footer in footers for name, _, _ in _named_folders(footer.file.path, base))
    return frozenset(names)


def _named_folders(path: str, base: str) -> Iterator[tuple[str, str, str]]:
    """Yield the column, the text of the value and the name of each folder that stands for one."""
    for folder in path.removeprefix(f"{base.rstrip('/')}/").split("/")[:-1]:
        name, equals, text = folder.partition("=")
        if equals:
            yield _unescaped(name), text, folder


def _folders(path: str, base: str | None, schema: pa.Schema) -> tuple[tuple[str, Any], ...]:
    """Return the values that the `column=value` folders of a file have."""
    if base is None:
        return ()
    found = []
    for name, text, folder in _named_folders(path, base):
        place = schema.get_field_index(name)
        if place >= 0:
            found.append((name, _folder_value(folder, text, schema.field(place))))
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


def _parts(
    files: Sequence[tuple[Footer, tuple[tuple[str, Any], ...]]], parallelism: int
) -> list[tuple[_Piece, ...]]:
    """Put row groups together until a part is large enough."""
    total = sum(size for footer, _ in files for _, size in footer.sizes)
    enough = max(_LEAST_PART_BYTES, min(_PART_BYTES, total // max(parallelism, 1)))
    parts: list[tuple[_Piece, ...]] = []
    part: list[_Piece] = []
    held = 0
    for footer, folders in files:
        groups: list[int] = []
        for number, (rows, size) in enumerate(footer.sizes):
            if held and held + size > enough:
                parts.append((*part, *_piece(footer, folders, groups)))
                part, groups, held = [], [], 0
            if rows:
                groups.append(number)
                held += size
        part += _piece(footer, folders, groups)
    return [*parts, tuple(part)] if part else parts


def _piece(
    footer: Footer, folders: tuple[tuple[str, Any], ...], groups: Sequence[int]
) -> list[_Piece]:
    rows = sum(footer.sizes[number][0] for number in groups)
    return [_Piece(footer.file.path, tuple(groups), rows, folders)] if rows else []


def _batch_rows(metadata: pq.FileMetaData, groups: Sequence[int]) -> int:
    """Return how many rows make a batch of a few megabytes."""
    rows = sum(metadata.row_group(number).num_rows for number in groups)
    size = sum(metadata.row_group(number).total_byte_size for number in groups)
    return max(_MIN_BATCH_ROWS, min(_MAX_BATCH_ROWS, _BATCH_BYTES * rows // max(size, 1)))

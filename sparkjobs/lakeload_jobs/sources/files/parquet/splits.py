"""The rows of Parquet files, in parts that Arrow reads inside the tasks."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
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
from lakeload_jobs.sources.files.file_state import FileState, is_s3
from lakeload_jobs.sources.files.listing import ObjectFile
from lakeload_jobs.sources.files.parquet.columns import Footer, open_parquet_file, unreadable
from lakeload_jobs.sources.files.parquet.values import BAD_SHOWN, BadValues, Conversion
from lakeload_jobs.sources.files.text.opening import FileBytes

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

    file: FileState
    groups: tuple[int, ...]
    rows: int
    folders: tuple[tuple[str, Any], ...]

    @property
    def path(self) -> str:
        """Where the file is."""
        return self.file.path


def split_parquet(
    footers: Sequence[Footer], read: ReadParquet, *, base: str | None, parallelism: int
) -> Splits:
    """Return the rows of files, in the order of `footers`.

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
    `REJECTED_HELPER` (QUARANTINE). `places` adds `PLACE_HELPER`. `files` opens objects in S3.
    """

    schema: pa.Schema
    on_loss: OnLoss = "FAIL"
    on_bad_value: OnBadValue = "FAIL"
    places: bool = False
    files: FileBytes = field(default_factory=FileBytes)

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
        failures = _Failures()
        for piece in part:
            try:
                yield from self._read(piece, failures)
            except (OSError, pa.ArrowException) as error:
                # Such as arrays of DuckDB with nulls among them, which only Spark reads.
                hint = "check the file; `spark: {reader: JVM}` lets Spark read it"
                raise unreadable(piece.path, error, hint=hint) from error
        failures.check()

    def _read(self, piece: _Piece, failures: _Failures) -> Iterator[pa.RecordBatch]:
        folders = dict(piece.folders)
        with ExitStack() as opened:
            file = opened.enter_context(self._open(piece.file))
            there = set(file.parquet.schema_arrow.names)
            names = [n for n in self.schema.names if n in there and n not in folders]
            batches = file.batches(piece, names)
            nanos: Iterator[_Batch] = repeat(({}, 0))
            if self.on_loss == "FAIL" and (old := _int96_columns(file.parquet.metadata, names)):
                again = opened.enter_context(self._open(piece.file, int96_unit="ns"))
                nanos = again.batches(piece, old)
            first = 0
            metadata = file.parquet.metadata
            for (columns, rows), (in_nanos, _) in zip(batches, nanos, strict=False):
                batch = self._batch(metadata, piece, first, rows, columns, in_nanos, failures)
                first += rows
                if not failures.count:
                    yield batch

    @contextmanager
    def _open(self, file: FileState, *, int96_unit: str = "us") -> Iterator[_OpenFile]:
        ranges = self.files.object_file(file) if is_s3(file.path) else None
        source = file.path if ranges is None else pa.PythonFile(ranges, mode="r")
        with open_parquet_file(source, int96_unit=int96_unit) as opened:
            yield _OpenFile(opened, ranges)

    def _batch(
        self,
        metadata: pq.FileMetaData,
        piece: _Piece,
        first: int,
        rows: int,
        columns: Mapping[str, Column],
        in_nanos: Mapping[str, Column],
        failures: _Failures,
    ) -> pa.RecordBatch:
        """Return some rows of a piece, which begin at its row `first`."""
        folders = dict(piece.folders)
        conversion = Conversion(truncates=self.on_loss == "TRUNCATE")
        arrays: list[Column] = []
        for wanted in self.schema:
            if wanted.name in folders:
                arrays.append(pa.repeat(pa.scalar(folders[wanted.name], wanted.type), rows))
            elif wanted.name in columns:
                column = columns[wanted.name]
                if wanted.name in in_nanos:
                    column = conversion.without_lost_digits(
                        wanted.name, column, in_nanos[wanted.name]
                    )
                arrays.append(conversion.column(wanted.name, column, wanted.type))
            else:
                arrays.append(pa.nulls(rows, wanted.type))
        for bad in conversion.bad:
            rejected = self.on_bad_value == "QUARANTINE"
            if not rejected and (bad.is_key or self.on_bad_value == "FAIL"):
                places = [
                    _place(metadata, piece.groups, first + row) for row in bad.rows[:BAD_SHOWN]
                ]
                failures.add(piece.path, places, bad)
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
    """Return those columns that are INT96, or have it in them, which holds nanoseconds."""
    leaves = (metadata.schema.column(number) for number in range(metadata.num_columns))
    paths = [leaf.path for leaf in leaves if leaf.physical_type == "INT96"]
    return [n for n in names if any(path == n or path.startswith(f"{n}.") for path in paths)]


@dataclass(frozen=True)
class _OpenFile:
    """An open file; `ranges` is what it is read from in S3."""

    parquet: pq.ParquetFile
    ranges: ObjectFile | None

    def batches(self, piece: _Piece, names: Sequence[str]) -> Iterator[_Batch]:
        """Yield the columns `names` of a piece batch by batch, with the number of rows."""
        if not names:
            yield {}, piece.rows
            return
        if self.ranges is None:
            yield from self._batches(piece.groups, names)
            return
        for group in piece.groups:
            self.ranges.prefetch(_ranges(self.parquet.metadata.row_group(group), names))
            yield from self._batches((group,), names)

    def _batches(self, groups: Sequence[int], names: Sequence[str]) -> Iterator[_Batch]:
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


def _place(metadata: pq.FileMetaData, groups: Sequence[int], row: int) -> tuple[int, int]:
    """Return row group and row in it, counted from 1, of a row of a piece."""
    for group in groups:
        rows = metadata.row_group(group).num_rows
        if row < rows:
            return group + 1, row + 1
        row -= rows
    raise IndexError(row)


@dataclass
class _Failures:
    """The bad values of a part that fail the load: the first few, and how many there are. The part
    is read to its end for the number, and hands on no more rows."""

    count: int = 0
    texts: list[str] = field(default_factory=list)
    hint: str = ""

    def add(self, path: str, places: Sequence[tuple[int, int]], bad: BadValues) -> None:
        """Note values of one column; `places` are the row group and row of each of `bad.texts`."""
        if not self.count:
            ways = "exclude the column" if bad.is_key else "set `on_bad_value: 'NULL'`"
            cut = "cut such digits off with the reader option `on_loss: TRUNCATE`, or "
            self.hint = f"{cut}{ways}" if bad.is_loss else ways
        for (group, row), text in zip(places, bad.texts, strict=True):
            if len(self.texts) < BAD_SHOWN:
                self.texts.append(
                    f"reading `{path}`, row group {group}, row {row}: column `{bad.column}`: the "
                    f"value `{text[:_SHOWN]}` cannot be loaded: {bad.reason}"
                )
        self.count += len(bad.rows)

    def check(self) -> None:
        """Raise `LoadFailed` where there are any."""
        if not self.count:
            return
        more = self.count - len(self.texts)
        tail = [f"and {more:,} more in this part of the files"] if more else []
        raise LoadFailed("; ".join([*self.texts, *tail]), hint=self.hint)


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
            text = (
                bad.texts[number]
                if number < len(bad.texts)
                else own
                if isinstance(own, str)
                else json.dumps(own)
            )
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
    return [_Piece(footer.file, tuple(groups), rows, folders)] if rows else []


def _batch_rows(metadata: pq.FileMetaData, groups: Sequence[int]) -> int:
    """Return how many rows make a batch of a few megabytes."""
    rows = sum(metadata.row_group(number).num_rows for number in groups)
    size = sum(metadata.row_group(number).total_byte_size for number in groups)
    return max(_MIN_BATCH_ROWS, min(_MAX_BATCH_ROWS, _BATCH_BYTES * rows // max(size, 1)))

"""The rows of files that bring their types, in parts that Arrow batches come from in the tasks."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal, Protocol

import pyarrow as pa
import pyarrow.types as pt

from lakeload_jobs.contract.spec import OnBadValue
from lakeload_jobs.rows.arrow import Column, Kind, pc
from lakeload_jobs.rows.rejects import REJECT, REJECTED_HELPER, Reject, reject_column
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER, PLACE_HELPER
from lakeload_jobs.sources.base import BadValue, BadValuesFound, Splits, UnreadableFile, place_text
from lakeload_jobs.sources.batch_sizes import (
    LARGE_VALUE_HINT,
    ValueTooLarge,
    row_ranges,
    rows_of,
    too_large,
)
from lakeload_jobs.sources.files.files_in_use import in_use
from lakeload_jobs.sources.files.typed.columns import VARIANT, FileSchema, Unit, unreadable
from lakeload_jobs.sources.files.typed.columns import Column as FileColumn
from lakeload_jobs.sources.files.typed.exact import column_notes, record_bytes
from lakeload_jobs.sources.files.typed.values import (
    BAD_SHOWN,
    BadValues,
    Conversion,
    with_all_digits,
)
from lakeload_jobs.sources.files.typed.variant import variant_texts
from lakeload_jobs.sources.part_sizes import Parallelism
from lakeload_jobs.sources.paths.file_state import FileState, folder_values

OnLoss = Literal["FAIL", "TRUNCATE"]

_EXPANDS = 8
"""How many times its size a packed row group is taken for."""

DAMAGED_HINT = "copy the file from its source again"

_WHOLE_NUMBER = re.compile(r"-?\d{1,18}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_NO_NUMBER_OR_TIME = re.compile(r"(?![TNI])[^\W\d_]")
"""Text to Spark, whatever follows: `T12:00` is a time, `NaN` and `Infinity` are numbers."""
_SHOWN = 60


class UnknownFolderValue(Exception):
    """Only Spark knows which value a folder stands for; the message says of which type it is, as
    part of a sentence."""


@dataclass(frozen=True)
class TypedPart:
    """Some units of one file, and the values that its folders name. `fault` is why the whole file
    is set aside: one row then stands for it. `own_names` are what the file calls columns."""

    file: FileState
    units: tuple[Unit, ...]
    folders: tuple[tuple[str, Any], ...] = ()
    fault: str = ""
    own_names: tuple[tuple[str, str], ...] = ()

    @property
    def path(self) -> str:
        """Where the file is."""
        return self.file.path

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(unit.rows for unit in self.units)

    def place(self, row: int) -> tuple[int | None, int | None]:
        """Return the row group of a row, None where the format has none, and the row's number in
        it, or in the file, both from 1; None where it is not known."""
        for unit in self.units:
            if row < unit.rows:
                return unit.group, None if unit.first_row is None else unit.first_row + row + 1
            row -= unit.rows
        raise IndexError(row)


@dataclass(frozen=True)
class Batch:
    """Some rows of a part, as the format has them. `in_nanos` are columns once more, with digits
    that those in `columns` lack: in nanoseconds, which may wrap around, or as text."""

    columns: Mapping[str, Column]
    rows: int
    in_nanos: Mapping[str, Column] = field(default_factory=dict)

    def renamed(self, shared: Mapping[str, str]) -> Batch:
        """Return it with other names of columns."""

        def named(columns: Mapping[str, Column]) -> dict[str, Column]:
            return {shared.get(name, name): column for name, column in columns.items()}

        return Batch(named(self.columns), self.rows, named(self.in_nanos))


def _bounded(part: TypedPart, first: int, batch: Batch) -> Iterator[Batch]:
    """Yield a batch, which begins at row `first` of a part, in batches of at most `BATCH_BYTES`.

    Raises `UnreadableFile` for a value that is too large.
    """
    columns = batch.columns
    if not columns:
        yield batch
        return
    try:
        for start, count in row_ranges(tuple(columns.values()), batch.rows):
            if count == batch.rows:
                yield batch
                return
            yield Batch(
                {name: rows_of(column, start, count) for name, column in columns.items()},
                count,
                {name: rows_of(one, start, count) for name, one in batch.in_nanos.items()},
            )
    except ValueTooLarge as error:
        where = place_text(*part.place(first + error.row)).removeprefix(", ")
        name = tuple(columns)[error.place]
        raise UnreadableFile(
            part.path,
            f"{where}: a value of column `{name}` {too_large(error.size)}",
            hint=LARGE_VALUE_HINT,
        ) from None


def other_rows(part: TypedPart, rows: int) -> UnreadableFile:
    """Return the error of a part of which other rows were read than its file says it has."""
    return UnreadableFile(
        part.path,
        f"it says that it has {part.rows:,} rows where {rows:,} can be read",
        hint=DAMAGED_HINT,
    )


class FormatReader(Protocol):
    """Opens parts of files of one format; it travels to the tasks."""

    def open(
        self, part: TypedPart, names: Sequence[str]
    ) -> AbstractContextManager[Iterator[Batch]]:
        """Open those columns of a part that its file has, whose batches are its rows in order.

        Raises `OSError`, `ArrowException` and `LoadFailed`, while they are read as well.
        """


def split_files(
    schemas: Sequence[FileSchema], read: ReadTyped, *, base: str | None, parallelism: int
) -> Splits:
    """Return the rows of files, in the order of `schemas`.

    `base` is the folder below which `column=value` folders are columns. Raises
    `UnknownFolderValue` for folders of which only Spark knows the value.
    """
    folders = [
        () if schema.fault is not None else _folders(schema.file.path, base, read.schema)
        for schema in schemas
    ]
    tasks = tuple(_tasks(list(zip(schemas, folders, strict=True)), parallelism))
    counts = tuple(sum(part.rows for part in task) for task in tasks)
    size = _EXPANDS * sum(unit.size for schema in schemas for unit in schema.units)
    return Splits(tasks, read, counts, of_columns=read.of_columns, size=size)


@dataclass(frozen=True)
class ReadTyped:
    """Reads parts of `split_files`; it travels to the tasks.

    `schema` are the columns to read, in their kinds. A bad value fails the load (FAIL), is null and
    counted in `BAD_VALUES_HELPER` (NULL), or its row is rejected, with the reason in
    `REJECTED_HELPER` (QUARANTINE). `places` adds `PLACE_HELPER`. `hint` is for what cannot be read.
    `sets_aside`: files that cannot be read are set aside. `columns` are those of `schema` as the
    files have them, for records that are rejected.
    """

    schema: pa.Schema
    reader: FormatReader
    on_loss: OnLoss = "FAIL"
    on_bad_value: OnBadValue = "FAIL"
    places: bool = False
    hint: str = "check the file"
    sets_aside: bool = False
    columns: tuple[FileColumn, ...] = ()

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

    def __call__(self, parts: Sequence[TypedPart]) -> Generator[pa.RecordBatch]:
        """Yield the rows that one task reads. Raises `LoadFailed` naming the file."""
        failures = Failures()
        yield from self._read_all(parts, failures)
        failures.check()

    def of_columns(self, names: Sequence[str]) -> ReadTyped:
        """Return what reads these columns alone."""
        return replace(self, schema=pa.schema([own for own in self.schema if own.name in names]))

    def failures(self, parts: Sequence[TypedPart]) -> Failures:
        """Return the bad values that fail the load, and the files to set aside."""
        found = Failures()
        for part in parts:
            try:
                for _ in self._read_all((part,), found):
                    pass
            except UnreadableFile as error:
                if not self.sets_aside:
                    raise
                found.unreadable[part.file] = error
        return found

    def _read_all(self, parts: Sequence[TypedPart], failures: Failures) -> Iterator[pa.RecordBatch]:
        for part in parts:
            try:
                with in_use(part.path):
                    yield from self._read(part, failures)
            except (OSError, pa.ArrowException) as error:
                # Spark would load what Arrow cannot decode, perhaps as nulls.
                hint = DAMAGED_HINT if isinstance(error, OSError) else self.hint
                raise unreadable(part.path, error, hint=hint) from error

    def _read(self, part: TypedPart, failures: Failures) -> Iterator[pa.RecordBatch]:
        if part.fault:
            yield self._set_aside(part)
            return
        folders, own_names = dict(part.folders), dict(part.own_names)
        names = [own_names.get(name, name) for name in self.schema.names if name not in folders]
        shared = {own: name for name, own in part.own_names}
        with self.reader.open(part, names) as batches:
            first = 0
            for whole in batches:
                for batch in _bounded(part, first, whole.renamed(shared) if shared else whole):
                    made = self._batch(part, first, batch, failures)
                    first += batch.rows
                    if first > part.rows:
                        raise other_rows(part, first)
                    if not failures.count:
                        yield made
            if first < part.rows:
                raise other_rows(part, first)

    def _set_aside(self, part: TypedPart) -> pa.RecordBatch:
        """Return the row that stands for a whole file."""
        reject = reject_column(1, {0: Reject(part.path, part.fault)})
        arrays = [
            reject if column.name == REJECTED_HELPER else pa.nulls(1, column.type)
            for column in self.batch_schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.batch_schema)

    def _batch(
        self, part: TypedPart, first: int, batch: Batch, failures: Failures
    ) -> pa.RecordBatch:
        """Return some rows of a part, which begin at its row `first`."""
        folders, rows = dict(part.folders), batch.rows
        conversion = Conversion(truncates=self.on_loss == "TRUNCATE")
        arrays: list[Column] = []
        for wanted in self.schema:
            if wanted.name in folders:
                arrays.append(pa.repeat(pa.scalar(folders[wanted.name], wanted.type), rows))
            elif wanted.name in batch.columns:
                column = batch.columns[wanted.name]
                if wanted.name in batch.in_nanos:
                    column = conversion.without_lost_digits(
                        wanted.name, column, batch.in_nanos[wanted.name]
                    )
                arrays.append(conversion.column(wanted.name, column, wanted.type))
            else:
                arrays.append(pa.nulls(rows, wanted.type))
        for bad in conversion.bad:
            rejected = self.on_bad_value == "QUARANTINE"
            if not rejected and (bad.is_key or self.on_bad_value == "FAIL"):
                places = [part.place(first + row) for row in bad.rows[:BAD_SHOWN]]
                failures.add(part.path, places, bad)
        if self.on_bad_value == "NULL":
            arrays.append(_bad_counts(conversion.bad, rows))
        elif self.on_bad_value == "QUARANTINE":
            rejects = self._rejects(part, first, batch, conversion.bad)
            arrays.append(reject_column(rows, rejects))
        if self.places:
            arrays.append(_places(part, first, rows))
        return pa.RecordBatch.from_arrays(arrays, schema=self.batch_schema)

    def _rejects(
        self, part: TypedPart, first: int, batch: Batch, found: Sequence[BadValues]
    ) -> dict[int, Reject]:
        """Return the rows of a batch with a bad value, each with the first one, as they were read,
        with all their digits."""
        if not found:
            return {}
        exact = {
            name: with_all_digits(batch.columns[name], nanos)
            for name, nanos in batch.in_nanos.items()
        }
        columns = {**batch.columns, **exact}
        kinds = {column.name: column.kind for column in self.columns}
        folders = {
            name: pa.repeat(pa.scalar(value, self.schema.field(name).type), batch.rows)
            for name, value in part.folders
        }
        notes = column_notes(self.columns)
        rejects: dict[int, Reject] = {}
        for bad in found:
            for number, row in enumerate(bad.rows):
                if row in rejects:
                    continue
                values = {
                    name: json_value(column[row], kinds.get(name))
                    for name, column in columns.items()
                }
                own = values.get(bad.column.partition(".")[0])
                text = (
                    bad.texts[number]
                    if number < len(bad.texts)
                    else own
                    if isinstance(own, str)
                    else json.dumps(own)
                )
                group, place = part.place(first + row)
                rejects[row] = Reject(
                    part.path,
                    f"the value `{text[:_SHOWN]}` cannot be loaded: {bad.reason}",
                    json.dumps(values, ensure_ascii=False).encode(),
                    row_group=group,
                    row_number=place,
                    column_name=bad.column,
                    column_value=text,
                    exact=record_bytes({**batch.columns, **folders}, row, notes, batch.in_nanos),
                )
        return rejects


@dataclass(frozen=True)
class ReadCast:
    """Reads parts as `read` does, with the columns of `casts` in other types; it travels to the
    tasks. `schema` are the columns as `rows.casts.cast_types` returns them. Under QUARANTINE no
    cast may be bad."""

    read: ReadTyped
    casts: Mapping[str, Callable[[Column], Column]]
    schema: pa.Schema
    on_bad_value: OnBadValue

    def __call__(self, parts: Sequence[TypedPart]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that one task reads. Raises as `read` does, and `BadValuesFound` for a
        value that is bad under FAIL."""
        for batch in self.read(parts):
            yield self._cast(batch)

    def of_columns(self, names: Sequence[str]) -> ReadCast:
        """Return what reads these columns alone."""
        fields = [
            field
            for field in self.schema
            if field.name in names or field.name not in self.read.schema.names
        ]
        return replace(self, read=self.read.of_columns(names), schema=pa.schema(fields))

    def _cast(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns: dict[str, Column] = dict(zip(batch.schema.names, batch.columns, strict=True))
        bad = columns.get(BAD_VALUES_HELPER, pa.repeat(pa.scalar(0, pa.int64()), batch.num_rows))
        for name, cast in self.casts.items():
            if (column := columns.get(name)) is None:
                continue
            columns[name] = values = cast(column)
            if values.null_count == column.null_count:
                continue
            if self.on_bad_value == "FAIL":
                raise BadValuesFound(f"column `{name}` has a value that cannot be cast")
            lost = pc.and_(column.is_valid(), values.is_null())
            bad = pc.add(bad, lost.cast(pa.int64()))
        columns[BAD_VALUES_HELPER] = bad
        arrays = [self._column(field, columns, batch.num_rows) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _column(self, field: Any, columns: Mapping[str, Column], rows: int) -> Column:
        if field.name == BAD_VALUES_HELPER:
            return columns[field.name].cast(field.type)
        return columns[field.name] if field.name in columns else pa.nulls(rows, field.type)


@dataclass
class Failures:
    """Bad values that fail the load: the first few, and how many there are. A part is read to its
    end for the number, and hands on no more rows. `unreadable` are files to set aside."""

    count: int = 0
    found: list[BadValue] = field(default_factory=list)
    hint: str = ""
    unreadable: dict[FileState, UnreadableFile] = field(default_factory=dict)

    def add(
        self, path: str, places: Sequence[tuple[int | None, int | None]], bad: BadValues
    ) -> None:
        """Note values of one column; `places` are the row group and row of each of `bad.texts`."""
        if not self.count:
            ways = "exclude the column" if bad.is_key else "set `on_bad_value: 'NULL'`"
            cut = "cut such digits off with the reader option `on_loss: TRUNCATE`, or "
            self.hint = f"{cut}{ways}" if bad.is_loss else ways
        for (group, row), text in zip(places, bad.texts, strict=True):
            if len(self.found) < BAD_SHOWN:
                what = f"the value `{text[:_SHOWN]}` cannot be loaded: {bad.reason}"
                place = place_text(group, row)
                self.found.append(BadValue(path, place, f": column `{bad.column}`: {what}"))
        self.count += len(bad.rows)

    def check(self) -> None:
        """Raise `BadValuesFound` where there are any."""
        if self.count:
            raise BadValuesFound.of(self.found, self.count, hint=self.hint)

    def __add__(self, other: Failures) -> Failures:
        found = [*self.found, *other.found][:BAD_SHOWN]
        unreadable = self.unreadable | other.unreadable
        return Failures(self.count + other.count, found, self.hint or other.hint, unreadable)


def _bad_counts(found: Sequence[BadValues], rows: int) -> Column:
    counts = [0] * rows if found else None
    if counts is None:
        return pa.repeat(pa.scalar(0, pa.int64()), rows)
    for bad in found:
        for row in bad.rows:
            counts[row] += 1
    return pa.array(counts, pa.int64())


def json_value(value: Any, kind: Kind | None = None) -> Any:
    """Return an Arrow scalar as JSON has it: bytes in base64, VARIANT as the JSON that it stands
    for where it is valid, and text for what JSON has no type for. `kind` is that of the column."""
    if not value.is_valid:
        return None
    own = value.type
    if isinstance(value, pa.ExtensionScalar):
        return json_value(value.value)
    if pt.is_dictionary(own):
        return json_value(value.value) if hasattr(value, "value") else str(value)
    if pt.is_struct(own):
        if kind == VARIANT and (text := variant_texts(pa.array([value], own))[0][0]) is not None:
            return json.loads(text, parse_float=_exact_number)
        return {
            field.name: json_value(value[field.name], _field_kind(kind, field.name))
            for field in own
        }
    if pt.is_map(own):
        key, item = _child_kind(kind, "key_type"), _child_kind(kind, "item_type")
        pairs = value.values
        return [[json_value(pair["key"], key), json_value(pair["value"], item)] for pair in pairs]
    if pt.is_list(own) or pt.is_large_list(own) or pt.is_fixed_size_list(own):
        element = _child_kind(kind, "value_type")
        return [json_value(item, element) for item in value.values]
    if pt.is_boolean(own) or pt.is_integer(own):
        return value.as_py()
    if pt.is_string(own) or pt.is_large_string(own):
        return value.as_buffer().to_pybytes().decode(errors="backslashreplace")
    if pt.is_floating(own):
        number = float(value.as_py())
        return number if math.isfinite(number) else str(number)
    if pt.is_binary(own) or pt.is_large_binary(own) or pt.is_fixed_size_binary(own):
        return b64encode(value.as_py()).decode()
    return str(pc.cast(value, pa.string()))


def _exact_number(text: str) -> float | str:
    """Return a number of JSON, as text where it has more digits than a double."""
    number = float(text)
    return number if Decimal(text) == Decimal(repr(number)) else text


def _child_kind(kind: Kind | None, name: str) -> Kind | None:
    return getattr(kind, name, None)


def _field_kind(kind: Kind | None, name: str) -> Kind | None:
    if kind is None or not pt.is_struct(kind):
        return None
    place = kind.get_field_index(name)
    return None if place < 0 else kind.field(place).type


_PLACE: Any = pa.struct(
    [("source_file", pa.string()), ("row_group", pa.int32()), ("row_number", pa.int64())]
)


def _places(part: TypedPart, first: int, rows: int) -> Column:
    """Return where each row is from."""
    found: list[Column] = []
    left = first
    for unit in part.units:
        skipped = min(left, unit.rows)
        left -= skipped
        here = min(rows, unit.rows - skipped)
        rows -= here
        if here:
            numbers: Column = pa.nulls(here, pa.int64())
            if unit.first_row is not None:
                row = unit.first_row + skipped + 1
                numbers = pa.array(range(row, row + here), pa.int64())
            arrays: list[Column] = [
                pa.repeat(pa.scalar(part.path), here),
                pa.repeat(pa.scalar(unit.group, pa.int32()), here),
                numbers,
            ]
            found.append(pa.StructArray.from_arrays(arrays, fields=list(_PLACE)))
    return pa.concat_arrays(found)


def folder_columns(schemas: Sequence[FileSchema], base: str | None) -> frozenset[str]:
    """Return the columns that `column=value` folders below `base` give."""
    return frozenset(
        name for schema in schemas for name, _ in folder_values(schema.file.path, base)
    )


def folder_types(files: Sequence[FileState], base: str | None) -> dict[str, str] | None:
    """Return the types that Spark gives the columns of `column=value` folders below `base`, as it
    names them; None where only Spark knows."""
    found: dict[str, set[str]] = {}
    for path in dict.fromkeys(file.path.rpartition("/")[0] + "/" for file in files):
        for name, text in folder_values(path, base):
            found.setdefault(name, set()).update(() if text is None else (text,))
    types = {name: _folder_type(values) for name, values in found.items()}
    known = {name: kind for name, kind in types.items() if kind is not None}
    return known if len(known) == len(types) else None


def _folder_type(values: Collection[str]) -> str | None:
    if any(_NO_NUMBER_OR_TIME.match(value) for value in values):
        return "string"
    if values and all(_WHOLE_NUMBER.fullmatch(value) for value in values):
        is_int = all(-(2**31) <= int(value) < 2**31 for value in values)
        return "int" if is_int else "bigint"
    return "date" if values and all(map(_is_date, values)) else None


def _is_date(value: str) -> bool:
    try:
        return _DATE.fullmatch(value) is not None and bool(date.fromisoformat(value))
    except ValueError:
        return False


def _folders(path: str, base: str | None, schema: pa.Schema) -> tuple[tuple[str, Any], ...]:
    """Return the values that the `column=value` folders of a file have."""
    return tuple(
        (name, _folder_value(name, text, schema.field(name)))
        for name, text in folder_values(path, base)
        if name in schema.names
    )


def _folder_value(name: str, text: str | None, field: Kind) -> Any:
    """Return what Spark makes of a folder's name, where there can be no doubt about it."""
    if text is None:
        return None
    if pt.is_string(field.type) and text:
        return text
    if field.type in (pa.int32(), pa.int64()) and _WHOLE_NUMBER.fullmatch(text):
        return int(text)
    if pt.is_date32(field.type) and _DATE.fullmatch(text):
        return date.fromisoformat(text)
    folder = f"{name}={text}"
    raise UnknownFolderValue(f"the folder `{folder}` needs a `{field.type}`")


def _tasks(
    files: Sequence[tuple[FileSchema, tuple[tuple[str, Any], ...]]], parallelism: int
) -> Iterator[tuple[TypedPart, ...]]:
    """Yield the parts that each task reads: units with rows, those of one file together."""
    units = [
        (place, unit)
        for place, (schema, _) in enumerate(files)
        for unit in schema.units
        if unit.rows
    ]
    for some in Parallelism(parallelism).parts([unit.size for _, unit in units]):
        parts = []
        for place, of_file in groupby(units[some.start : some.stop], key=itemgetter(0)):
            schema, folders = files[place]
            parts.append(_part(schema, folders, [unit for _, unit in of_file]))
        yield tuple(parts)


def _part(
    schema: FileSchema, folders: tuple[tuple[str, Any], ...], units: Sequence[Unit]
) -> TypedPart:
    fault = schema.fault.why if schema.fault is not None else ""
    return TypedPart(schema.file, tuple(units), folders, fault, schema.own_names)

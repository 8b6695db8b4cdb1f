"""The columns of a table, from what its files say of their types (docs/file-formats.md).

A column's kind is the Arrow type in which its values are handed on: `string` for what becomes
text. Kinds of several files are united by name, and a kind grows where it then holds the values of
both exactly. Whole numbers and doubles of several files unite to double, and a number that is no
double is a bad value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.core.names import normalize
from lakeload_jobs.rows.arrow import Kind
from lakeload_jobs.sources.base import UnreadableFile
from lakeload_jobs.sources.files.files_in_use import in_use
from lakeload_jobs.sources.paths.file_state import FileState, is_damage
from lakeload_jobs.sources.paths.objects import changed

_AT_ONCE = 16
INSTANT, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
VARIANT: Kind = pa.json_()
"""JSON text made of a VARIANT: the same as text, but not to be mixed with it (`settled`)."""
_INTEGERS: Mapping[Kind, int] = {pa.int8(): 10, pa.int16(): 10, pa.int32(): 10, pa.int64(): 19}
"""How many digits a decimal needs to hold what they are stored as: Spark's reader asks for them."""
MAX_DIGITS = 38
MAX_LEVELS = 90
"""Arrow opens no Parquet file whose schema has more than 100 levels."""
TYPE_NAMES: Mapping[Kind, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.binary(): "binary",
    pa.date32(): "date",
    INSTANT: "timestamp",
    pa.null(): "no type",
    LOCAL: "timestamp_ntz",
    VARIANT: "variant",
}


@dataclass(frozen=True)
class Column:
    """A column of one file, or of all files.

    `not_spark` says why Spark's reader cannot read it, and `only_spark` why nothing else can, each
    as a sentence with the file; '' where it is not so. `spark_type` is the type that Spark reads it
    as, in JSON, where its kind is another.
    `refused` says why nobody can read it. `may_be_bad`: values are converted, and some may have no
    place in the kind. `stored` is the type without what its logical type says, as which earlier
    versions loaded it; None where they knew it.
    """

    name: str
    kind: Kind
    path: str
    not_spark: str = ""
    only_spark: str = ""
    refused: str = ""
    spark_type: Any = None
    may_be_bad: bool = False
    stored: Kind | None = None
    null_as_numbers: Kind | None = None
    """The kind of the files with numbers in place of what has no value, as Spark reads it; None
    where all has a type."""


@dataclass(frozen=True)
class Unit:
    """A part of a file that can be read by itself: a row group of Parquet, a stripe of ORC, blocks
    of Avro.

    `size` is in stored bytes, `number` counts from 0. `group` is the row group by which messages
    name rows, from 1; without one they count those of the file, of which `first_row` come before,
    None where that is not known.
    `start` and `end` are where its bytes lie, where the format reads by them.
    """

    rows: int
    size: int
    number: int
    group: int | None = None
    first_row: int | None = 0
    start: int = 0
    end: int = 0


@dataclass(frozen=True)
class FileSchema:
    """What a file says of its columns and parts. `old_calendar`: its days before 1582 are those of
    the Julian calendar. `codec` is how blocks are packed, of Parquet those of the first column, ''
    where they are not. `fault` is why the file is set aside: it has no columns then, and one row
    that stands for it. `own_names` are what the file calls columns that have another name in
    `columns`.
    """

    file: FileState
    columns: tuple[Column, ...]
    units: tuple[Unit, ...]
    old_calendar: bool = False
    codec: str = ""
    fault: UnreadableFile | None = None
    own_names: tuple[tuple[str, str], ...] = ()

    def renamed(self, shared: Mapping[str, str]) -> FileSchema:
        """Return it with other names of columns."""
        columns = tuple(
            replace(column, name=shared.get(column.name, column.name)) for column in self.columns
        )
        return replace(
            self, columns=columns, own_names=tuple((new, own) for own, new in shared.items())
        )


def read_all(
    files: Sequence[FileState],
    read: Callable[[FileState], FileSchema],
    *,
    sets_aside: bool = False,
) -> tuple[FileSchema, ...]:
    """Return what `read` finds in each of `files`, in their order; with `sets_aside` a file that
    cannot be read has a `fault`.

    Raises `LoadFailed` naming a file that is not there any more, or that cannot be read, and for
    rows without any column, of which nothing could be loaded.
    """

    def one(file: FileState) -> FileSchema:
        try:
            return named(file)
        except UnreadableFile as error:
            if not sets_aside:
                raise
            return set_aside(file, error)

    def named(file: FileState) -> FileSchema:
        try:
            with in_use(file.path):
                return _without_deep(read(file))
        except RecursionError as error:
            why = "its types are nested too deep to be read"
            raise UnreadableFile(file.path, why, hint="write it with flatter types") from error
        except UnicodeDecodeError as error:
            why = "a name in its schema is not UTF-8"
            raise UnreadableFile(file.path, why, hint="check the file and `format`") from error
        except (OSError, pa.ArrowException) as error:
            raise unreadable(file.path, error) from error

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="schemas") as pool:
        schemas = tuple(pool.map(one, files))
    if not any(schema.columns or schema.fault for schema in schemas):
        _check_no_rows(schemas)
    return schemas


def _check_no_rows(schemas: Sequence[FileSchema]) -> None:
    for schema in schemas:
        if rows := sum(unit.rows for unit in schema.units):
            raise LoadFailed(
                f"the source has rows but no columns: `{schema.file.path}` has {rows:,}",
                hint="check that the files were written with their columns",
            )


def _without_deep(schema: FileSchema) -> FileSchema:
    """Return the schema of a file; columns that are nested too deep are refused."""
    columns = tuple(
        replace(
            column,
            refused=f"column `{column.name}` of `{schema.file.path}` has {MAX_LEVELS} or more "
            "levels of nested types, with which no Parquet file can be read",
        )
        if not column.refused and _levels(column.kind) >= MAX_LEVELS
        else column
        for column in schema.columns
    )
    return replace(schema, columns=columns)


def _levels(kind: Kind) -> int:
    """Return how many levels a type has in the schema of a Parquet file."""
    if pt.is_map(kind):
        return 2 + max(_levels(kind.key_type), _levels(kind.item_type))
    if pt.is_list(kind):
        return 2 + _levels(kind.value_type)
    if pt.is_struct(kind):
        return 1 + max((_levels(child.type) for child in kind), default=0)
    return 1


def set_aside(file: FileState, fault: UnreadableFile) -> FileSchema:
    """Return what stands for a file that is set aside."""
    return FileSchema(file, (), (Unit(1, 0, 0),), fault=fault)


def unreadable(path: str, error: Exception, *, hint: str = "") -> LoadFailed:
    """Return the error of a file that Arrow could not read."""
    if isinstance(error, FileNotFoundError):
        return changed(path, "was removed")
    said = " ".join(str(error).split())[:300]
    if not is_damage(error):
        return LoadFailed(
            f"reading `{path}`: {said}", hint="check that the file can be read, and run again"
        )
    return UnreadableFile(path, said, hint=hint or "check the file and `format`")


def lists_of_spark(columns: Sequence[Column]) -> bool:
    """Return whether Spark may read what Arrow cannot: arrays of DuckDB with nulls among them."""
    return any(_has_list(one.kind) for one in columns) and not any(one.not_spark for one in columns)


def _has_list(kind: Kind) -> bool:
    if pt.is_list(kind) or pt.is_large_list(kind):
        return True
    inner = range(kind.num_fields) if pt.is_nested(kind) else ()
    return any(_has_list(kind.field(place).type) for place in inner)


def without_twins(path: str, columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return the columns of a file; those that have one name are refused."""
    twins = {name for name, count in Counter(one.name for one in columns).items() if count > 1}
    return tuple(
        replace(column, refused=f"`{path}` has two columns named `{column.name}`")
        if column.name in twins
        else column
        for column in columns
    )


def unite(schemas: Sequence[FileSchema], names: Collection[str]) -> tuple[Column, ...]:
    """Return the columns of all files, in the order in which they first come; `null` is the kind
    of what has no value anywhere (`settled`).

    Raises `LoadFailed` naming the column, both types and both files where no type holds both, and
    for a column that nobody can read.
    """
    united: dict[str, Column] = {}
    for schema in schemas:
        for column in schema.columns:
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


def kind_in_table(column: Column, wanted: Kind | None, *, declared: bool = False) -> Kind:
    """Return the type in which a column is read, given the one that the table has, or that
    `columns.types` declares: that where it holds all values, or is as which earlier versions have
    loaded them. Fields of structs have the types that they have in the table, too."""
    if wanted is not None:
        both_instants = pt.is_timestamp(wanted) and pt.is_timestamp(column.kind)
        if both_instants and declared:
            return wanted
        kind, stored = _with_text(column.kind), _with_text(_stored(column))
        if wanted in (column.stored, widened(kind, wanted), widened(stored, wanted)):
            return wanted
        if not declared:
            return _with_text(_as_in_table(kind, stored, wanted))
    if declared and pt.is_null(column.kind):
        return pa.int32()  # Spark casts it to any type.
    return _with_text(column.kind)


def _as_in_table(kind: Kind, stored: Kind, wanted: Kind) -> Kind:
    """Return a nested type with those of the table in the fields that both have, where they hold
    all values of `kind`, or of `stored`. Names are normalised in the table."""
    if pt.is_nested(kind) and not (stored.id == kind.id and stored.num_fields == kind.num_fields):
        stored = kind
    if pt.is_struct(kind) and pt.is_struct(wanted):
        known = {field.name.lower(): field.type for field in wanted}
        fields = []
        for place, field in enumerate(kind):
            own = known.get(normalize(field.name, lower=True), known.get(field.name.lower()))
            if own is None:
                fields.append((field.name, field.type))
            else:
                inner = _as_in_table(field.type, stored.field(place).type, own)
                fields.append((field.name, inner))
        return pa.struct(fields)
    if pt.is_map(kind) and pt.is_map(wanted):
        item = _as_in_table(kind.item_type, stored.item_type, wanted.item_type)
        return pa.map_(kind.key_type, item)
    if pt.is_list(kind) and pt.is_list(wanted):
        return pa.list_(_as_in_table(kind.value_type, stored.value_type, wanted.value_type))
    if pt.is_nested(kind) or wanted not in (widened(kind, wanted), widened(stored, wanted)):
        return kind
    return wanted


def type_name(kind: Kind, *, text: str = "text") -> str:
    """Return a kind as messages name it, and with `text="string"` as `columns.types` does."""

    def named(kind: Kind) -> str:
        if pt.is_string(kind):
            return text
        if kind in TYPE_NAMES:
            return TYPE_NAMES[kind]
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


class _NoCommonType(Exception):
    """Two types of which none holds the other; `args` are the name of a field, and they."""


def _united(one: Column, other: Column) -> Column:
    mixed = ""
    try:
        try:
            kind = _widened(one.kind, other.kind, one.name)
        except _NoCommonType as error:
            mixed = _in_both(error, one, other)
            kind = _widened(one.kind, other.kind, one.name, numbers=True)
        if one.spark_type != other.spark_type and (one.only_spark or other.only_spark):
            raise _NoCommonType(
                one.name, one.spark_type or one.kind, other.spark_type or other.kind
            )
    except _NoCommonType as error:
        raise LoadFailed(
            f"the {_in_both(error, one, other)}",
            hint="load the files as two tables, or leave the column out with `columns.exclude`",
        ) from None
    not_spark = one.not_spark or other.not_spark or mixed
    if one.spark_type != other.spark_type:
        not_spark = not_spark or f"column `{one.name}` has VARIANT of several writers in it"
    return replace(
        one,
        kind=kind,
        # So the next one that does not fit is compared with the file that made the type what it is.
        path=other.path if kind == other.kind != one.kind else one.path,
        not_spark=not_spark,
        only_spark=one.only_spark or other.only_spark,
        may_be_bad=one.may_be_bad or other.may_be_bad or bool(mixed),
        stored=widened(_stored(one), _stored(other)),
    )


def _in_both(error: _NoCommonType, one: Column, other: Column) -> str:
    """Return the two types of a column, or of a field in it, as a clause."""
    name, first, second = error.args
    return (
        f"column `{name}` is {_shown(first)} in `{one.path}` and {_shown(second)} in `{other.path}`"
    )


def _stored(column: Column) -> Kind:
    return column.kind if column.stored is None else column.stored


def _shown(kind: Any) -> str:
    return type_name(kind) if isinstance(kind, pa.DataType) else str(kind)


def _widened(one: Kind, other: Kind, name: str, *, numbers: bool = False) -> Kind:
    """Return the type that holds the values of both; `numbers`: a double holds whole numbers too,
    as far as each is one (`values.Conversion`). Raises `_NoCommonType`."""
    if one == other or pt.is_null(other):
        return one
    if pt.is_null(one):
        return other
    if pt.is_floating(one) and pt.is_floating(other):
        return pa.float64()
    if one in _INTEGERS and other in _INTEGERS:
        return max(one, other, key=lambda kind: kind.bit_width)
    is_double = pt.is_floating(one) or pt.is_floating(other)
    if numbers and is_double and (one in _INTEGERS or other in _INTEGERS):
        return pa.float64()
    if (first := _digits(one)) and (second := _digits(other)):
        scale = max(first[1], second[1])
        precision = max(first[0] - first[1], second[0] - second[1]) + scale
        if precision <= MAX_DIGITS:
            return pa.decimal128(precision, scale)
    if pt.is_struct(one) and pt.is_struct(other):
        return _widened_struct(one, other, name, numbers=numbers)
    if pt.is_map(one) and pt.is_map(other):
        key = _widened(one.key_type, other.key_type, f"{name}.key", numbers=numbers)
        item = _widened(one.item_type, other.item_type, f"{name}.value", numbers=numbers)
        return pa.map_(key, item)
    if pt.is_list(one) and pt.is_list(other):
        element = f"{name}.element"
        return pa.list_(_widened(one.value_type, other.value_type, element, numbers=numbers))
    raise _NoCommonType(name, one, other)


def _widened_struct(one: Kind, other: Kind, name: str, *, numbers: bool) -> Kind:
    kinds = {child.name: child.type for child in one}
    for child in other:
        before = kinds.get(child.name, child.type)
        field = f"{name}.{child.name}"
        kinds[child.name] = _widened(before, child.type, field, numbers=numbers)
    return pa.struct(list(kinds.items()))


def _digits(kind: Kind) -> tuple[int, int] | None:
    """Return precision and scale of the decimal that holds an exact number."""
    if pt.is_decimal(kind):
        return kind.precision, kind.scale
    return (_INTEGERS[kind], 0) if kind in _INTEGERS else None


def settled(kind: Kind) -> Kind:
    """Return the kind as rows have it: text for VARIANT, and for what has no value in any file
    within other values. A column without a value has no type: it stays `null`."""
    kind = _with_text(kind)
    return kind if pt.is_null(kind) else _replaced(kind, pa.null(), pa.string())


def readable_by_spark(kind: Kind) -> Kind:
    """Return the kind with numbers, as which files store it, for what has no value in any file."""
    return _replaced(kind, pa.null(), pa.int32())


def _with_text(kind: Kind) -> Kind:
    return _replaced(kind, VARIANT, pa.string())


def _replaced(kind: Kind, old: Kind, new: Kind) -> Kind:
    """Return a kind with another one in place of `old`, at every depth."""
    return with_leaves(kind, lambda own: new if own == old else own)


def with_leaves(kind: Kind, leaf: Callable[[Kind], Kind]) -> Kind:
    """Return a type with what `leaf` makes of the types in it that are not nested."""
    if pt.is_struct(kind):
        return pa.struct([field.with_type(with_leaves(field.type, leaf)) for field in kind])
    if pt.is_map(kind):
        fields = (kind.key_field, kind.item_field)
        return pa.map_(*(field.with_type(with_leaves(field.type, leaf)) for field in fields))
    if pt.is_list(kind) or pt.is_large_list(kind):
        element = kind.value_field.with_type(with_leaves(kind.value_type, leaf))
        return pa.list_(element) if pt.is_list(kind) else pa.large_list(element)
    return leaf(kind)

"""Casts from source types to the types that are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.contract.spec import Nested
from lakeload_jobs.core.names import unique_names
from lakeload_jobs.core.types import timestamp_unit, type_rule
from lakeload_jobs.rows.failures import marked
from lakeload_jobs.rows.rejects import REJECT_TYPE, REJECTED_HELPER, ROW_HELPERS
from lakeload_jobs.rows.required import key_is_null
from lakeload_jobs.rows.tracking import (
    BAD_VALUES_HELPER,
    DELETED_HELPER,
    HELPER_PREFIX,
    PLACE_HELPER,
)

if TYPE_CHECKING:
    from lakeload_jobs.contract.spec import Nested, OnBadValue
    from lakeload_jobs.rows.columns import ColumnMapping


JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Of `to_json`: Spark's defaults drop null fields and everything below milliseconds."""


Rename = Callable[[Sequence[str]], list[str]]
"""Makes the field names of one struct those of the target."""


class UnsupportedType(Exception):
    """A type that lakeload cannot write; `kind` is Spark's name of it."""

    def __init__(self, kind: T.DataType) -> None:
        super().__init__(kind.simpleString())
        self.kind = kind.simpleString()


def written_value(
    column: Column, kind: T.DataType, nested: Nested, *, lower: bool = False
) -> Column:
    """Return the expression that writes a value of type `kind`.

    JSON text keeps the source's field names; native structs get normalised ones, numbered where
    they collide, with `lower` in lower case for Glue. Raises `UnsupportedType`, for a
    type at any depth.
    """
    written = _written(kind)
    if written != "NESTED":
        return _scalar(column, kind)
    if nested == "JSON":
        return F.to_json(_nested(column, kind, None), JSON_OPTIONS)
    return _nested(column, kind, partial(unique_names, lower=lower))


def _written(kind: T.DataType) -> str:
    # A user-defined type is called whatever its class is called, `string` for one.
    user_defined = isinstance(kind, T.UserDefinedType)
    rule = None if user_defined else type_rule(kind.typeName())
    if rule is None or rule.written == "UNSUPPORTED":
        raise UnsupportedType(kind)
    return rule.written


def _scalar(column: Column, kind: T.DataType) -> Column:
    written = _written(kind)
    if written == "TEXT":
        return column.cast("string")
    if written == "TIME_TEXT":
        # Spark's own text leaves out a fraction of zero and its last zeros.
        text = column.cast("string")
        fraction = F.rpad(F.substring(text, 10, 6), 6, "0")
        return F.concat(F.substring(text, 1, 8), F.lit("."), fraction)
    if written == "JSON":
        return F.to_json(column)
    return column


def _nested(column: Column, kind: T.DataType, rename: Rename | None) -> Column:
    if not _has_changes(kind):
        # A cast between structs goes by position, so it renames at every depth at once.
        renamed = _renamed(kind, rename) if rename else kind
        return column if renamed == kind else column.cast(renamed)
    if isinstance(kind, T.StructType):
        return _struct(column, kind, rename)
    if isinstance(kind, T.ArrayType):
        element = kind.elementType
        return F.transform(column, lambda value: _nested(value, element, rename))
    if isinstance(kind, T.MapType):
        keys, values = kind.keyType, kind.valueType
        if _has_changes(keys):
            column = F.transform_keys(column, lambda key, _: _nested(key, keys, rename))
        return F.transform_values(column, lambda _, value: _nested(value, values, rename))
    return _scalar(column, kind)


def _struct(column: Column, kind: T.StructType, rename: Rename | None) -> Column:
    """Build a struct anew, field by field."""
    plain, reachable = _reachable(column, kind)
    names = rename(kind.names) if rename else kind.names
    values = [
        _nested(plain.getField(own), field.dataType, rename).alias(name)
        for own, field, name in zip(reachable, kind.fields, names, strict=True)
    ]
    return F.when(column.isNotNull(), F.struct(*values))


def _reachable(column: Column, kind: T.StructType) -> tuple[Column, list[str]]:
    """Return the struct and names by which its fields resolve: twins in case do not."""
    if len({name.lower() for name in kind.names}) == len(kind.names):
        return column, kind.names
    fields = [
        T.StructField(f"f{i}", field.dataType, field.nullable)
        for i, field in enumerate(kind.fields)
    ]
    return column.cast(T.StructType(fields)), [field.name for field in fields]


def _has_changes(kind: T.DataType) -> bool:
    """Whether a value at some depth is not written as it is. Raises `UnsupportedType`."""
    if isinstance(kind, T.StructType):
        return any(_has_changes(field.dataType) for field in kind.fields)
    if isinstance(kind, T.ArrayType):
        return _has_changes(kind.elementType)
    if isinstance(kind, T.MapType):
        return _has_changes(kind.keyType) or _has_changes(kind.valueType)
    return _written(kind) != "AS_IS"


def _renamed(kind: T.DataType, rename: Rename) -> T.DataType:
    """Return the type with normalised field names at every depth."""
    if isinstance(kind, T.StructType):
        names = rename(kind.names)
        return T.StructType(
            [
                T.StructField(name, _renamed(field.dataType, rename), field.nullable)
                for field, name in zip(kind.fields, names, strict=True)
            ]
        )
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_renamed(kind.elementType, rename), kind.containsNull)
    if isinstance(kind, T.MapType):
        keys, values = _renamed(kind.keyType, rename), _renamed(kind.valueType, rename)
        return T.MapType(keys, values, kind.valueContainsNull)
    return kind


def filled(column: Column, now: T.DataType, table: T.DataType) -> Column:
    """Return a value with structs that have every field of the table's, in its order: fields that
    are absent are null. Others than the table's are left out."""
    if not _lacks(now, table):
        return column
    if isinstance(now, T.StructType) and isinstance(table, T.StructType):
        own = {field.name.lower(): field for field in now.fields}
        fields = []
        for field in table.fields:
            given = own.get(field.name.lower())
            value = (
                F.lit(None).cast(field.dataType)
                if given is None
                else filled(column.getField(given.name), given.dataType, field.dataType)
            )
            fields.append(value.alias(field.name))
        return F.when(column.isNotNull(), F.struct(*fields))
    if isinstance(now, T.ArrayType) and isinstance(table, T.ArrayType):
        element, wanted = now.elementType, table.elementType
        return F.transform(column, lambda value: filled(value, element, wanted))
    if isinstance(now, T.MapType) and isinstance(table, T.MapType):
        value_type, value_wanted = now.valueType, table.valueType
        return F.transform_values(column, lambda _, v: filled(v, value_type, value_wanted))
    return column


def _lacks(now: T.DataType, table: T.DataType) -> bool:
    """Whether a struct at some depth has other fields than the table's, or in another order."""
    if isinstance(now, T.StructType) and isinstance(table, T.StructType):
        if now.names != table.names:
            return True
        pairs = zip(now.fields, table.fields, strict=True)
        return any(_lacks(one.dataType, other.dataType) for one, other in pairs)
    if isinstance(now, T.ArrayType) and isinstance(table, T.ArrayType):
        return _lacks(now.elementType, table.elementType)
    if isinstance(now, T.MapType) and isinstance(table, T.MapType):
        return _lacks(now.valueType, table.valueType)
    return False


def fills(now: T.DataType, table: T.DataType) -> bool:
    """Return whether `filled` makes a value of one type one of the other, with nothing lost."""
    if isinstance(now, T.StructType) and isinstance(table, T.StructType):
        known = {field.name.lower(): field.dataType for field in table.fields}
        return all(
            field.name.lower() in known and fills(field.dataType, known[field.name.lower()])
            for field in now.fields
        )
    if isinstance(now, T.ArrayType) and isinstance(table, T.ArrayType):
        return fills(now.elementType, table.elementType)
    if isinstance(now, T.MapType) and isinstance(table, T.MapType):
        same = now.keyType.simpleString() == table.keyType.simpleString()
        return same and fills(now.valueType, table.valueType)
    return now.simpleString() == table.simpleString()


RECORD_HELPER = HELPER_PREFIX + "record"
"""Struct: the values of a row before a cast that has rejected it, null for all other rows."""


def cast_types(
    frame: DataFrame,
    types: Mapping[str, str],
    on_bad_value: OnBadValue,
    *,
    keep_records: bool = False,
) -> DataFrame:
    """Cast the columns that `columns.types` names, in place.

    A value becomes the same value of the other type, or is bad: nothing is rounded, cut off or
    taken for what it does not say. `timestamp(ms)` takes whole numbers of milliseconds, as do `s`,
    `us` and `ns`. A bad value fails the load (FAIL), becomes null and is counted in the helper
    column `BAD_VALUES_HELPER` (NULL), or has its row rejected in `REJECTED_HELPER` (QUARANTINE).
    The helper column `PLACE_HELPER` says where a row is from; it ends here. With `keep_records`
    rows that are rejected here are in `RECORD_HELPER` as they were. Raises `InvalidInput` for a
    type that Spark does not know or cannot cast to.
    """
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    frame = frame.toDF(*_positions(len(kinds)))
    positions = dict(zip(kinds, frame.columns, strict=True))
    place = F.col(positions[PLACE_HELPER]) if PLACE_HELPER in positions else None
    bad = [F.col(positions[BAD_VALUES_HELPER])] if BAD_VALUES_HELPER in positions else []
    own = {name: at for name, at in positions.items() if name not in _READ_HELPERS}
    values: list[Column] = []
    wrong: dict[str, Column] = {}
    for name, position in own.items():
        value = F.col(position)
        if name in types:
            cast = _exact_cast(frame, position, name, kinds[name], types[name])
            wrong[name] = value.isNotNull() & cast.isNull()
            bad.append(wrong[name].cast("int"))
            if on_bad_value == "FAIL":
                value = _or_fail(value, cast, name, types[name], _place_text(place))
            else:
                value = cast
        values.append(value.alias(name))
    if on_bad_value == "NULL" and bad:
        values.append(sum(bad[1:], bad[0]).alias(BAD_VALUES_HELPER))
    if on_bad_value == "QUARANTINE":
        row = F.struct(*(F.col(position).alias(name) for name, position in own.items()))
        found = _rejects(row, own, wrong, types, place)
        record = F.when(found.isNotNull(), row)
        if REJECTED_HELPER in positions:
            before = F.col(positions[REJECTED_HELPER])
            found = F.coalesce(before, found)
            record = F.when(before.isNull(), record)
        values.append(found.alias(REJECTED_HELPER))
        if keep_records:
            values.append(record.alias(RECORD_HELPER))
    return frame.select(*values)


_READ_HELPERS = (BAD_VALUES_HELPER, REJECTED_HELPER, PLACE_HELPER)


def _rejects(
    row: Column,
    positions: Mapping[str, str],
    wrong: Mapping[str, Column],
    types: Mapping[str, str],
    place: Column | None,
) -> Column:
    """Return the helper column of rows with a value that is `wrong`: of the first such column."""
    kind = T.DataType.fromDDL(REJECT_TYPE)
    assert isinstance(kind, T.StructType)  # noqa: S101
    found = F.lit(None).cast(kind)
    for name, is_wrong in reversed(list(wrong.items())):
        value = F.coalesce(F.col(positions[name]).try_cast("string"), F.lit("?"))
        known = {
            "column_name": F.lit(name),
            "column_value": value,
            "reason": _no_such_value(value, types[name]),
            "raw_record": F.to_json(row, JSON_OPTIONS),
        }
        if place is not None:
            known |= {field: place[field] for field in ("source_file", "row_group", "row_number")}
        fields = (
            known.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name)
            for field in kind.fields
        )
        found = F.when(is_wrong, F.struct(*fields)).otherwise(found)
    return found


def _place_text(place: Column | None) -> Column:
    """Return the beginning of a message about a row."""
    if place is None:
        return F.lit("")
    file = F.concat(F.lit("reading `"), place["source_file"], F.lit("`"))
    group = F.concat(F.lit(", row group "), place["row_group"])
    row = F.concat(F.lit(", row "), place["row_number"])
    where = (F.coalesce(part, F.lit("")) for part in (group, row))
    return F.concat(file, *where, F.lit(": "))


def _no_such_value(text: Column, kind: str) -> Column:
    return F.concat(F.lit("the value `"), F.substring(text, 1, 60), F.lit(f"` is no {kind}"))


def written_frame(
    frame: DataFrame,
    mapping: ColumnMapping,
    *,
    nested: Nested,
    lower: bool = False,
    where: str | None = None,
    deleted_when: str | None = None,
) -> DataFrame:
    """Return the columns of `mapping` under their target names, as they are written.

    `lower` is for Glue, as in `map_columns`: it is for the names within structs here.
    With `deleted_when` the frame ends with the boolean column `DELETED_HELPER`. Both conditions
    are Spark SQL over source names, excluded columns included. Raises `InvalidInput` for a
    condition that Spark refuses or that is not the same each time, and for a type that cannot
    be written.
    """
    frame = _filtered(frame, where)
    frame = _with_deleted(frame, deleted_when)
    positions = dict(zip(frame.columns, _positions(len(frame.columns)), strict=True))
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    frame = frame.toDF(*positions.values())
    values = []
    for column in mapping.columns:
        try:
            value = written_value(
                F.col(positions[column.source]), kinds[column.source], nested, lower=lower
            )
        except UnsupportedType as error:
            raise _not_writable(column.source, error) from error
        values.append(value.alias(column.target))
    helpers = [name for name in (DELETED_HELPER, *ROW_HELPERS) if name in positions]
    return frame.select(*values, *(F.col(positions[name]).alias(name) for name in helpers))


def written_schema(
    schema: T.StructType, mapping: ColumnMapping, *, nested: Nested, lower: bool = False
) -> T.StructType | None:
    """Return the columns that `written_frame` makes of rows of `schema` without conditions; None
    where Spark has to say. Raises as it does."""
    fields = []
    for column in mapping.columns:
        field = schema[column.source]
        try:
            kind = _written_type(field.dataType, nested, lower=lower)
        except UnsupportedType as error:
            raise _not_writable(column.source, error) from error
        if kind is None:
            return None
        fields.append(T.StructField(column.target, kind, field.nullable))
    return T.StructType(fields + [schema[name] for name in ROW_HELPERS if name in schema.names])


def _written_type(kind: T.DataType, nested: Nested, *, lower: bool) -> T.DataType | None:
    """Return the type in which values of type `kind` are written; None where only the expression
    that writes them tells. Raises `UnsupportedType`."""
    written = _written(kind)
    if written != "NESTED":
        return kind if written == "AS_IS" else T.StringType()
    changes = _has_changes(kind)
    if nested == "JSON":
        return T.StringType()
    return None if changes else _renamed(kind, partial(unique_names, lower=lower))


def _not_writable(column: str, error: UnsupportedType) -> InvalidInput:
    return InvalidInput(
        f"column `{column}` has the type `{error.kind}`, which cannot be written",
        hint="leave it out with `columns.exclude`, or give it another type with `columns.types`",
    )


_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6}
_FIRST_SECOND, _END_SECOND = -62_135_596_800, 253_402_300_800
"""The years 1 to 9999, in seconds since 1970."""

_NUMBER = r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?"
_NO_NUMBER = r"(?i)[+-]?(inf|infinity)|nan"
_DATE = r"[+-]?\d{4,6}-\d{1,2}-\d{1,2}"
_MIDNIGHT = r"[ T]0?0:0?0(:0?0(\.0*)?)?Z?"
_TIME = r"\d{1,2}:\d{1,2}(:\d{1,2}(\.\d{0,6}0*)?)?"
_ZONE = r"\s*(Z|UTC|GMT|[+-]\d{1,2}(:?\d{2}(:?\d{2})?)?|[A-Za-z_]+(/[A-Za-z_+-]+)+)?"


def _exact_cast(frame: DataFrame, position: str, name: str, own: T.DataType, wanted: str) -> Column:
    """Return a cast that gives null for a value that does not fit exactly; checked by Spark now."""
    value = F.col(position)
    try:
        if given := timestamp_unit(wanted):
            cast = _instant(value, own, given[1]).cast(given[0])
            frame.select(cast)
            return cast
        kind = T.DataType.fromDDL(wanted)
        if _numbers_as_instants(own, kind):
            raise InvalidInput(
                f"`columns.types` cannot make column `{name}` `{wanted}`: it has numbers "
                f"(`{own.simpleString()}`), whose unit is not known",
                hint=f"set `{wanted}(ms)`, or `(s)`, `(us)` or `(ns)`"
                if isinstance(own, T.NumericType)
                else "leave them as numbers: only a top-level column can have a unit",
            )
        cast = value.try_cast(wanted)
        frame.select(cast)
    except PySparkException as error:
        raise InvalidInput(
            f"`columns.types` cannot make column `{name}` `{wanted}`: {_first_line(error)}",
            hint="use a Spark SQL type such as `bigint`, `decimal(12,2)`, `timestamp` or, for "
            "numbers, `timestamp(ms)`",
        ) from error
    same = _text_says(value, cast, kind) if isinstance(own, T.StringType) else None
    if same is None and own != kind:
        same = _same_again(frame, value, cast, own, kind)
    return cast if same is None else F.when(same, cast)


def _instant(value: Column, own: T.DataType, unit: str) -> Column:
    """Return the instant so many units after 1970; null for what is no whole number."""
    number = value.try_cast("bigint")
    if isinstance(own, T.FractionalType):
        number = F.when(number.try_cast(own) == value, number)
    if unit == "ns":
        # Digits below a microsecond have no place. 64 bits reach from 1677 to 2262.
        micros = (number.cast("decimal(20,0)") / 1000).cast("bigint")
        return F.when(number % 1000 == 0, F.timestamp_micros(micros))
    per = _PER_SECOND[unit]
    fits = (number >= _FIRST_SECOND * per) & (number < _END_SECOND * per)
    return F.when(fits, F.timestamp_micros(number * (10**6 // per)))


def _numbers_as_instants(own: T.DataType, kind: T.DataType) -> bool:
    """Whether numbers would become timestamps, at some depth: Spark takes them for seconds."""
    if isinstance(own, T.StructType) and isinstance(kind, T.StructType):
        pairs = zip(own.fields, kind.fields, strict=False)
        return any(_numbers_as_instants(a.dataType, b.dataType) for a, b in pairs)
    if isinstance(own, T.ArrayType) and isinstance(kind, T.ArrayType):
        return _numbers_as_instants(own.elementType, kind.elementType)
    if isinstance(own, T.MapType) and isinstance(kind, T.MapType):
        return _numbers_as_instants(own.keyType, kind.keyType) or _numbers_as_instants(
            own.valueType, kind.valueType
        )
    return isinstance(own, T.NumericType) and isinstance(kind, T.TimestampType | T.TimestampNTZType)


def _same_again(
    frame: DataFrame, value: Column, cast: Column, own: T.DataType, kind: T.DataType
) -> Column | None:
    """Return whether the cast value, cast back, is the value: else something of it is lost.

    None where that cannot be asked: maps and variants are not compared.
    """
    if isinstance(kind, T.StringType):
        return F.is_valid_utf8(cast) if isinstance(own, T.BinaryType) else None
    same = cast.try_cast(_nullable(own)).eqNullSafe(value)
    try:
        frame.select(same)
    except PySparkException:
        return None
    return same


def _nullable(kind: T.DataType) -> T.DataType:
    """Return the type with null allowed at every depth: else a cast to it is none to Spark."""
    if isinstance(kind, T.StructType):
        return T.StructType([T.StructField(f.name, _nullable(f.dataType)) for f in kind.fields])
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_nullable(kind.elementType))
    return kind


def _text_says(value: Column, cast: Column, kind: T.DataType) -> Column | None:
    """Return whether a text says the value that Spark's cast made of it, which takes `13:30` for
    a time of today, and leaves out what it has no place for. None where Spark is strict itself."""
    text = F.trim(value)
    if isinstance(kind, T.FloatType | T.DoubleType):
        finite = F.abs(cast) < float("inf")
        return (text.rlike(f"^({_NUMBER})$") & finite) | text.rlike(f"^({_NO_NUMBER})$")
    if isinstance(kind, T.DecimalType):
        digits = rf"^[+-]?(\d+(\.\d{{0,{kind.scale}}}0*)?|\.\d{{0,{kind.scale}}}0*)$"
        wide = T.DecimalType(38, 38 - kind.precision + kind.scale)
        exponent = text.rlike("[eE]") & (value.try_cast(wide) == cast)
        return text.rlike(digits) | (exponent if wide.scale > kind.scale else F.lit(False))
    if isinstance(kind, T.DateType):
        return text.rlike(f"^{_DATE}({_MIDNIGHT})?$")
    if isinstance(kind, T.TimestampType):
        return text.rlike(f"^{_DATE}([ T]{_TIME}{_ZONE})?$")
    if isinstance(kind, T.TimestampNTZType):
        return text.rlike(f"^{_DATE}([ T]{_TIME})?$")
    return None


def _or_fail(value: Column, cast: Column, name: str, kind: str, place: Column) -> Column:
    """Fail with a sentence that names the column, which Spark's own ANSI cast does not."""
    text = F.coalesce(value.try_cast("string"), F.lit("?"))
    message = F.concat(place, F.lit(f"column `{name}`: "), _no_such_value(text, kind))
    return F.coalesce(cast, F.when(value.isNotNull(), F.raise_error(message)))


def quoted(name: str) -> str:
    """Return the name of a column as Spark's SQL has it."""
    return "`" + name.replace("`", "``") + "`"


def without_null_keys(frame: DataFrame, key: Sequence[str], source: str) -> DataFrame:
    """Return the same rows, of which the first one with a null in a key column fails, in words.
    `source` is the name of the table."""
    for name in key:
        failure = ErrorInfo.of(key_is_null(source, name), "stage")
        missing = F.raise_error(F.lit(marked(failure)))
        frame = frame.withColumn(name, F.coalesce(F.col(quoted(name)), missing))
    return frame


def null_columns(frame: DataFrame, types: Mapping[str, str], *, deleted: bool) -> DataFrame:
    """Return the helper columns of `frame` behind columns of these types that are null, and with
    `deleted` behind `DELETED_HELPER`."""
    values = [F.lit(None).cast(kind).alias(name) for name, kind in types.items()]
    if deleted:
        values.append(F.lit(False).alias(DELETED_HELPER))
    helpers = [name for name in ROW_HELPERS if name in frame.columns]
    return frame.select(*values, *helpers)


def _filtered(frame: DataFrame, where: str | None) -> DataFrame:
    if where is None:
        return frame
    try:
        # A rejected record stays rejected: what it would say to the condition, nobody knows.
        wanted = F.expr(where)
        if REJECTED_HELPER in frame.columns:
            frame.where(wanted)
            wanted = F.coalesce(wanted, F.lit(False)) | F.col(REJECTED_HELPER).isNotNull()
        filtered = frame.where(wanted)
    except AnalysisException as error:
        raise _refused_condition("where", where, error) from error
    _check_repeatable(filtered, "where", where)
    return filtered


def _with_deleted(frame: DataFrame, deleted_when: str | None) -> DataFrame:
    if deleted_when is None:
        return frame
    try:
        condition = F.expr(deleted_when)
        frame.where(condition)
        marked = frame.select("*", F.coalesce(condition, F.lit(False)).alias(DELETED_HELPER))
    except AnalysisException as error:
        raise _refused_condition("deleted_when", deleted_when, error) from error
    _check_repeatable(marked, "deleted_when", deleted_when)
    return marked


def _refused_condition(setting: str, condition: str, error: PySparkException) -> InvalidInput:
    return InvalidInput(
        f"Spark rejects `{setting}: {condition}`: {_first_line(error)}",
        hint="write a Spark SQL condition over the source's column names",
    )


def _check_repeatable(frame: DataFrame, setting: str, condition: str) -> None:
    """A retried task must make the same rows again, else the commit doubles or loses some."""
    if not frame._jdf.queryExecution().analyzed().deterministic():
        raise InvalidInput(
            f"`{setting}: {condition}` can have another result each time",
            hint="leave out functions such as `rand()` and `uuid()`",
        )


def _positions(count: int) -> list[str]:
    return [f"p{position}" for position in range(count)]


def _first_line(error: PySparkException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

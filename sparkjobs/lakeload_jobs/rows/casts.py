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
from lakeload_jobs.contract.spec import Nested
from lakeload_jobs.core.names import unique_names
from lakeload_jobs.core.types import type_rule
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER, DELETED_HELPER

if TYPE_CHECKING:
    from lakeload_jobs.contract.spec import Nested, OnBadValue
    from lakeload_jobs.rows.columns import ColumnMapping


# Spark's defaults drop null fields and everything below milliseconds.
_JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


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
        return F.to_json(_nested(column, kind, None), _JSON_OPTIONS)
    return _nested(column, kind, partial(unique_names, lower=lower))


def _written(kind: T.DataType) -> str:
    # A user-defined type is called whatever its class is called, `string` for one.
    user_defined = isinstance(kind, T.UserDefinedType)
    rule = None if user_defined else type_rule(kind.typeName())
    if rule is None or rule.written == "REFUSED":
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


def cast_types(frame: DataFrame, types: Mapping[str, str], on_bad_value: OnBadValue) -> DataFrame:
    """Cast the columns that `columns.types` names, in place.

    For sources that bring types of their own; readers of text are given the types as a schema.
    A value that does not fit fails the load (FAIL), or becomes null and is counted in the
    helper column `BAD_VALUES_HELPER` (NULL). Raises `InvalidInput` for a type that Spark does
    not know or cannot cast to.
    """
    if not types:
        return frame
    names = frame.columns
    frame = frame.toDF(*_positions(len(names)))
    bad: list[Column] = []
    values: list[Column] = []
    for position, name in zip(frame.columns, names, strict=True):
        value = F.col(position)
        if name in types:
            cast = _cast(frame, position, name, types[name])
            bad.append((value.isNotNull() & cast.isNull()).cast("int"))
            value = cast if on_bad_value == "NULL" else _or_fail(value, cast, name, types[name])
        values.append(value.alias(name))
    if on_bad_value == "NULL":
        values.append(sum(bad[1:], bad[0]).alias(BAD_VALUES_HELPER))
    return frame.select(*values)


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
            raise InvalidInput(
                f"column `{column.source}` has the type `{error.kind}`, which cannot be written",
                hint="exclude it, or give it another type with `columns.types`",
            ) from error
        values.append(value.alias(column.target))
    helpers = [name for name in (DELETED_HELPER, BAD_VALUES_HELPER) if name in positions]
    return frame.select(*values, *(F.col(positions[name]).alias(name) for name in helpers))


def _cast(frame: DataFrame, position: str, name: str, kind: str) -> Column:
    """Return a cast that gives null for a value that does not fit; checked by Spark now."""
    try:
        cast = F.col(position).try_cast(kind)
        frame.select(cast)
    except PySparkException as error:
        raise InvalidInput(
            f"`columns.types` cannot make column `{name}` `{kind}`: {_first_line(error)}",
            hint="use a Spark SQL type such as `bigint`, `decimal(12,2)` or `timestamp`",
        ) from error
    return cast


def _or_fail(value: Column, cast: Column, name: str, kind: str) -> Column:
    """Fail with a sentence that names the column, which Spark's own ANSI cast does not."""
    text = F.substring(F.coalesce(value.try_cast("string"), F.lit("?")), 1, 60)
    message = F.concat(F.lit(f"column `{name}`: the value `"), text, F.lit(f"` is no {kind}"))
    return F.coalesce(cast, F.when(value.isNotNull(), F.raise_error(message)))


def _filtered(frame: DataFrame, where: str | None) -> DataFrame:
    if where is None:
        return frame
    try:
        filtered = frame.where(where)
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
        f"Spark refuses `{setting}: {condition}`: {_first_line(error)}",
        hint="write a Spark SQL condition over the source's column names",
    )


def _check_repeatable(frame: DataFrame, setting: str, condition: str) -> None:
    """A retried task must make the same rows again, else the commit doubles or loses some."""
    if not frame._jdf.queryExecution().analyzed().deterministic():
        raise InvalidInput(
            f"`{setting}: {condition}` can give another answer each time it is asked",
            hint="leave out functions such as `rand()` and `uuid()`",
        )


def _positions(count: int) -> list[str]:
    return [f"p{position}" for position in range(count)]


def _first_line(error: PySparkException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

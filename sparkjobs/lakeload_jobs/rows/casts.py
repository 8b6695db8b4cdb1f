"""A source's DataFrame → the DataFrame that is written: types, filter, selection, names.

Columns are taken by position: a source's names may hold dots, quotes and twins in case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.rows.output_values import UnsupportedType, written_value
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER, DELETED_HELPER

if TYPE_CHECKING:
    from lakeload_jobs.contract.spec import Nested, OnBadValue
    from lakeload_jobs.rows.columns import ColumnMapping


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

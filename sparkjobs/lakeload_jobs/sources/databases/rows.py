"""Rows of a table that is read once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructType

from lakeload_jobs.contract.spec import OnBadValue, TableSpec
from lakeload_jobs.rows.casts import cast_types
from lakeload_jobs.sources.base import Rows, Splits, Unfinished
from lakeload_jobs.sources.databases.base import FoundTable
from lakeload_jobs.sources.settings import check_types
from lakeload_jobs.sources.spark_frames import check_casts, columns_of, split_frame


def read_once(
    spark: SparkSession,
    schema: StructType,
    found: FoundTable,
    once: Splits,
    on_end: Callable[[Sequence[Any]], None],
    *,
    warnings: tuple[str, ...],
    only_spark: str = "",
) -> Rows:
    """Return the rows of a table that is read once, in transactions that report all bad values.
    `on_end` is given what the reads returned."""
    # There is nothing to check when they have been read, and the slice knows the state.
    rows = Rows(
        spark,
        schema,
        found.names,
        once,
        only_spark,
        repeatable=False,
        comments=found.comments,
        warnings=warnings,
        finish=on_end,
    )
    return replace(rows, keys=partial(columns_of, rows))


def cast_at_last(
    rows: Rows, table: TableSpec, plain: StructType, name: str, on_bad_value: OnBadValue
) -> Rows:
    """Return rows that are read once with the casts of `columns.types`, which Spark does when all
    have been read. `plain` are the columns without helpers, `name` is that of the source."""
    casts = casts_of(table, plain, rows.names)
    if not casts:
        return rows
    cast = partial(cast_types, types=casts, on_bad_value=on_bad_value)
    check = partial(check_casts, types=casts, source=name)
    splits = replace(rows.splits, unfinished=Unfinished(rows.schema, cast, check))
    schema = split_frame(rows.spark, splits, rows.schema).schema
    return replace(rows, schema=schema, splits=splits)


def casts_of(table: TableSpec, schema: StructType, names: tuple[str, ...]) -> dict[str, str]:
    """Return the types of `columns.types` that columns do not have already."""
    kinds = {field.name: field.dataType for field in schema}
    return {
        name: kind
        for name, kind in check_types(table.columns.types or {}, names).items()
        if name in kinds and DataType.fromDDL(kind) != kinds[name]
    }

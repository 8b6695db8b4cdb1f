"""Columns for which data files have bloom filters."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    MapType,
    NullType,
    StructType,
)

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.rows.columns import ColumnMapping, source_names

_NESTED = (ArrayType, MapType, StructType)


def bloom_filter_columns(
    given: Sequence[str], mapping: ColumnMapping, schema: StructType
) -> tuple[str, ...]:
    """Return the target names of the columns that `bloom_filters` names; `schema` has the types
    under target names.

    Raises `InvalidInput` for a column that is not loaded, or whose type has no bloom filter.
    """
    targets = {column.source: column.target for column in mapping.columns}
    found = []
    for name in source_names(given, targets).values():
        if name not in targets:
            raise InvalidInput(
                f"`bloom_filters` names the column `{name}`, which is not among those that are "
                "loaded",
                hint=did_you_mean(name, targets) or "name a column of the source, or of the table",
            )
        if problem := _problem(schema[targets[name]].dataType):
            raise InvalidInput(
                f"`bloom_filters` names the column `{name}`, {problem}",
                hint="remove it from `bloom_filters`",
            )
        found.append(targets[name])
    return tuple(found)


def _problem(kind: DataType) -> str:
    if isinstance(kind, _NESTED):
        return f"a nested column ({kind.typeName()}): only columns of simple types can have one"
    if isinstance(kind, BooleanType):
        return "a boolean: Parquet has no bloom filters for booleans"
    if isinstance(kind, NullType):
        return "whose values are all null and have no type"
    return ""

"""Handling of columns whose type conflicts with the table's column (`on_type_conflict`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakeload_jobs.contract.errors import LakeloadError, LoadFailed
from lakeload_jobs.contract.spec import OnTypeConflict, TableSpec
from lakeload_jobs.core.nested_types import first_difference, with_new_fields
from lakeload_jobs.core.type_conflicts import (
    OTHER_TABLE,
    Misfit,
    types_setting,
    variant_key,
    variant_name,
    variants_of,
)
from lakeload_jobs.formats.base import ExpectedColumns, PreparedRows
from lakeload_jobs.rows.casts import filled, fills, quoted
from lakeload_jobs.rows.columns import LoadedColumn, source_names
from lakeload_jobs.sources.base import BadValuesFound

_LONGEST_VALUE = 60
_MOST_ASKED = 3
"""Columns whose values are looked into: each is a pass over the rows until one is found."""
_NESTED = (T.StructType, T.ArrayType, T.MapType)


def resolve_conflicts(
    prepared: PreparedRows,
    expected: ExpectedColumns,
    table: TableSpec,
    policy: OnTypeConflict,
    *,
    may_read: bool,
) -> PreparedRows:
    """Return the rows with nested fields that are absent filled with null, and with columns that
    the table cannot take under names of their own, where `policy` asks for that.

    Under FAIL only `misfits` are found: what is refused, the format knows. Rows are looked into
    where they `may_read`. Raises `LoadFailed` for a column whose values must stay in it.
    """
    prepared = _with_absent_fields(prepared, expected)
    conflicts = _conflicts(prepared, expected)
    if not conflicts or (may_read and prepared.is_empty):
        # A source without rows has no types worth a complaint.
        return prepared
    if policy != "FAIL":
        _check_movable(conflicts, prepared, expected, table, policy)
        if policy == "TEXT":
            prepared = _with_text(prepared, conflicts)
        return _in_columns_of_their_own(prepared, expected, conflicts)
    if not may_read:
        return prepared
    misfits: dict[str, Misfit] = {}
    for column in conflicts[:_MOST_ASKED]:
        name = _spelled(column.target, expected)
        before = expected.types.get(name, expected.nested_types.get(name))
        if before is not None and (misfit := _misfit(prepared, column, before)) is not None:
            misfits[column.target.lower()] = misfit
    return replace(prepared, misfits=misfits)


def _with_absent_fields(prepared: PreparedRows, expected: ExpectedColumns) -> PreparedRows:
    known = {name.lower(): kind for name, kind in expected.types.items()}
    values = {}
    for field in prepared.schema.fields:
        before, kind = known.get(field.name.lower()), field.dataType
        if before is None or not isinstance(kind, _NESTED) or before == kind.simpleString():
            continue
        if expected.adds_fields:
            before = with_new_fields(before, kind.simpleString()) or before
            if before == kind.simpleString():
                continue
        table = T.DataType.fromDDL(before)
        if fills(kind, table):
            values[field.name] = filled(F.col(quoted(field.name)), kind, table)
    if not values:
        return prepared
    return prepared.in_sql(prepared.frame.withColumns(values))


def _conflicts(prepared: PreparedRows, expected: ExpectedColumns) -> list[LoadedColumn]:
    takes, kinds = expected.takes, prepared.schema
    if takes is None:
        return []
    columns = prepared.mapping.columns
    return [column for column in columns if not takes(column.target, kinds[column.target].dataType)]


def _check_movable(
    conflicts: Sequence[LoadedColumn],
    prepared: PreparedRows,
    expected: ExpectedColumns,
    table: TableSpec,
    policy: OnTypeConflict,
) -> None:
    known = [column.source for column in prepared.mapping.columns]
    fields = set(source_names([one.column for one in table.partition_by or ()], known).values())
    cursor = source_names([table.cursor or ""], known)[table.cursor or ""]
    for column in conflicts:
        for setting, stays in (
            ("primary_key", column.target in prepared.mapping.key),
            ("cursor", column.source == cursor),
            ("partition_by", column.source in fields),
        ):
            if stays:
                kind = prepared.schema[column.target].dataType.simpleString()
                before = expected.types.get(_spelled(column.target, expected))
                way = f"set `{types_setting({column.source: before})}`, or " if before else ""
                raise LoadFailed(
                    f"column `{column.target}` is `{kind}` in this load and "
                    f"{f'`{before}`' if before else 'of another type'} in the table, and "
                    f"`on_type_conflict: {policy}` cannot move a column of `{setting}`",
                    hint=f"{way}{OTHER_TABLE}",
                )


def _with_text(prepared: PreparedRows, conflicts: Sequence[LoadedColumn]) -> PreparedRows:
    """Return the rows with the values of these columns as text, nested ones as JSON."""
    values = {}
    for column in conflicts:
        kind, value = prepared.schema[column.target].dataType, F.col(quoted(column.target))
        if isinstance(kind, _NESTED):
            values[column.target] = F.to_json(value)
        elif isinstance(kind, T.BinaryType):
            values[column.target] = F.base64(value)
        elif not isinstance(kind, T.StringType):
            values[column.target] = value.cast("string")
    if not values:
        return prepared
    return prepared.in_sql(prepared.frame.withColumns(values))


def _in_columns_of_their_own(
    prepared: PreparedRows, expected: ExpectedColumns, conflicts: Sequence[LoadedColumn]
) -> PreparedRows:
    mapping, schema = prepared.mapping, prepared.schema
    variants = dict(mapping.variants)
    taken = {*expected.types, *expected.recorded.values(), *schema.names}
    moved: dict[str, LoadedColumn] = {}
    warnings = []
    for column in conflicts:
        kind = schema[column.target].dataType
        name = _variant(column.target, kind, expected)
        if name is None:
            text = kind.simpleString()
            name = variant_name(column.target, text, lower=expected.lower, taken=taken)
            variants[variant_key(column.target, text)] = name
            taken.add(name)
        moved[column.source] = replace(column, target=name, instead_of=column.target)
        before = expected.types.get(_spelled(column.target, expected), "of another type")
        warnings.append(
            f"column `{column.target}` is `{kind.simpleString()}` in this load and `{before}` in "
            f"the table: its values are loaded into `{name}` (`on_type_conflict`)"
        )
    names = {column.target: moved[column.source].target for column in conflicts}
    columns = tuple(moved.get(column.source, column) for column in mapping.columns)
    mapping = replace(
        mapping,
        columns=columns,
        warnings=(*mapping.warnings, *warnings),
        variants=variants,
    )
    return replace(prepared, mapping=mapping).renamed(names)


def _variant(target: str, kind: T.DataType, expected: ExpectedColumns) -> str | None:
    """Return the column that has such values in place of `target`; None where there is none yet."""
    names = variants_of(target, expected.recorded)
    exact = [name for name in names if expected.types.get(name) == kind.simpleString()]
    taking = (name for name in names if expected.takes is None or expected.takes(name, kind))
    return next(iter(exact), None) or next(taking, None)


def _spelled(target: str, expected: ExpectedColumns) -> str:
    names = (*expected.types, *expected.nested_types)
    return next((name for name in names if name.lower() == target.lower()), target)


def _misfit(prepared: PreparedRows, column: LoadedColumn, before: str) -> Misfit | None:
    """Return what keeps the values of a column from the type `before`; None where that cannot be
    asked."""
    kind = prepared.schema[column.target].dataType.simpleString()
    path, part, _ = first_difference(before, kind)
    check, bad = prepared.rows.check_type, None
    try:
        if check is not None:
            check(column.source, before)
            return Misfit(column.source, before, None)
    except BadValuesFound as error:
        bad = error.first
    except (LakeloadError, PySparkException, Py4JError):
        return None
    problem = None if bad is None else f"the first value that does not fit: {bad}"
    if bad is None or path:
        try:
            value = _first_misfit(_values(prepared.frame, column.target, path), part)
        except (PySparkException, Py4JError):
            return None
        if value is not None:
            within = f" in `{'.'.join((column.target, *path))}`" if path else ""
            place = f", {bad.where}" if bad else ""
            problem = f"the first value that does not fit is `{value}`{within}{place}"
    return Misfit(column.source, before, problem, ".".join((column.target, *path)))


def _values(frame: DataFrame, name: str, path: Sequence[str]) -> DataFrame:
    """Return the values at a path in a column, as the column `value`."""
    values = frame.select(F.col(quoted(name)).alias("value"))
    for part in path:
        kind, value = values.schema["value"].dataType, F.col("value")
        if isinstance(kind, T.StructType):
            value = value.getField(part)
        elif isinstance(kind, T.ArrayType):
            value = F.explode(value)
        else:
            value = F.explode(F.map_keys(value) if part == "key" else F.map_values(value))
        values = values.select(value.alias("value"))
    return values


def _first_misfit(values: DataFrame, before: str) -> str | None:
    """Return the first value that is lost as the type `before`; None where every value fits."""
    kind, value = values.schema["value"].dataType, F.col("value")
    cast = value.try_cast(before)
    lost = cast.isNull()
    if not isinstance(kind, T.StringType):
        lost |= ~cast.try_cast(kind).eqNullSafe(value)
    elif before == "date":
        # The text of a timestamp would be cut.
        lost |= F.length(value) > len("2026-11-22")
    rows = values.where(value.isNotNull() & lost).select(value.try_cast("string")).head(1)
    return str(rows[0][0])[:_LONGEST_VALUE] if rows else None

"""Nulls where a column of the table, or a field, element or value in one, is required."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyarrow import types as pt

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.core.yaml_lines import yaml_list
from lakeload_jobs.rows.arrow import Column


def key_is_null(source: str, name: str) -> InvalidInput:
    """Return the error of a load of the table `source` that has a null in a column of the key."""
    return InvalidInput(
        f"table `{source}`: the primary key column `{name}` is null in at least one row",
        hint="choose a `primary_key` without nulls, or exclude such rows with `where`",
    )


def check_key(batch: pa.RecordBatch, key: Sequence[str], source: str) -> None:
    """Raise `InvalidInput` for a null in a column of the key."""
    for name in key:
        if batch.column(name).null_count:
            raise key_is_null(source, name)


def null_is_required(source: str, path: Sequence[str]) -> InvalidInput:
    """Return the error of a load of the table `source` that has a null where none may be."""
    name = ".".join(path)
    way = "set `schema_changes: EVOLVE`, which makes it optional"
    if len(path) > 1 and path[-1] in ("element", "value"):
        # Iceberg never makes these optional.
        way = f"leave the column out with `columns: {{exclude: {yaml_list(path[:1])}}}`"
    return InvalidInput(
        f"table `{source}`: `{name}` is required in the destination's table, and null in at least "
        "one row",
        hint=f"leave such rows out with `where`, or {way}",
    )


def check_required(batch: pa.RecordBatch, schema: pa.Schema, source: str) -> None:
    """Raise `InvalidInput` for a null where a column of the table's `schema` has none."""
    for field in schema:
        if field.name in batch.schema.names and has_required(field):
            path = required_null(batch.column(field.name), field)
            if path is not None:
                raise null_is_required(source, path)


def has_required(field: pa.Field[pa.DataType]) -> bool:
    """Return whether a column, or anything in it but the keys of maps, is required."""
    return not field.nullable or any(map(has_required, _parts(field.type)))


def required_null(column: Column, field: pa.Field[pa.DataType]) -> tuple[str, ...] | None:
    """Return the path of what is null in a column and required by `field`, the table's."""
    if not field.nullable and column.null_count:
        return (field.name,)
    parts = [part for part in _parts(field.type) if has_required(part)]
    if not parts:
        return None
    # Of what is null itself, nothing is required; and nothing is left of rows outside of a slice.
    values = column.filter(column.is_valid())
    for part in parts:
        if path := required_null(_part(values, part), part):
            return (field.name, *path)
    return None


def _part(values: Column, part: pa.Field[pa.DataType]) -> Column:
    if pt.is_null(values.type):
        return values
    if pt.is_struct(values.type):
        own = {field.name.lower(): at for at, field in enumerate(values.type)}
        at = own.get(part.name.lower())
        # What is absent is null.
        none: Column = pa.nulls(len(values))
        return none if at is None else values.field(at)
    return values.items if pt.is_map(values.type) else values.flatten()


def _parts(kind: pa.DataType) -> list[pa.Field[pa.DataType]]:
    if pt.is_struct(kind):
        return list(kind)
    if pt.is_list(kind):
        return [kind.value_field]
    return [kind.item_field] if pt.is_map(kind) else []

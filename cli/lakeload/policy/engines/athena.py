"""Parquet tables that are not in Glue: their names in Athena and the columns that are declared.

https://docs.aws.amazon.com/athena/latest/ug/create-table.html; the partitions are projected, since
nobody registers them and `yyyy/MM/dd` is no path that MSCK REPAIR TABLE would find.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakeload_jobs.contract.spec import TRACKING_TYPES, Nested, TableSpec
from lakeload_jobs.core.names import unique_names
from lakeload_jobs.formats.parquet.glue.tables import NoGlueType, glue_type

_NESTED = ("struct", "array", "map")


@dataclass(frozen=True)
class DeclaredColumns:
    """The columns of `columns.types` and the tracking columns."""

    types: dict[str, str]
    complete: bool
    """False where the source may have more."""


def folded(table: TableSpec) -> TableSpec:
    """Return the table with names as Athena folds them; one without a schema is in `default`."""
    return replace(table, schema=(table.schema or "default").lower(), table=table.table.lower())


def declared_columns(table: TableSpec, tracking: Sequence[str], nested: Nested) -> DeclaredColumns:
    """Return the columns with their types in Athena's DDL."""
    spec = table.columns
    declared = {
        source: kind
        for source, kind in (spec.types or {}).items()
        if (not spec.include or source in spec.include) and source not in spec.exclude
    }
    names = unique_names(
        [(spec.rename or {}).get(source, source) for source in declared], lower=True
    )
    types = {}
    for name, kind in zip(names, declared.values(), strict=True):
        try:
            types[name] = _type(kind, nested)
        except NoGlueType:
            continue
    complete = bool(spec.include) and len(types) >= len(set(spec.include) - set(spec.exclude))
    return DeclaredColumns(types | {one: TRACKING_TYPES[one] for one in tracking}, complete)


def _type(kind: str, nested: Nested) -> str:
    """Return Glue's type of a declared one; nested values are text where `nested` is JSON."""
    if nested == "JSON" and kind.strip().lower().startswith(_NESTED):
        return "string"
    return glue_type(kind)

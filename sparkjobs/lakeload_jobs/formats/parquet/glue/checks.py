"""Whether what Glue holds is the table that a load would make (F27, B23). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakeload_jobs.formats.parquet.glue import conflicts
from lakeload_jobs.formats.parquet.glue.projection import describe_projection
from lakeload_jobs.formats.parquet.glue.tables import (
    SERDE,
    STRATEGY,
    TABLE_TYPE,
    WantedTable,
    columns_of,
    same_location,
)
from lakeload_jobs.formats.parquet.glue.types import same_glue_type

if TYPE_CHECKING:
    from mypy_boto3_glue.type_defs import TableTypeDef


def check_database(database: Mapping[str, Any], wanted: WantedTable) -> None:
    """Raise `CatalogConflict` when the database of a table to be made lies elsewhere.

    One without a location is fine: every table has its own.
    """
    ours = wanted.database_location
    there = database.get("LocationUri") or ""
    if there and not same_location(there, ours):
        raise conflicts.other_location(f"Glue's database `{wanted.database}`", there, ours)


def check_table(table: TableTypeDef, wanted: WantedTable) -> None:
    """Raise `CatalogConflict` unless the table in Glue is the one this load would make.

    What it is decides, not who made it: the same table made by hand, a crawler or another
    pipeline will do.
    """
    if kind := _other_kind(table):
        raise conflicts.not_a_parquet_table(wanted.full_name, kind)
    there = table.get("StorageDescriptor", {}).get("Location", "")
    if not same_location(there, wanted.location):
        raise conflicts.other_location(f"Glue's table `{wanted.full_name}`", there, wanted.location)
    keys = [(key["Name"].lower(), key.get("Type", "")) for key in table.get("PartitionKeys", [])]
    ours = [(wanted.partition_key, "string")] if wanted.partition_key else []
    if keys != ours:
        raise conflicts.other_keys(wanted.full_name, _in_words(keys), _in_words(ours))
    parameters = table.get("Parameters", {})
    found, wish = describe_projection(parameters), describe_projection(wanted.projection)
    if wanted.partition_key and found != wish:
        raise conflicts.other_projection(wanted.full_name, found, wish)
    strategy = parameters.get(STRATEGY, wanted.strategy)
    if wanted.partition_key and strategy != wanted.strategy:
        raise conflicts.other_strategy(wanted.full_name, strategy, wanted.strategy)
    _check_types(table, wanted)


def _other_kind(table: TableTypeDef) -> str | None:
    """Say what a table is when it is no external Parquet table."""
    parameters = table.get("Parameters", {})
    if table.get("TargetTable"):
        return "a link to a table elsewhere"
    if "ICEBERG" in parameters.get("table_type", "").upper():
        return "an Iceberg table"
    if (provider := parameters.get("spark.sql.sources.provider", "parquet")) != "parquet":
        return f"a table of `{provider}`"
    if (kind := table.get("TableType") or "no table type") != TABLE_TYPE:
        return f"a `{kind}`"
    serde = table.get("StorageDescriptor", {}).get("SerdeInfo", {}).get("SerializationLibrary", "")
    if serde != SERDE:
        return f"a table of the SerDe `{serde}`"
    return None


def _check_types(table: TableTypeDef, wanted: WantedTable) -> None:
    theirs = dict(columns_of(table))
    pairs = [
        (name, theirs[name], kind)
        for name, kind in wanted.columns
        if name in theirs and not same_glue_type(theirs[name], kind)
    ]
    if pairs:
        raise conflicts.other_types(wanted.full_name, pairs)


def _in_words(keys: Sequence[tuple[str | None, str]]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in keys) or "nothing"

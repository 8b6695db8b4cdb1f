"""A table as Glue holds it and as a load wants it: compared, united, written. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from lakeload_jobs.contract.spec import PartitionStrategy
from lakeload_jobs.lake.glue import conflicts
from lakeload_jobs.lake.glue.projection import describe_projection, widened_range
from lakeload_jobs.lake.records import Column
from lakeload_jobs.rules.glue_types import NoGlueType, glue_type, same_glue_type

if TYPE_CHECKING:
    from mypy_boto3_glue.type_defs import (
        PartitionInputTypeDef,
        StorageDescriptorTypeDef,
        TableInputTypeDef,
        TableTypeDef,
    )

CREATED_BY = "lakeload.created-by"
"""Table parameter: the pipeline whose load made the table in Glue."""

STRATEGY = "lakeload.partition-strategy"
"""Table parameter: a day's folder holds those of its hours, and Athena would read those twice."""

_SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_INPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
_OUTPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
_TABLE_TYPE = "EXTERNAL_TABLE"
# What UpdateTable takes of what GetTable gives; the rest is Glue's own to write.
_INPUT_FIELDS = (
    "Name",
    "Description",
    "Owner",
    "LastAccessTime",
    "LastAnalyzedTime",
    "Retention",
    "StorageDescriptor",
    "PartitionKeys",
    "ViewOriginalText",
    "ViewExpandedText",
    "TableType",
    "Parameters",
    "TargetTable",
)


@dataclass(frozen=True)
class WantedTable:
    """The table that the done loads make: Glue names and types, all in lower case."""

    database: str
    name: str
    location: str
    """`s3://bucket/prefix/schema/table/`."""
    columns: tuple[tuple[str, str], ...]
    partition_key: str | None
    strategy: PartitionStrategy
    created_by: str
    projection: Mapping[str, str] = field(default_factory=dict)
    """Parameters of Athena's partition projection; none when partitions are registered."""

    @property
    def full_name(self) -> str:
        """`database.table`, for messages."""
        return f"{self.database}.{self.name}"

    @property
    def database_location(self) -> str:
        """`s3://bucket/prefix/schema/`."""
        return self.location.rstrip("/").rpartition("/")[0] + "/"

    def partition_location(self, value: str) -> str:
        """Where the files of one partition lie."""
        return f"{self.location}{value}/"


def glue_columns(columns: Sequence[Column]) -> tuple[tuple[str, str], ...]:
    """Return names and Glue types of recorded columns. Raises `CatalogConflict`."""
    result = []
    for column in columns:
        try:
            result.append((column.name.lower(), glue_type(column.type)))
        except NoGlueType as error:
            raise conflicts.unreadable_type(column.name, column.type, str(error)) from error
    return tuple(result)


def same_location(one: str, other: str) -> bool:
    """Return whether two S3 locations are one: clients write the scheme and the end differently."""
    return _plain_location(one) == _plain_location(other)


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


def united(table: TableTypeDef, wanted: WantedTable) -> TableInputTypeDef | None:
    """Return the table with what ours has and Glue's has not; None when there is nothing to add.

    Nothing is ever taken away or moved: columns of other loads, of people, and every parameter
    stay as they are (P19).
    """
    known = {name for name, _ in columns_of(table)}
    added = [column for column in wanted.columns if column[0] not in known]
    parameters = widened_range(table.get("Parameters", {}), wanted.projection)
    if not added and not parameters:
        return None
    storage = dict(table.get("StorageDescriptor", {}))
    storage["Columns"] = [
        *table.get("StorageDescriptor", {}).get("Columns", []),
        *_column_inputs(added),
    ]
    there: Mapping[str, Any] = table
    # A field without a value may come back as '' or None, which no request may hold.
    fields = {name: there[name] for name in _INPUT_FIELDS if there.get(name) not in (None, "")}
    fields["StorageDescriptor"] = storage
    fields["Parameters"] = {**table.get("Parameters", {}), **parameters}
    return cast("TableInputTypeDef", fields)


def table_input(wanted: WantedTable) -> TableInputTypeDef:
    """Return the table as CreateTable wants it."""
    key = wanted.partition_key
    return {
        "Name": wanted.name,
        "TableType": _TABLE_TYPE,
        "Parameters": {
            "EXTERNAL": "TRUE",
            "classification": "parquet",
            CREATED_BY: wanted.created_by,
            STRATEGY: wanted.strategy,
            **wanted.projection,
        },
        "StorageDescriptor": _storage(wanted.columns, wanted.location),
        "PartitionKeys": [{"Name": key, "Type": "string"}] if key else [],
    }


def partition_input(
    columns: Sequence[tuple[str, str]], value: str, location: str
) -> PartitionInputTypeDef:
    """Return a partition as BatchCreatePartition wants it; `columns` are those of the table.

    All of them and in their order: whoever compares by position then finds the same types.
    """
    return {"Values": [value], "StorageDescriptor": _storage(columns, location)}


def columns_of(table: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return names, in lower case, and types of a table's columns."""
    columns = table.get("StorageDescriptor", {}).get("Columns", [])
    return tuple((column["Name"].lower(), column.get("Type", "")) for column in columns)


def _storage(columns: Sequence[tuple[str, str]], location: str) -> StorageDescriptorTypeDef:
    return {
        "Columns": _column_inputs(columns),
        "Location": location,
        "InputFormat": _INPUT,
        "OutputFormat": _OUTPUT,
        "SerdeInfo": {
            "SerializationLibrary": _SERDE,
            "Parameters": {"serialization.format": "1"},
        },
        "StoredAsSubDirectories": False,
    }


def _column_inputs(columns: Sequence[tuple[str, str]]) -> list[Any]:
    return [{"Name": name, "Type": kind} for name, kind in columns]


def _other_kind(table: TableTypeDef) -> str | None:
    """Say what a table is when it is no external Parquet table."""
    parameters = table.get("Parameters", {})
    if table.get("TargetTable"):
        return "a link to a table elsewhere"
    if "ICEBERG" in parameters.get("table_type", "").upper():
        return "an Iceberg table"
    if (provider := parameters.get("spark.sql.sources.provider", "parquet")) != "parquet":
        return f"a table of `{provider}`"
    if (kind := table.get("TableType") or "no table type") != _TABLE_TYPE:
        return f"a `{kind}`"
    serde = table.get("StorageDescriptor", {}).get("SerdeInfo", {}).get("SerializationLibrary", "")
    if serde != _SERDE:
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


def _plain_location(location: str) -> str:
    scheme, _, rest = location.partition("://")
    return rest.rstrip("/") if scheme in ("s3", "s3a", "s3n") else location


def _in_words(keys: Sequence[tuple[str | None, str]]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in keys) or "nothing"

"""A table as a load wants it in Glue, and as Glue is sent it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from lakeload_jobs.contract.spec import PartitionStrategy
from lakeload_jobs.formats.parquet.glue import conflicts
from lakeload_jobs.formats.parquet.glue.projection import widened_range
from lakeload_jobs.formats.parquet.glue.types import NoGlueType, glue_type
from lakeload_jobs.formats.parquet.log.records import Column

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

INCOMPLETE = "lakeload.incomplete"
"""Table parameter while a table that was dropped gets back the partitions of its older files."""

SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_INPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
_OUTPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
TABLE_TYPE = "EXTERNAL_TABLE"
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

    @property
    def registers(self) -> bool:
        """Whether Glue has to be told of each partition."""
        return self.partition_key is not None and not self.projection

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
    changed = _as_input(table)
    storage = dict(table.get("StorageDescriptor", {}))
    storage["Columns"] = [
        *table.get("StorageDescriptor", {}).get("Columns", []),
        *_column_inputs(added),
    ]
    changed["StorageDescriptor"] = storage
    changed["Parameters"] = {**table.get("Parameters", {}), **parameters}
    return cast("TableInputTypeDef", changed)


def is_incomplete(table: TableTypeDef) -> bool:
    """Return whether partitions of older files still have to be registered."""
    return INCOMPLETE in table.get("Parameters", {})


def completed(table: TableTypeDef) -> TableInputTypeDef:
    """Return the table without the mark that it is incomplete."""
    changed = _as_input(table)
    parameters = table.get("Parameters", {})
    changed["Parameters"] = {name: parameters[name] for name in parameters if name != INCOMPLETE}
    return cast("TableInputTypeDef", changed)


def table_input(wanted: WantedTable, *, incomplete: bool = False) -> TableInputTypeDef:
    """Return the table as CreateTable wants it."""
    key = wanted.partition_key
    return {
        "Name": wanted.name,
        "TableType": TABLE_TYPE,
        "Parameters": {
            "EXTERNAL": "TRUE",
            "classification": "parquet",
            CREATED_BY: wanted.created_by,
            STRATEGY: wanted.strategy,
            **wanted.projection,
            **({INCOMPLETE: "true"} if incomplete else {}),
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


def _as_input(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return what UpdateTable takes of what GetTable gave.

    A field without a value may come back as '' or None, which no request may hold.
    """
    return {name: table[name] for name in _INPUT_FIELDS if table.get(name) not in (None, "")}


def _storage(columns: Sequence[tuple[str, str]], location: str) -> StorageDescriptorTypeDef:
    return {
        "Columns": _column_inputs(columns),
        "Location": location,
        "InputFormat": _INPUT,
        "OutputFormat": _OUTPUT,
        "SerdeInfo": {
            "SerializationLibrary": SERDE,
            "Parameters": {"serialization.format": "1"},
        },
        "StoredAsSubDirectories": False,
    }


def _column_inputs(columns: Sequence[tuple[str, str]]) -> list[Any]:
    return [{"Name": name, "Type": kind} for name, kind in columns]


def _plain_location(location: str) -> str:
    scheme, _, rest = location.partition("://")
    return rest.rstrip("/") if scheme in ("s3", "s3a", "s3n") else location

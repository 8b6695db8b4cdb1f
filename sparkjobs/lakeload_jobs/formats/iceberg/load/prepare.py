"""The rows that are staged, spelled as the table spells its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql.types import NullType, StringType, StructField, StructType

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import TRACKING_COLUMNS, JobSpec, PartitionField, TableSpec
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.formats.base import PreparedRows
from lakeload_jobs.formats.data_files.tracked import tracking_fields
from lakeload_jobs.formats.iceberg.rules.facts import TableFacts
from lakeload_jobs.formats.iceberg.rules.schema import (
    IcebergType,
    ListOf,
    MapOf,
    Struct,
    parse_type,
)
from lakeload_jobs.rows.bloom_filters import bloom_filter_columns
from lakeload_jobs.rows.columns import ColumnMapping, source_names
from lakeload_jobs.rows.tracking import HELPER_PREFIX
from lakeload_jobs.sources.spark_frames import is_empty

_SPARK_TYPES = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "date": "date",
    "string": "string",
    "binary": "binary",
    "timestamptz": "timestamp",
    "timestamp": "timestamp_ntz",
}


@dataclass(frozen=True)
class FittedRows:
    """The rows to be staged, without tracking columns, spelled as the table spells its columns.
    `columns` are the table's columns that the
    load fills, tracking columns included; none when the source has no columns, and so no rows.

    `cursor` and `partition_by` are in target names.
    """

    prepared: PreparedRows
    columns: StructType
    cursor: str | None = None
    partition_by: tuple[PartitionField, ...] | None = None
    comment: str = ""
    """Of the table."""
    bloom_filters: tuple[str, ...] = ()
    """Target names of the columns that `bloom_filters` names."""

    @property
    def mapping(self) -> ColumnMapping:
        """The columns, spelled as the table spells them."""
        return self.prepared.mapping

    @property
    def key(self) -> tuple[str, ...]:
        """The primary key."""
        return self.mapping.key


def fit_rows(
    spec: JobSpec, table: TableSpec, prepared: PreparedRows, facts: TableFacts | None
) -> FittedRows:
    """Lay out the columns for a table. Raises `InvalidInput` for settings that name none."""
    if not prepared.mapping.columns or _is_header_alone(table, prepared, facts):
        return FittedRows(prepared, StructType())
    prepared = _spelled(prepared, facts)
    mapping, comments = prepared.mapping, prepared.comments
    return FittedRows(
        prepared,
        _columns(prepared.schema, spec.tracking_columns, comments.columns),
        cursor=_cursor(prepared, mapping, table.cursor),
        partition_by=_partitions(mapping, table),
        comment=comments.table,
        bloom_filters=bloom_filter_columns(table.bloom_filters, mapping, prepared.schema),
    )


def _is_header_alone(table: TableSpec, prepared: PreparedRows, facts: TableFacts | None) -> bool:
    """Whether the source is CSV without a record, which would make new columns of text: they are
    made with the first records, whose values have types."""
    if not table.input.typed_by_values:
        return False
    known = {name.lower() for name in facts.columns} if facts else set()
    declared = (table.columns.types or {}).keys()
    new = [
        column
        for column in prepared.mapping.columns
        if column.target.lower() not in known and column.source not in declared
    ]
    text = any(prepared.schema[column.target].dataType == StringType() for column in new)
    return text and is_empty(prepared.rows)


def spark_types(facts: TableFacts) -> dict[str, str]:
    """Return the Spark types of the table's columns, of those that have one of their own."""
    found = {}
    for name, kind in facts.columns.items():
        if kind in _SPARK_TYPES:
            found[name] = _SPARK_TYPES[kind]
        elif kind.startswith("decimal("):
            found[name] = kind.replace(" ", "")
    return found


def nested_spark_types(facts: TableFacts) -> dict[str, str]:
    """Return the Spark types of the table's nested columns, as far as each part has one."""
    nested = {
        name: _spark_type(parse_type(kind)) for name, kind in facts.columns.items() if "<" in kind
    }
    return {name: kind for name, kind in nested.items() if "?" not in kind}


def _spark_type(kind: IcebergType) -> str:
    if isinstance(kind, ListOf):
        return f"array<{_spark_type(kind.element)}>"
    if isinstance(kind, MapOf):
        return f"map<{_spark_type(kind.key)},{_spark_type(kind.value)}>"
    if isinstance(kind, Struct):
        fields = (f"{field.name}:{_spark_type(field.type)}" for field in kind.fields)
        return f"struct<{','.join(fields)}>"
    if kind.name == "decimal":
        return str(kind).replace(" ", "")
    return _SPARK_TYPES.get(kind.name, "?")


def _spelled(prepared: PreparedRows, facts: TableFacts | None) -> PreparedRows:
    """Spell columns as the table does: names that differ in case alone are one column."""
    if facts is None:
        return prepared
    spelled = {name.lower(): name for name in facts.columns}
    names = {
        name: name if name in facts.columns else spelled.get(name.lower(), name)
        for name in prepared.schema.names
    }
    mapping = prepared.mapping
    columns = tuple(
        replace(column, target=names.get(column.target, column.target))
        for column in mapping.columns
    )
    key = tuple(names.get(name, name) for name in mapping.key)
    mapping = replace(mapping, columns=columns, key=key)
    return replace(prepared.renamed(names), mapping=mapping)


def _columns(
    schema: StructType, tracking: Sequence[str], comments: Mapping[str, str]
) -> StructType:
    """Return the columns that a load fills, with their comments: those of the rows without helpers,
    and the tracking columns."""
    data = [field for field in schema.fields if not field.name.startswith(HELPER_PREFIX)]
    own = tracking_fields([name for name in TRACKING_COLUMNS if name in tracking])
    fields = [
        StructField(field.name, field.dataType, metadata=_described(comments.get(field.name)))
        for field in (*data, *own)
    ]
    return StructType(fields)


def _described(comment: str | None) -> dict[str, str]:
    """Return the metadata by which Spark knows a column's comment, and Iceberg makes it `doc`."""
    return {"comment": comment} if comment else {}


def _cursor(prepared: PreparedRows, mapping: ColumnMapping, source: str | None) -> str | None:
    """Return the column that versions are compared by; None where it has no value in any row."""
    types = {field.name.lower(): field.dataType for field in prepared.rows.schema.fields}
    if source is not None and isinstance(types.get(source.lower()), NullType):
        return None
    return _target(mapping, source, "cursor")


def _target(mapping: ColumnMapping, source: str | None, setting: str) -> str | None:
    if source is None:
        return None
    targets = mapping.column_map
    source = source_names([source], [one.source for one in mapping.columns])[source]
    if source not in targets:
        raise InvalidInput(
            f"`{setting}` names the column `{source}`, which is not among those that are loaded",
            hint=did_you_mean(source, targets) or "name a column of the source, or of the table",
        )
    return targets[source]


def _partitions(mapping: ColumnMapping, table: TableSpec) -> tuple[PartitionField, ...] | None:
    if table.partition_by is None:
        return None
    return tuple(
        replace(field, column=_target(mapping, field.column, "partition_by") or "")
        for field in table.partition_by
    )

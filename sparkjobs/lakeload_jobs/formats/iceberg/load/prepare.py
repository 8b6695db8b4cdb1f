"""A table's source → the frame whose rows are staged, under their target names and types."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.contract.spec import JobSpec, PartitionField, TableSpec
from lakeload_jobs.contract.traits import catalog_traits
from lakeload_jobs.formats.iceberg.rules.facts import TableFacts
from lakeload_jobs.rows.casts import written_frame
from lakeload_jobs.rows.columns import ColumnMapping, map_columns
from lakeload_jobs.rows.failures import marked
from lakeload_jobs.rows.tracking import HELPER_PREFIX
from lakeload_jobs.rows.tracking_sql import TRACKING_SQL_TYPES
from lakeload_jobs.sources.base import Rows, Slice

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
class Prepared:
    """The rows to be staged, without tracking columns. `columns` are the table's columns that the
    load fills, tracking columns included; none when the source has no columns, and so no rows.

    `key`, `cursor` and `partition_by` are in target names.
    """

    rows: Rows
    mapping: ColumnMapping
    frame: DataFrame
    columns: StructType
    cursor: str | None = None
    partition_by: tuple[PartitionField, ...] | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """The primary key."""
        return self.mapping.key


def prepare(
    spark: SparkSession,
    spec: JobSpec,
    table: TableSpec,
    *,
    facts: TableFacts | None,
    recorded: Mapping[str, str],
    found: Slice,
) -> Prepared:
    """Open what was found, and lay out the columns.

    `recorded` is the column map of this pipeline's earlier loads. Raises `InvalidInput` for
    settings the source does not bear out, `LoadFailed` for files that cannot be read.
    """
    if spec.reader == "DIRECT":
        raise InvalidInput(
            "the table cannot be read with `spark.reader: DIRECT`: Spark writes Iceberg tables",
            hint="`spark.reader: AUTO` lets Spark read where it has to",
        )
    rows = found.open(spark, _earlier(facts, recorded))
    if not rows.names:
        return _without_columns(rows)
    frame, mapping = _written(spec, table, rows, recorded)
    frame, mapping = _spelled(frame, mapping, facts)
    frame = _without_null_keys(frame, mapping.key, table)
    if spec.options.limit is not None:
        # One partition, read in order and only as far as needed; a shuffle would read them all.
        frame = frame.coalesce(1).limit(spec.options.limit)
    return Prepared(
        rows,
        mapping,
        frame,
        _columns(frame, spec.tracking_columns),
        cursor=_target(mapping, table.cursor, "cursor"),
        partition_by=_partitions(mapping, table),
    )


def _written(
    spec: JobSpec, table: TableSpec, rows: Rows, recorded: Mapping[str, str]
) -> tuple[DataFrame, ColumnMapping]:
    lower = catalog_traits(spec.destination.iceberg.catalog).lower_case_names
    mapping = map_columns(
        rows.names,
        table.columns,
        primary_key=table.primary_key,
        recorded=recorded,
        lower=lower,
    )
    frame = written_frame(
        rows.frame,
        mapping,
        nested=spec.nested,
        lower=lower,
        where=table.where,
        deleted_when=table.deleted_when,
    )
    return frame, mapping


def _earlier(facts: TableFacts | None, recorded: Mapping[str, str]) -> dict[str, str]:
    """Return the Spark types that source columns had before: inference keeps to them."""
    known = facts.columns if facts else {}
    found = {}
    for source, target in recorded.items():
        kind = known.get(target, "")
        if kind in _SPARK_TYPES:
            found[source] = _SPARK_TYPES[kind]
        elif kind.startswith("decimal("):
            found[source] = kind.replace(" ", "")
    return found


def _spelled(
    frame: DataFrame, mapping: ColumnMapping, facts: TableFacts | None
) -> tuple[DataFrame, ColumnMapping]:
    """Spell columns as the table does: names that differ in case alone are one column."""
    if facts is None:
        return frame, mapping
    spelled = {name.lower(): name for name in facts.columns}
    names = {name: spelled.get(name.lower(), name) for name in frame.columns}
    if all(name == new for name, new in names.items()):
        return frame, mapping
    columns = tuple(
        replace(column, target=names.get(column.target, column.target))
        for column in mapping.columns
    )
    key = tuple(names.get(name, name) for name in mapping.key)
    return frame.toDF(*names.values()), ColumnMapping(columns, key)


def _without_null_keys(frame: DataFrame, key: Sequence[str], table: TableSpec) -> DataFrame:
    """Fail on the first null in a key column, in words (F93, B19)."""
    for name in key:
        failure = InvalidInput(
            f"table `{table.source}`: the primary key column `{name}` is null in some row",
            hint="choose a `primary_key` without nulls, or leave such rows out with `where`",
        )
        text = marked(ErrorInfo.of(failure, "stage"))
        value = F.coalesce(F.col(f"`{name}`"), F.raise_error(F.lit(text)))
        frame = frame.withColumn(name, value)
    return frame


def _columns(frame: DataFrame, tracking: Sequence[str]) -> StructType:
    data = [field for field in frame.schema.fields if not field.name.startswith(HELPER_PREFIX)]
    own = [StructField(name, kind) for name, kind in TRACKING_SQL_TYPES.items() if name in tracking]
    fields = [StructField(field.name, field.dataType) for field in (*data, *own)]
    return StructType.fromJson(json.loads(StructType(fields).json()))


def _target(mapping: ColumnMapping, source: str | None, setting: str) -> str | None:
    if source is None:
        return None
    targets = mapping.column_map
    if source not in targets:
        raise InvalidInput(
            f"`{setting}` names the column `{source}`, which is not among those that are loaded",
            hint="name a column of the source, spelled as there",
        )
    return targets[source]


def _partitions(mapping: ColumnMapping, table: TableSpec) -> tuple[PartitionField, ...] | None:
    if table.partition_by is None:
        return None
    return tuple(
        replace(field, column=_target(mapping, field.column, "partition_by") or "")
        for field in table.partition_by
    )


def _without_columns(rows: Rows) -> Prepared:
    """An empty CSV or JSON file: no columns, and so no rows either."""
    if not rows.frame.isEmpty():
        raise LoadFailed(
            "the source has rows but no columns",
            hint="is it of another `format`, or are all its records empty?",
        )
    return Prepared(rows, ColumnMapping((), ()), rows.frame, StructType())

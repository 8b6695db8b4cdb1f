"""A table's source → the frame whose rows are written, under their target names and types."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import TRACKING_TYPES, JobSpec, SchemaChanges, TableSpec
from lakeload_jobs.formats.parquet.load.direct import DirectRows, direct_rows
from lakeload_jobs.formats.parquet.log.table_log import Opened
from lakeload_jobs.formats.parquet.schema_change import SchemaDifference, check_schema_change
from lakeload_jobs.rows.casts import written_frame
from lakeload_jobs.rows.columns import ColumnMapping, map_columns
from lakeload_jobs.rows.tracking import HELPER_PREFIX
from lakeload_jobs.sources.base import Reader, Rows, Slice


@dataclass(frozen=True)
class Prepared:
    """The frame that is written, and what it was made of.

    `columns` are target names → Spark types, tracking columns included; none when the source has
    no columns, and then it has no rows. `direct` are the rows of `frame` where these can be read
    without Spark; `why_jvm` says why they cannot.
    """

    rows: Rows
    mapping: ColumnMapping
    frame: DataFrame
    columns: dict[str, str]
    warnings: tuple[str, ...]
    direct: DirectRows | None = None
    why_jvm: str = ""

    @property
    def reader(self) -> Reader:
        """Who reads the rows."""
        return "jvm" if self.direct is None else "direct"


def prepare(
    spark: SparkSession,
    spec: JobSpec,
    table: TableSpec,
    opened: Opened,
    found: Slice,
) -> Prepared:
    """Open what was found, and lay out the columns that are written.

    Raises `InvalidInput` for settings the source does not bear out, `LoadFailed` for files that
    cannot be read and for schema changes that `schema_changes` forbids.
    """
    before = {column.name: column.type for column in opened.columns}
    earlier = {
        name: before[target] for name, target in opened.column_map.items() if target in before
    }
    rows = found.open(spark, earlier, splits=True)
    if not rows.names:
        return _without_columns(rows)
    mapping = map_columns(
        rows.names,
        table.columns,
        primary_key=table.primary_key,
        recorded=opened.column_map,
        lower=spec.destination.parquet.update_glue_catalog,
    )
    frame = written_frame(
        rows.frame,
        mapping,
        nested=spec.nested,
        lower=spec.destination.parquet.update_glue_catalog,
        where=table.where,
        deleted_when=table.deleted_when,
    )
    columns = {
        field.name: field.dataType.simpleString()
        for field in frame.schema.fields
        if not field.name.startswith(HELPER_PREFIX)
    }
    columns |= {name: TRACKING_TYPES[name] for name in spec.tracking_columns}
    difference = _difference(frame, before, columns, spec.schema_changes)
    warnings = tuple(
        f"column `{name}` is not in the source any more: it is null in the rows of this load"
        for name in difference.removed
    )
    direct, why_jvm = direct_rows(spec, table, rows, mapping, frame)
    if spec.options.limit is not None:
        # One partition, read in order and only as far as needed; a shuffle would read them all.
        frame = frame.coalesce(1).limit(spec.options.limit)
    return Prepared(rows, mapping, frame, columns, warnings, direct, why_jvm)


def _difference(
    frame: DataFrame, before: dict[str, str], columns: dict[str, str], policy: SchemaChanges
) -> SchemaDifference:
    """Check the schema change. A source without rows has no types worth a complaint: a CSV file
    with a header alone is all text."""
    try:
        return check_schema_change(before, columns, policy)
    except LoadFailed:
        if frame.isEmpty():
            return SchemaDifference()
        raise


def _without_columns(rows: Rows) -> Prepared:
    """An empty CSV or JSON file: no columns, and so no rows either."""
    if not rows.frame.isEmpty():
        raise LoadFailed(
            "the source has rows but no columns",
            hint="is it of another `format`, or are all its records empty?",
        )
    return Prepared(rows, ColumnMapping((), ()), rows.frame, {}, ())

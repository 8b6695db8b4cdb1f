"""Columns of a Parquet load, and their differences from the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import TRACKING_TYPES, JobSpec, SchemaChanges, TableSpec
from lakeload_jobs.core.type_conflicts import Misfits
from lakeload_jobs.formats.base import PreparedRows
from lakeload_jobs.formats.parquet.schema_change import SchemaDifference, check_schema_change
from lakeload_jobs.rows.bloom_filters import bloom_filter_columns
from lakeload_jobs.rows.tracking import HELPER_PREFIX


@dataclass(frozen=True)
class WrittenColumns:
    """Target names → Spark types, tracking columns included; none when the source has no columns.

    `added` are columns that the table did not have, and `added_fields` paths of fields that its
    structs did not have. `removed` are columns of the table that the source does not have any more.
    """

    types: dict[str, str] = field(default_factory=dict)
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    added_fields: tuple[str, ...] = ()
    bloom_filters: tuple[str, ...] = ()


def written_columns(
    spec: JobSpec,
    table: TableSpec,
    prepared: PreparedRows,
    before: Mapping[str, str],
    *,
    may_read: bool = True,
) -> WrittenColumns:
    """Return the columns that are written. `before` are those the table has.

    `may_read`: a schema change that is forbidden may look whether there is a row at all.

    Raises `LoadFailed` for schema changes that `schema_changes` forbids, and `InvalidInput` for
    bloom filters that are not possible.
    """
    if not prepared.mapping.columns:
        return WrittenColumns()
    columns = {
        field.name: field.dataType.simpleString()
        for field in prepared.schema.fields
        if not field.name.startswith(HELPER_PREFIX)
    }
    columns |= {name: TRACKING_TYPES[name] for name in spec.tracking_columns}
    policy, misfits = spec.schema_changes_of(table), prepared.misfits
    rows_of = prepared if may_read else None
    difference = _difference(rows_of, before, columns, policy, misfits, prepared.mapping.key)
    families = prepared.mapping.families
    removed = tuple(name for name in difference.removed if name.lower() not in families)
    return WrittenColumns(
        columns,
        difference.added,
        removed,
        added_fields=difference.added_fields,
        bloom_filters=bloom_filter_columns(table.bloom_filters, prepared.mapping, prepared.schema),
    )


def _difference(
    rows: PreparedRows | None,
    before: Mapping[str, str],
    columns: dict[str, str],
    policy: SchemaChanges,
    misfits: Misfits,
    key: Sequence[str],
) -> SchemaDifference:
    """Check the schema change. A source without rows has no types worth a complaint: a CSV file
    with a header alone is all text."""
    try:
        return check_schema_change(before, columns, policy, misfits, key)
    except LoadFailed:
        if rows is not None and rows.is_empty:
            return SchemaDifference()
        raise

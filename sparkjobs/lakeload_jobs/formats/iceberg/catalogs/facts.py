"""What one Iceberg table says of itself, read with pyiceberg: the facts that the rules judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast, get_args

from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot

from lakeload_jobs.contract.spec import PartitionField, Transform
from lakeload_jobs.formats.iceberg.catalogs.catalog import IcebergCatalog, OpenTable
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.rules.facts import Snapshot, TableFacts
from lakeload_jobs.formats.iceberg.rules.repartition import NO_PARTITION, spec_field


def find_table(catalog: IcebergCatalog, namespace: str, name: str) -> OpenTable | None:
    """Return a table; None where there is none. One or two requests.

    Raises `CatalogError` for what the catalog refuses, and for a table of Glue that is not one of
    Iceberg (F27); `AwsError` for what Glue and S3 refuse.
    """
    try:
        return catalog.load_table(namespace, name)
    except CatalogError as error:
        if error.missing:
            return None
        raise


def read_facts(catalog: IcebergCatalog, namespace: str, name: str) -> TableFacts | None:
    """Return the facts of a table; None where there is none. Costs and raises as `find_table`."""
    table = find_table(catalog, namespace, name)
    return facts_of(table) if table else None


def facts_of(table: OpenTable) -> TableFacts:
    """Return the facts of a table that has been read. Asks nobody."""
    metadata = table.metadata
    schema = metadata.schema()
    return TableFacts(
        location=metadata.location.rstrip("/"),
        uuid=str(metadata.table_uuid),
        properties=dict(metadata.properties),
        refs={name: ref.snapshot_id for name, ref in metadata.refs.items()},
        snapshots={found.snapshot_id: _snapshot(found) for found in metadata.snapshots},
        columns={field.name: str(field.field_type) for field in schema.fields},
        required=frozenset(field.name for field in schema.fields if field.required),
        identifiers=tuple(schema.find_column_name(i) or "" for i in schema.identifier_field_ids),
        format_version=metadata.format_version,
        metadata_location=table.metadata_location,
        partitions=tuple(
            spec_field(str(field.transform), schema.find_column_name(field.source_id) or "?")
            for field in metadata.spec().fields
            if str(field.transform) != NO_PARTITION
        ),
    )


def partition_fields(table: OpenTable) -> tuple[PartitionField, ...]:
    """Return the current partition spec; columns by their names in the table.

    A transform that `partition_by` does not know, as other writers may have made, is left out.
    """
    schema = table.metadata.schema()
    found = []
    for field in table.metadata.spec().fields:
        name, _, width = str(field.transform).partition("[")
        column = schema.find_column_name(field.source_id)
        if column is not None and name in get_args(Transform):
            transform = cast("Transform", name)
            number = int(width.rstrip("]")) if width else None
            found.append(PartitionField(transform, column, number))
    return tuple(found)


def _snapshot(found: IcebergSnapshot) -> Snapshot:
    return Snapshot(
        id=found.snapshot_id,
        parent=found.parent_snapshot_id,
        timestamp_ms=found.timestamp_ms,
        summary=_summary(found),
    )


def _summary(found: IcebergSnapshot) -> Mapping[str, str]:
    if found.summary is None:
        return {}
    return {"operation": found.summary.operation.value, **found.summary.additional_properties}

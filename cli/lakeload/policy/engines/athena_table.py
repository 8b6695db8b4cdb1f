"""The table of Athena over Parquet files that no catalog knows. Pure.

https://docs.aws.amazon.com/athena/latest/ug/create-table.html; the partitions are projected, since
nobody registers them and `yyyy/MM/dd` is no path that MSCK REPAIR TABLE would find.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakeload.policy.text.snippets import Snippet, ddl_name, ddl_text
from lakeload_jobs.contract.spec import DestinationSpec, Nested, TableSpec
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.core.names import PARTITION_KEY, unique_names
from lakeload_jobs.formats.parquet.glue.projection import projection_parameters
from lakeload_jobs.formats.parquet.glue.types import NoGlueType, glue_type

_TRACKING_TYPES = {
    "_supa_synced": "timestamp",
    "_supa_deleted": "boolean",
    "_supa_index": "bigint",
    "_supa_id": "string",
    "_supa_job_id": "string",
}
_NESTED = ("struct", "array", "map")


def create_table(
    destination: DestinationSpec, table: TableSpec, tracking: Sequence[str], nested: Nested
) -> tuple[Snippet, ...]:
    """Return CREATE DATABASE and CREATE EXTERNAL TABLE for one table.

    Only columns with a type in `columns.types` are known here, and the tracking columns: the
    others are those of the source, and the text says where to read them.
    """
    database, own = (table.schema or "default").lower(), table.table.lower()
    declared, open_columns = _declared(table, nested)
    columns = {**declared, **{column: _TRACKING_TYPES[column] for column in tracking}}
    path = TableLocation(destination.prefix, table.schema, table.table).data_path
    location = f"s3://{destination.bucket}/{path}"
    if open_columns:
        columns = {"<COLUMN>": "string", **columns}
    lines = [f"  {ddl_name(column)} {kind}" for column, kind in columns.items()]
    parts = [
        f"CREATE EXTERNAL TABLE IF NOT EXISTS {ddl_name(database, own)} (",
        ",\n".join(lines),
        ")",
        *_partitioned_by(destination),
        "STORED AS PARQUET",
        f"LOCATION {ddl_text(location)}",
        _properties(destination, location),
    ]
    return (
        Snippet(
            f"{table.target}: a database for Athena",
            f"CREATE DATABASE IF NOT EXISTS {ddl_name(database)};",
            "This destination does not keep AWS Glue up to date (`update_glue_catalog`), so the "
            "table has to be made by hand, and again when its columns change.",
        ),
        Snippet(
            f"{table.target}: a table for Athena",
            "\n".join(parts) + ";",
            _columns_note(table, open_columns) + _partitions_note(destination),
        ),
    )


def _declared(table: TableSpec, nested: Nested) -> tuple[dict[str, str], bool]:
    """Return the columns with a declared type, and whether the source may have more."""
    spec = table.columns
    types = {
        source: kind
        for source, kind in (spec.types or {}).items()
        if (not spec.include or source in spec.include) and source not in spec.exclude
    }
    names = unique_names([(spec.rename or {}).get(source, source) for source in types], lower=True)
    found = {}
    for own, kind in zip(names, types.values(), strict=True):
        try:
            found[own] = _type(kind, nested)
        except NoGlueType:
            continue
    return found, not spec.include or len(found) < len(set(spec.include) - set(spec.exclude))


def _type(kind: str, nested: Nested) -> str:
    """Return Glue's type of a declared one; nested values are text where `nested` is JSON."""
    if nested == "JSON" and kind.strip().lower().startswith(_NESTED):
        return "string"
    return glue_type(kind)


def _partitioned_by(destination: DestinationSpec) -> list[str]:
    if destination.parquet.partition_strategy == "NONE":
        return []
    return [f"PARTITIONED BY ({ddl_name(PARTITION_KEY)} string)"]


def _properties(destination: DestinationSpec, location: str) -> str:
    strategy = destination.parquet.partition_strategy
    found = {"classification": "parquet"}
    if strategy != "NONE":
        found |= projection_parameters(strategy, location, "NOW-3YEARS")
    lines = [f"  {ddl_text(key)} = {ddl_text(value)}" for key, value in found.items()]
    return "TBLPROPERTIES (\n" + ",\n".join(lines) + "\n)"


def _columns_note(table: TableSpec, open_columns: bool) -> str:
    if not open_columns:
        return "The columns are those of `columns.include`, with the types of `columns.types`."
    return (
        "Write the columns of the source for `<COLUMN>` first: only those with a type in "
        f"`columns.types` of `{table.source}` are known here. The DESCRIBE statement of "
        "`--for duckdb` lists those of the files; Athena reads them by name, in lower case."
    )


def _partitions_note(destination: DestinationSpec) -> str:
    strategy = destination.parquet.partition_strategy
    if strategy == "NONE":
        return ""
    if strategy == "SYNC_ID":
        return f"\nEach query has to name its jobs: `WHERE {PARTITION_KEY} IN (…)`."
    return "\nThe range holds three years; begin it with the first load for quicker planning."

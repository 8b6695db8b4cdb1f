"""Rules between the settings of Parquet destinations and tables.

A table of Parquet files is only appended to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lakeload.config.document import Location
from lakeload.config.model import Finding, spec_of
from lakeload.documents.destination import Destination
from lakeload.documents.pipeline import Numbered, Table, cursor_findings
from lakeload_jobs.contract.spec import DestinationSpec, ParquetSpec, TableSpec
from lakeload_jobs.core.names import PARTITION_KEY

BLOCK = "parquet"


def destination_findings(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield nothing: the model of the block knows all that can be wrong."""
    yield from ()


def destination_notes(model: Destination) -> Iterator[Finding]:
    """Yield what is no mistake, and yet may surprise."""
    parquet = model.parquet
    if model.glue_database_prefix and not parquet.update_glue_catalog:
        message = "`glue_database_prefix` has no effect, because `update_glue_catalog` is false"
        hint = "it becomes part of the targets' names when Glue is switched on"
        yield Finding(message, hint, ("glue_database_prefix",), "ignored")
    if parquet.partition_projection and parquet.partition_strategy == "SYNC_ID":
        message = "queries must name the job: Athena cannot enumerate SYNC_ID partitions"
        hint = f"each query needs `WHERE {PARTITION_KEY} = '<job id>'`"
        at = ("parquet", "partition_projection")
        yield Finding(message, hint, at, "projection")


def pipeline_findings(tables: Numbered, data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the modes and settings that files cannot have."""
    if data.get("schema_changes") == "EVOLVE":
        yield _evolves(("schema_changes",))
    for i, table in tables:
        yield from _table(table, ("tables", i), data)


def pipeline_notes(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield nothing: nothing surprises."""
    yield from ()


def with_settings(spec: DestinationSpec, model: Destination, folder: Path) -> DestinationSpec:
    """Return the contract's form with the settings of `parquet`."""
    return replace(spec, parquet=spec_of(ParquetSpec, model.parquet, folder))


def uses_glue(model: Destination) -> bool:
    """Tell whether tables are registered in AWS Glue."""
    return model.parquet.update_glue_catalog


def _table(table: Table, at: Location, data: Mapping[str, Any]) -> Iterator[Finding]:
    if table.mode != "APPEND":
        yield _append_only(table.mode, (*at, "mode"))
    else:
        yield from cursor_findings(table, data, at, "remove the line")
    if table.schema_changes == "EVOLVE":
        yield _evolves((*at, "schema_changes"))
    hints = {
        "partition_by": "Parquet files are laid out by `parquet.partition_strategy` of the "
        "destination",
        "table_properties": "files have none; remove the lines",
        "deletes": "rows of Parquet files stay; `deleted_when` alone fills `_supa_deleted`",
        "on_same_key": "Parquet files keep all rows; remove the line",
    }
    for name, hint in hints.items():
        if name in table.model_fields_set:
            message = f"`{name}` is a setting of table_format ICEBERG"
            yield Finding(message, hint, (*at, name), "other-format")


def _evolves(at: Location) -> Finding:
    return Finding(
        "`schema_changes: EVOLVE` needs table_format ICEBERG",
        "`ADD_COLUMNS` is what append-only Parquet files can do",
        at,
        "other-format",
    )


def _append_only(mode: str, at: Location) -> Finding:
    """Return the finding for a mode that tables of Parquet files cannot have."""
    return Finding(
        f"`mode: {mode}` is not possible with table_format PARQUET, which only appends",
        "load with `mode: APPEND` and let the reader choose\n"
        "the latest load: with `partition_strategy: SYNC_ID` in the destination each load has a "
        "folder of its own\n"
        "the latest version of each row, in Athena:\n"
        "  SELECT * FROM (\n"
        "    SELECT *, row_number() OVER (\n"
        "      PARTITION BY _supa_id\n"
        "      ORDER BY _supa_synced DESC, _supa_index DESC\n"
        "    ) AS latest_per_supa_id FROM t\n"
        "  ) WHERE latest_per_supa_id = 1 AND NOT _supa_deleted",
        at,
        "append-only",
    )


def destination_identity(spec: DestinationSpec) -> Mapping[str, Any]:
    """Return where files lie, how they are called and whether Glue has them."""
    parquet = spec.parquet
    return {
        "partition_strategy": parquet.partition_strategy,
        "file_name_pattern": parquet.file_name_pattern,
        "update_glue_catalog": parquet.update_glue_catalog,
        "partition_projection": parquet.partition_projection,
    }


def table_identity(table: TableSpec) -> Mapping[str, Any]:
    """Return the cursor: fingerprints of Parquet tables are older than modes."""
    return {} if table.cursor is None else {"cursor": table.cursor}

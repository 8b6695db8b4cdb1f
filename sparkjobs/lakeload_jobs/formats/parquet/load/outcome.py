"""Commit record and result of a loaded Parquet table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.result import ErrorInfo, FileResult, IndexKind, TableResult
from lakeload_jobs.contract.spec import DestinationSpec, JobSpec, TableSpec
from lakeload_jobs.contract.state import Evidence, StateChange
from lakeload_jobs.core.layout import TableLocation, partition_path
from lakeload_jobs.formats.data_files.uploads import StagedFile
from lakeload_jobs.formats.parquet.glue import glue_target
from lakeload_jobs.formats.parquet.load.catalog import catalog_stale
from lakeload_jobs.formats.parquet.log.records import (
    Column,
    LoadRecord,
    Rejects,
    Target,
    tool_version,
)
from lakeload_jobs.rows.rejects import SIDE_COLUMNS
from lakeload_jobs.sources.position import position_of

NO_ROWS = "the source has no rows: a file, and a table in Glue, is made with the first ones"
"""Types come from values: a table made of a header alone would have text in every column."""


def load_record(
    spec: JobSpec,
    table: TableSpec,
    *,
    files: tuple[StagedFile, ...],
    columns: Mapping[str, str],
    column_map: Mapping[str, str],
    started_at: datetime,
    index: IndexKind = "dense",
    rejects: tuple[StagedFile, ...] = (),
    deleted: int = 0,
) -> LoadRecord:
    """Return the record that commits `files`: all that is needed to finish without its author.

    `columns` are target names → Spark types, tracking columns included. `rejects` are files of the
    side table; `deleted` of the rows are keys that the source no longer has.
    """
    parquet = spec.destination.parquet
    location = TableLocation(spec.destination.prefix, table.schema, table.table)
    return LoadRecord(
        tool=tool_version(),
        pipeline=spec.pipeline,
        source=table.source,
        job_id=spec.job_id,
        attempt_id=spec.attempt_id,
        started_at=started_at,
        created_at=datetime.now(UTC),
        synced=spec.synced,
        mode="APPEND",
        table_handling=spec.options.table_handling,
        fingerprint=table.fingerprint,
        target=Target(spec.destination.prefix, table.schema, table.table),
        partition_strategy=parquet.partition_strategy,
        file_name_pattern=parquet.file_name_pattern,
        partition=partition_path(parquet.partition_strategy, spec.synced, spec.job_id),
        columns=tuple(Column(name, kind) for name, kind in columns.items()),
        column_map=dict(column_map),
        index=index,
        rows=sum(file.rows for file in files),
        files=files,
        glue=glue_target(spec.destination, location),
        author=spec.author,
        rejected=_rejects(location, rejects) if rejects else None,
        retried=table.retries,
        deleted_rows=deleted or None,
    )


def _rejects(location: TableLocation, files: tuple[StagedFile, ...]) -> Rejects:
    columns = tuple(Column(name, kind) for name, kind in SIDE_COLUMNS.items())
    rows = sum(file.rows for file in files)
    return Rejects(location.side_table.table, columns, rows, files)


def with_state(
    record: LoadRecord, change: StateChange | None, evidence: Evidence | None
) -> LoadRecord:
    """Return the record with the state that it leaves, and the evidence of what it read."""
    evidence = evidence or Evidence()
    return replace(record, state=change, inputs=evidence.inputs, known=evidence.known)


def table_result(
    destination: DestinationSpec,
    table: TableSpec,
    status: Literal["LOADED", "NO_OP"],
    record: LoadRecord,
    catalog_error: LakeloadError | None,
) -> TableResult:
    """Return what the user is told of a table that is in, perhaps without its catalog."""
    return TableResult(
        table=table.source,
        target=table.target,
        status=status if catalog_error is None else "LOADED_CATALOG_OUT_OF_DATE",
        rows=record.rows - (record.deleted_rows or 0),
        deleted=record.deleted_rows or 0,
        bytes=record.bytes,
        files=tuple(FileResult(file.key, file.rows, file.bytes) for file in record.files),
        file_count=len(record.files),
        already=status == "NO_OP",
        position=position_of(record.state.after) if record.state else None,
        location=_url(destination, table),
        index=record.index,
        rejected=record.rejected.rows if record.rejected else 0,
        notes=() if record.rows else (NO_ROWS,),
        error=_stale(catalog_error),
    )


def nothing_new(
    destination: DestinationSpec, table: TableSpec, catalog_error: LakeloadError | None
) -> TableResult:
    """Return what the user is told of a table that has nothing to load."""
    return TableResult(
        table=table.source,
        target=table.target,
        status="NO_OP" if catalog_error is None else "LOADED_CATALOG_OUT_OF_DATE",
        location=_url(destination, table),
        error=_stale(catalog_error),
    )


def _url(destination: DestinationSpec, table: TableSpec) -> str:
    return TableLocation(destination.prefix, table.schema, table.table).url(destination.bucket)


def _stale(catalog_error: LakeloadError | None) -> ErrorInfo | None:
    return None if catalog_error is None else ErrorInfo.of(catalog_stale(catalog_error), "catalog")

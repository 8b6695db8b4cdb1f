"""Driver side of the Parquet protocol: one table from open to published (DESIGN section 5)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.events import Enter
from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.glue import glue_target
from lakeload_jobs.formats.parquet.load.aborting import abort_uploads
from lakeload_jobs.formats.parquet.load.catalog import check_catalog, lagging
from lakeload_jobs.formats.parquet.load.outcome import (
    bad_value_warnings,
    load_record,
    nothing_new,
    table_result,
    with_state,
)
from lakeload_jobs.formats.parquet.load.prepare import Prepared, prepare
from lakeload_jobs.formats.parquet.load.stage import (
    REPORT_SCHEMA,
    PartitionReport,
    PartitionWriter,
    SplitWriter,
    read_report,
)
from lakeload_jobs.formats.parquet.log.admission import Conflict, table_settings
from lakeload_jobs.formats.parquet.log.bookmark import bookmark_of
from lakeload_jobs.formats.parquet.log.records import Column, StagedFile
from lakeload_jobs.formats.parquet.log.roll_forward import Catalog, union
from lakeload_jobs.formats.parquet.log.stale_uploads import UploadRegistry
from lakeload_jobs.formats.parquet.log.table_log import Opened, TableLog
from lakeload_jobs.rows.batches import map_batches
from lakeload_jobs.rows.counting import partition_count, partition_rows
from lakeload_jobs.sources.base import Slice
from lakeload_jobs.sources.registry import source_of
from lakeload_jobs.storage.objects import Objects

Notify = Callable[[str], None]
"""Told what takes long, in a sentence."""


@dataclass(frozen=True)
class TableLoad:
    """One table of one attempt."""

    spark: SparkSession
    spec: JobSpec
    table: TableSpec
    objects: Objects
    catalog: Catalog
    enter: Enter
    notify: Notify

    @property
    def location(self) -> TableLocation:
        """Where the table's data and log lie."""
        return TableLocation(self.spec.destination.prefix, self.table.schema, self.table.table)


def load_table(load: TableLoad) -> TableResult:
    """Load one table and publish it. Raises what stopped it, with every upload aborted unless
    the commit was sent before."""
    started = time.monotonic()
    started_at = datetime.now(UTC)
    load.enter("open")
    log, opened = _open(load)
    spec, table = load.spec, load.table
    if opened.already is not None:
        return table_result(
            table,
            "NO_OP",
            opened.already,
            seconds=time.monotonic() - started,
            catalog_error=opened.catalog_error,
        )
    bookmark = bookmark_of(
        load.objects, load.location, pipeline=spec.pipeline, source=table.source, opened=opened
    )
    found = source_of(spec, table).slice(bookmark)
    if found.idle:
        return _nothing_new(load, log, opened, found, started)
    prepared, unasked = _prepared(load, opened, found)
    reports = _staged(load, prepared)
    record = load_record(
        spec,
        table,
        files=tuple(file for report in reports for file in report.files),
        # Without rows nothing fixes a type: the next load may still say what the columns are.
        columns=prepared.columns if any(report.files for report in reports) else {},
        # A column that only some loads have keeps the name and type it got.
        column_map={**opened.column_map, **prepared.mapping.column_map},
        started_at=started_at,
    )
    committed = log.commit(with_state(record, found))
    return table_result(
        table,
        "NO_OP" if committed.already else "LOADED",
        committed.record,
        seconds=time.monotonic() - started,
        notes=() if committed.already else _notes(found),
        reader=prepared.reader,
        why_jvm=prepared.why_jvm,
        warnings=(
            *opened.warnings,
            *lagging(opened.catalog_error),
            *unasked,
            *found.warnings,
            *prepared.warnings,
            *bad_value_warnings(reports),
        ),
        catalog_error=committed.catalog_error,
    )


def _open(load: TableLoad) -> tuple[TableLog, Opened]:
    spec = load.spec
    log = TableLog(
        load.objects,
        load.location,
        parallelism=spec.destination.parquet.upload_parallelism,
        notify=load.notify,
        catalog=load.catalog,
    )
    opened = log.open(
        pipeline=spec.pipeline,
        job_id=spec.job_id,
        attempt_id=spec.attempt_id,
        fingerprint=load.table.fingerprint,
        source=load.table.source,
        table_handling=spec.options.table_handling,
        settings=table_settings(spec.destination, load.location),
    )
    return log, opened


def _prepared(load: TableLoad, opened: Opened, found: Slice) -> tuple[Prepared, tuple[str, ...]]:
    """Return the frame, and a warning where the catalog could not be asked.

    The catalog is asked before the source is read, and again when the columns are known.
    """
    target = glue_target(load.spec.destination, load.location)
    unasked = check_catalog(load.catalog, target, opened.columns)
    prepared = prepare(load.spark, load.spec, load.table, opened, found)
    columns = (Column(name, kind) for name, kind in prepared.columns.items())
    unasked = unasked or check_catalog(load.catalog, target, union(opened.columns, columns))
    return prepared, unasked


def _nothing_new(
    load: TableLoad, log: TableLog, opened: Opened, found: Slice, started: float
) -> TableResult:
    """Report that nothing is new; commit the state where that makes the next run quicker."""
    error = opened.catalog_error
    if found.records_anyway:
        load.enter("commit")
        record = load_record(
            load.spec,
            load.table,
            files=(),
            columns={},
            column_map=opened.column_map,
            started_at=datetime.now(UTC),
        )
        # Whoever came in between has moved the state as well; of ours nobody needs to know.
        with contextlib.suppress(Conflict):
            error = log.commit(with_state(record, found)).catalog_error
    seconds = time.monotonic() - started
    return nothing_new(load.table, seconds=seconds, notes=_notes(found), catalog_error=error)


def _notes(found: Slice) -> tuple[str, ...]:
    return (found.sentence,) if found.sentence else ()


def _staged(load: TableLoad, prepared: Prepared) -> list[PartitionReport]:
    """Count, stage and check; when this returns the commit may be sent, and nothing else aborts
    the uploads any more."""
    load.enter("count")
    counts = _count(load, prepared)
    load.enter("stage")
    registry = UploadRegistry(_registry_folder(load))
    staged: list[StagedFile] = []
    try:
        reports = _stage(load, prepared, counts) if prepared.columns else []
        staged = [file for report in reports for file in report.files]
        prepared.rows.check_unchanged()
        load.enter("commit")
        registry.hand_over()
    except BaseException:
        abort_uploads(load.objects, registry, staged)
        raise
    return reports


def _count(load: TableLoad, prepared: Prepared) -> tuple[int, ...] | None:
    """Return the rows of each partition, or None where one partition needs no count."""
    if prepared.direct is not None:
        return prepared.direct.counts
    partitions = partition_count(prepared.frame)
    if partitions <= 1:
        return None
    return partition_rows(prepared.frame, all_columns=prepared.rows.count_reads_all_columns)


def _stage(
    load: TableLoad, prepared: Prepared, counts: tuple[int, ...] | None
) -> list[PartitionReport]:
    """Run the tasks and return their reports in partition order."""
    spec = load.spec
    shared = spec.runtime.tasks_share_driver
    writer = PartitionWriter(
        destination=spec.destination,
        location=load.location,
        job_id=spec.job_id,
        attempt_id=spec.attempt_id,
        synced=spec.synced,
        tracking_columns=spec.tracking_columns,
        key_columns=prepared.mapping.key,
        counts=counts,
        registry=str(_registry_folder(load)) if shared else None,
        on_executor=not shared,
    )
    texts = _texts(load.spark, prepared, writer)
    reports = sorted((read_report(text) for text in texts), key=lambda r: r.partition)
    expected = len(counts) if counts is not None else partition_count(prepared.frame)
    if len(reports) != expected:
        raise LoadFailed(
            f"{len(reports)} of {expected} partitions reported what they staged",
            hint="the source changed while it was read; run again",
            retryable=True,
        )
    return reports


def _texts(spark: SparkSession, prepared: Prepared, writer: PartitionWriter) -> list[str]:
    """Run a task for each partition, and return what it reports."""
    direct = prepared.direct
    if direct is None:
        rows = map_batches(prepared.frame, writer, REPORT_SCHEMA).collect()
        return [row["report"] for row in rows]
    if not direct.parts:
        return []
    parts = spark.sparkContext.parallelize(direct.parts, len(direct.parts))
    return parts.mapPartitionsWithIndex(SplitWriter(writer, direct.read)).collect()


def _registry_folder(load: TableLoad) -> Path:
    """The run's own folder: the table's place in the spec keeps tables apart."""
    number = load.spec.tables.index(load.table)
    return Path(load.spec.result_path).parent / "uploads" / str(number)

"""Driver side of the Parquet protocol: rows staged as open uploads, and the record that commits
them (docs/protocol-parquet.md)."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.result import SameKey, TableResult
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.contract.state import Evidence, StateChange
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.base import PreparedRows, Writer
from lakeload_jobs.formats.data_files.parts import of_frame
from lakeload_jobs.formats.data_files.stage import (
    Driver,
    PartitionReport,
    PartitionWriter,
    count_parts,
    stage_parts,
)
from lakeload_jobs.formats.data_files.tracked import Tracking
from lakeload_jobs.formats.data_files.uploads import UploadRegistry, abort_uploads
from lakeload_jobs.formats.deletes import DeletedKeys, find_deleted, newest_keys, source_keys
from lakeload_jobs.formats.parquet.load.files import ParquetFiles
from lakeload_jobs.formats.parquet.load.outcome import load_record, table_result, with_state
from lakeload_jobs.formats.parquet.load.prepare import WrittenColumns
from lakeload_jobs.formats.parquet.load.versions import read_versions
from lakeload_jobs.formats.parquet.log.bookmark import loaded_files
from lakeload_jobs.formats.parquet.log.table_log import OpenedLog, TableLog
from lakeload_jobs.rows.balance import Balance
from lakeload_jobs.rows.casts import quoted
from lakeload_jobs.rows.columns import added_column, missing_column
from lakeload_jobs.rows.counting import Counted
from lakeload_jobs.rows.progress import new_progress_file
from lakeload_jobs.rows.rejects import NONE_REJECTED
from lakeload_jobs.rows.tracking import DELETED_HELPER, HELPER_PREFIX
from lakeload_jobs.sources.base import Reader
from lakeload_jobs.storage.objects import Objects


@dataclass(frozen=True)
class ParquetLoad:
    """One table of one attempt, with its log open."""

    spark: SparkSession
    spec: JobSpec
    table: TableSpec
    objects: Objects
    location: TableLocation
    log: TableLog
    opened: OpenedLog
    started_at: datetime
    check: Callable[[], None]
    """Raises `Interrupted` when the run is to stop."""

    @property
    def driver(self) -> Driver:
        """What the driver stages and counts with."""
        return Driver(self.spark, self.objects, self.spec.runtime, self.check)

    @property
    def registry(self) -> Path:
        """A folder of the run's own: the table's place in the spec keeps tables apart."""
        number = self.spec.tables.index(self.table)
        return Path(self.spec.result_path).parent / "uploads" / str(number)


@dataclass(frozen=True)
class ParquetWriter:
    """The rows of one load on their way into files."""

    load: ParquetLoad
    prepared: PreparedRows
    columns: WrittenColumns

    @property
    def notes(self) -> tuple[str, ...]:
        """Which columns and fields are new."""
        return tuple(map(added_column, (*self.columns.added, *self.columns.added_fields)))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Which columns the rows lack."""
        return tuple(map(missing_column, self.columns.removed))

    @property
    def reader(self) -> Reader:
        """Who reads the rows."""
        return self.prepared.rows.reader

    @property
    def writer(self) -> Writer:
        """Tasks write, also rows that Spark hands over."""
        return "direct"

    def count(self) -> Counted | None:
        """Return the rows of each partition, or None where one partition needs no count."""
        prepared = self.prepared
        if prepared.parts.counts is None and len(prepared.parts.parts) <= 1:
            return None
        reads_all = prepared.rows.count_reads_all_columns
        return Counted(count_parts(self.load.driver, prepared.parts, all_columns=reads_all))

    def stage(self, counted: Counted | None) -> StagedParquet:
        """Encode and upload; no upload is completed yet."""
        # One that failed may be staged again, and tasks of it that come late may add nothing.
        folder = self.load.registry / uuid.uuid4().hex
        registry = UploadRegistry(folder)
        counts = None if counted is None else counted.partitions
        gone = self._find_deleted() if self.columns.types else None
        try:
            reports = self._reports(counts, folder, gone) if self.columns.types else []
        except BaseException:
            abort_uploads(self.load.objects, registry, ())
            raise
        finally:
            if gone is not None:
                gone.close()
        return StagedParquet(self, registry, tuple(reports), gone.rows if gone else 0)

    def _find_deleted(self) -> DeletedKeys | None:
        """Return the keys of the table that the source no longer has."""
        load, table, mapping = self.load, self.load.table, self.prepared.mapping
        if table.max_deleted is None or self.prepared.more:
            return None
        files = loaded_files(
            load.objects,
            load.location,
            pipeline=load.spec.pipeline,
            source=table.source,
            # Not those of later jobs: the source was read before, and may have their keys.
            before=load.opened.next_number,
        )
        fields = [self.prepared.schema[name] for name in mapping.key]
        versions = read_versions(load.spark, load.spec, files, fields)
        if versions is None:
            return None
        lower = load.spec.destination.parquet.update_glue_catalog
        keys = source_keys(load.spec, table, self.prepared, mapping, lower=lower)
        live = newest_keys(versions, mapping.key)
        return find_deleted(live, keys, mapping.key, table.max_deleted, table.target)

    def _reports(
        self, counts: tuple[int, ...] | None, registry: Path, gone: DeletedKeys | None
    ) -> list[PartitionReport]:
        """Run the tasks and return their reports in partition order, at last that of the keys that
        are deleted."""
        load, spec = self.load, self.load.spec
        own = len(self.prepared.parts.parts)
        partitions = own + (gone is not None)
        shared = spec.runtime.tasks_share_driver
        writer = PartitionWriter(
            destination=spec.destination,
            files=ParquetFiles(
                spec.destination,
                load.location,
                spec.job_id,
                spec.synced,
                self.columns.bloom_filters,
            ),
            tracking=Tracking.of(spec, self.prepared.mapping.key, counts),
            partitions=partitions,
            registry=str(registry) if shared else None,
            progress=new_progress_file(spec, load.table),
            on_executor=not shared,
        )
        reports = stage_parts(load.driver, self.prepared.parts, writer)
        if gone is not None:
            if self.prepared.index == "dense":
                counts = (*(report.rows for report in reports), gone.rows)
                writer = replace(writer, tracking=replace(writer.tracking, counts=counts))
            rows = of_frame(_deleted_rows(gone, self.prepared.schema))
            reports += stage_parts(load.driver, rows, replace(writer, first=own))
        if len(reports) != partitions:
            raise LoadFailed(
                f"{len(reports)} of {partitions} partitions reported what they staged",
                hint="the source changed while it was read; run again",
                retryable=True,
            )
        return reports


def _deleted_rows(gone: DeletedKeys, schema: StructType) -> DataFrame:
    """Return keys as rows of `schema` that are deleted: other columns are null."""
    values = [
        F.col(quoted(field.name)) if field.name in gone.frame.columns else F.lit(None)
        for field in schema.fields
    ]
    columns = [
        value.cast(field.dataType).alias(field.name)
        for value, field in zip(values, schema.fields, strict=True)
        if not field.name.startswith(HELPER_PREFIX)
    ]
    return gone.frame.select(*columns, F.lit(True).alias(DELETED_HELPER))


class StagedParquet:
    """Uploads that wait for the record that names them."""

    def __init__(
        self,
        writer: ParquetWriter,
        registry: UploadRegistry,
        reports: tuple[PartitionReport, ...],
        deleted: int,
    ) -> None:
        self._writer = writer
        self._load = writer.load
        self._registry = registry
        self._files = tuple(file for report in reports for file in report.files)
        self.deleted = deleted
        self.same_key: SameKey | None = None
        self._evidence: Evidence | None = None
        self._rejects = tuple(file for report in reports for file in report.rejects)
        self.bad_values = sum(report.bad_values for report in reports)
        self.rejected = sum((report.rejected for report in reports), NONE_REJECTED)
        total = writer.prepared.parts.total
        rows = sum(report.rows for report in reports) - deleted
        self.balance = Balance(
            read=rows if total is None else total,
            dropped=sum(report.dropped for report in reports),
            written=sum(file.rows for file in self._files) - deleted,
            rejected=self.rejected.rows,
        )

    def note(self, evidence: Evidence) -> None:
        """Keep it for the record."""
        self._evidence = evidence

    def commit(self, change: StateChange | None) -> TableResult:
        """Write the record, and complete its uploads. From here on nobody aborts them."""
        load, prepared = self._load, self._writer.prepared
        try:
            self._registry.hand_over()
        except BaseException:
            self.abandon()
            raise
        record = load_record(
            load.spec,
            load.table,
            files=self._files,
            rejects=self._rejects,
            # Without rows nothing fixes a type: the next load may still say what the columns are.
            columns=self._writer.columns.types if self._files else {},
            # A column that only some loads have keeps the name and type it got.
            column_map={**load.opened.column_map, **prepared.mapping.column_map},
            started_at=load.started_at,
            # The index counts all records: those that are set aside leave gaps.
            index="sparse" if self._rejects else prepared.index,
            deleted=self.deleted,
        )
        committed = load.log.commit(with_state(record, change, self._evidence))
        status: Literal["LOADED", "NO_OP"] = "NO_OP" if committed.already else "LOADED"
        destination = load.spec.destination
        return table_result(
            destination, load.table, status, committed.record, committed.catalog_error
        )

    def abandon(self) -> None:
        """Abort every upload of this attempt."""
        abort_uploads(self._load.objects, self._registry, self._files + self._rejects)

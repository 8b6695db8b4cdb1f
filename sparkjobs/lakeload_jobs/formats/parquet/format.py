"""Tables of Parquet files: how a load opens one and finds it ready for its rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.codec import from_json
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.maintain import MaintainSpec
from lakeload_jobs.contract.plan import ExistingColumns, TableColumns
from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import DestinationSpec, JobSpec, TableSpec
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.core.nested_types import with_new_fields
from lakeload_jobs.formats.base import ExpectedColumns, MaintenanceStep, PreparedRows, Reporter
from lakeload_jobs.formats.parquet.glue import GlueCatalog, glue_target
from lakeload_jobs.formats.parquet.load.catalog import check_catalog, lagging
from lakeload_jobs.formats.parquet.load.outcome import (
    load_record,
    nothing_new,
    table_result,
    with_state,
)
from lakeload_jobs.formats.parquet.load.prepare import written_columns
from lakeload_jobs.formats.parquet.load.write import ParquetLoad, ParquetWriter
from lakeload_jobs.formats.parquet.log.admission import Conflict, LoadAttempt, table_settings
from lakeload_jobs.formats.parquet.log.bookmark import bookmark_of
from lakeload_jobs.formats.parquet.log.records import Column
from lakeload_jobs.formats.parquet.log.roll_forward import NewColumn, ParquetCatalog, union
from lakeload_jobs.formats.parquet.log.table_log import InspectedLog, OpenedLog, TableLog
from lakeload_jobs.rows.columns import earlier_types
from lakeload_jobs.rows.rejects import SIDE_COLUMNS
from lakeload_jobs.sources.base import Slice
from lakeload_jobs.storage.objects import Objects


class ParquetFormat:
    """Parquet files in S3, committed by a log of records."""

    def uses_own_identity(self, destination: DestinationSpec) -> bool:
        """Return True: no catalog lends keys."""
        return True

    def connect(self, spark: SparkSession, spec: JobSpec, aws: AwsSession) -> ParquetSession:
        """Make the clients of a job; nothing is called yet."""
        return ParquetSession(spark, spec, aws)


class ParquetSession:
    """The Parquet tables of one run."""

    def __init__(self, spark: SparkSession, spec: JobSpec, aws: AwsSession) -> None:
        self.spark = spark
        self.spec = spec
        self._aws = aws
        self.objects = Objects(aws, spec.destination)
        self.catalog: ParquetCatalog = GlueCatalog(aws, spec.destination)

    def open(self, table: TableSpec, reporter: Reporter, *, incremental: bool) -> OpenParquetTable:
        """Open the log, and settle what earlier jobs have left. Raises as `TableLog.open` does."""
        spec, location = self.spec, self.location(table)
        started_at = datetime.now(UTC)
        log = TableLog(
            self.objects,
            location,
            parallelism=spec.destination.parquet.upload_parallelism,
            notify=reporter.on_message,
            catalog=self.catalog,
            inspected=from_json(InspectedLog, table.inspected) if table.inspected else None,
        )
        opened = log.open(self._attempt(table))
        load = ParquetLoad(
            *(self.spark, spec, table, self.objects, location, log, opened, started_at),
            check=reporter.check,
        )
        return OpenParquetTable(self, load, reporter)

    def inspect(self, table: TableSpec) -> ParquetTable:
        """Read the log."""
        opened = TableLog(self.objects, self.location(table)).inspect(self._attempt(table))
        return ParquetTable(self, table, opened)

    def maintenance(self, table: TableSpec, wanted: MaintainSpec) -> Iterator[MaintenanceStep]:
        """Yield no step: what Parquet tables need, the command line does without Spark."""
        yield from ()

    def retry_reason(self, table: TableSpec, error: Exception) -> str | None:
        """Return None: whoever is overtaken takes the next number, with the same rows."""
        return None

    def of_job(self, spec: JobSpec) -> ParquetSession:
        """Return the tables of another run, with the same clients."""
        return ParquetSession(self.spark, spec, self._aws)

    def close(self, *, jvm_stays: bool = False) -> None:
        """Leave everything: nothing was started."""

    def location(self, table: TableSpec) -> TableLocation:
        """Return where the table's data and log lie."""
        return TableLocation(self.spec.destination.prefix, table.schema, table.table)

    def _attempt(self, table: TableSpec) -> LoadAttempt:
        spec = self.spec
        return LoadAttempt(
            spec.pipeline,
            spec.job_id,
            spec.attempt_id,
            table.fingerprint,
            table.source,
            spec.options.table_handling,
            table_settings(spec.destination, self.location(table)),
            table.append_again,
        )


class ParquetTable:
    """A Parquet table as its log tells of it."""

    def __init__(self, session: ParquetSession, table: TableSpec, opened: OpenedLog) -> None:
        self._session = session
        self._table = table
        self._opened = opened
        self._before = {column.name: column.type for column in opened.columns}

    @property
    def spark(self) -> SparkSession:
        """The session of the run."""
        return self._session.spark

    @property
    def bookmark(self) -> Bookmark:
        """What the log keeps of this pipeline's loads."""
        session = self._session
        return bookmark_of(
            session.objects,
            session.location(self._table),
            pipeline=session.spec.pipeline,
            source=self._table.source,
            opened=self._opened,
        )

    def expected(self) -> ExpectedColumns:
        """Return the types and names of earlier loads."""
        before, recorded = self._before, self._opened.column_map
        earlier = earlier_types(before, recorded, self._table.columns.rename or {})
        lower = self._session.spec.destination.parquet.update_glue_catalog
        kinds = {name.lower(): kind for name, kind in before.items()}

        def takes(name: str, kind: DataType) -> bool:
            now = kind.simpleString()
            return with_new_fields(kinds.get(name.lower(), now), now) is not None

        return ExpectedColumns(earlier, recorded, lower, before, takes, adds_fields=True)

    def describe(self, prepared: PreparedRows) -> TableColumns:
        """Return the columns of a load, and those the table has."""
        columns = written_columns(
            self._session.spec,
            self._table,
            prepared,
            self._before,
            may_read=prepared.rows.repeatable,
        )
        return TableColumns(
            self._table.source,
            self._table.target,
            columns.types,
            prepared.mapping.key,
            existing=ExistingColumns(self._before) if self._before else None,
            reader=prepared.rows.reader,
        )


class OpenParquetTable(ParquetTable):
    """A Parquet table that is being loaded."""

    def __init__(self, session: ParquetSession, load: ParquetLoad, reporter: Reporter) -> None:
        super().__init__(session, load.table, load.opened)
        self._load = load
        self._reporter = reporter
        self._target = glue_target(load.spec.destination, load.location)
        self._unasked: tuple[str, ...] = ()

    replaces = False

    @property
    def already(self) -> TableResult | None:
        """The result of the record that is there."""
        opened = self._opened
        if opened.already is None:
            return None
        destination = self._load.spec.destination
        return table_result(destination, self._table, "NO_OP", opened.already, opened.catalog_error)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the log and the catalog have to say."""
        behind = lagging(self._opened.catalog_error, self._unasked)
        return (*self._opened.warnings, *behind)

    def keep(self, found: Slice) -> TableResult:
        """Report that nothing is new; commit the state where that makes the next run quicker."""
        error: LakeloadError | None = self._opened.catalog_error
        if found.records_anyway:
            self._reporter.on_stage("commit")
            record = load_record(
                self._load.spec,
                self._table,
                files=(),
                columns={},
                column_map=self._opened.column_map,
                started_at=datetime.now(UTC),
            )
            # Whoever came in between has moved the state as well; of ours nobody needs to know.
            with contextlib.suppress(Conflict):
                record = with_state(record, found.change, found.noted(()))
                error = self._load.log.commit(record).catalog_error
        return nothing_new(self._load.spec.destination, self._table, error)

    def expected(self) -> ExpectedColumns:
        """Ask the catalog before the source is read. Raises what it refuses."""
        self._unasked = check_catalog(self._session.catalog, self._target, self._opened.columns)
        return super().expected()

    def check(self, prepared: PreparedRows) -> ParquetWriter:
        """Compare the columns with the table's, and ask the catalog again now they are known."""
        written = written_columns(self._load.spec, self._table, prepared, self._before)
        columns = (Column(name, kind) for name, kind in written.types.items())
        loaded = {column.name for column in self._opened.columns}
        sources = {column.target: column.source for column in prepared.mapping.columns}
        united = [
            column
            if column.name in loaded
            else NewColumn(column.name, column.type, sources.get(column.name, column.name))
            for column in union(self._opened.columns, columns)
        ]
        self._unasked = self._unasked or check_catalog(self._session.catalog, self._target, united)
        if self._target is not None:
            self._session.catalog.describe(self._target, prepared.comments)
        sets_aside = self._load.spec.on_bad_value_of(self._table) == "QUARANTINE"
        if sets_aside and self._target is not None:
            side = replace(self._target, table=self._load.location.side_table.table)
            named = [Column(name, kind) for name, kind in SIDE_COLUMNS.items()]
            self._unasked = self._unasked or check_catalog(self._session.catalog, side, named)
        return ParquetWriter(self._load, prepared, written)

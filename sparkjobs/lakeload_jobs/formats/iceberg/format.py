"""Iceberg tables: the catalog of a run, and how a load makes a table ready for its rows."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.maintain import MaintainSpec
from lakeload_jobs.contract.plan import TableColumns
from lakeload_jobs.contract.result import ErrorInfo, TableResult
from lakeload_jobs.contract.spec import DestinationSpec, JobSpec, TableSpec
from lakeload_jobs.contract.state import Bookmark, RejectedRecords
from lakeload_jobs.contract.traits import catalog_traits, vends
from lakeload_jobs.formats.base import (
    ExpectedColumns,
    MaintenanceStep,
    PreparedRows,
    Reporter,
    RetryLoad,
)
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.reading import facts_of
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from lakeload_jobs.formats.iceberg.commits.metadata import Metadata
from lakeload_jobs.formats.iceberg.file_ledger import bookmark_of
from lakeload_jobs.formats.iceberg.left_rejects import settle_rejects
from lakeload_jobs.formats.iceberg.load.catalog_settings import SparkCatalog
from lakeload_jobs.formats.iceberg.load.catalog_tables import (
    CatalogTables,
)
from lakeload_jobs.formats.iceberg.load.definition import (
    Definition,
    definition,
    iceberg_schema,
    schema_columns,
)
from lakeload_jobs.formats.iceberg.load.direct_write import (
    Plan,
    plan_before,
    plan_rows,
    plan_write,
)
from lakeload_jobs.formats.iceberg.load.evolution import (
    TableChanges,
    existing_columns,
    plan_changes,
)
from lakeload_jobs.formats.iceberg.load.opening import OpenedTable, attempt_of, open_load, ready
from lakeload_jobs.formats.iceberg.load.outcome import already
from lakeload_jobs.formats.iceberg.load.prepare import (
    FittedRows,
    fit_rows,
    nested_spark_types,
    spark_types,
)
from lakeload_jobs.formats.iceberg.load.rejects import read_rejects
from lakeload_jobs.formats.iceberg.load.stage import summary_of
from lakeload_jobs.formats.iceberg.load.tables import LOST, UNSURE, caused_by
from lakeload_jobs.formats.iceberg.load.write import IcebergLoad, IcebergWriter
from lakeload_jobs.formats.iceberg.rewrites import STEPS, SparkWork
from lakeload_jobs.formats.iceberg.rules.admission import check_only_pipeline
from lakeload_jobs.formats.iceberg.rules.catalogs import warehouse_location
from lakeload_jobs.formats.iceberg.rules.facts import PipelineState, TableFacts, state_of
from lakeload_jobs.formats.iceberg.rules.partitions import format_partition_field
from lakeload_jobs.formats.iceberg.rules.rejects import find_rejected
from lakeload_jobs.formats.iceberg.rules.schema import takes_type
from lakeload_jobs.formats.iceberg.rules.writers import WrittenTable
from lakeload_jobs.rows.columns import earlier_types
from lakeload_jobs.rows.counting import Counted
from lakeload_jobs.session import configure
from lakeload_jobs.sources.base import NO_COLUMNS, Slice
from lakeload_jobs.storage.objects import Objects


class IcebergFormat:
    """Iceberg tables in the catalog of the destination."""

    def uses_own_identity(self, destination: DestinationSpec) -> bool:
        """Return whether the catalog lends no keys for its tables."""
        return not vends(destination.iceberg.catalog)

    def connect(self, spark: SparkSession, spec: JobSpec, aws: AwsSession) -> IcebergSession:
        """Open the catalog; Spark opens it for what only Spark does."""
        destination = spec.destination
        tables = CatalogTables.of(destination, aws)
        tables.store.open()
        catalog = SparkCatalog(destination, aws, has_jars=spec.format_jars)
        return IcebergSession(spark, spec, aws, tables, catalog)


class IcebergSession:
    """The Iceberg tables of one run. The catalog is opened in `spark` where Spark needs it."""

    def __init__(
        self,
        spark: SparkSession,
        spec: JobSpec,
        aws: AwsSession,
        tables: CatalogTables,
        catalog: SparkCatalog,
    ) -> None:
        self.spark = spark
        self.spec = spec
        self.tables = tables
        self.catalog = catalog
        self.objects = Objects(aws, spec.destination)
        self._aws = aws
        self._lock = threading.Lock()
        self._rounds: Counter[str] = Counter()
        self._own: dict[str, SparkSession] = {}

    def open(self, table: TableSpec, reporter: Reporter, *, incremental: bool) -> OpenIceberg:
        """Look at the table, and drop the branches of dead attempts. Raises as `open_load` does."""
        with self._lock:
            number = self._rounds[table.source]
            self._rounds[table.source] += 1
        spec = self.spec
        given = replace(
            self._load(table, self._session_for(table)),
            replaces=replaces_rows(spec, table),
            number=number,
            check=reporter.check,
        )
        job = attempt_of(spec, table, goes_on=incremental and not spec.options.starts_over)
        opened = open_load(given.asked, spec, table, job)
        if table.max_deleted is not None and opened.facts is not None:
            check_only_pipeline(opened.facts, job)
        if spec.on_bad_value_of(table) == "QUARANTINE" or table.retries is not None:
            summary = summary_of(spec, table, None)
            settle_rejects(self.tables, table.schema, table.table, summary)
        return OpenIceberg(given, opened)

    def _load(self, table: TableSpec, spark: SparkSession) -> IcebergLoad:
        return IcebergLoad(
            spark=spark,
            tables=self.tables,
            catalog=self.catalog,
            spec=self.spec,
            table=table,
            objects=self.objects,
            own_key=self._own_key,
        )

    def inspect(self, table: TableSpec) -> IcebergTable:
        """Read the table's metadata."""
        known = self.tables.read(table.schema, table.table)
        facts = None if known is None else facts_of(known)
        state = state_of(facts, self.spec.pipeline) if facts else None
        return IcebergTable(self._load(table, self.spark), known, facts, state)

    def maintenance(self, table: TableSpec, wanted: MaintainSpec) -> Iterator[MaintenanceStep]:
        """Yield the steps for a table that exists."""
        if self.tables.read(table.schema, table.table) is None:
            return
        summary = summary_of(self.spec, table, None)
        work = SparkWork(self.tables, table, wanted, summary, self.spark, self.catalog)
        for step in wanted.steps:
            yield MaintenanceStep(step, partial(STEPS[step], work))

    def retry_reason(self, table: TableSpec, error: Exception) -> str | None:
        """Return why others' commits ask for another round.

        A publish without an answer never comes here: it is looked for where it was sent.
        """
        spark = isinstance(error, Py4JJavaError | PySparkException)
        if spark and caused_by(error, *LOST, *UNSURE):
            return f"a commit to `{table.target}` was rejected or not confirmed"
        if isinstance(error, CatalogError) and error.retryable and error.may_have_acted:
            return f"the catalog did not respond to a request about `{table.target}`"
        return None

    def of_job(self, spec: JobSpec) -> IcebergSession:
        """Return the tables of another run in the same catalog, with the sessions that have it
        open."""
        other = IcebergSession(self.spark, spec, self._aws, self.tables, self.catalog)
        other._own = self._own
        return other

    def close(self, *, jvm_stays: bool = False) -> None:
        """End the renewal of credentials; close the catalog in each session where the JVM stays."""
        self.catalog.close(jvm_stays=jvm_stays)

    def _own_key(self) -> str:
        """Return the access key id of the destination's own identity; '' of one with a role."""
        if self.spec.destination.credentials.role_arn:
            return ""
        return self._aws.base_keys().access_key_id

    def _session_for(self, table: TableSpec) -> SparkSession:
        """A MERGE takes what its snapshot says of itself from the session's settings alone."""
        if table.mode != "UPSERT":
            return self.spark
        with self._lock:
            own = self._own.get(table.source)
        if own is None:
            own = self.spark.newSession()
            configure(own)
            with self._lock:
                self._own[table.source] = own
        return own


def replaces_rows(spec: JobSpec, table: TableSpec) -> bool:
    """Return whether a load replaces every row of its table."""
    return table.mode == "OVERWRITE" or (spec.options.full_refresh and table.mode == "UPSERT")


class IcebergTable:
    """An Iceberg table as its metadata tells of it; `known` and `facts` are None where there is
    none."""

    def __init__(
        self,
        given: IcebergLoad,
        known: ReadTable | None,
        facts: TableFacts | None,
        state: PipelineState | None,
    ) -> None:
        self._given = given
        self._known = known
        self._facts = facts
        self._state = state

    @property
    def spark(self) -> SparkSession:
        """The table's session: its own where rows are merged."""
        return self._given.spark

    @property
    def bookmark(self) -> Bookmark:
        """What the table keeps of this pipeline's loads. What replaces every row begins anew."""
        given = self._given
        return bookmark_of(
            given.ledger,
            self._state,
            full_refresh=given.spec.options.full_refresh,
            rejected=self._rejected,
        )

    def _rejected(self, job: str) -> RejectedRecords:
        given = self._given
        branch = given.spec.destination.iceberg.branch
        found, staging = find_rejected(self._facts, branch, given.spec.pipeline, job)
        if found.status != "THERE":
            return found
        return replace(found, read=partial(self._read_rejects, job, staging))

    def _read_rejects(self, job: str, staging: str | None) -> pa.Table:
        given = self._given
        return read_rejects(given.tables, given.catalog, given.spark, given.table, job, staging)

    def expected(self) -> ExpectedColumns:
        """Return the types and names of earlier loads."""
        recorded = dict(self._state.columns) if self._state else {}
        lower = catalog_traits(self._given.spec.destination.iceberg.catalog).lower_case_names
        if self._facts is None:
            return ExpectedColumns({}, recorded, lower)
        types = spark_types(self._facts)
        earlier = earlier_types(types, recorded, self._given.table.columns.rename or {})
        takes, names = self._takes(types), tuple(self._facts.columns)
        nested = nested_spark_types(self._facts)
        return ExpectedColumns(
            earlier, recorded, lower, types, takes, nested_types=nested, names=names
        )

    def _takes(self, types: Mapping[str, str]) -> Callable[[str, DataType], bool] | None:
        """Return what says whether a column takes values of a type; None where a load replaces the
        columns with the rows."""
        given, facts = self._given, self._facts
        policy = given.spec.schema_changes_of(given.table)
        if facts is None or (policy == "EVOLVE" and replaces_rows(given.spec, given.table)):
            return None
        spelled = {name.lower(): name for name in facts.columns}

        def takes(name: str, kind: DataType) -> bool:
            own = spelled.get(name.lower())
            if own is None or types.get(own) == kind.simpleString():
                return True
            now = schema_columns(iceberg_schema(StructType([StructField("c", kind)])))["c"]
            return takes_type(facts.columns[own], now, policy)

        return takes

    def describe(self, prepared: PreparedRows) -> TableColumns:
        """Return the columns of a load as the table would have them, and those it has."""
        spec, table = self._given.spec, self._given.table
        rows = fit_rows(spec, table, prepared, self._facts)
        found = TableColumns(table.source, table.target, keys=rows.key)
        if not rows.columns.fields:
            return found
        made = definition(
            spec,
            table,
            rows.columns,
            rows.key,
            rows.partition_by or (),
            bloom_filters=rows.bloom_filters,
        )
        branch = spec.destination.iceberg.branch
        try:
            planned, error = self._planned(rows, made), None
        except LoadFailed as refusal:
            planned, error = None, ErrorInfo.of(refusal, "schema")
        # A load of no rows changes no column. Rows that are read only once are left to the load.
        if error is not None and prepared.rows.repeatable and prepared.is_empty:
            return found
        return replace(
            found,
            error=error,
            writer=planned.writer if planned else None,
            columns=schema_columns(made.schema),
            required=made.key,
            partition_by=rows.partition_by,
            existing=existing_columns(self._facts, branch) if self._facts else None,
            warnings=made.notes,
            reader=prepared.rows.reader,
            needs_java=(planned.reason or None) if planned else None,
        )

    def _planned(self, rows: FittedRows, made: Definition) -> Plan:
        """Return who would write the files. Raises `LoadFailed` where a load would not change the
        table for its rows."""
        given, facts, known = self._given, self._facts, self._known
        spec, table = given.spec, given.table
        if facts is None or known is None:
            return plan_before(spec, table) or plan_rows(spec, table, rows, _new(given, made))
        branch = spec.destination.iceberg.branch
        nulls = partial(given.asked.count_nulls, branch)
        plan = plan_changes(spec, table, facts, rows, made, nulls)
        job = attempt_of(spec, table, goes_on=False)
        changes = TableChanges(table, branch, job, facts, rows, made, plan)
        # A load drops the branches of dead attempts first.
        changed = changes.preview(known.metadata, own_branch=None)
        return self._plan(rows, known, changed or known.metadata)

    def _plan(self, rows: FittedRows, known: ReadTable, metadata: Metadata) -> Plan:
        """Decide who writes the files of a table that is as the load needs it."""
        given = self._given
        spec, table = given.spec, given.table
        return plan_before(spec, table) or plan_write(
            spec, table, rows, known, metadata, given.own_key
        )


class OpenIceberg(IcebergTable):
    """An Iceberg table that is being loaded."""

    def __init__(self, given: IcebergLoad, opened: OpenedTable) -> None:
        super().__init__(given, opened.table, opened.facts, opened.start.state)
        self._opened = opened

    @property
    def already(self) -> TableResult | None:
        """The result of the snapshot that is in."""
        opened = self._opened
        if opened.already is None or opened.facts is None:
            return None
        pipeline = opened.job.pipeline
        return already(self._given.table, opened.facts, opened.already.snapshot, pipeline)

    @property
    def replaces(self) -> bool:
        """Whether every row is replaced."""
        return self._given.replaces

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the start of the load has to say."""
        return self._opened.start.warnings

    def keep(self, found: Slice) -> TableResult:
        """Report that nothing is new; commit a snapshot without rows where there is something to
        remember. It would not make the next run quicker."""
        table = self._given.table
        if found.must_record:
            self._record(found)
        location = self._facts.location if self._facts else None
        return TableResult(table.source, table.target, "NO_OP", location=location)

    def _record(self, found: Slice) -> None:
        rows = found.open(self.spark, NO_COLUMNS)
        writer = self.check(PreparedRows.none(rows))
        if writer is None:
            return
        staged = writer.stage(Counted((0,)))
        try:
            if (evidence := found.noted(())) is not None:
                staged.note(evidence)
        except BaseException:
            staged.abandon()
            raise
        staged.commit(found.change)

    def check(self, prepared: PreparedRows) -> IcebergWriter | None:
        """Create the table, or bring its columns into step."""
        given = self._given
        rows = fit_rows(given.spec, given.table, prepared, self._opened.facts)
        made = ready(given.asked, given.spec, given.table, self._opened, rows)
        if made is None:
            return None
        self._opened = made.opened
        known, metadata = made.opened.table, made.opened.metadata
        if known is None or metadata is None:
            raise RetryLoad(f"`{given.table.target}` was dropped since this load began")
        plan = self._plan(made.rows, known, metadata)
        if plan.direct is None and made.rows.columns.fields:
            # Before the source is read: Spark may have to be started again.
            given.catalog.open_in(given.spark, given.table.target, plan.reason)
        return IcebergWriter(given, made, plan)


def _new(given: IcebergLoad, made: Definition) -> WrittenTable:
    """Return a table that is not there yet, as far as it is known without its catalog."""
    destination = given.spec.destination
    return WrittenTable(
        schema=made.schema,
        partitions=tuple(map(format_partition_field, made.partition_by)),
        sorted=made.order is not None,
        properties=made.properties,
        location=f"{warehouse_location(destination)}/{given.table.schema}/{given.table.table}",
        version=destination.iceberg.format_version,
    )

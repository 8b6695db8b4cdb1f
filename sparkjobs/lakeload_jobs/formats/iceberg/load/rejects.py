"""The side table of an Iceberg table: an attempt's rejected records go in before its rows are
published, and stay if they were."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.spec import PartitionField, TableSpec
from lakeload_jobs.core.names import REJECTED_SUFFIX
from lakeload_jobs.formats.data_files.tracked import rejected_frame
from lakeload_jobs.formats.iceberg.catalogs.changes import until_committed
from lakeload_jobs.formats.iceberg.catalogs.reading import existing_table, facts_of
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable, now_ms
from lakeload_jobs.formats.iceberg.commits.metadata import (
    MAIN,
    add_snapshot,
    assert_ref,
    move_branch,
    ref,
    set_properties,
    snapshot_of,
)
from lakeload_jobs.formats.iceberg.commits.snapshots import Addition, added
from lakeload_jobs.formats.iceberg.load.catalog_settings import SparkCatalog
from lakeload_jobs.formats.iceberg.load.catalog_tables import (
    CatalogTables,
    committable,
)
from lakeload_jobs.formats.iceberg.load.definition import (
    create,
    definition,
    ensure_namespace,
    new_location,
)
from lakeload_jobs.formats.iceberg.load.direct_write import (
    DirectWrite,
    Target,
    Written,
    write_files,
)
from lakeload_jobs.formats.iceberg.load.small_tables import UnreadableFiles, read_batches
from lakeload_jobs.formats.iceberg.load.stage import Stage, summary_of
from lakeload_jobs.formats.iceberg.load.tables import spark_name
from lakeload_jobs.formats.iceberg.rules.facts import SUMMARY_ATTEMPT
from lakeload_jobs.formats.iceberg.rules.rejects import (
    REJECTED_OF,
    ROUND_COLUMN,
    PendingRejects,
    pending_rejects,
)
from lakeload_jobs.formats.iceberg.rules.summaries import number_in
from lakeload_jobs.formats.iceberg.rules.writers import only_spark, settings_that_need_spark
from lakeload_jobs.rows.arrow import pc
from lakeload_jobs.rows.rejects import (
    SIDE_COLUMNS,
    SIDE_SCHEMA,
)

logger = logging.getLogger(__name__)


def add_rejects(given: Stage, count: int, own_key: Callable[[], str]) -> None:
    """Append the rejected records of a staged load, so many, to the side table, which is made
    first.

    Raises `InvalidInput` where a table of its own has that name, and what the catalog refuses.
    """
    spec, tables, side = given.spec, given.tables, _side_table(given.table)
    known = tables.read(side.schema, side.table) or _created(given, side)
    _check(known, given.table, side)
    pending = PendingRejects(given.branch, spec.attempt_id, spec.pipeline, spec.job_id)
    known = _remember(tables, side, pending)
    if reason := _spark_reason(given, side, known, own_key):
        _append_by_spark(given, count, side, known, reason)
    else:
        _append(given, count, side, known, own_key)


_COLUMNS = {**SIDE_COLUMNS, ROUND_COLUMN: "string"}


def _remember(tables: CatalogTables, side: TableSpec, pending: PendingRejects) -> ReadTable:
    """Write the entry of a load; return the side table with it."""
    values = {pending.name: pending.to_property()}

    def once() -> ReadTable:
        now = tables.existing(side)
        # An earlier try may have come in unheard.
        if pending.name in now.properties:
            return now
        return tables.store.commit(now, [], [set_properties(values)])

    return until_committed(once, f"remembering this load in `{side.target}`")


def _spark_reason(
    given: Stage, side: TableSpec, known: ReadTable, own_key: Callable[[], str]
) -> str:
    """Return why Spark has to write the records, as a clause; '' where it has not."""
    destination = given.spec.destination
    if reason := next(settings_that_need_spark(given.spec, side), ""):
        return reason
    written = existing_table(destination, known, own_key)
    return only_spark(written, side, destination.iceberg.catalog, [*_COLUMNS], ())


def _append_by_spark(
    given: Stage, count: int, side: TableSpec, known: ReadTable, reason: str
) -> None:
    spark = given.spark
    given.catalog.open_in(spark, side.target, reason)
    # Read once more, in the same order.
    rows = rejected_frame(spark, given.rows.prepared.parts, given.tracking).withColumn(
        ROUND_COLUMN, F.lit(given.branch)
    )
    writer = rows.select(*_COLUMNS).writeTo(spark_name(side.schema, side.table))
    for name, value in summary_of(given.spec, given.table, None).items():
        writer = writer.option(f"snapshot-property.{name}", value)
    writer.append()
    before, now = facts_of(known).snapshots, facts_of(given.tables.existing(side)).snapshots
    new = (one.summary for number, one in now.items() if number not in before)
    own = (one for one in new if one.get(SUMMARY_ATTEMPT) == given.spec.attempt_id)
    _check_added(given, count, sum(number_in(one, "added-records") for one in own))


def _append(
    given: Stage, count: int, side: TableSpec, known: ReadTable, own_key: Callable[[], str]
) -> None:
    """Have tasks read the rows once more, in the same order, and write the records; commit their
    files."""
    spec, tables = given.spec, given.tables
    target = Target(
        spark=given.spark,
        spec=spec,
        table=given.table,
        metadata=known.metadata,
        metadata_files=tables.files(known),
        branch=given.branch,
        key=(),
        tracking=given.tracking,
        driver=given.driver,
        rejects=True,
    )
    table = existing_table(spec.destination, known, own_key)
    written = write_files(target, DirectWrite(given.rows.prepared.parts, table))
    _check_added(given, count, sum(file.rows for file in written.files))
    commit_records(tables, side, written, summary_of(spec, given.table, None))


def _check_added(given: Stage, count: int, records: int) -> None:
    """Raise `LoadFailed` where the second read has found other records than the first."""
    if records != count:
        raise LoadFailed(
            f"{count:,} records of `{given.table.source}` were rejected when it was read, and "
            f"{records:,} when they were set aside",
            hint="load only complete files that no process writes to, then run again",
            retryable=True,
        )


def commit_records(
    tables: CatalogTables, side: TableSpec, written: Written, summary: dict[str, str]
) -> None:
    """Add files of records to the side table, once. Raises `LoadFailed`, and what the catalog says
    of a commit of which nobody knows the end."""

    def once() -> None:
        now = tables.existing(side)
        metadata = now.metadata
        if snapshot_of(metadata, written.snapshot_id) is not None:
            # An earlier try came in unheard.
            return
        head = ref(metadata, MAIN)
        addition = Addition(written.snapshot_id, head, written.manifests, summary)
        snapshot = added(tables.files(now), metadata, addition, now_ms=now_ms())
        moves = move_branch(metadata, MAIN, written.snapshot_id)
        tables.store.commit(now, [assert_ref(MAIN, head)], [add_snapshot(snapshot), moves])

    with committable(side.target):
        until_committed(once, f"adding rejected records to `{side.target}`")


def read_rejects(
    tables: CatalogTables,
    catalog: SparkCatalog,
    spark: SparkSession,
    table: TableSpec,
    job: str,
    branch: str | None,
) -> pa.Table:
    """Return the rejected records of a job that is loaded, as an Arrow table: those of the round
    that staged on `branch`. Where that is not known they are those that wait for no round."""
    side = _side_table(table)
    known = tables.read(side.schema, side.table)
    if known is None or ref(known.metadata, MAIN) is None:
        return SIDE_SCHEMA.empty_table()
    waiting = () if branch else (one.branch for one in pending_rejects(facts_of(known)))
    asked = _Asked(job, branch, frozenset(waiting))
    try:
        found = list(asked.records(tables, known))
    except UnreadableFiles as error:
        catalog.open_in(spark, side.target, str(error))
        return asked.by_spark(spark.read.table(spark_name(side.schema, side.table))).toArrow()
    return pa.Table.from_batches(found, SIDE_SCHEMA)


@dataclass(frozen=True)
class _Asked:
    """Which records are asked for: those of a job, of the round `branch`, or of none that waits."""

    job: str
    branch: str | None
    waiting: frozenset[str]

    def records(self, tables: CatalogTables, known: ReadTable) -> Iterator[pa.RecordBatch]:
        """Yield them, read from the files of their partitions. Raises `UnreadableFiles`."""
        columns = SIDE_SCHEMA.append(pa.field(ROUND_COLUMN, pa.string()))
        files = tables.files(known)
        for batch in read_batches(files, known.metadata, columns, (ROUND_COLUMN, self._is_asked)):
            rounds = batch.column(ROUND_COLUMN)
            of_round = pc.invert(pc.is_in(rounds, pa.array(self.waiting, pa.string())))
            if self.branch is not None:
                of_round = pc.equal(rounds, self.branch)
            of_job = pc.equal(batch.column("_supa_job_id"), self.job)
            yield batch.filter(pc.and_(of_job, of_round)).select(SIDE_SCHEMA.names)

    def _is_asked(self, value: str | None) -> bool:
        return value == self.branch if self.branch is not None else value not in self.waiting

    def by_spark(self, rows: DataFrame) -> DataFrame:
        """Return them of all rows of the table."""
        rows = rows.where(F.col("_supa_job_id") == self.job)
        if self.branch is not None:
            rows = rows.where(F.col(ROUND_COLUMN) == self.branch)
        else:
            rows = rows.where(~F.col(ROUND_COLUMN).isin(list(self.waiting)))
        return rows.select(*SIDE_COLUMNS)


def _side_table(table: TableSpec) -> TableSpec:
    return replace(
        table,
        table=table.table + REJECTED_SUFFIX,
        mode="APPEND",
        primary_key=(),
        max_deleted=None,
        table_properties=None,
        bloom_filters=(),
    )


def _created(given: Stage, side: TableSpec) -> ReadTable:
    spec, tables = given.spec, given.tables
    columns = T.StructType(
        [T.StructField(name, T.DataType.fromDDL(kind)) for name, kind in _COLUMNS.items()]
    )
    # A partition of its own lets the records of a round go without a file being read.
    partitions = (PartitionField("identity", ROUND_COLUMN),)
    made = definition(spec, side, columns, (), partitions)
    made = replace(made, properties={**made.properties, REJECTED_OF: given.table.target})
    place = ensure_namespace(tables.store, spec.destination, side.schema)
    create(tables.store, side, made, new_location(spec.destination, side.schema, side.table, place))
    known = tables.read(side.schema, side.table)
    if known is None:
        raise LoadFailed(
            f"the catalog did not confirm that it created the table `{side.target}`, and does not "
            "have it",
            hint="run again: nothing was committed",
            retryable=True,
        )
    return known


def _check(known: ReadTable, table: TableSpec, side: TableSpec) -> None:
    if known.properties.get(REJECTED_OF) == table.target:
        return
    raise InvalidInput(
        f"the rejected records of `{table.target}` would go to `{side.target}`, which is "
        "another table; nothing was loaded",
        hint="give one of the two another `name` or `namespace`",
    )

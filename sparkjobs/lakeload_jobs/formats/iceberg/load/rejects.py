"""The side table of an Iceberg table: an attempt's rejected records go in before its rows are
published, and stay if they were."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.spec import JobSpec, PartitionField, TableSpec
from lakeload_jobs.core.names import REJECTED_SUFFIX
from lakeload_jobs.formats.data_files.tracked import rejected_frame
from lakeload_jobs.formats.iceberg.load.definition import (
    create,
    definition,
    ensure_namespace,
    new_location,
)
from lakeload_jobs.formats.iceberg.load.stage import Stage, summary_of
from lakeload_jobs.formats.iceberg.load.tables import Java, jvm, load, read_facts, spark_name
from lakeload_jobs.formats.iceberg.rules.rejects import (
    REJECTED_OF,
    ROUND_COLUMN,
    PendingRejects,
    fate_of,
    is_forgotten,
    pending_rejects,
)
from lakeload_jobs.rows.rejects import (
    SIDE_COLUMNS,
    SIDE_SCHEMA,
)


def add_rejects(given: Stage) -> None:
    """Append the rejected records of a staged load to the side table, which is made first.

    Raises `InvalidInput` where a table of its own has that name, and what the catalog refuses.
    """
    spark, spec, table = given.spark, given.spec, given.table
    given.catalog.open_in(spark, table.target, "rejected records are set aside")
    side = _side_table(table)
    java_table = load(spark, side.schema, side.table) or _created(given, side)
    _check(spark, java_table, table, side)
    pending = PendingRejects(given.branch, spec.attempt_id, spec.pipeline, spec.job_id)
    java_table.updateProperties().set(pending.name, pending.to_property()).commit()
    # Read once more, in the same order.
    rows = rejected_frame(spark, given.rows.prepared.parts, given.tracking).withColumn(
        ROUND_COLUMN, F.lit(given.branch)
    )
    writer = rows.select(*_COLUMNS).writeTo(spark_name(side.schema, side.table))
    for name, value in summary_of(spec, table, None).items():
        writer = writer.option(f"snapshot-property.{name}", value)
    writer.append()


_COLUMNS = {**SIDE_COLUMNS, ROUND_COLUMN: "string"}


def settle_rejects(
    spark: SparkSession, spec: JobSpec, table: TableSpec, own: str | None = None
) -> None:
    """Remove the rejected records of rounds that were not published and cannot be any more.

    `own` is the branch of a round of this attempt that has ended. Others stay remembered for a
    while: one that was paused may yet add its records.
    """
    side = _side_table(table)
    java_table = load(spark, side.schema, side.table)
    if java_table is None:
        return
    pending = tuple(pending_rejects(read_facts(spark, java_table)))
    if not pending:
        return
    # Read after what is pending: an attempt publishes after it is remembered.
    main = load(spark, table.schema, table.table)
    facts = None if main is None else read_facts(spark, main)
    for one in pending:
        fate = fate_of(facts, spec.destination.iceberg.branch, one)
        if fate == "WAITS":
            continue
        if fate == "GONE":
            _remove(spark, spec, table, java_table, one)
            if not is_forgotten(one, own, datetime.now(UTC)):
                continue
        java_table.updateProperties().remove(one.name).commit()


def read_rejects(spark: SparkSession, table: TableSpec, job: str, branch: str | None) -> pa.Table:
    """Return the rejected records of a job that is loaded, as an Arrow table: those of the round
    that staged on `branch`. Where that is not known they are those that wait for no round."""
    side = _side_table(table)
    java_table = load(spark, side.schema, side.table)
    if java_table is None or java_table.currentSnapshot() is None:
        return SIDE_SCHEMA.empty_table()
    rows = spark.read.table(spark_name(side.schema, side.table))
    rows = rows.where(F.col("_supa_job_id") == job)
    if branch is not None:
        rows = rows.where(F.col(ROUND_COLUMN) == branch)
    else:
        waiting = [one.branch for one in pending_rejects(read_facts(spark, java_table))]
        rows = rows.where(~F.col(ROUND_COLUMN).isin(waiting))
    return rows.select(*SIDE_COLUMNS).toArrow()


def _remove(
    spark: SparkSession, spec: JobSpec, table: TableSpec, java_table: Java, one: PendingRejects
) -> None:
    """Remove the partition of one round, if there is any."""
    java_table.refresh()
    if java_table.currentSnapshot() is None:
        return
    equal = jvm(spark).org.apache.iceberg.expressions.Expressions.equal
    delete = java_table.newDelete().deleteFromRowFilter(equal(ROUND_COLUMN, one.branch))
    for name, value in summary_of(spec, table, None).items():
        delete.set(name, value)
    delete.commit()


def _side_table(table: TableSpec) -> TableSpec:
    return replace(
        table,
        table=table.table + REJECTED_SUFFIX,
        mode="APPEND",
        primary_key=(),
        table_properties=None,
        bloom_filters=(),
    )


def _created(given: Stage, side: TableSpec) -> Java:
    spark, spec = given.spark, given.spec
    columns = T.StructType(
        [T.StructField(name, T.DataType.fromDDL(kind)) for name, kind in _COLUMNS.items()]
    )
    # A partition of its own lets the records of a round go without a file being read.
    partitions = (PartitionField("identity", ROUND_COLUMN),)
    made = definition(spec, side, columns, (), partitions)
    made = replace(made, properties={**made.properties, REJECTED_OF: given.table.target})
    store = given.tables.store
    place = ensure_namespace(store, spec.destination, side.schema)
    create(store, side, made, new_location(spec.destination, side.schema, side.table, place))
    java_table = load(spark, side.schema, side.table)
    if java_table is None:
        raise LoadFailed(
            f"the catalog did not confirm that it created the table `{side.target}`, and does not "
            "have it",
            hint="run again: nothing was committed",
            retryable=True,
        )
    return java_table


def _check(spark: SparkSession, java_table: Java, table: TableSpec, side: TableSpec) -> None:
    facts = read_facts(spark, java_table)
    if facts.properties.get(REJECTED_OF) == table.target:
        return
    raise InvalidInput(
        f"the rejected records of `{table.target}` would go to `{side.target}`, which is "
        "another table; nothing was loaded",
        hint="give one of the two another `name` or `namespace`",
    )

"""What a load asks of a table's definition, found on one read of it and done in one commit."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.formats.iceberg.load.creation import Definition
from lakeload_jobs.formats.iceberg.load.evolution import apply_plan, count_nulls, replace_columns
from lakeload_jobs.formats.iceberg.load.java import Java, spark_name
from lakeload_jobs.formats.iceberg.load.prepare import FittedRows
from lakeload_jobs.formats.iceberg.load.tables import facts_of, schema_columns
from lakeload_jobs.formats.iceberg.rules.admission import is_empty
from lakeload_jobs.formats.iceberg.rules.facts import Job, TableFacts
from lakeload_jobs.formats.iceberg.rules.partitions import kept_fields
from lakeload_jobs.formats.iceberg.rules.publish import check_replaceable
from lakeload_jobs.formats.iceberg.rules.schema import (
    SchemaPlan,
    compare,
    with_nulls,
    with_partitions,
)


def plan_changes(
    spark: SparkSession,
    spec: JobSpec,
    table: TableSpec,
    facts: TableFacts,
    fitted: FittedRows,
    made: Definition,
) -> SchemaPlan:
    """Return the steps that the table needs before the load. Raises `LoadFailed`."""
    branch = spec.destination.iceberg.branch
    columns = schema_columns(spark, made.schema)
    plan = compare(
        facts.columns,
        columns,
        spec.schema_changes,
        table.mode,
        target=table.target,
        required=facts.required,
        identifiers=facts.identifiers,
        keys=fitted.key,
        incoming_required=made.key,
        full_refresh=spec.options.full_refresh,
        empty=is_empty(facts, branch),
    )
    plan = with_partitions(
        plan,
        facts.partitions,
        fitted.partition_by,
        spec.schema_changes,
        target=table.target,
        columns=columns,
    )
    asked = [name for name in plan.require if name in facts.columns]
    if not asked or branch not in facts.refs:
        return plan
    nulls = count_nulls(spark, spark_name(table.schema, table.table), branch, asked)
    mode = "OVERWRITE" if spec.options.full_refresh else table.mode
    return with_nulls(plan, nulls, mode, target=table.target, identifiers=facts.identifiers)


def make_changes(
    spark: SparkSession,
    java_table: Java,
    facts: TableFacts,
    job: Job,
    fitted: FittedRows,
    made: Definition,
    plan: SchemaPlan,
) -> bool:
    """Change the table as planned on these facts; False when somebody else has changed it since.

    Raises `LoadFailed`, and what Spark raises for a commit that others came before.
    """
    if not plan.changes_table:
        return True
    transaction = java_table.newTransaction()
    now = facts_of(transaction.startMetadata())
    if _defined(now) != _defined(facts):
        return False
    if plan.replace:
        check_replaceable(now, "", job)
        if fitted.partition_by is None:
            kept = kept_fields(now.partitions, schema_columns(spark, made.schema))
            made = replace(made, partition_by=kept)
        replace_columns(spark, transaction, made, job.target)
    else:
        apply_plan(spark, transaction, plan, made.schema, job.target)
    return True


def _defined(facts: TableFacts) -> object:
    return facts.uuid, facts.columns, facts.required, facts.identifiers, facts.partitions

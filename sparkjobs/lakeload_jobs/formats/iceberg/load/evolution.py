"""The steps of a schema plan, as explicit changes of the table (DESIGN section 6, step 3).

All steps of a load are one transaction, compared with what others commit meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import PartitionField
from lakeload_jobs.formats.iceberg.load.branches import LOST, UNSURE
from lakeload_jobs.formats.iceberg.load.catalog_errors import refused
from lakeload_jobs.formats.iceberg.load.creation import Definition
from lakeload_jobs.formats.iceberg.load.java import Java, caused_by, jvm, sentence
from lakeload_jobs.formats.iceberg.load.tables import schema_columns
from lakeload_jobs.formats.iceberg.rules.partitions import NO_PARTITION, Repartition
from lakeload_jobs.formats.iceberg.rules.schema import SchemaPlan, spelled_in


def apply_plan(
    spark: SparkSession, transaction: Java, plan: SchemaPlan, incoming: Java, target: str
) -> None:
    """Change columns and partitions, and commit; `incoming` is Iceberg's schema of the load.

    Readers see the new columns at once, null in all rows, and no other partitions: files that are
    there keep theirs. Raises `LoadFailed`, and what Spark raises where others committed first.
    """
    with _told(f"changing the columns of `{target}`"):
        if plan.changes_columns:
            _change_columns(spark, transaction.updateSchema(), plan, incoming)
        if plan.repartition is not None:
            _repartition(spark, transaction, plan.repartition)
        transaction.commitTransaction()


def _change_columns(spark: SparkSession, update: Java, plan: SchemaPlan, incoming: Java) -> None:
    columns = schema_columns(spark, incoming)
    for added in plan.add:
        kind = incoming.findType(".".join(spelled_in(columns, added.path)))
        if len(added.path) == 1:
            update.addColumn(added.path[0], kind)
        else:
            update.addColumn(".".join(added.path[:-1]), added.path[-1], kind)
    for widened in plan.widen:
        kind = incoming.findType(".".join(spelled_in(columns, widened.path)))
        update.updateColumn(".".join(widened.path), kind.asPrimitiveType())
    if plan.require:
        # The rows have been asked for nulls: `count_nulls`.
        update.allowIncompatibleChanges()
        for name in plan.require:
            update.requireColumn(name)
    if plan.set_identifiers is not None:
        update.setIdentifierFields(_strings(spark, plan.set_identifiers))
    for path in plan.make_optional:
        update.makeColumnOptional(".".join(path))
    update.commit()


def count_nulls(
    spark: SparkSession, name: str, branch: str, columns: Sequence[str]
) -> dict[str, int]:
    """Return how many rows of a branch have null in each of these columns."""
    rows = spark.read.option("branch", branch).table(name)
    counts = [F.count_if(F.col(f"`{column}`").isNull()) for column in columns]
    found = rows.select(*counts).collect()[0]
    return {column: int(count) for column, count in zip(columns, found, strict=True)}


def replace_columns(spark: SparkSession, transaction: Java, made: Definition, target: str) -> None:
    """Give the table the columns, key, partitions and order of `made`, for a load that replaces
    every row (F89). Raises `LoadFailed`.

    Columns that fit keep their identity; the others are dropped and added anew, null in the rows
    that are there until the load is published (docs/decisions/0083). To be called only while no
    other load is under way (I12).
    """
    with _told(f"replacing the columns of `{target}`"):
        _replace_columns(spark, transaction, made)
        transaction.commitTransaction()


def _replace_columns(spark: SparkSession, transaction: Java, made: Definition) -> None:
    columns = transaction.table().schema().columns()
    kept = _kept(columns, made.schema.columns())
    update = transaction.updateSpec()
    _remove(update, _fields(transaction))
    update.commit()
    transaction.replaceSortOrder().commit()
    update = transaction.updateSchema().setIdentifierFields(_strings(spark, ()))
    for field in columns:
        if field.name() not in kept:
            update.deleteColumn(field.name())
        elif field.isRequired() and field.name() not in made.key:
            update.makeColumnOptional(field.name())
    update.commit()
    # An update of its own: in one with the deletion, a name is that of the column deleted.
    update = transaction.updateSchema().allowIncompatibleChanges()
    for field in made.schema.columns():
        if field.name() not in kept:
            update.addColumn(field.name(), field.type())
    for name in made.key:
        update.requireColumn(name)
    update.setIdentifierFields(_strings(spark, made.key)).commit()
    update = transaction.updateSpec()
    _add(spark, update, made.partition_by)
    update.commit()
    if made.order is not None:
        order = transaction.replaceSortOrder()
        for name in made.key:
            order.asc(name)
        order.commit()


def _kept(before: Java, now: Java) -> set[str]:
    """Return the names of columns that are of the same type in both."""
    types = {field.name(): field.type().toString() for field in now}
    return {field.name() for field in before if types.get(field.name()) == field.type().toString()}


def _repartition(spark: SparkSession, transaction: Java, step: Repartition) -> None:
    update = transaction.updateSpec()
    _remove(update, _fields(transaction)[step.keep :])
    if step.moves:
        update.commit()
        update = transaction.updateSpec()
    _add(spark, update, step.add)
    update.commit()


def _fields(transaction: Java) -> list[Java]:
    fields = transaction.table().spec().fields()
    return [field for field in fields if field.transform().toString() != NO_PARTITION]


def _remove(update: Java, fields: Sequence[Java]) -> None:
    for field in fields:
        update.removeField(field.name())


def _add(spark: SparkSession, update: Java, fields: Sequence[PartitionField]) -> None:
    expressions = jvm(spark).org.apache.iceberg.expressions.Expressions
    for field in fields:
        if field.transform == "identity":
            update.addField(field.column)
        elif field.width is None:
            update.addField(getattr(expressions, field.transform)(field.column))
        else:
            update.addField(getattr(expressions, field.transform)(field.column, field.width))


@contextmanager
def _told(doing: str) -> Iterator[None]:
    """Say what was being done; where others committed first, the load begins anew by itself."""
    try:
        yield
    except Py4JJavaError as error:
        if caused_by(error, *LOST, *UNSURE):
            raise
        raise refused(error, doing) or LoadFailed(
            f"{doing}: {sentence(error)}", hint="run again", retryable=True
        ) from None


def _strings(spark: SparkSession, values: Sequence[str]) -> Java:
    found = jvm(spark).java.util.ArrayList()
    for value in values:
        found.add(value)
    return found

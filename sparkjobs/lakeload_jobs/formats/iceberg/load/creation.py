"""The namespace and the empty table of a first load (DESIGN section 6, step 2).

The table is there, empty, before any file of it is written: nobody ever has to tell files of a
table that is about to be from files that a dead load left (docs/decisions/0080).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lakeload_jobs.contract.errors import InvalidInput, LakeloadError, LoadFailed
from lakeload_jobs.contract.spec import DestinationSpec, JobSpec, PartitionField, TableSpec
from lakeload_jobs.contract.traits import catalog_traits
from lakeload_jobs.formats.iceberg.load.branches import UNSURE
from lakeload_jobs.formats.iceberg.load.catalog_errors import refused
from lakeload_jobs.formats.iceberg.load.java import (
    Java,
    caused_by,
    identifier,
    java_catalog,
    jvm,
    namespace,
)
from lakeload_jobs.formats.iceberg.load.tables import load, schema_columns
from lakeload_jobs.formats.iceberg.rules.catalogs import own_location
from lakeload_jobs.formats.iceberg.rules.facts import CREATED_BY, TableFacts
from lakeload_jobs.formats.iceberg.rules.partitions import partition_spec_problem
from lakeload_jobs.formats.iceberg.rules.schema import identifier_fields


@dataclass(frozen=True)
class Definition:
    """A table as a load defines it: Iceberg's schema, spec and sort order, and properties."""

    schema: Java
    partitions: Java
    order: Java | None
    properties: Mapping[str, str]
    key: tuple[str, ...]
    """The identifier fields, which are required."""
    partition_by: tuple[PartitionField, ...]
    notes: tuple[str, ...]


def definition(
    spark: SparkSession,
    spec: JobSpec,
    table: TableSpec,
    columns: StructType,
    key: Sequence[str],
    partition_by: Sequence[PartitionField],
) -> Definition:
    """Return what a table of these columns is created with.

    Raises `LoadFailed` for a key that Iceberg cannot have as identifier fields where UPSERT needs
    them (B19), and `InvalidInput` for partition fields that do not fit their columns.
    """
    plain = iceberg_schema(spark, columns)
    kinds = schema_columns(spark, plain)
    key, notes = identifier_fields(kinds, key, table.mode, target=table.target)
    if problem := partition_spec_problem(partition_by, kinds):
        raise InvalidInput(problem, hint="correct `partition_by` of the table")
    schema = _with_key(spark, plain, key)
    return Definition(
        schema,
        partition_spec(spark, schema, partition_by),
        _sort_order(spark, schema, key) if table.mode == "UPSERT" and key else None,
        table_properties(spec, table),
        key,
        tuple(partition_by),
        notes,
    )


def iceberg_schema(spark: SparkSession, columns: StructType) -> Java:
    """Return Iceberg's schema of Spark's columns, all of them optional."""
    api = jvm(spark).org.apache
    kind = api.spark.sql.types.DataType.fromJson(columns.json())
    converted = api.iceberg.spark.SparkSchemaUtil.convert(kind)
    # Spark's ids begin with 0, which SeaweedFS (in a spec) and Nessie (in a key) take for none.
    return api.iceberg.types.TypeUtil.assignIncreasingFreshIds(converted)


def partition_spec(spark: SparkSession, schema: Java, fields: Sequence[PartitionField]) -> Java:
    """Return Iceberg's partition spec; fields name the schema's columns."""
    builder = jvm(spark).org.apache.iceberg.PartitionSpec.builderFor(schema)
    for field in fields:
        transform = getattr(builder, field.transform)
        if field.width is None:
            transform(field.column)
        else:
            transform(field.column, field.width)
    return builder.build()


def table_properties(spec: JobSpec, table: TableSpec) -> dict[str, str]:
    """Return the properties of a new table: ours, the destination's over them, then the table's."""
    own = {
        "format-version": str(spec.destination.iceberg.format_version),
        # Many loads commit to one table at once; Iceberg's own four tries are soon used up.
        "commit.retry.num-retries": "20",
        # Nessie's other branches, tags and earlier commits name older metadata files.
        "write.metadata.delete-after-commit.enabled": (
            "false" if catalog_traits(spec.destination.iceberg.catalog).keeps_history else "true"
        ),
        "write.merge.mode": "merge-on-read",
        "write.update.mode": "merge-on-read",
        "write.delete.mode": "merge-on-read",
    }
    if table.mode == "UPSERT":
        # A sort order would otherwise mean a range partitioning, which reads the source twice.
        own["write.distribution-mode"] = "hash"
    given = {**(spec.destination.iceberg.table_properties or {}), **(table.table_properties or {})}
    for name in given:
        if name.startswith("lakeload."):
            raise InvalidInput(
                f"the table property `{name}` is one that lakeload keeps for itself",
                hint="take it out of `table_properties`",
            )
    return {**own, **given, CREATED_BY: spec.pipeline}


def ensure_namespace(spark: SparkSession, destination: DestinationSpec, schema: str) -> None:
    """Make the namespace if it is not there; where the destination places tables, make sure that
    it lies where it should. Raises `LoadFailed`."""
    catalog, name = java_catalog(spark), namespace(spark, schema)
    place = own_location(destination)
    wanted = f"{place}/{schema}" if place else None
    try:
        found = _location(catalog, name)
        if found is None:
            properties = jvm(spark).java.util.HashMap()
            if wanted:
                properties.put("location", wanted)
            found = _made(catalog, name, properties)
    except Py4JJavaError as error:
        if failure := refused(error, f"making the namespace `{schema}`"):
            raise failure from None
        raise
    if wanted and found and _plain(found) != _plain(wanted):
        raise LoadFailed(
            f"the namespace `{schema}` of the catalog lies at `{found}`, and this destination "
            f"would put it at `{wanted}`",
            hint="restore `bucket`, `prefix` or `warehouse_location`, or load into another "
            "`namespace`",
        )


def check_location(facts: TableFacts, destination: DestinationSpec, target: str) -> None:
    """Raise `LoadFailed` for a table that lies outside what the destination writes to (B23)."""
    root = own_location(destination)
    if root and not f"{_plain(facts.location)}/".startswith(f"{_plain(root)}/"):
        raise LoadFailed(
            f"the table `{target}` lies at `{facts.location}`, and this destination writes to "
            f"`{_plain(root)}`: it was moved after the first load",
            hint="restore `bucket`, `prefix` or `warehouse_location`, or load into another "
            "`namespace`",
        )


def create(spark: SparkSession, table: TableSpec, made: Definition) -> bool:
    """Create the table, empty; return False when somebody else did meanwhile, or nobody knows.

    Whatever the catalog answers, a table that is there now was made by another load: in a crowd of
    creators Nessie tells some of them that their request was a bad one. Raises `LoadFailed` for
    what the catalog refuses.
    """
    ident = identifier(spark, table.schema, table.table)
    builder = java_catalog(spark).buildTable(ident, made.schema)
    builder = builder.withPartitionSpec(made.partitions)
    if made.order is not None:
        builder = builder.withSortOrder(made.order)
    for name, value in made.properties.items():
        builder = builder.withProperty(name, value)
    try:
        builder.create()
    except Py4JJavaError as error:
        if caused_by(error, "AlreadyExistsException", *UNSURE) or _is_there(spark, table):
            return False
        if failure := refused(error, f"creating the table `{table.target}`"):
            raise failure from None
        raise
    return True


def _is_there(spark: SparkSession, table: TableSpec) -> bool:
    """Look again; a look that fails tells less than the failure it follows."""
    try:
        return load(spark, table.schema, table.table) is not None
    except (LakeloadError, Py4JJavaError):
        return False


def _with_key(spark: SparkSession, schema: Java, key: Sequence[str]) -> Java:
    """Return the schema with its key required and as identifier fields."""
    if not key:
        return schema
    api = jvm(spark)
    fields = api.java.util.ArrayList()
    ids = api.java.util.HashSet()
    for field in schema.columns():
        if field.name() in key:
            ids.add(field.fieldId())
            field = field.asRequired()
        fields.add(field)
    return api.org.apache.iceberg.Schema(fields, ids)


def _sort_order(spark: SparkSession, schema: Java, key: Sequence[str]) -> Java:
    builder = jvm(spark).org.apache.iceberg.SortOrder.builderFor(schema)
    for name in key:
        builder.asc(name)
    return builder.build()


def _made(catalog: Java, name: Java, properties: Java) -> str | None:
    """Make a namespace, unless another load does, and return where it lies."""
    try:
        catalog.createNamespace(name, properties)
    except Py4JJavaError:
        # As with tables: what counts is whether it is there now.
        if (found := _location(catalog, name)) is None:
            raise
        return found
    return _location(catalog, name)


def _location(catalog: Java, name: Java) -> str | None:
    """Return where a namespace lies, '' where it does not say; None when there is none."""
    try:
        return str(catalog.loadNamespaceMetadata(name).get("location") or "")
    except Py4JJavaError as error:
        if caused_by(error, "NoSuchNamespaceException"):
            return None
        raise


def _plain(location: str) -> str:
    return location.rstrip("/").replace("s3a://", "s3://", 1)

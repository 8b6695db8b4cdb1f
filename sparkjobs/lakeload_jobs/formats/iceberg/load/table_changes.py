"""The namespace and the empty table of a first load.

The table is there, empty, before any file of it is written: nobody ever has to tell files of a
table that is about to be from files that a dead load left (docs/design-notes.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeload_jobs.contract.errors import InvalidInput, LakeloadError, LoadFailed
from lakeload_jobs.contract.spec import DestinationSpec, JobSpec, PartitionField, TableSpec
from lakeload_jobs.contract.traits import catalog_traits
from lakeload_jobs.core.yaml_lines import yaml_mapping
from lakeload_jobs.formats.base import RetryLoad
from lakeload_jobs.formats.iceberg.load.branches import LOST, UNSURE
from lakeload_jobs.formats.iceberg.load.prepare import FittedRows
from lakeload_jobs.formats.iceberg.load.tables import (
    Java,
    catalog_rejection,
    caused_by,
    facts_of,
    identifier,
    java_catalog,
    jvm,
    load,
    namespace,
    schema_columns,
    sentence,
    spark_name,
)
from lakeload_jobs.formats.iceberg.load.uncommitted import uncommitted
from lakeload_jobs.formats.iceberg.rules.admission import is_empty
from lakeload_jobs.formats.iceberg.rules.bloom_filters import bloom_filter_properties
from lakeload_jobs.formats.iceberg.rules.catalogs import own_location
from lakeload_jobs.formats.iceberg.rules.facts import CREATED_BY, TableAttempt, TableFacts
from lakeload_jobs.formats.iceberg.rules.partitions import (
    NO_PARTITION,
    Repartition,
    kept_fields,
    partition_spec_problem,
)
from lakeload_jobs.formats.iceberg.rules.publish import check_replaceable
from lakeload_jobs.formats.iceberg.rules.schema import (
    SchemaPlan,
    compare,
    identifier_fields,
    spelled_in,
    with_nulls,
    with_partitions,
)
from lakeload_jobs.formats.iceberg.rules.writers import (
    metadata_columns,
    unmergeable_columns,
    unwritable,
)
from lakeload_jobs.rows.casts import quoted

COMMENT = "comment"
"""The property with a table's comment: Spark shows it, and Glue has it as `Description`."""


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
    comment: str = "",
    bloom_filters: Sequence[str] = (),
) -> Definition:
    """Return what a table of these columns is created with; `comment` is that of the table,
    `bloom_filters` are columns.

    Raises `LoadFailed` for a key that Iceberg cannot have as identifier fields where UPSERT needs
    them, and `InvalidInput` for partition fields that do not fit their columns.
    """
    plain = iceberg_schema(spark, columns)
    kinds = schema_columns(spark, plain)
    key, notes = identifier_fields(kinds, key, table.mode, target=table.target)
    if table.mode == "UPSERT" and (names := metadata_columns(kinds)):
        rename = yaml_mapping({names[0]: "…"})
        raise InvalidInput(
            f"`{table.target}` cannot be loaded: {unmergeable_columns(names)}",
            hint=f"give it another name with `columns: {{rename: {rename}}}`",
        )
    if problem := partition_spec_problem(partition_by, kinds):
        raise InvalidInput(problem, hint="correct `partition_by` of the table")
    schema = _with_key(spark, plain, key)
    properties = table_properties(spec, table)
    return Definition(
        schema,
        partition_spec(spark, schema, partition_by),
        _sort_order(spark, schema, key) if table.mode == "UPSERT" and key else None,
        {
            **({COMMENT: comment} if comment else {}),
            **properties,
            **bloom_filter_properties(bloom_filters, properties),
        },
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
    if problem := unwritable(given):
        raise InvalidInput(
            f"`{table.target}` cannot be loaded: {problem}",
            hint="name a codec such as `zstd` in `table_properties`",
        )
    for name in given:
        if name.startswith("lakeload."):
            raise InvalidInput(
                f"the table property `{name}` is reserved by lakeload",
                hint="remove it from `table_properties`",
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
        if failure := catalog_rejection(error, f"creating the namespace `{schema}`"):
            raise failure from None
        raise
    if wanted and found and _plain(found) != _plain(wanted):
        raise LoadFailed(
            f"the namespace `{schema}` of the catalog is located at `{found}`, but this "
            f"destination places it at `{wanted}`",
            hint="restore `bucket`, `prefix` or `warehouse_location`, or load into another "
            "`namespace`",
        )


def check_location(facts: TableFacts, destination: DestinationSpec, target: str) -> None:
    """Raise `LoadFailed` for a table that lies outside what the destination writes to."""
    root = own_location(destination)
    if root and not f"{_plain(facts.location)}/".startswith(f"{_plain(root)}/"):
        raise LoadFailed(
            f"the table `{target}` is located at `{facts.location}`, but this destination "
            f"writes to `{_plain(root)}`: the destination has changed since the first load",
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
        if failure := catalog_rejection(error, f"creating the table `{table.target}`"):
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


def _apply_plan(spark: SparkSession, transaction: Java, plan: SchemaPlan, incoming: Java) -> None:
    """Change columns and partitions in a transaction; `incoming` is Iceberg's schema of the load.

    Readers see no other partitions: files that are there keep theirs.
    """
    if plan.changes_columns:
        _change_columns(spark, transaction.updateSchema(), plan, incoming)
    if plan.set_identifiers and _is_sorted_by(transaction.table(), plan.sorted_by):
        _sort_by(spark, transaction, plan.set_identifiers)
    if plan.repartition is not None:
        _repartition(spark, transaction, plan.repartition)


def _change_columns(spark: SparkSession, update: Java, plan: SchemaPlan, incoming: Java) -> None:
    columns = schema_columns(spark, incoming)
    for added in plan.add:
        kind = incoming.findType(".".join(spelled_in(columns, added.path)))
        if len(added.path) == 1:
            update.addColumn(added.path[0], kind, incoming.findField(added.path[0]).doc())
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
    counts = [F.count_if(F.col(quoted(column)).isNull()) for column in columns]
    found = rows.select(*counts).collect()[0]
    return {column: int(count) for column, count in zip(columns, found, strict=True)}


def _replace_columns(spark: SparkSession, transaction: Java, made: Definition) -> None:
    """Give the table the columns, key, partitions and order of `made`, for a load that replaces
    every row.

    Columns that fit keep their identity; the others are dropped and added anew, null in the rows
    that are there (docs/design-notes.md). To be called only while no other load is under way (I12).
    """
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
            update.addColumn(field.name(), field.type(), field.doc())
    for name in made.key:
        update.requireColumn(name)
    update.setIdentifierFields(_strings(spark, made.key)).commit()
    update = transaction.updateSpec()
    _add(spark, update, made.partition_by)
    update.commit()
    if made.order is not None:
        _sort_by(spark, transaction, made.key)


def _is_sorted_by(table: Java, names: Sequence[str]) -> bool:
    """Whether a table has the sort order that lakeload gives to a table of this key."""
    schema, fields = table.schema(), table.sortOrder().fields()
    found = [
        (schema.findColumnName(field.sourceId()), str(field.transform()), str(field.direction()))
        for field in fields
    ]
    plain = all(one[1:] == ("identity", "ASC") for one in found)
    # Identifier fields have no order of their own.
    return bool(found) and plain and {name for name, _, _ in found} == set(names)


def _sort_by(spark: SparkSession, transaction: Java, names: Sequence[str]) -> None:
    order, api = transaction.replaceSortOrder(), jvm(spark).org.apache.iceberg
    for name in names:
        # py4j does not find the method that takes a name alone.
        order.asc(api.expressions.Expressions.ref(name), api.NullOrder.NULLS_FIRST)
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
        raise catalog_rejection(error, doing) or LoadFailed(
            f"{doing}: {sentence(error)}", hint="run again", retryable=True
        ) from None


def _strings(spark: SparkSession, values: Sequence[str]) -> Java:
    found = jvm(spark).java.util.ArrayList()
    for value in values:
        found.add(value)
    return found


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
        spec.schema_changes_of(table),
        table.mode,
        target=table.target,
        required=facts.required,
        identifiers=facts.identifiers,
        keys=fitted.key,
        incoming_required=made.key,
        full_refresh=spec.options.full_refresh,
        empty=is_empty(facts, branch),
        misfits=fitted.prepared.misfits,
    )
    plan = with_partitions(
        plan,
        facts.partitions,
        fitted.partition_by,
        spec.schema_changes_of(table),
        target=table.target,
        columns=columns,
    )
    asked = [name for name in plan.require if name in facts.columns]
    if not asked or branch not in facts.refs:
        return plan
    nulls = count_nulls(spark, spark_name(table.schema, table.table), branch, asked)
    mode = "OVERWRITE" if spec.options.full_refresh else table.mode
    return with_nulls(plan, nulls, mode, target=table.target, identifiers=facts.identifiers)


@dataclass(frozen=True)
class TableChanges:
    """What a load changes in the definition of its table, planned on `facts`."""

    spark: SparkSession
    table: TableSpec
    branch: str
    """The branch that is loaded."""
    job: TableAttempt
    facts: TableFacts
    fitted: FittedRows
    made: Definition
    plan: SchemaPlan

    def preview(self, java_table: Java, own_branch: str | None = "") -> Java | None:
        """Return the table as it will be, None where nothing changes; nothing is committed, and
        what is committed to this table stays in it. `own_branch` is the staging branch of this
        load, None where branches of other loads are no matter. Raises `LoadFailed`, and `RetryLoad`
        where others have changed the table."""
        bare, comment = _comments(java_table, self.made)
        lacking = self.plan.changes_table or bare or comment
        if not lacking and not self._bloom_filters(java_table):
            return None
        with _told(f"changing the columns of `{self.table.target}`"):
            transaction = java_table.newTransaction()
            self._add_to(transaction, own_branch)
            return uncommitted(self.spark, transaction)

    def publish(self, transaction: Java, own_branch: str, staged: Java) -> None:
        """Add the changes to the transaction that publishes the rows, which are `staged` in the
        table of a preview. Raises as `preview` does."""
        with _told(f"changing the columns of `{self.table.target}`"):
            self._add_to(transaction, own_branch)
        now = transaction.table()
        # Files of the load have its ids of columns, partitions and order.
        same = now.schema().sameSchema(staged.schema()) and now.spec().equals(staged.spec())
        if not same or not now.sortOrder().equals(staged.sortOrder()):
            raise RetryLoad(f"another writer has changed the definition of `{self.table.target}`")

    def _add_to(self, transaction: Java, own_branch: str | None) -> None:
        spark, plan, made = self.spark, self.plan, self.made
        now = facts_of(spark, transaction.startMetadata())
        moved = plan.require and now.refs.get(self.branch) != self.facts.refs.get(self.branch)
        if moved or _defined(now) != _defined(self.facts):
            raise RetryLoad(f"another writer has changed the definition of `{self.table.target}`")
        if plan.replace:
            if own_branch is not None:
                check_replaceable(now, own_branch, self.job)
            if self.fitted.partition_by is None:
                kept = kept_fields(now.partitions, schema_columns(spark, made.schema))
                made = replace(made, partition_by=kept)
            _replace_columns(spark, transaction, made)
        elif plan.changes_table:
            _apply_plan(spark, transaction, plan, made.schema)
        _add_comments(transaction, made)
        if lacking := self._bloom_filters(transaction.table()):
            _set_properties(transaction, lacking)

    def _bloom_filters(self, java_table: Java) -> Mapping[str, str]:
        return bloom_filter_properties(self.fitted.bloom_filters, dict(java_table.properties()))


def _comments(java_table: Java, made: Definition) -> tuple[list[Java], str | None]:
    """Return the columns to be given comments, and the table's comment: those of `made`, where
    there are none. Those of people, and of other loads, stay."""
    found = {field.name(): field for field in java_table.schema().columns()}
    bare = [
        field
        for field in made.schema.columns()
        if field.doc() and field.name() in found and not found[field.name()].doc()
    ]
    comment = made.properties.get(COMMENT)
    return bare, None if java_table.properties().get(COMMENT) else comment


def _add_comments(transaction: Java, made: Definition) -> None:
    bare, comment = _comments(transaction.table(), made)
    if bare:
        update = transaction.updateSchema()
        for field in bare:
            update.updateColumnDoc(field.name(), field.doc())
        update.commit()
    if comment:
        _set_properties(transaction, {COMMENT: comment})


def _set_properties(transaction: Java, properties: Mapping[str, str]) -> None:
    update = transaction.updateProperties()
    for name, value in properties.items():
        update.set(name, value)
    update.commit()


def _defined(facts: TableFacts) -> object:
    return facts.uuid, facts.columns, facts.required, facts.identifiers, facts.partitions

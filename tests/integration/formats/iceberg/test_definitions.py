"""Definitions of tables and their changes, beside the same by Iceberg's Java library."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from lakeload_jobs.contract.spec import PartitionField
from lakeload_jobs.formats.iceberg.commits.definitions import (
    NAME_MAPPING,
    InvalidDefinition,
    new_schema,
    order_of,
)
from lakeload_jobs.formats.iceberg.commits.metadata import (
    Json,
    assert_definition,
    schema_of,
    spec_of,
    updated,
)
from lakeload_jobs.formats.iceberg.load.definition import iceberg_schema
from tests.unit.formats.iceberg.commits.evolutions import (
    ORDERS,
    Step,
    column,
    evolve,
    list_of,
    map_of,
    random_steps,
    struct,
    table,
)

pytestmark = pytest.mark.timeout(300)

COMMIT: Step = ("commit",)
"""Begins another update in Java, which does not take a name that the same one has deleted."""


class Library:
    """Iceberg's Java library, with a catalog in memory."""

    def __init__(self, spark: SparkSession) -> None:
        # py4j types none of it.
        jvm: Any = spark._jvm
        self.jvm = jvm
        self.api = jvm.org.apache.iceberg
        self.catalog = self.api.inmemory.InMemoryCatalog()
        self.catalog.initialize("memory", self.map({}))
        gateway: Any = spark.sparkContext._gateway
        levels = gateway.new_array(self.jvm.java.lang.String, 1)
        levels[0] = "shop"
        self.namespace = self.api.catalog.Namespace.of(levels)
        self.catalog.createNamespace(self.namespace, self.map({}))
        self.tables = 0

    def map(self, values: dict[str, str]) -> Any:
        found = self.jvm.java.util.HashMap()
        for name, value in values.items():
            found.put(name, value)
        return found

    def list(self, values: Sequence[str]) -> Any:
        found = self.jvm.java.util.ArrayList()
        for value in values:
            found.add(value)
        return found

    def schema(self, schema: Json) -> Any:
        return self.api.SchemaParser.fromJson(json.dumps(schema))

    def type(self, kind: Any) -> Any:
        column = {"id": 0, "name": "x", "required": False, "type": kind}
        return self.schema(new_schema([column])).findType("x")

    def metadata(self, metadata: Any) -> Json:
        found: Json = json.loads(self.api.TableMetadataParser.toJson(metadata))
        return found

    def create(
        self,
        schema: Json,
        partitions: Sequence[PartitionField],
        order: Sequence[str],
        properties: dict[str, str],
    ) -> Any:
        """Create a table and return it."""
        self.tables += 1
        made = self.schema(schema)
        spec = self.api.PartitionSpec.builderFor(made)
        for one in partitions:
            arguments = [one.column] if one.width is None else [one.column, one.width]
            getattr(spec, one.transform)(*arguments)
        sorting = self.api.SortOrder.builderFor(made)
        for name in order:
            sorting.asc(name)
        ident = self.api.catalog.TableIdentifier.of(self.namespace, f"t{self.tables}")
        builder = self.catalog.buildTable(ident, made).withPartitionSpec(spec.build())
        builder = builder.withSortOrder(sorting.build()).withProperties(self.map(properties))
        return builder.create()

    def evolve(self, table: Any, steps: Sequence[Step]) -> Json:
        """Make the changes in one transaction, and return the metadata."""
        transaction = table.newTransaction()
        update = None
        for name, *arguments in steps:
            if name in ("partition", "sort_by", "commit"):
                if update is not None:
                    update.commit()
                update = None
                if name != "commit":
                    getattr(self, f"_{name}")(transaction, *arguments)
                continue
            if update is None:
                update = transaction.updateSchema().allowIncompatibleChanges()
            self._change(update, name, *arguments)
        if update is not None:
            update.commit()
        transaction.commitTransaction()
        return self.metadata(table.operations().current())

    def _change(self, update: Any, name: str, *arguments: Any) -> None:
        if name == "identify":
            update.setIdentifierFields(self.list(arguments[0]))
            return
        if name == "delete":
            update.deleteColumn(arguments[0])
            return
        path = arguments[0]
        column = ".".join(path)
        if name == "add":
            kind, doc = self.type(arguments[1]), arguments[2] if len(arguments) > 2 else None
            if len(path) == 1:
                update.addColumn(column, kind, doc)
            else:
                update.addColumn(".".join(path[:-1]), path[-1], kind, doc)
        elif name == "widen":
            kind = self.api.types.Types.fromPrimitiveString(arguments[1])
            update.updateColumn(column, kind)
        elif name == "describe":
            update.updateColumnDoc(column, arguments[1])
        elif name == "require":
            update.requireColumn(column)
        else:
            update.makeColumnOptional(column)

    def _partition(self, transaction: Any, keep: int, add: Sequence[PartitionField]) -> None:
        update = transaction.updateSpec()
        fields = [
            one
            for one in transaction.table().spec().fields()
            if one.transform().toString() != "void"
        ]
        for one in fields[keep:]:
            update.removeField(one.name())
        # What goes and comes in one update is taken for nothing.
        update.commit()
        update = transaction.updateSpec()
        expressions = self.api.expressions.Expressions
        for one in add:
            if one.transform == "identity":
                update.addField(one.column)
            else:
                arguments = [one.column] if one.width is None else [one.column, one.width]
                update.addField(getattr(expressions, one.transform)(*arguments))
        update.commit()

    def _sort_by(self, transaction: Any, names: Sequence[str]) -> None:
        order = transaction.replaceSortOrder()
        for name in names:
            term = self.api.expressions.Expressions.ref(name)
            order.asc(term, self.api.NullOrder.NULLS_FIRST)
        order.commit()

    def served(self, before: Json, updates: Sequence[Json]) -> Json:
        """Return the metadata after updates, as Iceberg's own server of a REST catalog makes it."""
        base = self.parsed(before)
        for one in assert_definition(before):
            parser = self.api.UpdateRequirementParser
            parser.fromJson(json.dumps(one)).validate(base)
        builder = self.api.TableMetadata.buildFrom(base)
        for one in updates:
            self.api.MetadataUpdateParser.fromJson(json.dumps(one)).applyTo(builder)
        return self.metadata(builder.build())

    def parsed(self, metadata: Json) -> Any:
        """Return metadata as Java reads it from a file."""
        return self.api.TableMetadataParser.fromJson("s3://lake/m.json", json.dumps(metadata))


@dataclass
class Pair:
    """A table by this project and the same by Java."""

    library: Library
    java: Any
    ours: Json
    exact: bool = True
    """Java has made no schema or spec that is between two others."""
    last: list[Step] = field(default_factory=list)

    def evolve(self, *steps: Step) -> None:
        """Make the same changes in both, and compare."""
        self.last = list(steps)
        updates = evolved(self.ours, steps)
        before, self.ours = self.ours, self.after(updates)
        if updates:
            assert parts(self.library.served(before, updates)) == parts(self.ours), updates
        self.exact &= not any(one[0] in ("commit", "partition") for one in steps)
        self.check(self.library.evolve(self.java, steps))

    def after(self, updates: Sequence[Json]) -> Json:
        """Our table after updates."""
        return updated(self.ours, updates, replaces=None, now_ms=0)

    def check(self, theirs: Json) -> None:
        """Compare the definitions."""
        assert now(self.ours) == now(theirs), self.last
        if self.exact:
            assert parts(self.ours) == parts(theirs), self.last
        # Java reads it, and says the same of it.
        again = self.library.metadata(self.library.parsed(self.ours))
        assert parts(again) == parts(self.ours), self.last


def evolved(metadata: Json, steps: Sequence[Step]) -> list[Json]:
    """Return our updates for these changes."""
    return evolve(metadata, [step for step in steps if step != COMMIT])


def now(metadata: Json) -> Json:
    """What files are written for, and what the next ids follow from."""
    return {
        "schema": plain_schema(schema_of(metadata)) | {"schema-id": 0},
        "spec": spec_of(metadata)["fields"],
        "order": order_of(metadata)["fields"],
        "last-column-id": metadata["last-column-id"],
        "last-partition-id": metadata["last-partition-id"],
        "properties": properties_of(metadata),
    }


def parts(metadata: Json) -> Json:
    """Everything that defines the table, with all ids."""
    names = (
        "last-column-id", "current-schema-id", "default-spec-id", "last-partition-id",
        "default-sort-order-id", "partition-specs", "sort-orders",
    )  # fmt: skip
    found = {name: metadata[name] for name in names}
    found["schemas"] = [plain_schema(one) for one in metadata["schemas"]]
    return {**found, "properties": properties_of(metadata)}


def plain_schema(schema: Json) -> Json:
    """A schema with its identifiers in order."""
    return {**schema, "identifier-field-ids": sorted(schema.get("identifier-field-ids") or ())}


def properties_of(metadata: Json) -> Json:
    """Properties; names of a mapping have no order."""
    found = dict(metadata.get("properties") or {})
    with contextlib.suppress(ValueError, AttributeError, TypeError, KeyError):
        found[NAME_MAPPING] = _sorted_names(json.loads(found[NAME_MAPPING]))
    return found


def _sorted_names(fields: Any) -> Any:
    return [
        {**one, "names": sorted(one["names"]), "fields": _sorted_names(one.get("fields") or ())}
        for one in fields
    ]


@pytest.fixture
def library(spark: SparkSession) -> Library:
    return Library(spark)


def made(
    library: Library,
    fields: Sequence[Json],
    key: Sequence[str] = (),
    partitions: Sequence[PartitionField] = (),
    order: Sequence[str] = (),
    *,
    version: int = 2,
    properties: Mapping[str, str] | None = None,
) -> Pair:
    """Create a table in both."""
    given = {"write.parquet.compression-codec": "zstd", **(properties or {})}
    ours = table(fields, key, partitions, order, version=version, properties=given)
    own = {**given, "format-version": str(version)}
    java = library.create(new_schema(fields, key), partitions, order, own)
    pair = Pair(library, java, ours)
    pair.check(library.metadata(java.operations().current()))
    return pair


BUCKET, TRUNCATE = PartitionField("bucket", "id", 16), PartitionField("truncate", "name", 3)
DAY, HOUR, REGION = (
    PartitionField("day", "at"),
    PartitionField("hour", "at"),
    PartitionField("identity", "region"),
)


def test_schemas_of_spark_are_those_that_java_converts(library: Library) -> None:
    kinds: list[T.DataType] = [
        T.BooleanType(), T.ByteType(), T.ShortType(), T.IntegerType(), T.LongType(), T.FloatType(),
        T.DoubleType(), T.StringType(), T.StringType("UTF8_LCASE"), T.CharType(3), T.VarcharType(9),
        T.DateType(), T.TimestampType(), T.TimestampNTZType(), T.BinaryType(), T.DecimalType(38, 9),
        T.DecimalType(1, 0), T.VariantType(), T.NullType(),
    ]  # fmt: skip
    nested: list[T.DataType] = []
    for kind in kinds[:-1]:
        inner = T.StructField("Inner name", kind, False, {"comment": "said"})
        nested += [
            T.ArrayType(kind, False),
            T.ArrayType(T.ArrayType(T.StructType([inner]))),
            T.MapType(T.StringType(), T.StructType([inner, T.StructField("b", kind)]), False),
            T.StructType([T.StructField("list", T.ArrayType(kind)), inner]),
        ]
    fields = [
        T.StructField(
            f"c{at}",
            kind,
            at % 3 > 0 or kind == T.NullType(),
            {"comment": f"no. {at}"} if at % 2 else {},
        )
        for at, kind in enumerate([*kinds, *nested])
    ]
    columns = T.StructType(fields)
    spark_types = library.jvm.org.apache.spark.sql.types
    kind = spark_types.DataType.fromJson(columns.json())
    converted = library.api.spark.SparkSchemaUtil.convert(kind)
    fresh = library.api.types.TypeUtil.assignIncreasingFreshIds(converted)

    assert iceberg_schema(columns) == json.loads(library.api.SchemaParser.toJson(fresh))


@pytest.mark.parametrize("version", [2, 3])
def test_new_tables_are_those_of_java(library: Library, version: int) -> None:
    partitions = (
        BUCKET, TRUNCATE, DAY, REGION, PartitionField("year", "born"),
        PartitionField("month", "due"),
        PartitionField("truncate", "price", 50), PartitionField("hour", "until"),
    )  # fmt: skip
    more = (column("born", "date"), column("due", "timestamp"), column("until", "timestamptz"))
    pair = made(
        library, (*ORDERS, *more), ("region", "id"), partitions, ("region", "id"), version=version
    )
    assert [one["name"] for one in spec_of(pair.ours)["fields"]] == [
        "id_bucket", "name_trunc", "at_day", "region", "born_year", "due_month", "price_trunc",
        "until_hour",
    ]  # fmt: skip
    made(library, ORDERS, version=version)


def test_columns_change_at_every_depth_as_in_java(library: Library) -> None:
    pair = made(library, ORDERS, ("id",), (BUCKET,), ("id",))
    point = struct(column("x", "double", doc="a number"), column("y", list_of("int")))
    pair.evolve(
        ("add", ("note",), "string", "what was said"),
        ("add", ("items", "element", "points"), map_of("string", point)),
        ("add", ("places", "value", "at"), point),
        ("add", ("address", "street"), "string"),
        ("add", ("more",), list_of(map_of(struct(column("k", "int")), point, required=True))),
    )
    pair.evolve(
        ("widen", ("count",), "long"),
        ("widen", ("price",), "decimal(14, 2)"),
        ("widen", ("ratio",), "double"),
        ("widen", ("items", "element", "price"), "double"),
        ("widen", ("places", "value", "at", "y", "element"), "long"),
        ("make_optional", ("address", "city")),
        ("describe", ("region",), "where"),
        ("describe", ("at",), "then"),
        ("describe", ("address", "zip"), "a number"),
    )
    pair.evolve(
        ("add", ("key",), "string"),
        ("require", ("region",)),
        ("require", ("key",)),
        ("identify", ("region", "key")),
        ("make_optional", ("id",)),
        ("sort_by", ("region", "key")),
    )
    pair.evolve(("identify", ()), ("sort_by", ()))
    # The second schema and the first order come again.
    pair.evolve(("sort_by", ("id",)))
    pair.evolve(("delete", "key"), ("delete", "places"))
    pair.evolve(("add", ("key",), "string"))
    assert schema_of(pair.ours)["fields"][-1]["id"] == pair.ours["last-column-id"]


def test_a_schema_that_was_once_is_current_again(library: Library) -> None:
    pair = made(library, ORDERS)
    pair.evolve(("describe", ("id",), "one"))
    first = pair.ours["current-schema-id"]
    pair.evolve(("require", ("id",)), ("identify", ("id",)))
    pair.evolve(("identify", ()), ("make_optional", ("id",)))
    assert pair.ours["current-schema-id"] == first
    assert len(pair.ours["schemas"]) == 3


@pytest.mark.parametrize("version", [2, 3])
def test_partitions_change_as_in_java(library: Library, version: int) -> None:
    pair = made(library, ORDERS, partitions=(DAY, BUCKET), version=version)
    wide = PartitionField("bucket", "id", 32)
    for keep, add in (
        (2, (REGION,)),
        (1, (wide,)),
        (0, ()),
        (0, (REGION, BUCKET)),
        (1, (DAY,)),
        (1, (DAY, wide)),
        (0, (DAY, BUCKET)),
        (2, (TRUNCATE, HOUR)),
        (0, (REGION,)),
        (0, (BUCKET, REGION, DAY)),
    ):
        pair.evolve(("partition", keep, add))


def test_partitions_change_in_a_table_that_was_of_version_1(library: Library) -> None:
    java = made(library, ORDERS, partitions=(REGION, DAY), version=1).java
    java.updateSpec().removeField("region").commit()
    java.updateProperties().set("format-version", "2").commit()
    pair = Pair(library, java, library.metadata(java.operations().current()))
    assert spec_of(pair.ours)["fields"][0]["transform"] == "void"
    pair.evolve(("partition", 1, (BUCKET,)))
    pair.evolve(("partition", 0, ()))
    # Java would have two fields of one id now.
    again = pair.after(evolved(pair.ours, [("partition", 0, (REGION,))]))
    assert [one["field-id"] for one in spec_of(again)["fields"]] == [1000]
    assert parts(library.metadata(library.parsed(again))) == parts(again)


def test_columns_that_are_replaced_take_their_partitions_with_them(library: Library) -> None:
    pair = made(library, ORDERS, ("id", "region"), (REGION, DAY), ("region", "id"))
    # As `TableChanges` does it, and as Java needs it.
    pair.evolve(
        ("partition", 0, ()),
        ("sort_by", ()),
        ("identify", ()),
        ("delete", "region"),
        ("delete", "items"),
        ("make_optional", ("id",)),
        COMMIT,
        ("add", ("region",), "int", "now a number"),
        ("add", ("items",), list_of("string")),
        ("require", ("region",)),
        ("identify", ("region",)),
        ("partition", 0, (REGION, DAY)),
        ("sort_by", ("region",)),
    )
    assert [one["name"] for one in spec_of(pair.ours)["fields"]] == ["region", "at_day"]


def test_properties_that_name_columns_follow_them(library: Library) -> None:
    mapping = [
        {"field-id": 1, "names": ["id", "number"]},
        {"field-id": 2, "names": ["at", "note"]},
        {"field-id": 8, "names": ["items"], "fields": [
            {"field-id": 11, "names": ["element"], "fields": [
                {"field-id": 12, "names": ["cost", "points"]},
            ]},
        ]},
    ]  # fmt: skip
    properties = {
        NAME_MAPPING: json.dumps(mapping),
        "write.metadata.metrics.column.region": "full",
        "write.metadata.metrics.column.id": "full",
        "write.parquet.bloom-filter-enabled.column.region": "true",
        "write.parquet.stats-enabled.column.region": "false",
    }
    pair = made(library, ORDERS, properties=properties)
    pair.evolve(
        ("add", ("note",), struct(column("x", "int"), column("y", list_of("int")))),
        ("add", ("items", "element", "points"), map_of("string", "int")),
        ("widen", ("items", "element", "price"), "double"),
        ("describe", ("name",), "of the buyer"),
    )
    pair.evolve(("delete", "region"))
    pair.evolve(("add", ("region",), "string"))
    assert set(pair.ours["properties"]) == {
        NAME_MAPPING, "write.metadata.metrics.column.id", "write.parquet.compression-codec",
    }  # fmt: skip
    for text in ("no mapping", "{}", "[1]", '[{"names": 1}]'):
        made(library, ORDERS, properties={NAME_MAPPING: text}).evolve(("add", ("note",), "int"))


REFUSED: dict[str, tuple[Step, ...]] = {
    "a column that is there": (("add", ("id",), "int"),),
    "a field that is there": (("add", ("address", "zip"), "int"),),
    "a field in a number": (("add", ("id", "x"), "int"),),
    "a field in nothing": (("add", ("nosuch", "x"), "int"),),
    "a narrower type": (("widen", ("id",), "int"),),
    "another scale": (("widen", ("price",), "decimal(12, 3)"),),
    "text of a number": (("widen", ("count",), "string"),),
    "a key that may be null": (("identify", ("name",)),),
    "a key with fractions": (("require", ("ratio",)), ("identify", ("ratio",))),
    "a key of a struct": (("require", ("address",)), ("identify", ("address",))),
    "a key that is optional": (("make_optional", ("id",)),),
    "a key that goes": (("delete", "id"),),
    "a type of version 3": (("add", ("v",), "variant"),),
    "nanoseconds in a list": (("add", ("v",), list_of("timestamptz_ns")),),
    "a column called as a partition": (("add", ("at_day",), "int"),),
    "a partition called as a column": (("add", ("name_trunc_3",), "int"), COMMIT,
                                       ("partition", 1, (TRUNCATE,))),
    "a partition twice": (("partition", 1, (DAY,)),),
    "hours and months": (("partition", 1, (HOUR, PartitionField("month", "at"))),),
    "a partition of a struct": (("partition", 1, (PartitionField("bucket", "address", 4),)),),
    "a partition in a list": (
        ("partition", 1, (PartitionField("bucket", "items.element.price", 4),)),
    ),
    "a name with a dot that is a field": (("add", ("address.zip",), "int"),),
}  # fmt: skip


def test_what_java_refuses_is_refused(library: Library) -> None:
    for name, steps in REFUSED.items():
        pair = made(library, ORDERS, ("id",), (DAY,))
        try:
            pair.library.evolve(pair.java, steps)
            java = False
        except (Py4JJavaError, PySparkException):
            java = True
        try:
            evolved(pair.ours, steps)
            ours = False
        except InvalidDefinition:
            ours = True
        assert (name, java, ours) == (name, True, True)


def test_changes_at_random_are_those_of_java(library: Library) -> None:
    for seed in range(40):
        chance = random.Random(seed)  # noqa: S311
        pair = made(library, ORDERS, ("id",), (DAY, BUCKET), ("id",), version=2 + seed % 2)
        for _ in range(4):
            pair.evolve(*random_steps(chance, pair.ours))

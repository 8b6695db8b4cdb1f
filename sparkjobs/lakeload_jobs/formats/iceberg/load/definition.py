"""Tables as a load defines them: columns, key, partitions, order and properties of a new one, the
namespace that it is made in, and where it lies.

The table is there, empty, before any file of it is written: nobody ever has to tell files of a
table that is about to be from files that a dead load left (docs/design-notes.md).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import types as T

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import InvalidInput, LakeloadError, LoadFailed
from lakeload_jobs.contract.spec import DestinationSpec, JobSpec, PartitionField, TableSpec
from lakeload_jobs.contract.traits import Interface, catalog_traits
from lakeload_jobs.core.yaml_lines import yaml_mapping
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable, TableStore
from lakeload_jobs.formats.iceberg.commits.definitions import (
    UNSORTED,
    InvalidDefinition,
    check_schema,
    new_schema,
    partition_spec,
    sort_order,
)
from lakeload_jobs.formats.iceberg.commits.errors import CommitRejected, CommitUnknown
from lakeload_jobs.formats.iceberg.commits.metadata import Json, NewTable
from lakeload_jobs.formats.iceberg.rules.bloom_filters import bloom_filter_properties
from lakeload_jobs.formats.iceberg.rules.catalogs import own_location
from lakeload_jobs.formats.iceberg.rules.facts import CREATED_BY, TableFacts, type_text
from lakeload_jobs.formats.iceberg.rules.partitions import partition_spec_problem
from lakeload_jobs.formats.iceberg.rules.schema import identifier_fields
from lakeload_jobs.formats.iceberg.rules.writers import (
    metadata_columns,
    unmergeable_columns,
    unwritable,
)

COMMENT = "comment"
"""The property with a table's comment: Spark shows it, and Glue has it as `Description`."""
_FORMAT_VERSION = "format-version"
_PARQUET_CODEC = "write.parquet.compression-codec"


@dataclass(frozen=True)
class Definition:
    """A table as a load defines it: Iceberg's JSON of schema, spec and order, and properties."""

    schema: Json
    spec: Json
    order: Json | None
    properties: Mapping[str, str]
    key: tuple[str, ...]
    """The identifier fields, which are required."""
    partition_by: tuple[PartitionField, ...]
    notes: tuple[str, ...]

    def new_table(self) -> NewTable:
        """Return it as the table to be created; the version of the format is no property then."""
        properties = dict(self.properties)
        version = int(properties.pop(_FORMAT_VERSION))
        return NewTable(self.schema, self.spec, self.order or UNSORTED, properties, version)


def definition(
    spec: JobSpec,
    table: TableSpec,
    columns: T.StructType,
    key: Sequence[str],
    partition_by: Sequence[PartitionField],
    comment: str = "",
    bloom_filters: Sequence[str] = (),
) -> Definition:
    """Return what a table of these columns is created with; `comment` is that of the table,
    `bloom_filters` are columns.

    Raises `LoadFailed` for a key that Iceberg cannot have as identifier fields where UPSERT needs
    them, and `InvalidInput` for columns and partition fields that a table cannot have.
    """
    plain = iceberg_schema(columns)
    kinds = schema_columns(plain)
    key, notes = identifier_fields(kinds, key, table.mode, target=table.target)
    if table.mode == "UPSERT" and (names := metadata_columns(kinds)):
        rename = yaml_mapping({names[0]: "…"})
        raise InvalidInput(
            f"`{table.target}` cannot be loaded: {unmergeable_columns(names)}",
            hint=f"give it another name with `columns: {{rename: {rename}}}`",
        )
    if problem := partition_spec_problem(partition_by, kinds):
        raise InvalidInput(problem, hint="correct `partition_by` of the table")
    properties = table_properties(spec, table)
    try:
        schema = new_schema(plain["fields"], key)
        partitions = partition_spec(schema, partition_by)
    except InvalidDefinition as error:
        raise _impossible(error) from None
    return Definition(
        schema,
        partitions,
        sort_order(schema, key) if table.mode == "UPSERT" and key else None,
        {
            **({COMMENT: comment} if comment else {}),
            **properties,
            **bloom_filter_properties(bloom_filters, properties),
        },
        key,
        tuple(partition_by),
        notes,
    )


def _impossible(error: InvalidDefinition) -> InvalidInput:
    return InvalidInput(
        f"no Iceberg table has these columns: {error}", hint="rename the column, or leave it out"
    )


def iceberg_schema(columns: T.StructType) -> Json:
    """Return Iceberg's schema of Spark's columns, required where Spark calls them so. Raises
    `InvalidInput` for columns that no Iceberg table has."""
    fields = [_field(field) for field in columns.fields]
    try:
        # Ids begin with 1: SeaweedFS (in a spec) and Nessie (in a key) take 0 for none.
        return new_schema(fields)
    except InvalidDefinition as error:
        raise _impossible(error) from None


def _field(field: T.StructField) -> Json:
    doc = {"doc": field.metadata["comment"]} if "comment" in field.metadata else {}
    kind = _type(field.dataType, field.name)
    return {"id": 0, "name": field.name, "required": not field.nullable, "type": kind, **doc}


def _type(kind: T.DataType, column: str) -> Any:
    """Return Iceberg's type without ids."""
    if isinstance(kind, T.StructType):
        return {"type": "struct", "fields": [_field(field) for field in kind.fields]}
    if isinstance(kind, T.ArrayType):
        return {
            "type": "list",
            "element-id": 0,
            "element": _type(kind.elementType, column),
            "element-required": not kind.containsNull,
        }
    if isinstance(kind, T.MapType):
        return {
            "type": "map",
            "key-id": 0,
            "key": _type(kind.keyType, column),
            "value-id": 0,
            "value": _type(kind.valueType, column),
            "value-required": not kind.valueContainsNull,
        }
    if isinstance(kind, T.DecimalType):
        return f"decimal({kind.precision}, {kind.scale})"
    for spark, name in _TYPES:
        if isinstance(kind, spark):
            return name
    raise InvalidInput(
        f"the column `{column}` is `{kind.simpleString()}`, a type that Iceberg does not have",
        hint="give it another type, or leave it out",
    )


_TYPES: Sequence[tuple[type[T.DataType], str]] = (
    (T.BooleanType, "boolean"),
    (T.ByteType, "int"),
    (T.ShortType, "int"),
    (T.IntegerType, "int"),
    (T.LongType, "long"),
    (T.FloatType, "float"),
    (T.DoubleType, "double"),
    (T.StringType, "string"),
    (T.CharType, "string"),
    (T.VarcharType, "string"),
    (T.DateType, "date"),
    (T.TimestampType, "timestamptz"),
    (T.TimestampNTZType, "timestamp"),
    (T.BinaryType, "binary"),
    (T.VariantType, "variant"),
    (T.NullType, "unknown"),
)


def schema_columns(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the columns of a schema, name → type as Iceberg writes it."""
    return {field["name"]: type_text(field["type"]) for field in schema["fields"]}


def table_properties(spec: JobSpec, table: TableSpec) -> dict[str, str]:
    """Return the properties of a new table: ours, the destination's over them, then the table's."""
    shared = catalog_traits(spec.destination.iceberg.catalog).keeps_history
    own = {
        _FORMAT_VERSION: str(spec.destination.iceberg.format_version),
        # Many loads commit to one table at once; Iceberg's own four tries are soon used up.
        "commit.retry.num-retries": "20",
        # Nessie's other branches, tags and earlier commits name older metadata and other files.
        "write.metadata.delete-after-commit.enabled": "false" if shared else "true",
        **({"gc.enabled": "false"} if shared else {}),
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


def ensure_namespace(tables: TableStore, destination: DestinationSpec, schema: str) -> str:
    """Make the namespace if it is not there, and return where it lies, '' where it does not say.

    Raises `LoadFailed` where the destination places tables, and it lies elsewhere.
    """
    place = own_location(destination)
    wanted = f"{place}/{schema}" if place else None
    found = tables.namespace_location(schema)
    if found is None:
        found = _made(tables, schema, wanted)
    if wanted and found and _plain(found) != _plain(wanted):
        raise LoadFailed(
            f"the namespace `{schema}` of the catalog is located at `{found}`, but this "
            f"destination places it at `{wanted}`",
            hint="restore `bucket`, `prefix` or `warehouse_location`, or load into another "
            "`namespace`",
        )
    return found


def _made(tables: TableStore, schema: str, location: str | None) -> str:
    """Make a namespace, unless another load does, and return where it lies."""
    try:
        tables.create_namespace(schema, location)
    except (CommitRejected, CommitUnknown, CatalogError, AwsError) as error:
        # As with tables: what counts is whether it is there now.
        if (found := tables.namespace_location(schema)) is None:
            if isinstance(error, LakeloadError):
                raise
            raise LoadFailed(
                f"the catalog did not confirm that it created the namespace `{schema}`, and does "
                f"not have it: {error}",
                hint="run again: nothing was committed",
                retryable=True,
            ) from None
        return found
    return tables.namespace_location(schema) or ""


def new_location(
    destination: DestinationSpec, schema: str, table: str, namespace_location: str
) -> str | None:
    """Return where a new table lies, in a namespace that lies there; None where the catalog
    decides. They are the places that Iceberg's Java library chooses."""
    place = _PLACES[catalog_traits(destination.iceberg.catalog).interface]
    if place is None:
        return None
    folder, name = place
    warehouse = own_location(destination) or ""
    within = namespace_location.rstrip("/") or f"{warehouse}/{folder.format(schema)}"
    return f"{within}/{name.format(table, uuid.uuid4())}"


_PLACES: Mapping[Interface, tuple[str, str] | None] = {
    Interface.GLUE: ("{}.db", "{}"),
    # Branches of Nessie may have tables of one name, which share no file.
    Interface.NESSIE: ("{}", "{}_{}"),
    Interface.REST: None,
}
"""The folder of a namespace that says no place of its own, and that of a table."""


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


def create(
    tables: TableStore, table: TableSpec, made: Definition, location: str | None
) -> ReadTable | None:
    """Create the table, empty, at `location`; None: where the catalog wants it.

    Return None when somebody else did meanwhile, or nobody knows. Whatever the catalog answers, a
    table that is there now was made by another load: in a crowd of creators Nessie tells some of
    them that their request was a bad one. Raises `CatalogError` and `AwsError` for what is refused,
    and `InvalidInput` for columns that its version of the format does not have.
    """
    new = made.new_table()
    try:
        check_schema(new.schema, new.format_version)
    except InvalidDefinition as error:
        raise _impossible(error) from None
    if location is not None:
        # A catalog that writes the metadata itself says so itself. Where nothing is said, Parquet
        # files are packed as before Iceberg 1.4.
        new = replace(new, properties={_PARQUET_CODEC: "zstd", **new.properties})
    try:
        return tables.create(table.schema, table.table, new, location)
    except (CommitRejected, CommitUnknown):
        return None
    except (CatalogError, AwsError):
        if _is_there(tables, table):
            return None
        raise


def _is_there(tables: TableStore, table: TableSpec) -> bool:
    """Look again; a look that fails tells less than the failure it follows."""
    try:
        return tables.load(table.schema, table.table) is not None
    except LakeloadError:
        return False


def _plain(location: str) -> str:
    return location.rstrip("/").replace("s3a://", "s3://", 1)

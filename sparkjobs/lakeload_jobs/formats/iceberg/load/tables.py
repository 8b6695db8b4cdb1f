"""Iceberg tables through Spark's own catalog: reading them, and what their metadata says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.formats.iceberg.load.catalog_errors import refused
from lakeload_jobs.formats.iceberg.load.java import Java, caused_by, identifier, java_catalog, jvm
from lakeload_jobs.formats.iceberg.rules.facts import Snapshot, TableFacts
from lakeload_jobs.formats.iceberg.rules.partitions import NO_PARTITION, spec_field


def load(spark: SparkSession, schema: str, table: str) -> Java | None:
    """Return Iceberg's table, read now; None when there is none.

    Raises `LoadFailed` for a table of another format under this name (F27) and for what the
    catalog refuses.
    """
    try:
        return java_catalog(spark).loadTable(identifier(spark, schema, table))
    except Py4JJavaError as error:
        # Glue's answer for a table of another format is a kind of "no such table".
        if caused_by(error, "NoSuchIcebergTableException"):
            raise LoadFailed(
                f"`{schema}.{table}` exists in the catalog and is no Iceberg table",
                hint="load into another `name`, or drop that table; AWS Glue may take some minutes "
                "until a table dropped in its console is gone",
            ) from None
        if caused_by(error, "NoSuchTableException", "NoSuchNamespaceException"):
            return None
        if failure := refused(error, f"reading the table `{schema}.{table}`"):
            raise failure from None
        raise


def read_facts(java_table: Java) -> TableFacts:
    """Return what the metadata of a table, as it was read, says."""
    return facts_of(java_table.operations().current())


def facts_of(metadata: Java) -> TableFacts:
    """Return the facts of Iceberg's `TableMetadata`, in one call of the JVM."""
    data: dict[str, Any] = json.loads(_metadata_json(metadata))
    schema = next(s for s in data["schemas"] if s["schema-id"] == data["current-schema-id"])
    names = _names(schema)
    return TableFacts(
        location=data["location"].rstrip("/"),
        uuid=data["table-uuid"],
        properties=data.get("properties", {}),
        refs={name: ref["snapshot-id"] for name, ref in data.get("refs", {}).items()},
        snapshots={s["snapshot-id"]: _snapshot(s) for s in data.get("snapshots", [])},
        columns={field["name"]: type_text(field["type"]) for field in schema["fields"]},
        required=frozenset(f["name"] for f in schema["fields"] if f["required"]),
        identifiers=tuple(names.get(i, "") for i in schema.get("identifier-field-ids", [])),
        format_version=data["format-version"],
        metadata_location=metadata.metadataFileLocation(),
        partitions=_partitions(data, names),
    )


def type_text(kind: str | Mapping[str, Any]) -> str:
    """Return a type of a schema's JSON as Iceberg's libraries write it:
    `struct<3: city: optional string>`."""
    if isinstance(kind, str):
        return kind
    if kind["type"] == "list":
        return f"list<{type_text(kind['element'])}>"
    if kind["type"] == "map":
        return f"map<{type_text(kind['key'])}, {type_text(kind['value'])}>"
    fields = [
        f"{field['id']}: {field['name']}: {'required' if field['required'] else 'optional'} "
        f"{type_text(field['type'])}"
        for field in kind["fields"]
    ]
    return f"struct<{', '.join(fields)}>"


def schema_columns(spark: SparkSession, schema: Java) -> dict[str, str]:
    """Return the columns of one of Iceberg's schemas, name → type as Iceberg writes it."""
    text = jvm(spark).org.apache.iceberg.SchemaParser.toJson(schema)
    return {field["name"]: type_text(field["type"]) for field in json.loads(text)["fields"]}


def _names(struct: Mapping[str, Any], within: str = "") -> dict[int, str]:
    """Return field id → name, also of the fields in structs: `address.city`."""
    found = {}
    for field in struct["fields"]:
        found[field["id"]] = name = f"{within}{field['name']}"
        kind = field["type"]
        if not isinstance(kind, str) and kind["type"] == "struct":
            found |= _names(kind, f"{name}.")
    return found


def _partitions(data: Mapping[str, Any], names: Mapping[int, str]) -> tuple[str, ...]:
    spec = next(s for s in data["partition-specs"] if s["spec-id"] == data["default-spec-id"])
    return tuple(
        spec_field(field["transform"], names.get(field["source-id"], "?"))
        for field in spec["fields"]
        if field["transform"] != NO_PARTITION
    )


def added_files(java_table: Java, snapshot: Java) -> Iterator[Java]:
    """Yield the data files that a snapshot of the table has added.

    By the table's own partition specs: those in a manifest cannot be read any more once the column
    that they partition by is gone, which `Snapshot.addedDataFiles` fails at.
    """
    changes = _iceberg().SnapshotChanges.builderFor(java_table).snapshot(snapshot).build()
    yield from changes.addedDataFiles()


def _metadata_json(metadata: Java) -> str:
    return str(_iceberg().TableMetadataParser.toJson(metadata))


def _iceberg() -> Java:
    context = SparkContext._active_spark_context
    if context is None or context._jvm is None:
        raise RuntimeError("there is no Spark session")
    return context._jvm.org.apache.iceberg


def _snapshot(data: Mapping[str, Any]) -> Snapshot:
    return Snapshot(
        id=data["snapshot-id"],
        parent=data.get("parent-snapshot-id"),
        timestamp_ms=data["timestamp-ms"],
        summary=data.get("summary", {}),
    )

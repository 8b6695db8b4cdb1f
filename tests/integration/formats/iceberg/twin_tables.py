"""Twins of tables: of the same data files one is made by commits of our own, the other by Iceberg's
Java code."""

from __future__ import annotations

import base64
import io
import json
import math
import secrets
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from lakeload_jobs.formats.data_files.encode import Encoding
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable, TableStore, now_ms
from lakeload_jobs.formats.iceberg.commits.footers import WrittenFile, data_file
from lakeload_jobs.formats.iceberg.commits.manifests import write_added
from lakeload_jobs.formats.iceberg.commits.metadata import (
    MAIN,
    Json,
    NewTable,
    add_snapshot,
    assert_ref,
    assert_uuid,
    ref,
    schema_of,
    set_branch,
    spec_of,
)
from lakeload_jobs.formats.iceberg.commits.snapshots import Addition, added, new_snapshot_id
from lakeload_jobs.formats.iceberg.load.file_tasks import IcebergFiles
from lakeload_jobs.formats.iceberg.load.transforms import by_partition
from lakeload_jobs.formats.iceberg.rules.partitions import parse_partition_field, spec_field
from lakeload_jobs.formats.iceberg.rules.writers import file_settings
from tests.integration.formats.iceberg.catalog_world import CatalogWorld

Java = Any
CATALOG = "lake"

METRICS = {
    "write.metadata.metrics.column.text": "truncate(3)",
    "write.metadata.metrics.column.long_text": "full",
    "write.metadata.metrics.column.double": "counts",
    "write.metadata.metrics.column.float": "none",
    "write.parquet.compression-codec": "gzip",
    "write.parquet.bloom-filter-enabled.column.id": "true",
    "write.parquet.bloom-filter-enabled.column.long_text": "true",
    "write.parquet.bloom-filter-fpp.column.id": "0.1",
}


def extreme_rows() -> pa.Table:
    """Values at the ends of each type."""
    point = pa.struct([("x", pa.float64()), ("y", pa.list_(pa.int32()))])
    columns: dict[str, tuple[pa.DataType, list[Any]]] = {
        "id": (pa.int64(), [1, -(2**63), 2**63 - 1, 4]),
        "flag": (pa.bool_(), [True, False, None, True]),
        "small": (pa.int32(), [-(2**31), 2**31 - 1, None, 0]),
        "float": (pa.float32(), [math.nan, -0.0, 0.0, 1.5]),
        "double": (pa.float64(), [-math.inf, math.nan, None, math.inf]),
        "zero": (pa.float64(), [0.0, -0.0, None, 0.0]),
        "nan": (pa.float64(), [math.nan] * 4),
        "money": (pa.decimal128(9, 2), [Decimal("-1234567.89"), Decimal("0.01"), None, None]),
        "wide": (pa.decimal128(38, 10), [Decimal(10**27), -Decimal(10**27), None, Decimal(1)]),
        "day": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), None, date(1970, 1, 1)]),
        "at": (pa.timestamp("us", "UTC"), [datetime(1900, 1, 1, tzinfo=UTC), None, None, None]),
        "local": (pa.timestamp("us"), [datetime(2262, 4, 12, 1, 2, 3, 4), None, None, None]),
        "text": (pa.string(), ["é" * 20, "\U0010ffff" * 20, "", "東🎁"]),
        "long_text": (pa.string(), ["b" * 100, "a" * 200, None, "é" * 90]),
        "bytes": (pa.binary(), [b"\xff" * 20, b"", None, b"\x00"]),
        "empty": (pa.string(), [None] * 4),
        "point": (
            point,
            [{"x": math.nan, "y": [1, None]}, None, {"x": 2.5, "y": []}, {"x": None, "y": None}],
        ),
        "tags": (pa.list_(pa.string()), [["a", None], [], None, ["b"]]),
    }
    return pa.table({name: pa.array(values, kind) for name, (kind, values) in columns.items()})


def partitioned_rows(first: int, count: int) -> pa.Table:
    """Rows in 36 partitions by date, region (which may be null) and two buckets."""
    ids = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "region": pa.array([None if i % 7 == 0 else f"r{i % 5}" for i in ids]),
            "on": pa.array([date(2026, 1, 1) + timedelta(days=i % 3) for i in ids]),
            "amount": pa.array([float(i) for i in ids]),
        }
    )


BY_DAY_REGION_BUCKET = ("on", "region", "bucket(2, id)")


@dataclass
class _Ids:
    last: int = 0

    def fields(self, fields: Sequence[pa.Field[Any]]) -> list[Json]:
        """Return fields, with ids of their own before those within them."""
        ids = [self.next() for _ in fields]
        return [
            {"id": i, "name": one.name, "required": not one.nullable, "type": self.kind(one.type)}
            for i, one in zip(ids, fields, strict=True)
        ]

    def next(self) -> int:
        self.last += 1
        return self.last

    def kind(self, kind: Any) -> Any:
        """Return a type as Iceberg's JSON has it."""
        if pa.types.is_struct(kind):
            return {"type": "struct", "fields": self.fields(list(kind))}
        if pa.types.is_list(kind):
            number = self.next()
            inner = {"element": self.kind(kind.value_type), "element-required": False}
            return {"type": "list", "element-id": number, **inner}
        if pa.types.is_map(kind):
            key, value = self.next(), self.next()
            ids = {"key-id": key, "value-id": value, "value-required": False}
            types = {"key": self.kind(kind.key_type), "value": self.kind(kind.item_type)}
            return {"type": "map", **ids, **types}
        if pa.types.is_decimal(kind):
            return f"decimal({kind.precision}, {kind.scale})"
        return _TYPES[str(kind)]


_TYPES = {
    "int64": "long",
    "int32": "int",
    "bool": "boolean",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date32[day]": "date",
    "timestamp[us, tz=UTC]": "timestamptz",
    "timestamp[us]": "timestamp",
}


def definition(
    rows: pa.Schema, partition_by: Sequence[str], properties: Mapping[str, str], version: int
) -> NewTable:
    """Return the definition of a table of such rows."""
    fields = _Ids().fields(list(rows))
    ids = {one["name"]: one["id"] for one in fields}
    partitions = []
    for number, text in enumerate(partition_by):
        one = parse_partition_field(text)
        width = "" if one.width is None else f"[{one.width}]"
        suffix = {"identity": "", "truncate": "_trunc"}.get(one.transform, f"_{one.transform}")
        partitions.append(
            {
                "name": f"{one.column}{suffix}",
                "transform": f"{one.transform}{width}",
                "source-id": ids[one.column],
                "field-id": 1000 + number,
            }
        )
    return NewTable(
        {"type": "struct", "schema-id": 0, "fields": fields},
        {"spec-id": 0, "fields": partitions},
        {"order-id": 0, "fields": []},
        properties,
        version,
    )


@dataclass(frozen=True)
class EncodedFile:
    """A data file in the bucket: `facts` are those of the task, `partition` the values of its
    partition in the order of the spec."""

    location: str
    size: int
    rows: int
    facts: Json
    partition: list[Any]

    @property
    def footer(self) -> bytes:
        """The footer, as Parquet's Thrift has it."""
        return zlib.decompress(base64.b64decode(self.facts["footer"]))


@dataclass
class _Memory:
    data: bytearray = field(default_factory=bytearray)

    @property
    def size(self) -> int:
        return len(self.data)

    def write(self, data: bytes) -> int:
        self.data += data
        return len(data)


@dataclass(frozen=True)
class _File:
    data: bytes
    encoded: EncodedFile


_NO_PARTITIONS: Json = {"fields": []}


def encode(
    schema: Mapping[str, Any],
    rows: pa.Table,
    properties: Mapping[str, str],
    spec: Json = _NO_PARTITIONS,
) -> Iterator[_File]:
    """Encode rows as tasks do it, a file for each partition; their places are open."""
    settings = file_settings(properties)
    names = {one["id"]: one["name"] for one in schema["fields"]}
    partitions = [
        parse_partition_field(spec_field(one["transform"], names[one["source-id"]]))
        for one in spec["fields"]
    ]
    (batch,) = rows.combine_chunks().to_batches()
    parts = by_partition(batch, partitions) if partitions else [("[]", batch)]
    writer = IcebergFiles(
        prefix="",
        branch="",
        schema=json.dumps(schema),
        source="",
        key_columns=(),
        target_size=settings.target_size,
        encoding=Encoding(
            settings.codec,
            settings.level,
            whole_statistics=settings.long_bounds,
            bloom_filters=settings.bloom_filters,
        ),
    )
    for partition, part in parts:
        memory: Any = _Memory()
        encoded = writer.encode(part, iter(()), memory)
        values, facts = json.loads(partition), json.loads(encoded.facts)
        file = EncodedFile("", memory.size, encoded.rows, facts, values)
        yield _File(bytes(memory.data), file)


def entry_of(metadata: Mapping[str, Any], file: EncodedFile) -> Json:
    """Return what a manifest says of a file."""
    names = [one["name"] for one in spec_of(metadata)["fields"]]
    written = WrittenFile(
        file.location,
        file.size,
        file.rows,
        file.footer,
        {int(number): one for number, one in file.facts["floats"].items()},
        dict(zip(names, file.partition, strict=True)),
    )
    return data_file(schema_of(metadata), metadata["properties"], written)


@dataclass
class Lake:
    """Tables in one catalog, for commits of our own, for Spark, and for an independent reader."""

    spark: SparkSession
    world: CatalogWorld
    store: TableStore
    files: LakeFiles

    def table(self, name: str) -> ReadTable:
        """Return a table as it is now."""
        found = self.store.load(self.world.schema, name)
        assert found is not None
        return found

    def place(self, name: str) -> str:
        """Where a table lies."""
        return f"s3://{self.world.destination.bucket}/{self.world.destination.prefix}/{name}"

    def sql_name(self, name: str) -> str:
        """How Spark calls a table."""
        return f"{CATALOG}.`{self.world.schema}`.`{name}`"

    def sql(self, text: str, name: str) -> list[Any]:
        """Have Spark run a statement, in which `{t}` is the table."""
        return self.spark.sql(text.format(t=self.sql_name(name))).collect()

    @property
    def jvm(self) -> Java:
        """The JVM of Spark."""
        return self.spark._jvm

    def java(self, name: str) -> Java:
        """Return the table as Iceberg's Java has it."""
        of = self.jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable
        return of(self.spark._jsparkSession, self.sql_name(name))

    def read(self, name: str) -> Table:
        """Return the table as pyiceberg reads it."""
        return self.world.read(self.world.schema, name)

    def create(self, table: NewTable) -> str:
        """Create a table by a request of our own; return its name."""
        name = f"own_{secrets.token_hex(4)}"
        self.store.create(self.world.schema, name, table, self.place(name))
        return name

    def create_by_java(self, table: NewTable) -> str:
        """Create the same table by Iceberg's Java code; return its name."""
        name = f"java_{secrets.token_hex(4)}"
        iceberg, java = self.jvm.org.apache.iceberg, self.jvm.java.util
        catalog = iceberg.spark.Spark3Util.loadIcebergCatalog(self.spark._jsparkSession, CATALOG)
        schema = iceberg.SchemaParser.fromJson(json.dumps(table.schema))
        properties = java.HashMap()
        for key, value in {**table.properties, "format-version": table.format_version}.items():
            properties.put(key, str(value))
        identifier = iceberg.catalog.TableIdentifier.parse(f"{self.world.schema}.{name}")
        (
            catalog.buildTable(identifier, schema)
            .withPartitionSpec(iceberg.PartitionSpecParser.fromJson(schema, json.dumps(table.spec)))
            .withLocation(self.place(name))
            .withProperties(properties)
            .create()
        )
        return name

    def encode(self, name: str, rows: pa.Table) -> list[EncodedFile]:
        """Write the data files of rows as tasks do it, one for each partition."""
        metadata = self.table(name).metadata
        found = []
        for one in encode(schema_of(metadata), rows, metadata["properties"], spec_of(metadata)):
            place = f"{self.place('data')}/{secrets.token_hex(8)}.parquet"
            self.files.write(place, one.data)
            found.append(replace(one.encoded, location=place))
        return found

    def commit(
        self,
        name: str,
        files: Sequence[EncodedFile],
        summary: Mapping[str, str] | None = None,
        *,
        replaces: bool = False,
        branch: str = MAIN,
    ) -> Json:
        """Add the files to main, or to a branch that is at main, by a commit of our own; return the
        snapshot."""
        table = self.table(name)
        metadata = table.metadata
        entries = [entry_of(metadata, file) for file in files]
        number, head = new_snapshot_id(), ref(metadata, MAIN)
        manifest = write_added(self.files, metadata, number, entries)
        one = Addition(number, head, [manifest], summary or {}, replaces)
        snapshot = added(self.files, metadata, one, now_ms=now_ms())
        self.publish(table, snapshot, branch)
        return snapshot

    def publish(self, table: ReadTable, snapshot: Json, branch: str = MAIN) -> None:
        """Add a snapshot, and have a branch at it."""
        metadata = table.metadata
        self.store.commit(
            table,
            [assert_uuid(metadata), assert_ref(branch, ref(metadata, branch))],
            [add_snapshot(snapshot), set_branch(branch, snapshot["snapshot-id"])],
        )

    def commit_by_java(
        self,
        name: str,
        files: Sequence[EncodedFile],
        summary: Mapping[str, str],
        *,
        replaces: bool = False,
    ) -> None:
        """Add the files by Iceberg's Java code, with metrics that it makes of them."""
        table = self.java(name)
        described = JavaDataFiles(self.jvm, table)
        if replaces:
            always = self.jvm.org.apache.iceberg.expressions.Expressions.alwaysTrue()
            commit = table.newOverwrite().overwriteByRowFilter(always)
            add = commit.addFile
        else:
            commit = table.newAppend()
            add = commit.appendFile
        for file in files:
            add(described.of(file))
        for key, value in summary.items():
            commit.set(key, value)
        commit.commit()

    def register(self, name: str, location: str) -> None:
        """Have Java's catalog take a table of which there is a metadata file."""
        iceberg = self.jvm.org.apache.iceberg
        catalog = iceberg.spark.Spark3Util.loadIcebergCatalog(self.spark._jsparkSession, CATALOG)
        identifier = iceberg.catalog.TableIdentifier.parse(f"{self.world.schema}.{name}")
        catalog.registerTable(identifier, location)

    def planned(self, name: str, expression: Java) -> list[str]:
        """Return the files that Java plans to read for a predicate."""
        tasks = self.java(name).newScan().filter(expression).planFiles().iterator()
        found = []
        while tasks.hasNext():
            found.append(str(tasks.next().file().location()))
        return sorted(found)

    def described(self, name: str) -> Json:
        """Return everything that metadata, lists and manifests of a table say, with numbers of
        snapshots in place of what is each table's own: ids, times and places."""
        metadata = self.table(name).metadata
        numbers = {one["snapshot-id"]: at for at, one in enumerate(metadata["snapshots"])}
        found: Json = {
            key: value
            for key, value in metadata.items()
            if key not in ("table-uuid", "location", "last-updated-ms", "metadata-log")
        }
        found["current-snapshot-id"] = numbers[metadata["current-snapshot-id"]]
        found["refs"] = {
            key: {**value, "snapshot-id": numbers[value["snapshot-id"]]}
            for key, value in metadata["refs"].items()
        }
        found["metadata-log"] = len(metadata["metadata-log"])
        found["snapshot-log"] = [numbers[one["snapshot-id"]] for one in metadata["snapshot-log"]]
        found["snapshots"] = [self._snapshot(one, numbers) for one in metadata["snapshots"]]
        return found

    def _snapshot(self, snapshot: Json, numbers: Mapping[int, int]) -> Json:
        found = {
            key: value
            for key, value in snapshot.items()
            if key not in ("snapshot-id", "timestamp-ms", "manifest-list")
        }
        if "parent-snapshot-id" in found:
            found["parent-snapshot-id"] = numbers[found["parent-snapshot-id"]]
        rows = self._avro(snapshot["manifest-list"])
        found["list"] = {"fields": rows["fields"], "header": sorted(rows["header"])}
        found["manifests"] = [self._manifest(row, numbers) for row in rows["records"]]
        return found

    def _manifest(self, row: Json, numbers: Mapping[int, int]) -> Json:
        manifest = self._avro(row["manifest_path"])
        header = dict(manifest["header"])
        for key in ("schema", "partition-spec"):
            header[key] = json.loads(header[key])
        for entry in manifest["records"]:
            entry["snapshot_id"] = numbers.get(entry["snapshot_id"])
            for key, value in entry["data_file"].items():
                # Maps of Avro's own making, whose order says nothing.
                if isinstance(value, list) and value and isinstance(value[0], dict):
                    entry["data_file"][key] = {one["key"]: one["value"] for one in value}
        own = ("manifest_path", "manifest_length", "added_snapshot_id")
        return {
            "row": {key: value for key, value in row.items() if key not in own},
            "by": numbers.get(row["added_snapshot_id"]),
            "header": header,
            "fields": manifest["fields"],
            "entries": manifest["records"],
        }

    def _avro(self, location: str) -> Json:
        reader = fastavro.reader(io.BytesIO(self.files.read(location)))
        header: Mapping[str, Any] = reader.metadata
        return {
            "records": list(reader),
            "fields": avro_fields(json.loads(header["avro.schema"])),
            "header": {key: value for key, value in header.items() if not key.startswith("avro.")},
        }


def differences(own: Any, java: Any, path: str = "") -> Iterator[str]:
    """Yield where two descriptions differ, a line for each place."""
    if isinstance(own, dict) and isinstance(java, dict):
        for key in sorted(own.keys() | java.keys(), key=str):
            yield from differences(own.get(key, ...), java.get(key, ...), f"{path}/{key}")
    elif isinstance(own, list) and isinstance(java, list) and len(own) == len(java):
        for at, (one, other) in enumerate(zip(own, java, strict=True)):
            yield from differences(one, other, f"{path}/{at}")
    elif repr(own) != repr(java):
        yield f"{path}: {own!r} by commits of our own, {java!r} by Java"


def avro_fields(schema: Any, path: str = "") -> dict[str, Any]:
    """Return the fields of an Avro schema by their path, each with its id and type."""
    if isinstance(schema, list):
        (schema,) = (one for one in schema if one != "null")
        return avro_fields(schema, f"{path}?")
    if isinstance(schema, str):
        return {path: schema}
    if schema["type"] == "record":
        found: dict[str, Any] = {}
        for one in schema["fields"]:
            name = f"{path}/{one['name']}:{one.get('field-id')}"
            found |= avro_fields(one["type"], name)
        return found
    if schema["type"] == "array":
        return avro_fields(schema["items"], f"{path}[{schema.get('element-id')}]")
    return {path: {key: value for key, value in schema.items() if key != "name"}}


class JavaDataFiles:
    """Data files as Iceberg's Java makes them of a footer. What a footer does not tell, NaN counts
    and bounds of floating-point numbers, is the task's: its own files with Spark's are compared
    elsewhere."""

    def __init__(self, jvm: Java, table: Java) -> None:
        iceberg = jvm.org.apache.iceberg
        self._table, self._jvm, self._iceberg = table, jvm, iceberg
        self._metrics = iceberg.MetricsConfig.forTable(table)

    def of(self, file: EncodedFile) -> Java:
        """Return one."""
        iceberg, spec = self._iceberg, self._table.spec()
        footer = self._footer(file)
        util, no_fields = iceberg.parquet.ParquetUtil, self._jvm.java.util.stream.Stream.empty()
        metrics = util.footerMetrics(footer, no_fields, self._metrics, None)
        built = (
            iceberg.DataFiles.builder(spec)
            .withPath(file.location)
            .withFormat("PARQUET")
            .withFileSizeInBytes(file.size)
            .withMetrics(metrics)
            .withRecordCount(file.rows)
            .withSplitOffsets(util.getSplitOffsets(footer))
            .build()
        )
        described = json.loads(str(iceberg.ContentFileParser.toJson(built, spec)))
        for number, floats in file.facts["floats"].items():
            self._add_floats(described, int(number), floats)
        if spec.isPartitioned():
            kinds = [str(one.type()) for one in spec.partitionType().fields()]
            values = zip(file.partition, kinds, strict=True)
            described["partition"] = [_json_value(value, kind) for value, kind in values]
        node = iceberg.util.JsonUtil.mapper().readTree(json.dumps(described))
        return iceberg.ContentFileParser.fromJson(node, self._table.specs())

    def _footer(self, file: EncodedFile) -> Java:
        parquet = self._iceberg.shaded.org.apache.parquet
        converter = parquet.format.converter.ParquetMetadataConverter
        stream = self._jvm.java.io.ByteArrayInputStream(file.footer)
        options = parquet.ParquetReadOptions.builder().build()
        return converter(options).readParquetMetadata(stream, converter.NO_FILTER)

    def _add_floats(self, described: Json, number: int, floats: Json) -> None:
        mode = str(self._metrics.columnMode(number).toString())
        if mode == "none":
            return
        told = {"nan-value-counts": floats["nan"]}
        bounds = {"lower-bounds": floats["low"], "upper-bounds": floats["high"]}
        for name, value in (told | bounds).items():
            entries = described.setdefault(name, {"keys": [], "values": []})
            if number in entries["keys"]:
                at = entries["keys"].index(number)
                del entries["keys"][at], entries["values"][at]
            if value is not None and (name in told or mode != "counts"):
                entries["keys"].append(number)
                entries["values"].append(value)


def _json_value(value: Any, kind: str) -> Any:
    if value is None or kind != "date":
        return value
    return (date(1970, 1, 1) + timedelta(days=value)).isoformat()

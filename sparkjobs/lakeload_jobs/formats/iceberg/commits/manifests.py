"""Manifests and their lists: Avro files that name the data files of a snapshot.

https://iceberg.apache.org/spec/, "Manifests" and "Snapshots". Entries and rows of lists are
dictionaries with the names of the specification. Files of other writers are read by the schema
within them, and a manifest that is written again keeps that schema: nothing of an entry is lost.
"""

from __future__ import annotations

import io
import json
import math
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import fastavro

from lakeload_jobs.formats.iceberg.commits.errors import Unsupported
from lakeload_jobs.formats.iceberg.commits.metadata import (
    ROW_LINEAGE,
    Json,
    Metadata,
    schema_of,
    spec_of,
)
from lakeload_jobs.formats.iceberg.commits.values import avro_type, binary, leaves, number

EXISTING, ADDED, DELETED = 0, 1, 2
"""What an entry says of its file: it was there, this snapshot has added it, or removed it."""
DATA, DELETES = 0, 1
"""What a manifest names: files of rows, or of deletes."""

_PATH = "write.metadata.path"


class MetadataFiles(Protocol):
    """Where metadata of a table is read and written. Raises `AwsError`."""

    def read(self, location: str) -> bytes:
        """Return a whole file."""

    def write(self, location: str, data: bytes) -> None:
        """Write a file, of a name that no other has."""


def metadata_folder(metadata: Metadata) -> str:
    """Return the folder of a table's metadata, without a final slash."""
    given = metadata.get("properties", {}).get(_PATH)
    return str(given or f"{str(metadata['location']).rstrip('/')}/metadata").rstrip("/")


# Partitions


@dataclass(frozen=True)
class PartitionField:
    """A field of a partition spec, with the type of its values."""

    name: str
    id: int
    kind: str


def partition_fields(
    schema: Mapping[str, Any], spec: Sequence[Mapping[str, Any]]
) -> tuple[PartitionField, ...]:
    """Return the fields of a spec, given those that its JSON has. Raises `Unsupported` for a source
    column that is not in the schema."""
    kinds = {leaf.id: leaf.kind for leaf in leaves(schema)}
    found = []
    for field in spec:
        source = field.get("source-id")
        if source not in kinds:
            raise Unsupported(f"the partition field `{field['name']}`, whose column is gone")
        kind = _result(str(field["transform"]), kinds[source])
        found.append(PartitionField(field["name"], field["field-id"], kind))
    return tuple(found)


def _result(transform: str, kind: str) -> str:
    """Return the type of a transform's values."""
    if transform in ("year", "month", "hour") or transform.startswith("bucket"):
        return "int"
    if transform == "day":
        return "date"
    if transform in ("identity", "void") or transform.startswith("truncate"):
        return kind
    raise Unsupported(f"the partition transform `{transform}`")


def _summaries(fields: Sequence[PartitionField], data_files: Sequence[Json]) -> list[Json]:
    """Return what a list says of the partitions of one manifest, for each field of its spec. Values
    are in the order of the spec: writers spell names of fields as Avro takes them."""
    values = [tuple(data_file["partition"].values()) for data_file in data_files]
    return [_summary(field, [one[at] for one in values]) for at, field in enumerate(fields)]


def _summary(field: PartitionField, values: Sequence[Any]) -> Json:
    floats = field.kind in ("float", "double")
    nan = [value for value in values if floats and value is not None and math.isnan(value)]
    known = [number(one) for one in values if one is not None and not (floats and math.isnan(one))]
    return {
        "contains_null": any(value is None for value in values),
        "contains_nan": bool(nan),
        "lower_bound": binary(field.kind, min(known)) if known else None,
        "upper_bound": binary(field.kind, max(known)) if known else None,
    }


# Avro


def _field(name: str, kind: Any, identifier: int, *, optional: bool = True) -> Json:
    if not optional:
        return {"name": name, "type": kind, "field-id": identifier}
    return {"name": name, "type": ["null", kind], "default": None, "field-id": identifier}


def _map(key: int, value: int, kind: str) -> Json:
    """Return the type of a map with integer keys, which Avro has none of."""
    items = {
        "type": "record",
        "name": f"k{key}_v{value}",
        "fields": [
            {"name": "key", "type": "int", "field-id": key},
            {"name": "value", "type": kind, "field-id": value},
        ],
    }
    return {"type": "array", "logicalType": "map", "items": items}


def entry_schema(partition: Json, version: int) -> Json:
    """Return the Avro schema of a manifest, given that of the `partition` of its entries."""
    data_file = [
        _field("content", "int", 134, optional=False),
        _field("file_path", "string", 100, optional=False),
        _field("file_format", "string", 101, optional=False),
        _field("partition", partition, 102, optional=False),
        _field("record_count", "long", 103, optional=False),
        _field("file_size_in_bytes", "long", 104, optional=False),
        _field("column_sizes", _map(117, 118, "long"), 108),
        _field("value_counts", _map(119, 120, "long"), 109),
        _field("null_value_counts", _map(121, 122, "long"), 110),
        _field("nan_value_counts", _map(138, 139, "long"), 137),
        _field("lower_bounds", _map(126, 127, "bytes"), 125),
        _field("upper_bounds", _map(129, 130, "bytes"), 128),
        _field("key_metadata", "bytes", 131),
        _field("split_offsets", {"type": "array", "items": "long", "element-id": 133}, 132),
        _field("equality_ids", {"type": "array", "items": "int", "element-id": 136}, 135),
        _field("sort_order_id", "int", 140),
    ]
    if version >= ROW_LINEAGE:
        data_file += [
            _field("first_row_id", "long", 142),
            _field("referenced_data_file", "string", 143),
            _field("content_offset", "long", 144),
            _field("content_size_in_bytes", "long", 145),
        ]
    record = {"type": "record", "name": "r2", "fields": data_file}
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            _field("status", "int", 0, optional=False),
            _field("snapshot_id", "long", 1),
            _field("sequence_number", "long", 3),
            _field("file_sequence_number", "long", 4),
            _field("data_file", record, 2, optional=False),
        ],
    }


def _partition_record(fields: Sequence[PartitionField]) -> Json:
    columns = [_field(one.name, avro_type(one.kind), one.id) for one in fields]
    for one in fields:
        if not one.name.replace("_", "a").isalnum() or one.name[:1].isdigit():
            raise Unsupported(f"the name of the partition field `{one.name}`")
    return {"type": "record", "name": "r102", "fields": columns}


_LIST_FIELDS = (
    ("manifest_path", "string", 500),
    ("manifest_length", "long", 501),
    ("partition_spec_id", "int", 502),
    ("content", "int", 517),
    ("sequence_number", "long", 515),
    ("min_sequence_number", "long", 516),
    ("added_snapshot_id", "long", 503),
    ("added_files_count", "int", 504),
    ("existing_files_count", "int", 505),
    ("deleted_files_count", "int", 506),
    ("added_rows_count", "long", 512),
    ("existing_rows_count", "long", 513),
    ("deleted_rows_count", "long", 514),
)


def list_schema(version: int) -> Json:
    """Return the Avro schema of a list of manifests."""
    summary = {
        "type": "record",
        "name": "r508",
        "fields": [
            _field("contains_null", "boolean", 509, optional=False),
            _field("contains_nan", "boolean", 518),
            _field("lower_bound", "bytes", 510),
            _field("upper_bound", "bytes", 511),
        ],
    }
    fields = [_field(name, kind, number, optional=False) for name, kind, number in _LIST_FIELDS]
    partitions = {"type": "array", "items": summary, "element-id": 508}
    fields += [_field("partitions", partitions, 507), _field("key_metadata", "bytes", 519)]
    if version >= ROW_LINEAGE:
        fields.append(_field("first_row_id", "long", 520))
    return {"type": "record", "name": "manifest_file", "fields": fields}


def _avro(schema: Json, records: Iterable[Json], header: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    parsed = fastavro.parse_schema(schema)
    fastavro.writer(out, parsed, records, codec="deflate", metadata=dict(header))
    return out.getvalue()


# Manifests


@dataclass(frozen=True)
class Manifest:
    """A manifest that is in the bucket. `row` is what lists say of it, without the snapshot that
    adds it; `size` are the bytes of its new files, `partitions` those that they are in."""

    row: Json
    size: int
    partitions: frozenset[str]

    @property
    def files(self) -> int:
        """How many files it adds."""
        return int(self.row["added_files_count"])

    @property
    def rows(self) -> int:
        """How many rows they have."""
        return int(self.row["added_rows_count"])


def write_added(
    files: MetadataFiles, metadata: Metadata, snapshot_id: int, data_files: Sequence[Json]
) -> Manifest:
    """Write a manifest of new files in the default spec. It is good for any number of tries to
    commit: its entries get their sequence number from the list that names it."""
    spec = spec_of(metadata)
    fields = partition_fields(schema_of(metadata), spec["fields"])
    data_files = [
        {**one, "partition": {field.name: one["partition"].get(field.name) for field in fields}}
        for one in data_files
    ]
    entries = [
        {
            "status": ADDED,
            "snapshot_id": snapshot_id,
            "sequence_number": None,
            "file_sequence_number": None,
            "data_file": data_file,
        }
        for data_file in data_files
    ]
    header = {
        "schema": json.dumps(schema_of(metadata)),
        "partition-spec": json.dumps(spec["fields"]),
        "partition-spec-id": str(spec["spec-id"]),
        "format-version": str(metadata["format-version"]),
        "content": "data",
    }
    schema = entry_schema(_partition_record(fields), metadata["format-version"])
    row = _written(files, metadata, schema, header, entries) | {
        "partition_spec_id": spec["spec-id"],
        "content": DATA,
        "partitions": _summaries(fields, data_files),
        "added_snapshot_id": snapshot_id,
    }
    return _manifest(row, data_files)


def _manifest(row: Json, data_files: Sequence[Json]) -> Manifest:
    size = sum(data_file["file_size_in_bytes"] for data_file in data_files)
    return Manifest(row, size, frozenset(map(partition_key, data_files)))


def partition_key(data_file: Json) -> str:
    """Return a text that tells the partition of a file from all others."""
    return json.dumps(data_file["partition"], default=str)


def _written(
    files: MetadataFiles,
    metadata: Metadata,
    schema: Json,
    header: Mapping[str, str],
    entries: Sequence[Json],
) -> Json:
    """Write a manifest, and return what lists say of its entries."""
    data = _avro(schema, entries, header)
    place = f"{metadata_folder(metadata)}/{uuid.uuid4()}-m0.avro"
    files.write(place, data)
    row: Json = {"manifest_path": place, "manifest_length": len(data), "key_metadata": None}
    for status, name in ((ADDED, "added"), (EXISTING, "existing"), (DELETED, "deleted")):
        of_status = [one["data_file"] for one in entries if one["status"] == status]
        row[f"{name}_files_count"] = len(of_status)
        row[f"{name}_rows_count"] = sum(one["record_count"] for one in of_status)
    sequences = [one["sequence_number"] for one in entries if one["status"] != DELETED]
    known = [one for one in sequences if one is not None]
    # None: that of the snapshot which adds the manifest. Earlier numbers are all lower.
    row["min_sequence_number"] = min(known) if known else None
    row["sequence_number"] = None
    row["first_row_id"] = None
    return row


@dataclass(frozen=True)
class OpenManifest:
    """A manifest as its writer has written it."""

    row: Json
    schema: Any
    header: Mapping[str, str]
    entries: tuple[Json, ...]
    """With the numbers that they inherit from the list."""


def read_manifest(files: MetadataFiles, row: Json) -> OpenManifest:
    """Read the manifest that a row of a list names."""
    reader = fastavro.reader(io.BytesIO(files.read(row["manifest_path"])))
    header = {
        str(name): value.decode() if isinstance(value, bytes) else str(value)
        for name, value in reader.metadata.items()
        if not str(name).startswith("avro.")
    }
    entries = tuple(_inherited(row, reader))
    return OpenManifest(row, reader.writer_schema, header, entries)


def read_paths(files: MetadataFiles, row: Json) -> dict[str, int]:
    """Read the locations of the files of a manifest that its snapshot has, with their bytes."""
    data = files.read(row["manifest_path"])
    own: Any = fastavro.reader(io.BytesIO(data)).writer_schema
    (data_file,) = (one for one in own["fields"] if one["name"] == "data_file")
    record = _narrowed(data_file["type"], "file_path", "file_size_in_bytes")
    few = [*own["fields"], {"name": "data_file", "type": record}]
    schema = _narrowed({**own, "fields": few}, "status", "data_file")
    entries: Iterable[Any] = fastavro.reader(io.BytesIO(data), reader_schema=schema)
    found = (one["data_file"] for one in entries if one["status"] != DELETED)
    return {one["file_path"]: one["file_size_in_bytes"] for one in found}


def _narrowed(record: Json, *names: str) -> Json:
    """Return a record with the last of its fields of each of these names."""
    fields = {field["name"]: field for field in record["fields"]}
    return {
        "type": "record",
        "name": record["name"],
        "fields": [fields[name] for name in names],
    }


def _inherited(row: Json, entries: Iterable[Any]) -> Iterator[Json]:
    """Yield entries with snapshot, sequence numbers and row ids, where the list has them."""
    row_id = row.get("first_row_id")
    sequence = row.get("sequence_number")
    for entry in entries:
        if entry.get("snapshot_id") is None:
            entry["snapshot_id"] = row["added_snapshot_id"]
        if entry["status"] == ADDED:
            for name in ("sequence_number", "file_sequence_number"):
                if entry.get(name) is None:
                    entry[name] = sequence
        data_file = entry["data_file"]
        if (
            row.get("content", DATA) == DATA
            and row_id is not None
            and entry["status"] != DELETED
            and data_file.get("first_row_id") is None
        ):
            data_file["first_row_id"] = row_id
            row_id += data_file["record_count"]
        yield entry


def write_added_again(
    files: MetadataFiles, metadata: Metadata, like: OpenManifest, snapshot_id: int
) -> Manifest | None:
    """Write the files that the snapshot of a manifest has added into a new one, as files that
    another snapshot is to add: without sequence numbers and row ids. None where it has added none.

    Raises `Unsupported` where that snapshot has removed files.
    """
    entries = []
    for entry in like.entries:
        if entry["snapshot_id"] != like.row["added_snapshot_id"]:
            continue
        if entry["status"] == DELETED or like.row.get("content", DATA) != DATA:
            raise Unsupported("a snapshot to make again that does more than add files")
        if entry["status"] == ADDED:
            data_file = {**entry["data_file"], "first_row_id": None}
            new = {"snapshot_id": snapshot_id, "data_file": data_file}
            entries.append({**entry, **_NO_NUMBERS, **new})
    if not entries:
        return None
    row = write_again(files, metadata, like, entries, snapshot_id)
    return _manifest(row, [entry["data_file"] for entry in entries])


_NO_NUMBERS: Mapping[str, None] = {"sequence_number": None, "file_sequence_number": None}


def write_again(
    files: MetadataFiles,
    metadata: Metadata,
    like: OpenManifest,
    entries: Sequence[Json],
    snapshot_id: int,
) -> Json:
    """Write entries into a manifest of the spec and content of another, and return its row. Raises
    `Unsupported` where the partitions of that spec are not known."""
    names = _partition_names(like.schema)
    entries = [_with_partition(entry, names) for entry in entries]
    fields = partition_fields(
        json.loads(like.header["schema"]), json.loads(like.header["partition-spec"])
    )
    data_files = [entry["data_file"] for entry in entries]
    row = _written(files, metadata, _with_row_ids(like.schema, entries), like.header, entries)
    return row | {
        "partition_spec_id": like.row["partition_spec_id"],
        "content": like.row.get("content", DATA),
        "partitions": _summaries(fields, data_files),
        "added_snapshot_id": snapshot_id,
    }


def _partition_names(schema: Any) -> list[str]:
    (data_file,) = (one for one in schema["fields"] if one["name"] == "data_file")
    (partition,) = (one for one in data_file["type"]["fields"] if one["name"] == "partition")
    return [field["name"] for field in partition["type"]["fields"]]


def _with_partition(entry: Json, names: Sequence[str]) -> Json:
    """Return an entry with the names of another writer for the fields of its partition."""
    values = entry["data_file"]["partition"].values()
    partition = dict(zip(names, values, strict=True))
    return {**entry, "data_file": {**entry["data_file"], "partition": partition}}


def _with_row_ids(schema: Any, entries: Sequence[Json]) -> Any:
    """Return the schema with a field for row ids, where entries have got some that it lacks."""
    (data_file,) = (one for one in schema["fields"] if one["name"] == "data_file")
    fields = data_file["type"]["fields"]
    if any(one["name"] == "first_row_id" for one in fields):
        return schema
    if all(one["data_file"].get("first_row_id") is None for one in entries):
        return schema
    record = {**data_file["type"], "fields": [*fields, _field("first_row_id", "long", 142)]}
    others = [one for one in schema["fields"] if one["name"] != "data_file"]
    return {**schema, "fields": [*others, {**data_file, "type": record}]}


# Lists


def read_list(files: MetadataFiles, snapshot: Mapping[str, Any] | None) -> list[Json]:
    """Return the rows of a snapshot's list of manifests; none without a snapshot. Raises
    `Unsupported` for a snapshot of version 1 that has no list."""
    if snapshot is None:
        return []
    if "manifest-list" not in snapshot:
        raise Unsupported("a snapshot without a list of manifests")
    found = fastavro.reader(io.BytesIO(files.read(snapshot["manifest-list"])))
    return [dict(_known(row)) for row in found]


_OLD_NAMES = {
    "added_data_files_count": "added_files_count",
    "existing_data_files_count": "existing_files_count",
    "deleted_data_files_count": "deleted_files_count",
}
"""Names in lists that older versions of Iceberg have written."""


def _known(row: Any) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        yield _OLD_NAMES.get(name, name), value


def write_list(
    files: MetadataFiles,
    metadata: Metadata,
    rows: Sequence[Json],
    *,
    snapshot_id: int,
    parent: int | None,
    sequence: int,
    first_row_id: int | None,
) -> str:
    """Write the list of manifests of a snapshot; return where it is."""
    version = metadata["format-version"]
    header = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent is None else str(parent),
        "sequence-number": str(sequence),
        "format-version": str(version),
    }
    if first_row_id is not None:
        header["first-row-id"] = str(first_row_id)
    place = f"{metadata_folder(metadata)}/snap-{snapshot_id}-1-{uuid.uuid4()}.avro"
    files.write(place, _avro(list_schema(version), rows, header))
    return place

"""Manifests and their lists: Avro files that name the data files of a snapshot.

https://iceberg.apache.org/spec/, "Manifests" and "Snapshots". Entries and rows of lists are
dictionaries with the names of the specification. Files of other writers are read by the schema
within them, and a manifest that is written again keeps that schema: nothing of an entry is lost.
"""

from __future__ import annotations

import io
import json
import math
import struct
import uuid
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Protocol, TypeVar

import fastavro

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.core.avro_blocks import CODECS, BlockTooLarge, unpacked
from lakeload_jobs.formats.iceberg.commits.errors import Unsupported, damaged
from lakeload_jobs.formats.iceberg.commits.metadata import (
    DATA_VERSIONS,
    ROW_LINEAGE,
    Json,
    Metadata,
    schema_of,
    spec_of,
)
from lakeload_jobs.formats.iceberg.commits.values import (
    avro_name,
    avro_type,
    binary,
    leaves,
    ordered,
    stored,
)

EXISTING, ADDED, DELETED = 0, 1, 2
"""What an entry says of its file: it was there, this snapshot has added it, or removed it."""
DATA, DELETES = 0, 1
"""What a manifest names: files of rows, or of deletes."""

_PATH = "write.metadata.path"
AT_ONCE = 8
"""Files of a table that are read or removed at once."""

_Thing = TypeVar("_Thing")
_Result = TypeVar("_Result")


def each_of(work: Callable[[_Thing], _Result], things: Iterable[_Thing]) -> Iterator[_Result]:
    """Yield what `work` returns of each, in order: several at once and few ahead, as what was read
    may be large."""
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="iceberg-files") as pool:
        ahead: deque[Future[_Result]] = deque()
        for thing in things:
            ahead.append(pool.submit(work, thing))
            if len(ahead) == AT_ONCE:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


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

    @property
    def avro(self) -> str:
        """The name of its values in manifests."""
        return avro_name(self.name)


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


def _summaries(kinds: Sequence[str], data_files: Sequence[Json]) -> list[Json]:
    """Return what a list says of the partitions of one manifest, given the types of the fields of
    its spec, in its order."""
    values = [tuple(data_file["partition"].values()) for data_file in data_files]
    return [_summary(kind, [one[at] for one in values]) for at, kind in enumerate(kinds)]


def _summary(kind: str, values: Sequence[Any]) -> Json:
    there = [value for value in values if value is not None]
    floats = kind in ("float", "double")
    known = [value for value in there if not (floats and math.isnan(value))]
    order = partial(ordered, kind)
    bounds = [min(known, key=order), max(known, key=order)] if known else []
    if kind.startswith("decimal"):
        bounds = [ordered(kind, bound) for bound in bounds]
    lower, upper = (binary(kind, bound) for bound in bounds) if bounds else (None, None)
    return {
        "contains_null": len(there) < len(values),
        "contains_nan": len(known) < len(there),
        "lower_bound": lower,
        "upper_bound": upper,
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
        _field("referenced_data_file", "string", 143),
    ]
    if version >= ROW_LINEAGE:
        data_file += [
            _field("first_row_id", "long", 142),
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
    columns = []
    for one in fields:
        column = _field(one.avro, avro_type(one.kind), one.id)
        # As Iceberg's own writers keep the name that Avro does not take.
        columns.append(column | ({} if one.avro == one.name else {"iceberg-field-name": one.name}))
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


_CONTAINER: Json = {
    "type": "record",
    "name": "header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
    ],
}
"""How an Avro file begins."""
_BLOCK: Json = {
    "type": "record",
    "name": "block",
    "fields": [
        {"name": "count", "type": "long"},
        {"name": "data", "type": "bytes"},
        {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
    ],
}
"""How it goes on, with each block."""
_MAGIC = b"Obj\x01"
_SCHEMA = "avro.schema"
_SCHEMAS_HELD = 64
"""Schemas that are held in memory."""
_FASTAVRO_READS = ("null", "deflate")


_CODEC = "avro.codec"
_LARGEST_BLOCK = 1 << 30
"""The largest block of records, in bytes. Those of Iceberg's own writers have 64 KiB."""
_NOT_DECODED = (
    AttributeError,
    EOFError,
    LookupError,
    OverflowError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
    BlockTooLarge,
    fastavro.schema.SchemaParseException,
)
"""What fastavro raises of bytes that are damaged, and what we do."""


@dataclass(frozen=True)
class _AvroFile:
    schema: Json
    header: Mapping[str, str]
    records: list[Any]


def _read_avro(
    files: MetadataFiles, location: str, narrowed: Callable[[Json], Json] | None = None
) -> _AvroFile:
    """Read an Avro file; `narrowed` leaves of its schema what is read. Dates, times and decimals
    are as it stores them: Python's own have no year 10000. Raises `LoadFailed`, naming the file,
    for one that is damaged or of a codec that Avro does not have."""
    data = files.read(location)
    with _naming(location):
        return _decoded(location, io.BytesIO(data), narrowed)


@contextmanager
def _naming(location: str) -> Iterator[None]:
    """Translate what bytes of a file that are damaged make of the block. Raises `LoadFailed`."""
    try:
        yield
    except _NOT_DECODED as error:
        raise damaged(location, "the Avro file", error) from error


def _decoded(
    location: str, stream: io.BytesIO, narrowed: Callable[[Json], Json] | None
) -> _AvroFile:
    found: Any = fastavro.schemaless_reader(stream, _CONTAINER, None)
    if found["magic"] != _MAGIC:
        raise ValueError("it does not begin as one")
    meta = found["meta"]
    codec = meta.get(_CODEC, b"null").decode()
    if codec not in CODECS:
        raise LoadFailed(
            f"reading `{location}`: its codec `{codec}` is not supported",
            hint="set `write.manifest.compression-codec` of the table to `gzip`, and rewrite its "
            "manifests: `CALL lake.system.rewrite_manifests`",
        )
    schema, plain_schema = _read_schema(meta[_SCHEMA])
    as_stored = {_SCHEMA: plain_schema}
    if codec in _FASTAVRO_READS:
        as_stored[_CODEC] = codec.encode()
        blocks = stream.read()
    else:
        blocks = _unpacked(stream, codec, found["sync"])
    plain = io.BytesIO()
    fastavro.schemaless_writer(plain, _CONTAINER, {**found, "meta": as_stored})
    plain.write(blocks)
    plain.seek(0)
    wanted: Any = None if narrowed is None else narrowed(schema)
    records = list(fastavro.reader(plain, reader_schema=wanted))
    header = {name: value.decode() for name, value in meta.items() if not name.startswith("avro.")}
    return _AvroFile(schema, header, records)


def _unpacked(stream: io.BytesIO, codec: str, sync: bytes) -> bytes:
    """Return the blocks that are left, as those of a file without a codec: fastavro wants another
    package for each of the others."""
    out = io.BytesIO()
    end = len(stream.getbuffer())
    while stream.tell() < end:
        block: Any = fastavro.schemaless_reader(stream, _BLOCK, None)
        if block["sync"] != sync:
            raise ValueError("a block does not end with the marker of the file")
        block["data"] = unpacked(codec, block["data"], _LARGEST_BLOCK)
        fastavro.schemaless_writer(out, _BLOCK, block)
    return out.getvalue()


@lru_cache(_SCHEMAS_HELD)
def _read_schema(text: bytes) -> tuple[Json, bytes]:
    """Return the schema of a file, and its text without logical types. Callers change no schema:
    manifests of one table have the same, and with few entries most of a read's time is spent here.
    """
    schema = json.loads(text)
    return schema, json.dumps(_without_logical_types(schema)).encode()


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_logical_types(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _without_logical_types(value) if isinstance(value, dict | list) else value
        for name, value in schema.items()
        if name != "logicalType"
    }


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


def check_can_add(metadata: Metadata) -> None:
    """Raise `Unsupported` where data files cannot be added to a table: before any is written."""
    check_version(metadata)
    _partition_record(partition_fields(schema_of(metadata), spec_of(metadata)["fields"]))


def check_version(metadata: Metadata) -> None:
    """Raise `Unsupported` for a table of a version that gets no rows."""
    version = metadata["format-version"]
    if version not in DATA_VERSIONS:
        raise Unsupported(
            f"the format version {version}, to which lakeload adds no rows",
            hint="raise it with `ALTER TABLE … SET TBLPROPERTIES ('format-version' = '2')`",
        )


def write_added(
    files: MetadataFiles, metadata: Metadata, snapshot_id: int, data_files: Sequence[Json]
) -> Manifest:
    """Write a manifest of new files in the default spec; their partitions are by the names of its
    fields. It is good for any number of tries to commit: its entries get their sequence number from
    the list that names it. Raises `Unsupported` as `check_can_add`."""
    check_can_add(metadata)
    spec = spec_of(metadata)
    fields = partition_fields(schema_of(metadata), spec["fields"])
    entries: list[Json] = [
        {
            "status": ADDED,
            "snapshot_id": snapshot_id,
            "sequence_number": None,
            "file_sequence_number": None,
            "data_file": {**data_file, "partition": _stored(data_file["partition"], fields)},
        }
        for data_file in data_files
    ]
    form = _Form(
        entry_schema(_partition_record(fields), metadata["format-version"]),
        _header(metadata, spec["spec-id"], DATA),
        [field.kind for field in fields],
    )
    row = _written(files, metadata, form, entries, snapshot_id)
    return _manifest(row, [entry["data_file"] for entry in entries])


def _stored(partition: Mapping[str, Any], fields: Sequence[PartitionField]) -> Json:
    return {field.avro: stored(field.kind, partition.get(field.name)) for field in fields}


def _header(metadata: Metadata, spec_id: int, content: int) -> Mapping[str, str]:
    """Return what a manifest says of itself."""
    return {
        "schema": json.dumps(schema_of(metadata)),
        "partition-spec": json.dumps(spec_of(metadata, spec_id)["fields"]),
        "partition-spec-id": str(spec_id),
        "format-version": str(metadata["format-version"]),
        "content": "data" if content == DATA else "deletes",
    }


@dataclass(frozen=True)
class _Form:
    """How a manifest is written: its schema and header, and the types of its partition's fields."""

    schema: Json
    header: Mapping[str, str]
    kinds: Sequence[str]


def _manifest(row: Json, data_files: Sequence[Json]) -> Manifest:
    size = sum(data_file["file_size_in_bytes"] for data_file in data_files)
    return Manifest(row, size, frozenset(map(partition_key, data_files)))


def partition_key(data_file: Json) -> str:
    """Return a text that tells the partition of a file from all others."""
    return json.dumps(data_file["partition"], default=str)


def _written(
    files: MetadataFiles,
    metadata: Metadata,
    form: _Form,
    entries: Sequence[Json],
    snapshot_id: int,
) -> Json:
    """Write a manifest, and return what lists say of it."""
    data = _avro(form.schema, entries, form.header)
    place = f"{metadata_folder(metadata)}/{uuid.uuid4()}-m0.avro"
    files.write(place, data)
    sequences = [one["sequence_number"] for one in entries if one["status"] != DELETED]
    known = [one for one in sequences if one is not None]
    row: Json = {
        "manifest_path": place,
        "manifest_length": len(data),
        "partition_spec_id": int(form.header["partition-spec-id"]),
        "content": DELETES if form.header["content"] == "deletes" else DATA,
        # None: those of the snapshot which adds the manifest. Earlier numbers are all lower.
        "sequence_number": None,
        "min_sequence_number": min(known) if known else None,
        "added_snapshot_id": snapshot_id,
        "partitions": _summaries(form.kinds, [entry["data_file"] for entry in entries]),
        "key_metadata": None,
        "first_row_id": None,
    }
    for status, name in ((ADDED, "added"), (EXISTING, "existing"), (DELETED, "deleted")):
        of_status = [one["data_file"] for one in entries if one["status"] == status]
        row[f"{name}_files_count"] = len(of_status)
        row[f"{name}_rows_count"] = sum(one["record_count"] for one in of_status)
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
    """Read the manifest that a row of a list names. Raises `LoadFailed` for one that cannot be
    read."""
    found = _read_avro(files, row["manifest_path"])
    with _naming(row["manifest_path"]):
        entries = tuple(_inherited(row, found.records))
    return OpenManifest(row, found.schema, found.header, entries)


def read_manifests(files: MetadataFiles, rows: Sequence[Json]) -> list[OpenManifest]:
    """Read several, some at once."""
    return list(each_of(partial(read_manifest, files), rows))


def read_paths(files: MetadataFiles, row: Json) -> dict[str, int]:
    """Read the locations of the files of a manifest that its snapshot has, with their bytes."""
    entries = _read_avro(files, row["manifest_path"], _of_paths).records
    found = (one["data_file"] for one in entries if one["status"] != DELETED)
    return {one["file_path"]: one["file_size_in_bytes"] for one in found}


def _of_paths(own: Json) -> Json:
    (data_file,) = (one for one in own["fields"] if one["name"] == "data_file")
    record = _narrowed(data_file["type"], "file_path", "file_size_in_bytes")
    few = [*own["fields"], {"name": "data_file", "type": record}]
    return _narrowed({**own, "fields": few}, "status", "data_file")


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
        for name in ("sequence_number", "file_sequence_number"):
            entry.setdefault(name, None)
            # Manifests of version 1 have none: 0 is that of all their files.
            if entry[name] is None and (entry["status"] == ADDED or sequence == 0):
                entry[name] = sequence
        data_file = entry["data_file"]
        data_file.setdefault("content", DATA)
        if (
            row["content"] == DATA
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
        if entry["status"] == DELETED or like.row["content"] != DATA:
            raise Unsupported("a snapshot to make again that does more than add files")
        if entry["status"] == ADDED:
            data_file = {**entry["data_file"], "first_row_id": None}
            new = {"snapshot_id": snapshot_id, "data_file": data_file}
            entries.append({**entry, **_NO_NUMBERS, **new})
    if not entries:
        return None
    row = write_again(files, metadata, [like], entries, snapshot_id)
    return _manifest(row, [entry["data_file"] for entry in entries])


_NO_NUMBERS: Mapping[str, None] = {"sequence_number": None, "file_sequence_number": None}


def write_again(
    files: MetadataFiles,
    metadata: Metadata,
    likes: Sequence[OpenManifest],
    entries: Sequence[Json],
    snapshot_id: int,
) -> Json:
    """Write entries of manifests, of one spec and one content, into a new one; return its row."""
    form = _form(metadata, likes)
    names = [field["name"] for field in _partition_of(form.schema)["fields"]]
    renamed = [_with_partition(entry, names) for entry in entries]
    return _written(files, metadata, form, renamed, snapshot_id)


def _form(metadata: Metadata, likes: Sequence[OpenManifest]) -> _Form:
    """Return how entries of manifests are written together: by the table as it is now, with the
    fields that other writers have beside those of the specification."""
    row, version = likes[0].row, metadata["format-version"]
    spec_id = row["partition_spec_id"]
    header = _header(metadata, spec_id, row["content"])
    try:
        fields = partition_fields(schema_of(metadata), spec_of(metadata, spec_id)["fields"])
        partition = _partition_record(fields)
        kinds = [field.kind for field in fields]
    except Unsupported:
        # The column of an old spec is gone: its values are as their writer has written them.
        like = max(likes, key=lambda one: len(str(_partition_of(one.schema))))
        partition = _partition_of(like.schema)
        kinds = [_kind(field["type"]) for field in partition["fields"]]
        header = {**header, "schema": like.header["schema"]}
    schema = entry_schema(partition, version)
    for like in likes:
        _add_fields(schema, like.schema)
        _add_fields(_record(schema, "data_file"), _record(like.schema, "data_file"))
    return _Form(schema, header, kinds)


def _record(schema: Json, name: str) -> Json:
    found: Json = next(one["type"] for one in schema["fields"] if one["name"] == name)
    return found


def _partition_of(schema: Json) -> Json:
    return _record(_record(schema, "data_file"), "partition")


def _add_fields(record: Json, other: Json) -> None:
    """Add the optional fields that a record lacks."""
    known = {field["name"] for field in record["fields"]}
    record["fields"] += [
        field
        for field in other["fields"]
        if field["name"] not in known and isinstance(field["type"], list)
    ]


def _kind(avro: Any) -> str:
    """Return the type whose values are ordered and written as those of an Avro type are."""
    kind = next(one for one in avro if one != "null") if isinstance(avro, list) else avro
    name = kind if isinstance(kind, str) else kind["type"]
    if name == "fixed" and kind.get("logicalType") == "decimal":
        return f"decimal({kind['precision']}, {kind['scale']})"
    return "binary" if name in ("bytes", "fixed") else str(name)


def _with_partition(entry: Json, names: Sequence[str]) -> Json:
    """Return an entry with the names of another writer for the fields of its partition."""
    values = entry["data_file"]["partition"].values()
    partition = dict(zip(names, values, strict=True))
    return {**entry, "data_file": {**entry["data_file"], "partition": partition}}


# Lists


def read_list(files: MetadataFiles, snapshot: Mapping[str, Any] | None) -> list[Json]:
    """Return the rows of a snapshot's list of manifests; none without a snapshot. Raises
    `Unsupported` for a snapshot of version 1 that has no list."""
    if snapshot is None:
        return []
    rows = _listed(files, snapshot)
    for name, _, _ in _LIST_FIELDS:
        counts = name.endswith("_count")
        if any(name not in row or (counts and row[name] is None) for row in rows):
            raise Unsupported(f"a list of manifests without `{name}`")
    return rows


def _listed(files: MetadataFiles, snapshot: Mapping[str, Any]) -> list[Json]:
    """Return the rows of a list, in which version 1 of the format leaves the counts to writers."""
    if "manifest-list" not in snapshot:
        raise Unsupported("a snapshot without a list of manifests")
    found = _read_avro(files, snapshot["manifest-list"])
    rows: list[Json] = [
        _OF_VERSION_1 | {_OLD_NAMES.get(name, name): value for name, value in row.items()}
        for row in found.records
    ]
    with _naming(snapshot["manifest-list"]):
        for row in rows:
            if missing := _NEEDED - row.keys():
                raise ValueError(f"it has no {min(missing)}")
    return rows


class ManifestLists:
    """What lists say of the manifests of snapshots. Each list is read once: none ever changes."""

    def __init__(self, files: MetadataFiles) -> None:
        self.files = files
        self._rows: dict[str, Json] = {}
        self._named: dict[int, tuple[str, ...]] = {}
        """The manifests of each snapshot; many lists name the same."""

    def read(self, snapshots: Iterable[Json]) -> dict[str, Json]:
        """Return the rows of each manifest of some snapshots, by its location. Lists of version 1
        may lack counts, and where a snapshot names its manifests itself, no lengths are known.
        Raises `LoadFailed` and `Unsupported`."""
        wanted = list(snapshots)
        new = [one for one in wanted if one["snapshot-id"] not in self._named]
        for snapshot, rows in zip(new, each_of(self._read, new), strict=True):
            # The same text for all that name it.
            places = (self._rows.setdefault(row["manifest_path"], row) for row in rows)
            self._named[snapshot["snapshot-id"]] = tuple(row["manifest_path"] for row in places)
        named = (place for one in wanted for place in self._named[one["snapshot-id"]])
        return {place: self._rows[place] for place in named}

    def _read(self, snapshot: Json) -> list[Json]:
        named = snapshot.get("manifests")
        if named is None or "manifest-list" in snapshot:
            return _listed(self.files, snapshot)
        # Iceberg's own reader takes these manifests for those of the first spec, too.
        return [_OF_VERSION_1 | {"manifest_path": one, "partition_spec_id": 0} for one in named]


_NEEDED = {"manifest_path", "manifest_length", "partition_spec_id"}
"""What lists of every version say."""
_OLD_NAMES = {
    "added_data_files_count": "added_files_count",
    "existing_data_files_count": "existing_files_count",
    "deleted_data_files_count": "deleted_files_count",
}
"""Names in lists that older versions of Iceberg have written."""
_OF_VERSION_1: Json = {"content": DATA, "sequence_number": 0, "min_sequence_number": 0}
"""What lists of version 1 do not say."""


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

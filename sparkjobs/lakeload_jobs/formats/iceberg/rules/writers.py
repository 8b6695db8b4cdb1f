"""Choice of the writer of a load's data files: lakeload's own tasks, or Spark.

Anything that is not known to be written alike by both is Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from lakeload_jobs.contract.spec import (
    CatalogSpec,
    JobSpec,
    PartitionField,
    TableSpec,
)
from lakeload_jobs.contract.traits import vends
from lakeload_jobs.formats.iceberg.rules.bloom_filters import (
    BLOOM_FILTER_ADAPTIVE,
    BLOOM_FILTER_ENABLED,
    BLOOM_FILTER_FPP,
    bloom_filters_of,
    parse_fpp,
)
from lakeload_jobs.formats.iceberg.rules.facts import column_names, current_schema, default_spec
from lakeload_jobs.formats.iceberg.rules.file_io import FILE_IO, FILE_IO_PREFIXES
from lakeload_jobs.formats.iceberg.rules.partitions import parse_partition_field, spec_field

Codec = Literal["gzip", "zstd", "snappy", "uncompressed"]

MOST_COLUMNS = 1000
"""Leaf columns: the driver gets the footer of each file, which grows with them."""
TARGET_FILE_SIZE = 512 << 20
"""Iceberg's default of `write.target-file-size-bytes`."""

_TYPES = (
    *("boolean", "int", "long", "float", "double", "string", "binary"),
    *("date", "timestamp", "timestamptz"),
)
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")

_CODEC = "write.parquet.compression-codec"
_LEVEL = "write.parquet.compression-level"
_FORMAT = "write.format.default"
_FILE_SIZE = "write.target-file-size-bytes"
_ROW_GROUP = "write.parquet.row-group-size-bytes"
_OBJECT_STORE = "write.object-storage.enabled"
_DATA_PATH = "write.data.path"
_METRICS = "write.metadata.metrics."
_TRUNCATE = re.compile(r"truncate\((\d+)\)")
_SAFE_LENGTH = 16
"""Characters of a bound that both encoders keep: arro3 cuts statistics at 64 bytes."""

_LEVELS: Mapping[Codec, range] = {
    "zstd": range(1, 23),
    "gzip": range(10),
    "snappy": range(0),
    "uncompressed": range(0),
}

_SPARKS_CODECS = ("lz4", "lz4_raw")
"""Further ones that Spark has."""
MERGE_MODE = "write.merge.mode"
"""Iceberg's default is `copy-on-write`."""
_METADATA_COLUMNS = frozenset(
    {
        *("_file", "_pos", "_deleted", "_spec_id", "_partition"),
        *("_row_id", "_last_updated_sequence_number"),
    }
)

_ANY_TIME = ("timestamp", "timestamptz")
_TRANSFORMS: Mapping[str, tuple[str, ...]] = {
    "identity": ("boolean", "int", "long", "string", "date", "decimal"),
    "bucket": ("int", "long", "string", "binary", "date", "decimal", *_ANY_TIME),
    "truncate": ("int", "long", "string"),
    "year": ("date", *_ANY_TIME),
    "month": ("date", *_ANY_TIME),
    "day": ("date", *_ANY_TIME),
    "hour": _ANY_TIME,
}
"""The types whose partitions tasks name as Iceberg does."""
_DISTRIBUTION = "write.distribution-mode"

_OF_DATA_FILES = ("write.", "encryption.", "parquet.")
"""What begins the names of properties that may say how data files are written: Iceberg hands them
all on to its Parquet writer. Others are for readers, commits or people."""

_HARMLESS = ("write.delete.", "write.update.", "write.merge.", "write.metadata.", "write.manifest")
"""Deletes, the metadata, and their statistics, which Iceberg works out from each footer."""
_HARMLESS_NAMES = frozenset(
    {
        "write.summary.partition-limit",
        # Tasks have one file open at a time.
        "write.spark.fanout.enabled",
        "write.spark.advisory-partition-size-bytes",
    }
)
_NUMBERS = frozenset({_FILE_SIZE, _ROW_GROUP})

_SAME_OBJECTS = (
    # How Java's client sends requests, lists, reads and deletes.
    *("s3.multipart.", "s3.staging-dir", "s3.checksum-enabled", "s3.chunked-encoding-enabled"),
    *("s3.retry.", "s3.crt.", "s3.preload-client-enabled", "s3.path-style-access"),
    *("s3.delete.", "s3.delete-enabled", "s3.directory-bucket.", "s3.analytics-accelerator."),
    *("http-client.type", "http-client.apache.", "http-client.urlconnection."),
    # What other clients read, and S3FileIO does not.
    "s3.region",
)
"""Names of those that change nothing of an object that is written, or how they begin. Each of the
others may say where an object goes, with which headers, or who writes it."""
_VERSIONS = (2, 3)
"""Format versions whose files tests compare."""


@dataclass(frozen=True)
class WrittenTable:
    """What decides about a table. `schema` is Iceberg's JSON of it; `partitions` are the fields of
    its spec, as `partition_by` writes them; `io_settings` are the names of the properties of its
    FileIO, without those that are as the destination says."""

    schema: Mapping[str, Any]
    partitions: tuple[str, ...]
    sorted: bool
    properties: Mapping[str, str]
    location: str
    version: int
    io: str = FILE_IO
    io_settings: Collection[str] = ()


def only_spark(
    written: WrittenTable,
    table: TableSpec,
    catalog: CatalogSpec,
    columns: Collection[str],
    key: Collection[str],
) -> str:
    """Return why Spark has to write the data files of a load, as a clause; '' where it has not.

    `columns` are those that the load fills, `key` those whose nulls fail it.
    """
    return next(_reasons(written, table, catalog, columns, key), "")


def _reasons(
    written: WrittenTable,
    table: TableSpec,
    catalog: CatalogSpec,
    columns: Collection[str],
    key: Collection[str],
) -> Iterator[str]:
    yield from only_spark_by_settings(table, catalog)
    yield from _of_table(written)
    fields = written.schema["fields"]
    for field in fields:
        if field["name"] not in columns and field["required"]:
            yield f"the load has no column `{field['name']}`, which is required"
        if field["required"] and field["name"] in columns and field["name"] not in key:
            yield f"column `{field['name']}` is required and not in the primary key"
    known = {field["name"] for field in fields}
    for name in columns:
        if name not in known:
            yield f"the table has no column `{name}`"


def _of_table(written: WrittenTable) -> Iterator[str]:
    """Yield the reasons that the table has whatever is loaded into it."""
    if written.version not in _VERSIONS:
        yield f"the table has format version {written.version}"
    yield from _partitions(written)
    if written.sorted:
        yield "the table has a sort order"
    yield from _place(written)
    fields = written.schema["fields"]
    yield from _properties(written.properties, {field["name"]: field["type"] for field in fields})
    if sum(1 for field in fields for _ in _leaves(field["type"])) > MOST_COLUMNS:
        yield f"the table has more than {MOST_COLUMNS:,} columns"
    for field in fields:
        yield from _field(field, field["name"])


def needs_java(spec: JobSpec, table: TableSpec, written: WrittenTable | None = None) -> str:
    """Return why a load cannot do without Iceberg's Java code, as a clause; '' where it can, as far
    as is known. `written` is the table as it is; None: there is none, or it was not asked for.

    The command line asks before Spark starts, and fetches the jars for a reason alone.
    """
    return next(_java_reasons(spec, table, written), "")


def _java_reasons(spec: JobSpec, table: TableSpec, written: WrittenTable | None) -> Iterator[str]:
    yield from settings_that_need_spark(spec, table)
    if written is not None:
        yield from _of_table(written)
    else:
        yield from _of_new_table(spec, table)


def _of_new_table(spec: JobSpec, table: TableSpec) -> Iterator[str]:
    """Yield the reasons that a table has by the properties that it is created with."""
    given = {**(spec.destination.iceberg.table_properties or {}), **(table.table_properties or {})}
    # Which columns there are is not known yet.
    of_table = {
        name: value for name, value in given.items() if not name.startswith(BLOOM_FILTER_ENABLED)
    }
    yield from _properties(of_table, {})
    if table.partition_by:
        yield from _distribution(given)


def settings_that_need_spark(spec: JobSpec, table: TableSpec) -> Iterator[str]:
    """Yield why Spark writes the data files of a table, whatever it is."""
    yield from only_spark_by_settings(table, spec.destination.iceberg.catalog)
    if _secrets_elsewhere(spec):
        yield "tasks on other machines lack the secrets of the destination"


def _secrets_elsewhere(spec: JobSpec) -> bool:
    """Return whether tasks on other machines may lack the secrets that files are written with.
    Iceberg's FileIO takes them along."""
    credentials = spec.destination.credentials
    secrets = (
        *(credentials.external_id, credentials.access_key_id),
        *(credentials.secret_access_key, credentials.session_token),
    )
    return not spec.runtime.tasks_share_driver and any(secrets)


def written_table(
    metadata: Mapping[str, Any], io_settings: Collection[str] = (), io: str | None = None
) -> WrittenTable:
    """Return what decides about a table, from its metadata as Iceberg's specification writes it and
    the FileIO that its catalog names."""
    schema = current_schema(metadata)
    names = column_names(schema)
    return WrittenTable(
        schema=schema,
        partitions=tuple(
            spec_field(field["transform"], names.get(field["source-id"], "?"))
            for field in default_spec(metadata)
        ),
        sorted=any(
            order["order-id"] == metadata.get("default-sort-order-id") and order["fields"]
            for order in metadata.get("sort-orders", ())
        ),
        properties=metadata.get("properties", {}),
        location=metadata["location"],
        version=metadata["format-version"],
        io=io or FILE_IO,
        io_settings=io_settings,
    )


def only_spark_by_settings(table: TableSpec, catalog: CatalogSpec) -> Iterator[str]:
    """Yield the reasons that are known before the table is."""
    if table.mode == "UPSERT":
        yield "rows are merged"
    if table.max_deleted is not None:
        yield "the keys of the source are compared with those of the table"
    if vends(catalog):
        yield "the catalog vends credentials for the files"


def _place(written: WrittenTable) -> Iterator[str]:
    where = urlsplit(data_location(written.location, written.properties))
    if where.scheme != "s3" or not where.path.strip("/"):
        yield "the location of the table is no `s3://` folder"
    if where.query or where.fragment or "//" in where.path:
        yield "the location of the table has characters that mean something in a URL"
    if written.io != FILE_IO:
        yield f"files are written by `{written.io.rpartition('.')[2]}`"
    for name in written.io_settings:
        if name.startswith(FILE_IO_PREFIXES) and not _writes_same_objects(name):
            yield f"the catalog sets `{name}` for the files"


def _writes_same_objects(name: str) -> bool:
    return any(
        name.startswith(known) if known.endswith(".") else name == known for known in _SAME_OBJECTS
    )


def _partitions(written: WrittenTable) -> Iterator[str]:
    types = {field["name"].lower(): field["type"] for field in written.schema["fields"]}
    for text in written.partitions:
        try:
            field = parse_partition_field(text)
        except ValueError:
            yield f"the table is partitioned by `{text}`"
            continue
        kind = types.get(field.column.lower())
        base = kind.partition("(")[0] if isinstance(kind, str) else ""
        if base not in _TRANSFORMS[field.transform]:
            yield f"the table is partitioned by `{text}`" + (f", a {kind}" if base else "")
    if written.partitions:
        yield from _distribution(written.properties)


def _distribution(properties: Mapping[str, str]) -> Iterator[str]:
    # Tasks bring the rows of a partition together, as Spark's own writer does.
    mode = properties.get(_DISTRIBUTION, "hash")
    if mode.lower() != "hash":
        yield f"the table has `{_DISTRIBUTION}` {mode}"


def partition_fields(partitions: Sequence[str]) -> tuple[PartitionField, ...]:
    """Return the fields of a spec for which `only_spark` has no reason."""
    return tuple(map(parse_partition_field, partitions))


def _properties(properties: Mapping[str, str], types: Mapping[str, Any]) -> Iterator[str]:
    codec = _codec(properties)
    levels = range(0) if codec is None else _LEVELS[codec]
    for name, value in sorted(properties.items()):
        if not name.startswith(_OF_DATA_FILES):
            continue
        if name.startswith(_HARMLESS) or name in _HARMLESS_NAMES or name == _DISTRIBUTION:
            continue
        known = (
            (name == _FORMAT and value.lower() == "parquet")
            or (name == _CODEC and codec is not None)
            or (name == _LEVEL and value.isdigit() and int(value) in levels)
            or (name in _NUMBERS and value.isdigit() and int(value) > 0)
            or (name == _OBJECT_STORE and value.lower() == "false")
            or name in (_DATA_PATH, BLOOM_FILTER_ADAPTIVE)
            or (name.startswith(BLOOM_FILTER_ENABLED) and _has_filter(name, value, types))
            or (name.startswith(BLOOM_FILTER_FPP) and _is_fpp(value))
        )
        if not known:
            yield f"the table has `{name}`"


def _has_filter(name: str, value: str, types: Mapping[str, Any]) -> bool:
    """Whether tasks do with a column what the property of its bloom filter says."""
    if value.lower() == "false":
        return True
    column = name.removeprefix(BLOOM_FILTER_ENABLED)
    kind = types.get(column)
    # A dot may also be the way to a field of a struct.
    simple = isinstance(kind, str) and kind != "boolean" and "." not in column
    return value.lower() == "true" and simple


def _is_fpp(value: str) -> bool:
    try:
        parse_fpp(value)
    except ValueError:
        return False
    return True


def _codec(properties: Mapping[str, str]) -> Codec | None:
    """Return the codec of data files; None for one that tasks do not have."""
    named = properties.get(_CODEC, "zstd").lower()
    return next((codec for codec in _LEVELS if codec == named), None)


def _field(field: Mapping[str, Any], name: str) -> Iterator[str]:
    if {"initial-default", "write-default"} & field.keys():
        yield f"column `{name}` has a default"
    yield from _type(field["type"], name)


def _type(kind: Any, name: str) -> Iterator[str]:
    if isinstance(kind, str):
        if kind not in _TYPES and not _DECIMAL.fullmatch(kind):
            yield f"column `{name}` is a {kind}"
    elif kind["type"] == "struct":
        for field in kind["fields"]:
            yield from _field(field, f"{name}.{field['name']}")
    elif kind["type"] == "list":
        yield from _type(kind["element"], name)
    elif kind["type"] == "map":
        yield from _type(kind["key"], name)
        yield from _type(kind["value"], name)
    else:
        yield f"column `{name}` is a {kind['type']}"


def _leaves(kind: Any) -> Iterator[str]:
    if isinstance(kind, str):
        yield kind
        return
    inner = [kind[part] for part in ("element", "key", "value") if part in kind]
    for part in (*inner, *(field["type"] for field in kind.get("fields", ()))):
        yield from _leaves(part)


def unwritable(properties: Mapping[str, str]) -> str | None:
    """Return why neither tasks nor Spark can write the data files that a table's properties ask
    for, as a clause; None where one can."""
    codec = properties.get(_CODEC, "zstd")
    parquet = properties.get(_FORMAT, "parquet").lower() == "parquet"
    if not parquet or codec.lower() in (*_LEVELS, *_SPARKS_CODECS):
        return None
    return f"its data files are to have the codec `{codec}` (`{_CODEC}`), which Spark does not have"


def metadata_columns(columns: Iterable[str]) -> list[str]:
    """Return those of these columns that Spark cannot merge into, because Iceberg's metadata has
    columns of these names."""
    return [name for name in columns if name.lower() in _METADATA_COLUMNS]


def unmergeable_columns(names: Sequence[str]) -> str:
    """Return the clause about `metadata_columns`."""
    shown = ", ".join(f"`{name}`" for name in names)
    return f"Spark cannot merge rows beside {shown}: columns of Iceberg's metadata have such names"


def data_location(location: str, properties: Mapping[str, str]) -> str:
    """Return the URL of the folder of a table's data files, without a final slash."""
    return (properties.get(_DATA_PATH) or f"{location.rstrip('/')}/data").rstrip("/")


@dataclass(frozen=True)
class FileSettings:
    """How a table's properties want its data files. `level` None is the encoder's own;
    `long_bounds`: bounds may be longer than what every encoder keeps."""

    codec: Codec
    level: int | None
    target_size: int
    row_group_size: int | None
    long_bounds: bool
    bloom_filters: Mapping[str, float]
    """Columns → the share of absent values that a filter lets pass."""


def file_settings(properties: Mapping[str, str]) -> FileSettings:
    """Return the settings of a table for which `only_spark` has no reason."""
    level, group = properties.get(_LEVEL), properties.get(_ROW_GROUP)
    return FileSettings(
        codec=_codec(properties) or "zstd",
        level=None if level is None else int(level),
        target_size=int(properties.get(_FILE_SIZE) or TARGET_FILE_SIZE),
        row_group_size=None if group is None else int(group),
        long_bounds=any(
            name.startswith(_METRICS) and _is_long(value) for name, value in properties.items()
        ),
        bloom_filters=bloom_filters_of(properties),
    )


def _is_long(mode: str) -> bool:
    cut = _TRUNCATE.fullmatch(mode.lower())
    return mode.lower() == "full" or (cut is not None and int(cut[1]) > _SAFE_LENGTH)

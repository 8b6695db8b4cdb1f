"""Glue tables of Parquet data: columns, types, partition projection."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import PartitionStrategy
from lakeload_jobs.core.comments import NO_COMMENTS, Comments
from lakeload_jobs.core.names import PARTITION_KEY
from lakeload_jobs.core.nested_types import (
    Nested,
    NotAType,
    Type,
    new_fields,
    parse_type,
    type_text,
    with_new_fields,
)
from lakeload_jobs.core.types import type_rule
from lakeload_jobs.formats.parquet.log.records import Column

if TYPE_CHECKING:
    from mypy_boto3_glue.type_defs import (
        PartitionInputTypeDef,
        StorageDescriptorTypeDef,
        TableInputTypeDef,
        TableTypeDef,
    )


ENABLED = "projection.enabled"
TEMPLATE = "storage.location.template"
_KEY = f"projection.{PARTITION_KEY}."
_RANGE = f"{_KEY}range"
_FORMATS = {"DAY": ("yyyy/MM/dd", "DAYS"), "HOUR": ("yyyy/MM/dd/HH", "HOURS")}
_START = re.compile(r"\d{4}(?:/\d{2}){2,3}")


class CatalogConflict(LoadFailed):
    """Glue holds something under our name that is not our table as this load would have it."""


def projection_parameters(
    strategy: PartitionStrategy, location: str, first: str | None
) -> dict[str, str]:
    """Return the table parameters; `first` is the earliest partition, None when there is none yet.

    SYNC_ID is injected: job ids cannot be computed, so every query has to name them.
    """
    template = {ENABLED: "true", TEMPLATE: f"{location}${{{PARTITION_KEY}}}/"}
    if strategy not in _FORMATS:
        return {**template, f"{_KEY}type": "injected"}
    pattern, unit = _FORMATS[strategy]
    date = {
        f"{_KEY}type": "date",
        f"{_KEY}format": pattern,
        f"{_KEY}interval": "1",
        f"{_KEY}interval.unit": unit,
    }
    return {**template, **date, **({_RANGE: f"{first},NOW"} if first else {})}


def projects_partitions(parameters: Mapping[str, str]) -> bool:
    """Return whether Athena computes the partitions of a table with these parameters."""
    return parameters.get(ENABLED, "false").lower() == "true"


def describe_projection(parameters: Mapping[str, str]) -> str:
    """Return in words how Athena finds the partitions of a table with these parameters."""
    if not projects_partitions(parameters):
        return "registered partitions"
    kind = parameters.get(f"{_KEY}type", "none")
    pattern = parameters.get(f"{_KEY}format")
    shown = f"{kind} `{pattern}`" if pattern else kind
    return f"projected partitions ({shown} at `{parameters.get(TEMPLATE, '')}`)"


def widened_range(there: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """Return the range parameter that has to change so that our earliest partition is in it.

    A late load of an old partition moves the start back; nothing moves it forward, and a start
    that is no date (`NOW-3YEARS`) is a choice of its owner.
    """
    if _RANGE not in wanted:
        return {}
    if _RANGE not in there:
        return {_RANGE: wanted[_RANGE]}
    start, comma, end = there[_RANGE].partition(",")
    ours = wanted[_RANGE].partition(",")[0]
    if not _START.fullmatch(start.strip()) or start.strip() <= ours:
        return {}
    return {_RANGE: f"{ours}{comma}{end}"}


MAX_TYPE_LENGTH = 131_072
"""Glue's limit for the text of one column's type."""

MAX_DEPTH = 100
"""Deeper than any data; reading a type takes a few Python frames for each level."""

_SPARK_NAMES = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
_GLUE_ALIASES = {"integer": "int"}
_WORD = re.compile(r"[a-z0-9_]+")
_DECIMAL = re.compile(r"decimal\((\d{1,2}),(\d{1,2})\)")


class NoGlueType(ValueError):
    """A type that a Glue table cannot say, or that Athena does not read from Parquet."""


def glue_type(kind: str) -> str:
    """Return Glue's type for a recorded type, at any depth. Raises `NoGlueType`."""
    if _depth(kind) > MAX_DEPTH:
        raise NoGlueType(f"it is nested more than {MAX_DEPTH} levels deep")
    try:
        text = type_text(_in_glue(parse_type(re.sub(r"\s", "", kind).lower())))
    except NotAType as error:
        raise NoGlueType(f"`{kind}` is not a type") from error
    if len(text) > MAX_TYPE_LENGTH:
        raise NoGlueType(f"its text is longer than the {MAX_TYPE_LENGTH} characters Glue allows")
    return text


def same_glue_type(one: str, other: str) -> bool:
    """Return whether two Glue types are one type in different spellings."""
    return plain_glue_type(one) == plain_glue_type(other)


def grown_glue_type(there: str, wanted: str) -> str | None:
    """Return Glue's type of a column with the fields that its structs get; None where the types
    differ in more."""
    return with_new_fields(plain_glue_type(there), plain_glue_type(wanted))


def is_cast_to(kind: str) -> bool:
    """Return whether `columns.types` with this type makes a column of this type in Glue."""
    try:
        return "<" not in kind and glue_type(kind) == kind
    except NoGlueType:
        return False


def _depth(kind: str) -> int:
    depth = deepest = 0
    for char in kind:
        depth += (char == "<") - (char == ">")
        deepest = max(deepest, depth)
    return deepest


def plain_glue_type(kind: str) -> str:
    """Return a Glue type in the one spelling in which types are compared."""
    text = re.sub(r"\s", "", kind).lower()
    return _WORD.sub(lambda word: _GLUE_ALIASES.get(word[0], word[0]), text)


def _in_glue(kind: Type) -> Type:
    """Return the Glue type of a type in lower case, without spaces."""
    if isinstance(kind, Nested):
        if kind.kind == "struct" and not kind.names:
            raise NoGlueType("Athena cannot read a struct without fields")
        if odd := next((name for name in kind.names if not _WORD.fullmatch(name)), None):
            raise NoGlueType(f"Athena cannot read a field of the name `{odd}`")
        inner = tuple(map(_in_glue, kind.inner))
        if kind.kind == "map" and isinstance(inner[0], Nested):
            key = type_text(inner[0])
            raise NoGlueType(f"Athena reads maps with simple keys only, and this key is `{key}`")
        return replace(kind, inner=inner)
    if _DECIMAL.fullmatch(kind):
        return kind
    rule = type_rule(_SPARK_NAMES.get(kind, kind))
    if rule is None or rule.written != "AS_IS" or kind == "decimal":
        raise NoGlueType(f"Glue and Athena have no type for `{kind}`")
    return rule.glue


CREATED_BY = "lakeload.created-by"
"""Table parameter: the pipeline whose load made the table in Glue."""

STRATEGY = "lakeload.partition-strategy"
"""Table parameter: a day's folder holds those of its hours, and Athena would read those twice."""

INCOMPLETE = "lakeload.incomplete"
"""Table parameter while a table that was dropped gets back the partitions of its older files."""

SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_INPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
_OUTPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
TABLE_TYPE = "EXTERNAL_TABLE"
# What UpdateTable takes of what GetTable gives; the rest is Glue's own to write.
_INPUT_FIELDS = (
    "Name",
    "Description",
    "Owner",
    "LastAccessTime",
    "LastAnalyzedTime",
    "Retention",
    "StorageDescriptor",
    "PartitionKeys",
    "ViewOriginalText",
    "ViewExpandedText",
    "TableType",
    "Parameters",
    "TargetTable",
)
_PARTITION_FIELDS = ("Values", "LastAccessTime", "LastAnalyzedTime", "Parameters")


@dataclass(frozen=True)
class WantedTable:
    """The table that the done loads make: Glue names and types, all in lower case."""

    database: str
    name: str
    location: str
    """`s3://bucket/prefix/schema/table/`."""
    columns: tuple[tuple[str, str], ...]
    partition_key: str | None
    strategy: PartitionStrategy
    created_by: str
    projection: Mapping[str, str] = field(default_factory=dict)
    """Parameters of Athena's partition projection; none when partitions are registered."""
    comments: Comments = NO_COMMENTS
    """By Glue names. None where the source is not at hand, as for a late update."""
    new_columns: Mapping[str, str] = field(default_factory=dict)
    """Columns that no file of the table has yet: Glue name → name in the source."""

    @property
    def has_files(self) -> bool:
        """Whether rows of this table are loaded, with these settings."""
        return any(name not in self.new_columns for name, _ in self.columns)

    @property
    def full_name(self) -> str:
        """`database.table`, for messages."""
        return f"{self.database}.{self.name}"

    @property
    def database_location(self) -> str:
        """`s3://bucket/prefix/schema/`."""
        return self.location.rstrip("/").rpartition("/")[0] + "/"

    @property
    def registers(self) -> bool:
        """Whether Glue has to be told of each partition."""
        return self.partition_key is not None and not self.projection

    def partition_location(self, value: str) -> str:
        """Where the files of one partition lie."""
        return f"{self.location}{value}/"


def glue_columns(columns: Sequence[Column]) -> tuple[tuple[str, str], ...]:
    """Return names and Glue types of recorded columns. Raises `CatalogConflict`."""
    result = []
    for column in columns:
        try:
            result.append((column.name.lower(), glue_type(column.type)))
        except NoGlueType as error:
            raise _unreadable_type(column.name, column.type, str(error)) from error
    return tuple(result)


def _unreadable_type(column: str, kind: str, why: str) -> CatalogConflict:
    """A column that a Glue table cannot have."""
    return CatalogConflict(
        f"column `{column}` is `{kind}`: {why}",
        hint="set `nested: JSON`, give it another type with `columns.types`, or leave it out with "
        "`columns.exclude`",
    )


def same_location(one: str, other: str) -> bool:
    """Return whether two S3 locations are one: clients write the scheme and the end differently."""
    return _plain_location(one) == _plain_location(other)


def united(table: TableTypeDef, wanted: WantedTable) -> TableInputTypeDef | None:
    """Return the table with what ours has and Glue's has not; None when there is nothing to add.

    Nothing is ever taken away or moved: columns of other loads, of people, and every parameter
    stay as they are. Structs get their new fields at the end. A comment fills an empty one.
    """
    known = {name for name, _ in columns_of(table)}
    added = [column for column in wanted.columns if column[0] not in known]
    grown = grown_columns(table, wanted)
    parameters = widened_range(table.get("Parameters", {}), wanted.projection)
    there = table.get("StorageDescriptor", {}).get("Columns", [])
    bare = {column["Name"].lower() for column in there if not column.get("Comment")}
    comments = {name: text for name, text in wanted.comments.columns.items() if name in bare}
    described = bool(wanted.comments.table) and not table.get("Description")
    if not (added or grown or parameters or comments or described):
        return None
    changed = _as_input(table)
    if described:
        changed["Description"] = wanted.comments.table
    storage = dict(table.get("StorageDescriptor", {}))
    kept = [
        {**column, "Type": grown.get(column["Name"].lower(), column.get("Type", ""))}
        for column in there
    ]
    storage["Columns"] = [
        *_commented(kept, comments),
        *_commented(_column_inputs(added), wanted.comments.columns),
    ]
    changed["StorageDescriptor"] = storage
    changed["Parameters"] = {**table.get("Parameters", {}), **parameters}
    return cast("TableInputTypeDef", changed)


def grown_columns(table: Mapping[str, Any], wanted: WantedTable) -> dict[str, str]:
    """Return the columns whose structs get new fields, with their types."""
    kinds = dict(wanted.columns)
    return {
        name: grown
        for name, there in columns_of(table)
        if name in kinds
        and (grown := grown_glue_type(there, kinds[name])) is not None
        and not same_glue_type(grown, there)
    }


def added_fields(table: Mapping[str, Any], wanted: WantedTable) -> tuple[str, ...]:
    """Return the paths of the fields that structs get."""
    there = dict(columns_of(table))
    grown = grown_columns(table, wanted)
    return tuple(
        path
        for name in grown
        for path in new_fields(plain_glue_type(there[name]), grown[name], name)
    )


def outdated_partition(
    partition: Mapping[str, Any], columns: Sequence[tuple[str, str]]
) -> PartitionInputTypeDef | None:
    """Return a partition with the types that the columns of its table have; None where it has them.

    A partition whose struct lacks a field hides it: Athena reads the files of a partition with the
    types of the partition, and then makes them those of the table.
    """
    kinds = dict(columns)
    own = columns_of(partition)
    if all(same_glue_type(kind, kinds.get(name, kind)) for name, kind in own):
        return None
    changed = {name: partition[name] for name in _PARTITION_FIELDS if partition.get(name)}
    storage = dict(partition.get("StorageDescriptor", {}))
    storage["Columns"] = _column_inputs([(name, kinds.get(name, kind)) for name, kind in own])
    changed["StorageDescriptor"] = storage
    return cast("PartitionInputTypeDef", changed)


def is_incomplete(table: TableTypeDef) -> bool:
    """Return whether partitions of older files still have to be registered."""
    return INCOMPLETE in table.get("Parameters", {})


def completed(table: TableTypeDef) -> TableInputTypeDef:
    """Return the table without the mark that it is incomplete."""
    changed = _as_input(table)
    parameters = table.get("Parameters", {})
    changed["Parameters"] = {name: parameters[name] for name in parameters if name != INCOMPLETE}
    return cast("TableInputTypeDef", changed)


def table_input(wanted: WantedTable, *, incomplete: bool = False) -> TableInputTypeDef:
    """Return the table as CreateTable wants it."""
    key = wanted.partition_key
    storage = _storage(wanted.columns, wanted.location)
    storage["Columns"] = _commented(storage["Columns"], wanted.comments.columns)
    description = wanted.comments.table
    return {
        "Name": wanted.name,
        **({"Description": description} if description else {}),  # type: ignore[typeddict-item]
        "TableType": TABLE_TYPE,
        "Parameters": {
            "EXTERNAL": "TRUE",
            "classification": "parquet",
            CREATED_BY: wanted.created_by,
            STRATEGY: wanted.strategy,
            **wanted.projection,
            **({INCOMPLETE: "true"} if incomplete else {}),
        },
        "StorageDescriptor": storage,
        "PartitionKeys": [{"Name": key, "Type": "string"}] if key else [],
    }


def partition_input(
    columns: Sequence[tuple[str, str]], value: str, location: str
) -> PartitionInputTypeDef:
    """Return a partition as BatchCreatePartition wants it; `columns` are those of the table.

    All of them and in their order: whoever compares by position then finds the same types.
    """
    return {"Values": [value], "StorageDescriptor": _storage(columns, location)}


def columns_of(table: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return names, in lower case, and types of a table's columns."""
    columns = table.get("StorageDescriptor", {}).get("Columns", [])
    return tuple((column["Name"].lower(), column.get("Type", "")) for column in columns)


def _as_input(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return what UpdateTable takes of what GetTable gave.

    A field without a value may come back as '' or None, which no request may hold.
    """
    return {name: table[name] for name in _INPUT_FIELDS if table.get(name) not in (None, "")}


def _storage(columns: Sequence[tuple[str, str]], location: str) -> StorageDescriptorTypeDef:
    return {
        "Columns": _column_inputs(columns),
        "Location": location,
        "InputFormat": _INPUT,
        "OutputFormat": _OUTPUT,
        "SerdeInfo": {
            "SerializationLibrary": SERDE,
            "Parameters": {"serialization.format": "1"},
        },
        "StoredAsSubDirectories": False,
    }


def _column_inputs(columns: Sequence[tuple[str, str]]) -> list[Any]:
    return [{"Name": name, "Type": kind} for name, kind in columns]


def _commented(columns: Sequence[Any], comments: Mapping[str, str]) -> list[Any]:
    """Return columns with the comments that there are for them."""
    return [
        {**column, "Comment": comments[column["Name"].lower()]}
        if column["Name"].lower() in comments
        else column
        for column in columns
    ]


def _plain_location(location: str) -> str:
    scheme, _, rest = location.partition("://")
    return rest.rstrip("/") if scheme in ("s3", "s3a", "s3n") else location

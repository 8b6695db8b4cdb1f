"""Definitions of tables as Iceberg's JSON: columns, partitions and sort order, and their changes.

Ids are given as Iceberg's Java library gives them, so that a table looks the same whoever made it:
https://iceberg.apache.org/spec/#schemas-and-data-types, "Schema evolution" and "Partitioning".
"""

from __future__ import annotations

import copy
import itertools
import json
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakeload_jobs.contract.spec import PartitionField
from lakeload_jobs.formats.iceberg.commits.errors import Unsupported
from lakeload_jobs.formats.iceberg.commits.metadata import (
    FIRST_PARTITION_ID,
    Json,
    Metadata,
    add_schema,
    add_sort_order,
    add_spec,
    remove_properties,
    schema_of,
    set_properties,
    spec_of,
)

Path = tuple[str, ...]
"""A column, or a field in one: `("address", "city")`; `element` and `value` lead into lists and
maps."""

UNSORTED: Json = {"order-id": 0, "fields": []}
"""The sort order of a table without one, which has the same id in each table."""

NAME_MAPPING = "schema.name-mapping.default"
"""The property that says which columns of files without ids are which of the table."""

_VOID = "void"
_TRANSFORM = re.compile(r"identity|year|month|day|hour|void|bucket\[\d+\]|truncate\[\d+\]")
_OF_TIME = ("year", "month", "day", "hour")
_SUFFIXES = {"identity": "", "truncate": "_trunc"}
_SINCE_V3 = re.compile(r"variant|unknown|timestamp(tz)?_ns|geometry.*|geography.*")
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
_ROOT = -1
_OF_COLUMNS = (
    "write.metadata.metrics.column.",
    "write.parquet.bloom-filter-enabled.column.",
    "write.parquet.stats-enabled.column.",
)
"""Properties of single columns, which go with them."""


class InvalidDefinition(ValueError):
    """Columns, partitions or a sort order that Iceberg does not take; the text says why."""


# Schemas


def new_schema(fields: Sequence[Json], identifiers: Sequence[str] = ()) -> Json:
    """Return the schema of a new table, with ids from 1. `fields` are as in a schema, any ids in
    them are replaced; `identifiers` become required. Raises `InvalidDefinition`."""
    number = itertools.count(1)
    made = with_fresh_ids({"type": "struct", "fields": list(fields)}, lambda: next(number))
    found: Json = {"type": "struct", "schema-id": 0}
    if identifiers:
        ids = {field["name"]: field["id"] for field in made["fields"]}
        found["identifier-field-ids"] = sorted(ids[name] for name in identifiers)
    found["fields"] = [
        {**field, "required": True} if field["name"] in identifiers else field
        for field in made["fields"]
    ]
    check_schema(found)
    return found


def with_fresh_ids(kind: Any, number: Callable[[], int]) -> Any:
    """Return a type with ids from `number`: the fields of a struct are numbered before what is in
    them."""
    if isinstance(kind, str):
        return kind
    if kind["type"] == "struct":
        ids = [number() for _ in kind["fields"]]
        fields = [
            {**field, "id": own, "type": with_fresh_ids(field["type"], number)}
            for own, field in zip(ids, kind["fields"], strict=True)
        ]
        return {**kind, "fields": fields}
    parts = ("element",) if kind["type"] == "list" else ("key", "value")
    numbered = {f"{part}-id": number() for part in parts}
    return {**kind, **numbered, **{part: with_fresh_ids(kind[part], number) for part in parts}}


def column_ids(schema: Mapping[str, Any]) -> dict[str, int]:
    """Return name → id of columns and fields, by which partitions and properties call them:
    `address.city`, `items.element.price` and, where that is no other column, `items.price`.

    Raises `InvalidDefinition` for a name that two of them have.
    """
    names: dict[str, int] = {}
    short: dict[str, int] = {}
    for one in _fields_in(schema["fields"], (), ()):
        name = ".".join(one.path)
        if name in names:
            raise InvalidDefinition(f"two columns are called `{name}`")
        names[name] = one.id
        if one.short:
            short.setdefault(".".join((*one.short, one.path[-1])), one.id)
    return {**short, **names}


@dataclass(frozen=True)
class _Field:
    """A field of any depth. `within` has a list or map around it."""

    id: int
    path: Path
    short: Path
    """The way to it without the `element` and `value` of structs."""
    kind: Any
    required: bool
    parents: tuple[int, ...]
    within: bool


def _fields_in(
    fields: Sequence[Json],
    path: Path,
    short: Path,
    parents: tuple[int, ...] = (),
    *,
    within: bool = False,
) -> Iterator[_Field]:
    for field in fields:
        number, name, kind = field["id"], field["name"], field["type"]
        deeper = (*parents, number)
        yield from _parts_in(kind, (*path, name), (*short, name), deeper, within=within)
        yield _Field(number, (*path, name), short, kind, field["required"], parents, within)


def _parts_in(
    kind: Any, path: Path, short: Path, parents: tuple[int, ...], *, within: bool
) -> Iterator[_Field]:
    if isinstance(kind, str):
        return
    if kind["type"] == "struct":
        yield from _fields_in(kind["fields"], path, short, parents, within=within)
        return
    parts = ("element",) if kind["type"] == "list" else ("key", "value")
    for part in parts:
        inner, number = kind[part], kind[f"{part}-id"]
        # The short name of a field in a list of structs leaves the `element` out.
        skipped = part != "key" and not isinstance(inner, str) and inner["type"] == "struct"
        deeper = short if skipped else (*short, part)
        yield from _parts_in(inner, (*path, part), deeper, (*parents, number), within=True)
    for part in parts:
        required = part == "key" or kind[f"{part}-required"]
        number = kind[f"{part}-id"]
        yield _Field(number, (*path, part), short, kind[part], required, parents, within=True)


def check_schema(schema: Mapping[str, Any], format_version: int | None = None) -> None:
    """Raise `InvalidDefinition` for a schema that Iceberg does not take, in a table of this version
    of the format where that is known."""
    column_ids(schema)
    fields = {one.id: one for one in _fields_in(schema["fields"], (), ())}
    for number in schema.get("identifier-field-ids") or ():
        _check_identifier(fields, number)
    if format_version is None or format_version >= 3:
        return
    for one in fields.values():
        if isinstance(one.kind, str) and _SINCE_V3.fullmatch(one.kind):
            raise InvalidDefinition(
                f"the column `{'.'.join(one.path)}` is of the type `{one.kind}`, which tables of "
                f"format version {format_version} do not have"
            )


def _check_identifier(fields: Mapping[int, _Field], number: int) -> None:
    one = fields.get(number)
    if one is None:
        raise InvalidDefinition(f"the identifier field {number} is no column")
    name = f"the identifier field `{'.'.join(one.path)}`"
    if not isinstance(one.kind, str):
        raise InvalidDefinition(f"{name} is no single value")
    if one.kind in ("float", "double"):
        raise InvalidDefinition(f"{name} is `{one.kind}`, whose values are not exact")
    if not one.required or not all(fields[parent].required for parent in one.parents):
        raise InvalidDefinition(f"{name} may be null")
    if one.within:
        raise InvalidDefinition(f"{name} is in a list or map")


def same_schema(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two schemas are the same but for their own ids."""
    return bool(_plain(one) == _plain(other))


def _plain(schema: Mapping[str, Any]) -> Any:
    identifiers = sorted(schema.get("identifier-field-ids") or ())
    return _without_nothing(schema["fields"]), identifiers


def _without_nothing(kind: Any) -> Any:
    """Return a type without keys that say nothing, such as a `doc` that is null."""
    if isinstance(kind, Mapping):
        return {key: _without_nothing(part) for key, part in kind.items() if part is not None}
    return [_without_nothing(part) for part in kind] if isinstance(kind, list) else kind


# Partitions and order


def partition_spec(schema: Mapping[str, Any], fields: Sequence[PartitionField]) -> Json:
    """Return the partition spec of a new table; `fields` name columns of `schema`. Raises
    `InvalidDefinition`."""
    number = itertools.count(FIRST_PARTITION_ID)
    ids = column_ids(schema)
    made = [
        {**_partition(ids, field, new_table=True), "field-id": own}
        for field, own in zip(fields, number, strict=False)
    ]
    _check_partitions(schema, made)
    _check_redundant(fields)
    return {"spec-id": 0, "fields": made}


def _partition(ids: Mapping[str, int], field: PartitionField, *, new_table: bool) -> Json:
    """Return a field of a spec without its id, named as Iceberg names it: those of a new table
    leave the width out."""
    if field.column not in ids:
        raise InvalidDefinition(
            f"partitions are to be made by `{field.column}`, which is no column"
        )
    name = f"{field.column}{_SUFFIXES.get(field.transform, f'_{field.transform}')}"
    transform: str = field.transform
    if field.width is not None:
        name += "" if new_table else f"_{field.width}"
        transform += f"[{field.width}]"
    return {"name": name, "transform": transform, "source-id": ids[field.column]}


def _check_redundant(fields: Sequence[PartitionField]) -> None:
    times: dict[str, str] = {}
    for field in fields:
        if field.transform in _OF_TIME:
            other = times.setdefault(field.column, field.transform)
            if other != field.transform:
                raise InvalidDefinition(
                    f"`{field.transform}` of `{field.column}` is redundant beside `{other}`"
                )


def _check_partitions(schema: Mapping[str, Any], fields: Sequence[Json]) -> None:
    _check_partition_names(schema, fields)
    known = {one.id: one for one in _fields_in(schema["fields"], (), ())}
    for field in fields:
        if field["transform"] == _VOID:
            continue
        source = known.get(field["source-id"])
        if source is None:
            raise InvalidDefinition(f"the column of the partition field `{field['name']}` is gone")
        if not isinstance(source.kind, str) or source.within:
            raise InvalidDefinition(
                f"the column of the partition field `{field['name']}` is no single value"
            )


def _check_partition_names(schema: Mapping[str, Any], fields: Sequence[Json]) -> None:
    """Names of partition fields are those of no column, but of the one that they come from."""
    ids = column_ids(schema)
    there = set(ids.values())
    seen = set()
    for field in fields:
        name, source = field["name"], field["source-id"]
        if name in seen:
            raise InvalidDefinition(f"two partition fields are called `{name}`")
        seen.add(name)
        # What is left of a column that is gone is no longer read.
        if source in there and ids.get(name, source) != source:
            raise InvalidDefinition(
                f"`{name}` is the name of a column and of a partition field of another one"
            )


def sort_order(schema: Mapping[str, Any], names: Sequence[str]) -> Json:
    """Return a sort order by columns, ascending with nulls first; `UNSORTED` for none."""
    return {"order-id": 1, "fields": _sorted_by(schema, names)} if names else UNSORTED


def _sorted_by(schema: Mapping[str, Any], names: Sequence[str]) -> list[Json]:
    ids = column_ids(schema)
    if unknown := [name for name in names if name not in ids]:
        raise InvalidDefinition(f"rows are to be sorted by `{unknown[0]}`, which is no column")
    by = {"transform": "identity", "direction": "asc", "null-order": "nulls-first"}
    return [{**by, "source-id": ids[name]} for name in names]


def order_of(metadata: Metadata) -> Json:
    """Return the default sort order."""
    wanted = metadata.get("default-sort-order-id", 0)
    orders: Sequence[Json] = metadata.get("sort-orders") or ()
    return next((one for one in orders if one["order-id"] == wanted), UNSORTED)


def same_definition(one: Metadata, other: Metadata) -> bool:
    """Whether two tables have the same columns, default partition spec and default sort order,
    with the same ids: files for the one are files for the other."""
    return (
        same_schema(schema_of(one), schema_of(other))
        and spec_of(one) == spec_of(other)
        and order_of(one) == order_of(other)
    )


# Changes


class Evolution:
    """Changes to the definition of a table, collected for one commit.

    Methods change `schema` at once, and raise `InvalidDefinition` for what Iceberg does not take;
    `updates` returns what the commit has to do.
    """

    def __init__(self, metadata: Metadata) -> None:
        self.schema: Json = copy.deepcopy(schema_of(metadata))
        self.properties: dict[str, str] = dict(metadata.get("properties") or {})
        self._before = metadata
        self._last = int(metadata["last-column-id"])
        self._partitions: list[Json] | None = None
        self._last_partition = int(metadata.get("last-partition-id", FIRST_PARTITION_ID - 1))
        self._order: list[Json] | None = None
        self._added: dict[int, list[Json]] = {}
        self._updated: set[int] = set()
        self._deleted: set[int] = set()

    def add(self, path: Path, kind: Any, doc: str | None = None) -> None:
        """Add a column, or a field to a struct, after those that are there: it is optional."""
        parent = self._slot(path[:-1]) if len(path) > 1 else None
        struct_of = self.schema if parent is None else parent.kind
        if isinstance(struct_of, str) or struct_of["type"] != "struct":
            raise InvalidDefinition(f"`{'.'.join(path[:-1])}` has no fields")
        if any(field["name"] == path[-1] for field in struct_of["fields"]):
            raise InvalidDefinition(f"there is a column `{'.'.join(path)}` already")
        number = self._next_id()
        field: Json = {
            "id": number,
            "name": path[-1],
            "required": False,
            "type": with_fresh_ids(kind, self._next_id),
        }
        if doc is not None:
            field["doc"] = doc
        struct_of["fields"].append(field)
        self._added.setdefault(_ROOT if parent is None else parent.id, []).append(field)
        self._updated.add(number)

    def delete(self, name: str) -> None:
        """Delete a column, and the properties that name it. One that is added under its name later
        is another one."""
        field = self._slot((name,)).holder
        self.schema["fields"].remove(field)
        self._deleted |= {one.id for one in _fields_in([field], (), ())}
        for prefix in _OF_COLUMNS:
            self.properties.pop(f"{prefix}{name}", None)

    def widen(self, path: Path, kind: str) -> None:
        """Give a column a type that holds all values of its own."""
        slot = self._slot(path)
        if slot.kind == kind:
            return
        if not _is_wider(slot.kind, kind):
            raise InvalidDefinition(f"`{'.'.join(path)}` cannot become `{kind}`")
        for default in ("initial-default", "write-default"):
            if kind == "double" and default in slot.holder:
                # Written as a float, it is the decimal number nearest to one.
                [exact] = struct.unpack("<f", struct.pack("<f", slot.holder[default]))
                slot.holder[default] = exact
        slot.holder[slot.name] = kind
        self._updated.add(slot.id)

    def make_optional(self, path: Path) -> None:
        """Let a column be null."""
        self._set_required(path, required=False)

    def require(self, path: Path) -> None:
        """Let a column not be null any more: whoever calls knows that no value of it is."""
        self._set_required(path, required=True)

    def describe(self, path: Path, doc: str) -> None:
        """Give a column a comment."""
        slot = self._slot(path)
        if slot.holder.get("doc") != doc:
            slot.holder["doc"] = doc
            self._updated.add(slot.id)

    def identify(self, names: Sequence[str]) -> None:
        """Make these columns the identifier fields, in place of those so far."""
        self.schema.pop("identifier-field-ids", None)
        if names:
            ids = [self._slot((name,)).id for name in names]
            self.schema["identifier-field-ids"] = sorted(ids)

    def partition(self, keep: int, add: Sequence[PartitionField]) -> None:
        """Partition new files by the first `keep` fields of the spec and those of `add`.

        A field that the table had once has its id and its name again. Raises `Unsupported` for a
        table of version 1, in which nothing of a spec may go.
        """
        if self._before["format-version"] == 1:
            raise Unsupported("partitions that change in a table of format version 1")
        self._partitions = fields = self._kept(keep)
        known: dict[tuple[int, str], Json] = {}
        for spec in self._before["partition-specs"]:
            for field in spec["fields"]:
                if field["transform"] != _VOID:
                    known[field["source-id"], field["transform"]] = field
        ids = column_ids(self.schema)
        _check_redundant(add)
        for wanted in add:
            made = _partition(ids, wanted, new_table=False)
            if (earlier := known.get((made["source-id"], made["transform"]))) is not None:
                made = dict(earlier)
            else:
                self._last_partition += 1
                made["field-id"] = self._last_partition
            for field in [one for one in fields if one["transform"] == _VOID]:
                # What version 1 has left of a field makes room.
                if field["field-id"] == made["field-id"]:
                    fields.remove(field)
                elif field["name"] == made["name"]:
                    field["name"] = f"{field['name']}_{field['field-id']}"
            if any(field["field-id"] == made["field-id"] for field in fields):
                raise InvalidDefinition(f"the partition field `{made['name']}` is there already")
            fields.append(made)

    def _kept(self, keep: int) -> list[Json]:
        fields = [dict(field) for field in spec_of(self._before)["fields"]]
        for field in fields:
            if not _TRANSFORM.fullmatch(field["transform"]):
                raise InvalidDefinition(
                    f"the transform `{field['transform']}` of a partition field is not known"
                )
        left = [field for field in fields if field["transform"] != _VOID][keep:]
        return [field for field in fields if field not in left]

    def sort_by(self, names: Sequence[str]) -> None:
        """Sort new files by these columns, ascending with nulls first; none: do not sort."""
        self._order = _sorted_by(self.schema, names)

    def updates(self) -> list[Json]:
        """Return the updates of a commit to the table that was given; none: nothing changes.

        Schemas, specs and orders that the table had once are used again. Raises
        `InvalidDefinition`.
        """
        before, schema = self._before, self.schema
        definition = _Definition(before)
        found: list[Json] = []
        if not same_schema(schema, schema_of(before)):
            check_schema(schema, before["format-version"])
            for spec in before["partition-specs"]:
                _check_partition_names(schema, spec["fields"])
            found += self._let_go(definition)
            found += definition.use_schema(schema, self._last)
            if (text := self.properties.get(NAME_MAPPING)) is not None:
                self.properties[NAME_MAPPING] = self._name_mapping(text)
        if self._partitions is not None:
            _check_partitions(schema, self._partitions)
            found += definition.use_spec(self._partitions)
        if self._order is not None:
            found += definition.use_order(self._order)
        return found + self._property_updates()

    def _let_go(self, definition: _Definition) -> list[Json]:
        """Return updates without which servers would not let the deleted columns go: no default
        spec and order may have one."""
        found: list[Json] = []
        if any(one["source-id"] in self._deleted for one in spec_of(self._before)["fields"]):
            if self._partitions is None:
                raise InvalidDefinition("a column that is deleted is one to partition by")
            found += definition.use_spec([])
        if any(one["source-id"] in self._deleted for one in order_of(self._before)["fields"]):
            if self._order is None:
                raise InvalidDefinition("a column that is deleted is one to sort by")
            found += definition.use_order([])
        return found

    def _name_mapping(self, text: str) -> str:
        """Return a name mapping with the columns as they are now; Java leaves what is none, too."""
        fields = _fields_in(self.schema["fields"], (), ())
        names = {one.id: one.path[-1] for one in fields if one.id in self._updated}
        try:
            before = json.loads(text)
            after = _mapped(before, _ROOT, names, self._added)
        except (ValueError, TypeError, KeyError, AttributeError):
            return text
        if after == before or not isinstance(before, list):
            return text
        return json.dumps(after, separators=(",", ":"))

    def _property_updates(self) -> list[Json]:
        before = self._before.get("properties") or {}
        gone = sorted(before.keys() - self.properties.keys())
        new = {key: value for key, value in self.properties.items() if before.get(key) != value}
        return [
            *([remove_properties(gone)] if gone else []),
            *([set_properties(new)] if new else []),
        ]

    def _next_id(self) -> int:
        self._last += 1
        return self._last

    def _set_required(self, path: Path, *, required: bool) -> None:
        slot = self._slot(path)
        if slot.holder[slot.required] != required:
            slot.holder[slot.required] = required
            self._updated.add(slot.id)

    def _slot(self, path: Path) -> _Slot:
        """Return where a column or field is in the schema. Map keys never change."""
        kind: Any = self.schema
        for name in path[:-1]:
            parent = _part(kind, name)
            kind = "" if parent is None else parent.kind
        if (slot := _part(kind, path[-1])) is None:
            raise InvalidDefinition(f"there is no column `{'.'.join(path)}`")
        return slot


@dataclass(frozen=True)
class _Slot:
    """Where a type is within a schema: `holder[name]`."""

    holder: Json
    name: str
    required: str
    number: str

    @property
    def kind(self) -> Any:
        return self.holder[self.name]

    @property
    def id(self) -> int:
        return int(self.holder[self.number])


def _part(kind: Any, name: str) -> _Slot | None:
    if isinstance(kind, str):
        return None
    if kind["type"] == "struct":
        for field in kind["fields"]:
            if field["name"] == name:
                return _Slot(field, "type", "required", "id")
        return None
    if name != ("element" if kind["type"] == "list" else "value"):
        return None
    return _Slot(kind, name, f"{name}-required", f"{name}-id")


def _is_wider(kind: Any, wanted: str) -> bool:
    if (kind, wanted) in (("int", "long"), ("float", "double")):
        return True
    old = _DECIMAL.fullmatch(kind) if isinstance(kind, str) else None
    new = _DECIMAL.fullmatch(wanted)
    if old is None or new is None:
        return False
    return old[2] == new[2] and int(old[1]) < int(new[1])


class _Definition:
    """The schemas, specs and orders of a table while updates are made for it."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._specs = {one["spec-id"]: one["fields"] for one in metadata["partition-specs"]}
        self._orders = {one["order-id"]: one["fields"] for one in metadata.get("sort-orders", ())}
        self._spec = int(metadata.get("default-spec-id", 0))
        self._order = int(metadata.get("default-sort-order-id", 0))

    def use_schema(self, schema: Json, last_column_id: int) -> list[Json]:
        """Make a schema the current one."""
        schemas = self._metadata["schemas"]
        for one in schemas:
            if same_schema(one, schema):
                return [{"action": "set-current-schema", "schema-id": one["schema-id"]}]
        number = max(one["schema-id"] for one in schemas) + 1
        return add_schema({**schema, "schema-id": number}, last_column_id)

    def use_spec(self, fields: Sequence[Json]) -> list[Json]:
        """Make a partition spec the default."""
        wanted = _same_of_spec(fields)
        same = (number for number, one in self._specs.items() if _same_of_spec(one) == wanted)
        number = next(same, None)
        if number is None:
            number = max(self._specs, default=-1) + 1
            self._specs[number], self._spec = fields, number
            return add_spec({"spec-id": number, "fields": list(fields)})
        if number == self._spec:
            return []
        self._spec = number
        return [{"action": "set-default-spec", "spec-id": number}]

    def use_order(self, fields: Sequence[Json]) -> list[Json]:
        """Make a sort order the default."""
        number = next((number for number, one in self._orders.items() if one == fields), None)
        if number is None:
            # No order has the id that no order is said by.
            number = max((0, *self._orders)) + 1 if fields else UNSORTED["order-id"]
            self._orders[number], self._order = fields, number
            return add_sort_order({"order-id": number, "fields": list(fields)})
        if number == self._order:
            return []
        self._order = number
        return [{"action": "set-default-sort-order", "sort-order-id": number}]


def _same_of_spec(fields: Sequence[Json]) -> list[tuple[Any, ...]]:
    """Ids of partition fields follow from the rest."""
    return [(one["source-id"], one["transform"], one["name"]) for one in fields]


# Name mappings


def _mapped(
    fields: Sequence[Json],
    parent: int | None,
    names: Mapping[int, str],
    added: Mapping[int, list[Json]],
) -> list[Json]:
    """Return the mapping of one struct. `names` are those of the fields that have changed, `added`
    the new fields by their parent."""
    taken, kept = {}, []
    for field in fields:
        number, own = field.get("field-id"), list(field["names"])
        if number is not None and number in names:
            taken[names[number]] = number
            own += [names[number]] if names[number] not in own else []
        inner = _mapped(field.get("fields") or (), number, names, added)
        kept.append({**field, "names": own, **({"fields": inner} if inner else {})})
    new = added.get(parent, ()) if parent is not None else ()
    taken |= {field["name"]: field["id"] for field in new}
    for field in kept:
        # A name leads to one field.
        number = field.get("field-id")
        field["names"] = [name for name in field["names"] if taken.get(name, number) == number]
    return [*kept, *(_new_mapped(field["id"], field["name"], field["type"]) for field in new)]


def _new_mapped(number: int, name: str, kind: Any) -> Json:
    parts: list[tuple[int, str, Any]] = []
    if isinstance(kind, Mapping) and kind["type"] == "struct":
        parts = [(one["id"], one["name"], one["type"]) for one in kind["fields"]]
    elif isinstance(kind, Mapping):
        inner = ("element",) if kind["type"] == "list" else ("key", "value")
        parts = [(kind[f"{part}-id"], part, kind[part]) for part in inner]
    fields = [_new_mapped(*part) for part in parts]
    return {"field-id": number, "names": [name], **({"fields": fields} if fields else {})}

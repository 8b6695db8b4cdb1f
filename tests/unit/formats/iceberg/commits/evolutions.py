"""Tables with columns of every kind, and changes to them at random."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lakeload_jobs.contract.spec import PartitionField
from lakeload_jobs.formats.iceberg.commits.definitions import (
    UNSORTED,
    Evolution,
    InvalidDefinition,
    new_schema,
    partition_spec,
    sort_order,
)
from lakeload_jobs.formats.iceberg.commits.metadata import (
    NOTHING,
    Json,
    Metadata,
    NewTable,
    schema_of,
    spec_of,
    updated,
)

Step = tuple[Any, ...]
"""The name of a method of `Evolution`, and its arguments."""

PLACE = "s3://lake/shop/orders"


def column(name: str, kind: Any, *, required: bool = False, **more: Any) -> Json:
    """Return a field without an id."""
    return {"id": 0, "name": name, "required": required, "type": kind, **more}


def struct(*fields: Json) -> Json:
    """Return a struct."""
    return {"type": "struct", "fields": list(fields)}


def list_of(kind: Any, *, required: bool = False) -> Json:
    """Return a list."""
    return {"type": "list", "element-id": 0, "element": kind, "element-required": required}


def map_of(key: Any, value: Any, *, required: bool = False) -> Json:
    """Return a map."""
    return {
        "type": "map", "key-id": 0, "key": key, "value-id": 0, "value": value,
        "value-required": required,
    }  # fmt: skip


ORDERS = (
    column("id", "long"),
    column("at", "timestamptz", doc="when"),
    column("region", "string"),
    column("name", "string"),
    column("price", "decimal(10, 2)"),
    column("ratio", "float"),
    column("count", "int"),
    column("items", list_of(struct(column("price", "float"), column("tags", list_of("string"))))),
    column("places", map_of("string", struct(column("city", "string", doc="where")))),
    column("address", struct(column("city", "string", required=True), column("zip", "int"))),
)


def table(
    fields: Sequence[Json] = ORDERS,
    key: Sequence[str] = (),
    partitions: Sequence[PartitionField] = (),
    order: Sequence[str] = (),
    *,
    version: int = 2,
    properties: Mapping[str, str] | None = None,
) -> Json:
    """Return the metadata of a new table."""
    schema = new_schema(fields, key)
    spec = partition_spec(schema, partitions)
    sorting = sort_order(schema, order) if order else UNSORTED
    new = NewTable(schema, spec, sorting, properties or {}, version)
    return updated(NOTHING, new.updates(PLACE), replaces=None, now_ms=1)


def evolve(metadata: Metadata, steps: Sequence[Step]) -> list[Json]:
    """Return the updates for these changes."""
    evolution = Evolution(metadata)
    for name, *arguments in steps:
        getattr(evolution, name)(*arguments)
    return evolution.updates()


def random_steps(chance: random.Random, metadata: Json) -> list[Step]:
    """Return changes that a table takes, each of another column."""
    while True:
        steps = list(_steps(chance, metadata))
        try:
            evolve(metadata, steps)
        except InvalidDefinition:
            continue
        return steps


def _steps(chance: random.Random, metadata: Json) -> Iterator[Step]:
    fields = list(schema_of(metadata)["fields"])
    chance.shuffle(fields)
    identifiers = schema_of(metadata).get("identifier-field-ids") or ()
    for field in fields[: chance.randrange(5)]:
        yield from _step_of(chance, field, field["id"] in identifiers)
    for number in range(chance.randrange(3)):
        doc = chance.choice((None, "new", "says “what”"))
        name = f"c{metadata['last-column-id']}_{number}"
        yield "add", (name,), random_type(chance), doc
    if chance.random() < 0.4:
        kept = len(spec_of(metadata)["fields"])
        yield "partition", chance.randint(0, kept), tuple(_partitions(chance, fields))
    if chance.random() < 0.2:
        plain = [one["name"] for one in fields if isinstance(one["type"], str)]
        yield "sort_by", tuple(chance.sample(plain, min(len(plain), chance.randrange(3))))


def _step_of(chance: random.Random, field: Json, identifier: bool) -> Iterator[Step]:
    path = (field["name"],)
    for inner, kind in _within(path, field["type"]):
        if kind == "int" and chance.random() < 0.5:
            yield "widen", inner, "long"
        elif kind == "float" and chance.random() < 0.5:
            yield "widen", inner, "double"
        elif isinstance(kind, dict) and kind["type"] == "struct" and chance.random() < 0.5:
            yield "add", (*inner, f"f{field['id']}_{len(kind['fields'])}"), random_type(chance)
    if chance.random() < 0.3:
        yield "describe", path, f"said {chance.randrange(9)}"
    elif field["required"] and not identifier:
        yield "make_optional", path


def _within(path: tuple[str, ...], kind: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, kind
    if isinstance(kind, str):
        return
    if kind["type"] == "struct":
        for field in kind["fields"]:
            yield from _within((*path, field["name"]), field["type"])
    else:
        part = "element" if kind["type"] == "list" else "value"
        yield from _within((*path, part), kind[part])


def _partitions(chance: random.Random, fields: Sequence[Json]) -> Iterator[PartitionField]:
    for field in fields[: chance.randrange(3)]:
        kind, name = field["type"], field["name"]
        if kind in ("date", "timestamp", "timestamptz"):
            yield PartitionField(chance.choice(("year", "month", "day")), name)
        elif kind in ("int", "long", "string"):
            width = chance.choice((None, 4, 8))
            yield PartitionField("bucket" if width else "identity", name, width)


def random_type(chance: random.Random, depth: int = 0) -> Any:
    """Return a type, without ids."""
    kind = chance.randrange(9 if depth < 3 else 6)
    if kind < 6:
        return ("int", "long", "float", "string", "timestamptz", "decimal(9, 2)")[kind]
    if kind == 6:
        return list_of(random_type(chance, depth + 1), required=chance.random() < 0.5)
    if kind == 7:
        key = "string" if chance.random() < 0.8 else struct(column("k", "int", required=True))
        return map_of(key, random_type(chance, depth + 1))
    names = ("a", "b", "c d")[: chance.randint(1, 3)]
    return struct(
        *(
            column(name, random_type(chance, depth + 1), required=chance.random() < 0.3)
            for name in names
        )
    )

"""Types as Iceberg's Java library and pyiceberg write them."""

from __future__ import annotations

import random

import pytest
from pyiceberg import types as py

from lakeload_jobs.formats.iceberg.rules.schema import (
    Field,
    IcebergType,
    ListOf,
    MapOf,
    Primitive,
    Struct,
    parse_type,
)

_PRIMITIVES: tuple[py.IcebergType, ...] = (
    py.BooleanType(),
    py.IntegerType(),
    py.LongType(),
    py.FloatType(),
    py.DoubleType(),
    py.DateType(),
    py.TimeType(),
    py.TimestampType(),
    py.TimestamptzType(),
    py.TimestampNanoType(),
    py.TimestamptzNanoType(),
    py.StringType(),
    py.UUIDType(),
    py.BinaryType(),
    py.UnknownType(),
    py.FixedType(16),
    py.DecimalType(38, 0),
)
_NAMES = ("id", "created at", "ключ", "a:b", "a, 2: b", "x<y>", "optional", "(a)", "`")
_DOCS = (None, "plain", "with (brackets), and: colons", "ends > here")


@pytest.mark.parametrize("kind", _PRIMITIVES, ids=str)
def test_a_primitive_is_written_as_it_is_read(kind: py.IcebergType) -> None:
    assert str(parse_type(str(kind))) == str(kind)


def test_iceberg_type_ignores_ids_and_comments() -> None:
    java = (
        "struct<3: city: optional string (where, 4: it is), 4: zip: required int, "
        "5: tags: optional list<string>, 6: prices: optional map<string, decimal(12, 2)>>"
    )
    own = parse_type(java)
    assert own == Struct(
        (
            Field("city", Primitive("string")),
            Field("zip", Primitive("int"), required=True),
            Field("tags", ListOf(Primitive("string"))),
            Field("prices", MapOf(Primitive("string"), Primitive("decimal", (12, 2)))),
        )
    )
    plain = (
        "struct<city: string, zip: int, tags: list<string>, prices: map<string, decimal(12, 2)>>"
    )
    assert str(own) == plain
    assert str(parse_type(plain)) == plain


def test_whatever_pyiceberg_writes_is_read_as_it_was_meant() -> None:
    rng = random.Random(7)  # noqa: S311
    for _ in range(300):
        kind, meant = _any(rng, 3)
        assert parse_type(str(kind)) == meant, str(kind)


@pytest.mark.parametrize(
    "text",
    ["", "Struct", "list<int", "list<>", "map<int>", "struct<a>", "decimal", "fixed", "int x", "1"],
)
def test_invalid_iceberg_type_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="is not a type of Iceberg"):
        parse_type(text)


@pytest.mark.parametrize(
    "text", ["variant", "geometry(srid:4326)", "geography(srid:4326, spherical)"]
)
def test_types_of_later_versions_are_read_whole(text: str) -> None:
    assert str(parse_type(text)) == text


def _any(rng: random.Random, depth: int) -> tuple[py.IcebergType, IcebergType]:
    shape = rng.randrange(4) if depth else 0
    if shape == 0:
        kind = rng.choice(_PRIMITIVES)
        parsed = parse_type(str(kind))
        assert isinstance(parsed, Primitive)
        return kind, parsed
    if shape == 1:
        element, meant = _any(rng, depth - 1)
        return py.ListType(rng.randrange(999), element, rng.random() < 0.5), ListOf(meant)
    if shape == 2:
        key, meant_key = _any(rng, depth - 1)
        value, meant_value = _any(rng, depth - 1)
        return py.MapType(1, key, 2, value, True), MapOf(meant_key, meant_value)
    fields, meant_fields = [], []
    for name in rng.sample(_NAMES, rng.randrange(1, 5)):
        of, meant_of = _any(rng, depth - 1)
        needed = rng.random() < 0.5
        doc = rng.choice(_DOCS)
        fields.append(py.NestedField(rng.randrange(999), name, of, required=needed, doc=doc))
        meant_fields.append(Field(name, meant_of, needed))
    return py.StructType(*fields), Struct(tuple(meant_fields))

"""Types that schemas of Airbyte and Estuary declare, by the tables of types of these products."""

from __future__ import annotations

from typing import Any

import pytest

from lakeload.documents.columns import check_type
from lakeload.init.declared_types import Dialect, declared_types

STRING = {"type": "string"}
WELL_KNOWN = "WellKnownTypes.json#/definitions/"


def tupled(value: Any) -> Any:
    """Return a schema as it is read: its lists are tuples."""
    if isinstance(value, dict):
        return {name: tupled(item) for name, item in value.items()}
    return tuple(map(tupled, value)) if isinstance(value, list) else value


def kind_of(schema: Any, dialect: Dialect) -> str:
    """Return the type of a column, which `columns.types` has to take."""
    declared = declared_types(tupled({"type": "object", "properties": {"c": schema}}), dialect)
    assert declared.unknown == []
    return check_type(declared.types["c"])


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "boolean"}, "boolean"),
        ({"type": ["null", "integer"]}, "bigint"),
        ({"type": "number"}, "double"),
        ({"type": "number", "airbyte_type": "integer"}, "bigint"),
        (STRING, "string"),
        (STRING | {"format": "date"}, "date"),
        (STRING | {"format": "date-time"}, "timestamp"),
        (STRING | {"format": "date-time", "airbyte_type": "timestamp_with_timezone"}, "timestamp"),
        (
            STRING | {"format": "date-time", "airbyte_type": "timestamp_without_timezone"},
            "timestamp_ntz",
        ),
        (STRING | {"format": "time", "airbyte_type": "time_with_timezone"}, "string"),
        (STRING | {"contentEncoding": "base64"}, "string"),
        ({"type": "array", "items": {"type": "integer"}}, "string"),
        ({"type": ["object", "null"], "properties": {"a": STRING}}, "string"),
        ({"type": ["integer", "string"]}, "string"),
        ({"oneOf": [{"type": "integer"}, STRING]}, "string"),
        ({"oneOf": [{"type": "null"}, {"type": "integer"}]}, "bigint"),
        ({"$ref": f"{WELL_KNOWN}TimestampWithoutTimezone"}, "timestamp_ntz"),
        ({"$ref": f"{WELL_KNOWN}Number"}, "double"),
        ({}, "string"),
    ],
)
def test_airbyte_type_is_that_of_its_table_of_types(schema: Any, kind: str) -> None:
    assert kind_of(schema, "airbyte") == kind


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "boolean"}, "boolean"),
        ({"type": ["integer", None]}, "bigint"),
        ({"type": ["number", "null"]}, "double"),
        ({"type": ["integer", "number"]}, "double"),
        (STRING, "string"),
        (STRING | {"format": "date"}, "date"),
        (STRING | {"format": "date-time"}, "timestamp"),
        (STRING | {"format": "integer"}, "bigint"),
        (STRING | {"format": "number"}, "double"),
        ({"type": ["integer", "string"], "format": "integer"}, "bigint"),
        ({"type": ["number", "string", "null"], "format": "number"}, "double"),
        (STRING | {"contentEncoding": "base64"}, "binary"),
        (STRING | {"format": "time"}, "string"),
        (STRING | {"format": "uuid"}, "string"),
        ({"type": "array"}, "string"),
        ({"type": "object"}, "string"),
        ({"type": ["boolean", "string"]}, "string"),
    ],
)
def test_estuary_type_is_that_of_its_table_of_types(schema: Any, kind: str) -> None:
    assert kind_of(schema, "estuary") == kind


def test_references_within_the_document_are_followed() -> None:
    schema = {
        "$defs": {"day": STRING | {"format": "date"}, "row": {"properties": {"on": {"$ref": DAY}}}},
        "allOf": [{"$ref": "#/$defs/row"}, {"properties": {"n": {"type": "integer"}}}],
    }
    assert declared_types(tupled(schema), "estuary").types == {"on": "date", "n": "bigint"}


DAY = "#/$defs/day"


def test_references_to_other_documents_are_named_by_column() -> None:
    schema = {
        "properties": {"a": {"$ref": "other.yaml#/a"}, "n": {"type": "integer"}},
        "allOf": [{"$ref": "flow://inferred-schema"}],
    }
    declared = declared_types(tupled(schema), "estuary")
    assert declared.types == {"n": "bigint"}
    assert declared.unknown == [("a", "other.yaml#/a"), ("", "flow://inferred-schema")]


def test_document_that_is_bundled_is_read() -> None:
    schema = {
        "$defs": {"flow://write-schema": {"properties": {"n": {"type": "integer"}}}},
        "allOf": [{"$ref": "flow://write-schema"}],
    }
    declared = declared_types(tupled(schema), "estuary")
    assert (declared.types, declared.unknown) == ({"n": "bigint"}, [])


@pytest.mark.parametrize(
    "circle",
    [
        {"$ref": "#/$defs/a"},
        {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]},
        {"oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]},
    ],
)
def test_circle_of_references_ends(circle: Any) -> None:
    schema = tupled({"$defs": {"a": circle}, "properties": {"a": circle}})
    assert declared_types(schema, "estuary").types == {"a": "string"}


def test_name_in_a_reference_may_be_escaped() -> None:
    schema = {
        "$defs": {"a/b~": {"type": "integer"}},
        "properties": {"n": {"$ref": "#/$defs/a~1b~0"}},
    }
    assert declared_types(schema, "estuary").types == {"n": "bigint"}


def test_number_that_is_a_key_is_text_as_there() -> None:
    numbers = {
        "id": {"type": "number"},
        "code": STRING | {"format": "integer"},
        "line": {"type": "integer"},
    }
    schema = tupled({"properties": numbers})
    key = declared_types(schema, "estuary", tuple(numbers)).types
    assert key == {"id": "string", "code": "string", "line": "bigint"}
    assert declared_types(schema, "estuary").types == {
        "id": "double",
        "code": "bigint",
        "line": "bigint",
    }
    assert declared_types(schema, "airbyte", ("id",)).types["id"] == "string"


def test_keywords_that_are_not_checked_here_are_named() -> None:
    schema = {
        "required": ["a"],
        "properties": {"a": STRING | {"maxLength": 3}, "b": {"type": "array", "items": {}}},
        "reduce": {"strategy": "merge"},
    }
    assert declared_types(tupled(schema), "estuary").keywords == {"maxLength", "required", "reduce"}

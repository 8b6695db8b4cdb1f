"""Nulls where the table requires a value, at every depth."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lakeload_jobs.rows.required import has_required, null_is_required, required_null


def required(kind: pa.DataType, name: str = "element") -> pa.Field[Any]:
    return pa.field(name, kind, nullable=False)


INT = pa.int64()
STRUCT = pa.struct([required(INT, "a")])
VALUE: Any = required(INT, "value")
CASES: list[tuple[pa.Field[Any], pa.DataType, list[Any], tuple[str, ...]]] = [
    (required(INT, "v"), INT, [1, None], ("v",)),
    (pa.field("v", pa.list_(required(INT))), pa.list_(INT), [[1], None, [], [None]], ("element",)),
    (
        pa.field("v", pa.map_(pa.string(), VALUE)),
        pa.map_(pa.string(), INT),
        [[("x", 1)], None, [], [("x", 2), ("y", None)]],
        ("value",),
    ),
    (
        pa.field("v", STRUCT),
        pa.struct([("a", INT)]),
        [{"a": 1}, None, {"a": None}],
        ("a",),
    ),
    (
        pa.field("v", pa.list_(pa.field("element", STRUCT))),
        pa.list_(pa.struct([("a", INT)])),
        [[{"a": 1}, None], None, [{"a": None}]],
        ("element", "a"),
    ),
]


@pytest.mark.parametrize(("field", "kind", "values", "path"), CASES)
def test_required_null_returns_path_of_first_null(
    field: pa.Field[Any], kind: pa.DataType, values: list[Any], path: tuple[str, ...]
) -> None:
    column = pa.array(values, kind)
    wanted = (field.name, *path) if path != ("v",) else path

    assert has_required(field)
    assert required_null(column, field) == wanted
    assert required_null(column.slice(len(values) - 1), field) == wanted
    assert required_null(column.slice(0, len(values) - 1), field) is None


def test_column_without_anything_required_may_be_null() -> None:
    field = pa.field("v", pa.map_(pa.string(), pa.list_(INT)))

    assert not has_required(field)
    assert required_null(pa.array([None, [("x", [None])]], field.type), field) is None


def test_hint_names_a_way_that_works_for_what_is_required() -> None:
    assert "`schema_changes: EVOLVE`" in (null_is_required("orders", ("v", "a")).hint or "")
    for path in (("v", "element"), ("v", "value")):
        assert "`columns: {exclude: [v]}`" in (null_is_required("orders", path).hint or "")


def test_required_field_that_a_load_lacks_is_null_where_its_struct_is_not() -> None:
    kind = pa.struct([required(INT, "a"), pa.field("s", STRUCT), pa.field("other", INT)])
    field: pa.Field[Any] = pa.field("v", kind)

    absent = pa.array([None, {"OTHER": 1}], pa.struct([("OTHER", INT)]))
    there = pa.array([None, {"A": 1, "OTHER": 1}], pa.struct([("OTHER", INT), ("A", INT)]))

    assert required_null(absent, field) == ("v", "a")
    assert required_null(absent.slice(0, 1), field) is None
    assert required_null(there, field) is None

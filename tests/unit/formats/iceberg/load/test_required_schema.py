"""What a table requires, whatever types it has."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lakeload_jobs.formats.iceberg.load.arrow_schema import arrow_schema, required_schema


def field(number: int, name: str, kind: Any, *, required: bool) -> dict[str, Any]:
    return {"id": number, "name": name, "type": kind, "required": required}


def test_types_that_tasks_do_not_write_are_required_too() -> None:
    inner = field(3, "u", "uuid", required=True)
    listed = {
        "type": "list",
        "element-id": 5,
        "element": {"type": "struct", "fields": [inner]},
        "element-required": True,
    }
    fields = [
        field(1, "t", "time", required=True),
        field(2, "d", "decimal(9, 2)", required=False),
        field(4, "l", listed, required=False),
    ]
    schema = {"type": "struct", "fields": fields}

    found = required_schema(schema)

    uuid = pa.field("u", pa.binary(), nullable=False)
    element: Any = pa.field("element", pa.struct([uuid]), nullable=False)
    expected: list[Any] = [
        pa.field("t", pa.binary(), nullable=False),
        pa.field("d", pa.decimal128(9, 2)),
        pa.field("l", pa.list_(element)),
    ]
    assert found.equals(pa.schema(expected))
    with pytest.raises(KeyError):
        arrow_schema(schema)

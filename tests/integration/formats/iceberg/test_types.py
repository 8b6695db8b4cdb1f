"""Values of every type, as pyiceberg and Spark read them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakeload_jobs.contract.spec import ColumnsSpec
from lakeload_jobs.formats.iceberg.load.tables import spark_name
from tests.integration.formats.iceberg.conftest import Loads

_AT = dt.datetime(2026, 11, 21, 10, 15, 30, 123456)
_FIELDS: list[pa.Field[Any]] = [
    pa.field("id", pa.int8()),
    pa.field("small", pa.int16()),
    pa.field("whole", pa.int32()),
    pa.field("big", pa.int64()),
    pa.field("single", pa.float32()),
    pa.field("double", pa.float64()),
    pa.field("exact", pa.decimal128(38, 6)),
    pa.field("text", pa.string()),
    pa.field("bytes", pa.binary()),
    pa.field("flag", pa.bool_()),
    pa.field("day", pa.date32()),
    pa.field("instant", pa.timestamp("us", "UTC")),
    pa.field("clock", pa.timestamp("us")),
    pa.field("place", pa.struct([("City Name", pa.string()), ("at", pa.list_(pa.float64()))])),
    pa.field("counts", pa.map_(pa.string(), pa.int32())),
]
_SCHEMA = pa.schema(_FIELDS)
_ROW = {
    "id": -128,
    "small": 32767,
    "whole": -(2**31),
    "big": 2**63 - 1,
    "single": 1.5,
    "double": float("inf"),
    "exact": Decimal("12345678901234567890123456789012.654321"),
    "text": "ü🙂\n'\"",
    "bytes": b"\x00\xff",
    "flag": True,
    "day": dt.date(1, 1, 1),
    "instant": _AT.replace(tzinfo=dt.UTC),
    "clock": _AT,
    "place": {"City Name": "x", "at": [1.0, None]},
    "counts": [("a", 1)],
}
_NULLS = {"id": 1} | {name: None for name in _ROW if name != "id"}


def test_every_type_is_loaded_by_value_nested_or_as_json(loads: Loads) -> None:
    path = loads.file([_ROW, _NULLS], _SCHEMA)
    loads.loaded(loads.table(path, name="native"), nested="NATIVE")
    loads.loaded(loads.table(path, name="text"), nested="JSON")

    place = {"City_Name": "x", "at": [1.0, None]}
    assert loads.rows("native") == [_ROW | {"place": place}, _NULLS]
    json = {"place": '{"City Name":"x","at":[1.0,null]}', "counts": '{"a":1}'}
    assert loads.rows("text") == [_ROW | json, _NULLS]
    columns = {field.name: str(field.field_type) for field in loads.read("native").schema().fields}
    assert (columns["id"], columns["small"]) == ("int", "int")
    assert (columns["instant"], columns["clock"]) == ("timestamptz", "timestamp")
    assert columns["exact"] == "decimal(38, 6)"
    found = loads.spark.table(spark_name(loads.schema, "native")).where("id = -128").toArrow()
    assert found.column("place").to_pylist() == [place]
    assert found.column("exact").to_pylist() == [_ROW["exact"]]


def test_values_that_do_not_fit_fail_or_become_null_and_are_counted(loads: Loads) -> None:
    typed = ColumnsSpec(types={"n": "int"})
    table = loads.table(loads.file([{"id": 1, "n": "1"}, {"id": 2, "n": "x"}]), columns=typed)

    failed = loads.load(table)
    result = loads.loaded(table, on_bad_value="NULL")

    assert failed.error is not None
    assert "`n`" in failed.error.message
    assert any(warning.startswith("1 values or records") for warning in result.warnings)
    assert loads.rows() == [{"id": 1, "n": 1}, {"id": 2, "n": None}]

"""Arrow arrays from the types and values of tests/cases/row_ids.tsv."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

TYPES: dict[str, pa.DataType] = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int64": pa.int64(),
    "uint64": pa.uint64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "fixed_size_binary[2]": pa.binary(2),
    "date32": pa.date32(),
    "date64": pa.date64(),
    "decimal128(12, 2)": pa.decimal128(12, 2),
    "decimal128(38, 0)": pa.decimal128(38, 0),
    "decimal128(38, 10)": pa.decimal128(38, 10),
    "decimal128(38, 38)": pa.decimal128(38, 38),
    "timestamp[s, UTC]": pa.timestamp("s", "UTC"),
    "timestamp[ms, UTC]": pa.timestamp("ms", "UTC"),
    "timestamp[us, UTC]": pa.timestamp("us", "UTC"),
    "timestamp[us, Europe/Oslo]": pa.timestamp("us", "Europe/Oslo"),
    "timestamp[us]": pa.timestamp("us"),
    "timestamp[ns]": pa.timestamp("ns"),
    "time32[s]": pa.time32("s"),
    "time64[us]": pa.time64("us"),
    "list<int64>": pa.list_(pa.int64()),
    "struct<a: int64, b: string>": pa.struct([("a", pa.int64()), ("b", pa.string())]),
    "map<string, int64>": pa.map_(pa.string(), pa.int64()),
}


def arrow_array(type_name: str, value: Any) -> pa.Array[Any]:
    """Return one value as an array of the type."""
    kind = TYPES[type_name]
    if isinstance(value, dict) and "ticks" in value:
        integer = pa.int32() if kind == pa.time32("s") else pa.int64()
        return pa.array([value["ticks"]], integer).cast(kind)
    return pa.array([_plain(type_name, value)], kind)


def _plain(type_name: str, value: Any) -> Any:
    if isinstance(value, dict) and not type_name.startswith("struct"):
        readers = {"hex": bytes.fromhex, "date": datetime.date.fromisoformat, "float": float}
        ((key, text),) = value.items()
        return readers[key](text)
    if type_name.startswith("decimal") and value is not None:
        return Decimal(value)
    if type_name.startswith("map"):
        return [tuple(entry) for entry in value]
    return value

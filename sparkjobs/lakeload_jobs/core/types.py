"""The one table of types: Spark's → Parquet → Arrow → Glue → Iceberg.

`docs/types.md` shows it, `rows/casts.py` follows its `written` column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Written = Literal["AS_IS", "TEXT", "TIME_TEXT", "JSON", "NESTED", "UNSUPPORTED"]
"""How a value is written: unchanged, as Spark's text, as `HH:mm:ss.SSSSSS`, as JSON text, by the
setting `nested` (JSON text or natively), or not at all."""


@dataclass(frozen=True)
class TypeRule:
    """One Spark type, by its `typeName()`, and what becomes of it."""

    spark: str
    written: Written
    arrow: str
    parquet: str
    glue: str
    iceberg: str
    sources: str
    """Where such values come from: types of files and databases, in words."""


_TEXT = ("string", "BYTE_ARRAY (STRING)", "string", "string")


def _as_text(spark: str, written: Written, sources: str) -> TypeRule:
    return TypeRule(spark, written, *_TEXT, sources)


def _refused(spark: str, sources: str) -> TypeRule:
    return TypeRule(spark, "UNSUPPORTED", "–", "–", "–", "–", sources)


TYPE_RULES: tuple[TypeRule, ...] = (
    TypeRule("boolean", "AS_IS", "bool", "BOOLEAN", "boolean", "boolean", "boolean, bit(1)"),
    TypeRule("byte", "AS_IS", "int8", "INT32 (INT(8, true))", "tinyint", "int", "tinyint"),
    TypeRule("short", "AS_IS", "int16", "INT32 (INT(16, true))", "smallint", "int", "smallint"),
    TypeRule("integer", "AS_IS", "int32", "INT32", "int", "int", "int"),
    TypeRule("long", "AS_IS", "int64", "INT64", "bigint", "long", "bigint, integers of CSV, JSON"),
    TypeRule("float", "AS_IS", "float", "FLOAT", "float", "float", "real"),
    TypeRule("double", "AS_IS", "double", "DOUBLE", "double", "double", "double, JSON numbers"),
    TypeRule(
        "decimal",
        "AS_IS",
        "decimal128(p, s)",
        "INT32, INT64 or FIXED_LEN_BYTE_ARRAY by p (DECIMAL(p, s))",
        "decimal(p,s)",
        "decimal(p, s)",
        "numeric(p, s) with p ≤ 38",
    ),
    _as_text("string", "AS_IS", "text, uuid, enum, JSON text, numeric with p > 38"),
    _as_text("char", "TEXT", "char(n) in a declared schema"),
    _as_text("varchar", "TEXT", "varchar(n) in a declared schema"),
    TypeRule("binary", "AS_IS", "binary", "BYTE_ARRAY", "binary", "binary", "bytea, blob"),
    TypeRule("date", "AS_IS", "date32", "INT32 (DATE)", "date", "date", "date"),
    TypeRule(
        "timestamp",
        "AS_IS",
        "timestamp[us, UTC]",
        "INT64 (TIMESTAMP(MICROS, isAdjustedToUTC=true))",
        "timestamp",
        "timestamptz",
        "timestamp with time zone",
    ),
    TypeRule(
        "timestamp_ntz",
        "AS_IS",
        "timestamp[us]",
        "INT64 (TIMESTAMP(MICROS, isAdjustedToUTC=false))",
        "timestamp",
        "timestamp",
        "timestamp without time zone",
    ),
    _as_text("time", "TIME_TEXT", "time; written as `HH:mm:ss.SSSSSS`"),
    _as_text("yearmonthinterval", "TEXT", "interval year to month"),
    _as_text("daytimeinterval", "TEXT", "interval day to second"),
    _as_text("interval", "TEXT", "interval of months, days and microseconds"),
    _as_text("void", "TEXT", "columns without any value; all null"),
    _as_text("variant", "JSON", "variant; always JSON text"),
    TypeRule(
        "struct", "NESTED", "struct", "group", "struct<…>", "struct", "JSON objects, Parquet groups"
    ),
    TypeRule(
        "array", "NESTED", "list", "group (LIST)", "array<…>", "list", "JSON arrays, Parquet lists"
    ),
    TypeRule("map", "NESTED", "map", "group (MAP)", "map<…>", "map", "Parquet maps"),
    _refused("userdefinedtype", "user-defined types of Spark libraries"),
    _refused("geometry", "geometry"),
    _refused("geography", "geography"),
)

_BY_NAME = {rule.spark: rule for rule in TYPE_RULES}


def type_rule(spark_name: str) -> TypeRule | None:
    """Return the rule for Spark's `typeName()`; None for a type lakeload does not know."""
    return _BY_NAME.get(spark_name)


_WITH_UNIT = re.compile(r"(timestamp|timestamp_ltz|timestamp_ntz)\s*\(\s*(s|ms|us|ns)\s*\)", re.I)


def timestamp_unit(kind: str) -> tuple[str, str] | None:
    """Return Spark's type and the unit of a type like `timestamp(ms)`; None for other types."""
    found = _WITH_UNIT.fullmatch(kind.strip())
    return (found[1].lower(), found[2].lower()) if found else None

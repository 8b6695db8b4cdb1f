"""Types of MySQL and MariaDB: what becomes of them, and the SQL that makes values exact."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from pymysql.constants import FIELD_TYPE, FLAG

from lakeload_jobs.sources.databases.columns import CatalogColumn, Rule, SelectedColumn
from lakeload_jobs.sources.databases.engines.mysql.sql import quoted
from lakeload_jobs.sources.databases.key_ranges import LAST_DAY, Places, integers, unsigned

_MAX_DIGITS = 38


_NOT_A_DATE = "it is not a date of the years 1 to 9999"
_NO_DATE = (
    # A month of 0 has no last day; `ALLOW_INVALID_DATES` lets a 31 February in.
    "({0} IS NOT NULL AND (YEAR({0}) = 0 OR DAYOFMONTH({0}) = 0"
    " OR COALESCE(DAYOFMONTH({0}) > DAYOFMONTH(LAST_DAY({0})), TRUE)))"
)
# As text a `float` has 6 digits only.
_ALL_DIGITS = "{0} * 1E0"
_NUMBER = "CAST({0} AS UNSIGNED)"

RULES: tuple[Rule, ...] = (
    Rule("tinyint", "tinyint"),
    Rule("tinyint unsigned", "smallint"),
    Rule("smallint", "smallint"),
    Rule("smallint unsigned", "int"),
    Rule("mediumint", "int"),
    Rule("mediumint unsigned", "int"),
    Rule("int", "int"),
    Rule("int unsigned", "bigint"),
    Rule("bigint", "bigint"),
    Rule("bigint unsigned", "decimal(20,0)"),
    Rule("decimal", "decimal(p,s)"),
    Rule("float", "float", _ALL_DIGITS),
    Rule("double", "double", _ALL_DIGITS),
    Rule("bit(1)", "boolean", _NUMBER),
    Rule("bit", "decimal(20,0)", _NUMBER),
    Rule("year", "smallint"),
    Rule("date", "date", bad=_NO_DATE, reason=_NOT_A_DATE),
    Rule("datetime", "timestamp_ntz", bad=_NO_DATE, reason=_NOT_A_DATE),
    Rule("timestamp", "timestamp", bad=_NO_DATE, reason=_NOT_A_DATE),
    Rule("time", "string"),
    Rule("char", "string"),
    Rule("varchar", "string"),
    Rule("tinytext", "string"),
    Rule("text", "string"),
    Rule("mediumtext", "string"),
    Rule("longtext", "string"),
    Rule("enum", "string"),
    Rule("set", "string"),
    Rule("json", "string"),
    Rule("binary", "binary"),
    Rule("varbinary", "binary"),
    Rule("tinyblob", "binary"),
    Rule("blob", "binary"),
    Rule("mediumblob", "binary"),
    Rule("longblob", "binary"),
    Rule("geometry", "binary"),
)
"""The table of types. `geometry` stands for all spatial types."""
OTHER = Rule("", "string", "CAST({0} AS CHAR)")
"""What every other type follows: its text, as the server writes it."""
_RULES = {rule.type: rule for rule in RULES}

PLACES = {
    **{
        name + sign: unsigned(bits) if sign else integers(bits)
        for name, bits in (
            *(("tinyint", 8), ("smallint", 16), ("mediumint", 24), ("int", 32), ("bigint", 64)),
        )
        for sign in ("", " unsigned")
    },
    "date": Places(1, LAST_DAY, lambda number: f"'{date.fromordinal(number)}'"),
    "binary": Places(0, (1 << 64) - 1, lambda number: f"X'{number:016x}'"),
}
"""The types of keys that are split; the values are SQL."""
_GEOMETRIES = (
    *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring"),
    *("multipolygon", "geometrycollection", "geomcollection"),
)


_RESULT_TYPES = {
    FIELD_TYPE.TINY: "tinyint",
    FIELD_TYPE.SHORT: "smallint",
    FIELD_TYPE.INT24: "mediumint",
    FIELD_TYPE.LONG: "int",
    FIELD_TYPE.LONGLONG: "bigint",
    FIELD_TYPE.NEWDECIMAL: "decimal",
    FIELD_TYPE.FLOAT: "float",
    FIELD_TYPE.DOUBLE: "double",
    FIELD_TYPE.BIT: "bit",
    FIELD_TYPE.YEAR: "year",
    FIELD_TYPE.DATE: "date",
    FIELD_TYPE.NEWDATE: "date",
    FIELD_TYPE.DATETIME: "datetime",
    FIELD_TYPE.TIMESTAMP: "timestamp",
    FIELD_TYPE.TIME: "time",
    FIELD_TYPE.JSON: "json",
    FIELD_TYPE.GEOMETRY: "geometry",
}
"""The types of the protocol; those that are missing here are text or bytes."""
_TEXTS = (
    *(FIELD_TYPE.VARCHAR, FIELD_TYPE.VAR_STRING, FIELD_TYPE.STRING, FIELD_TYPE.TINY_BLOB),
    *(FIELD_TYPE.BLOB, FIELD_TYPE.MEDIUM_BLOB, FIELD_TYPE.LONG_BLOB),
)
_BYTES = 63
"""The character set of what is no text."""


def result_column(field: Any) -> CatalogColumn:
    number, unsigned = field.type_code, bool(field.flags & FLAG.UNSIGNED)
    precision = scale = None
    if number in _TEXTS:
        binary = field.charsetnr == _BYTES
        kind = "longblob" if binary else "longtext"
    else:
        kind = _RESULT_TYPES.get(number, "")
    if kind == "decimal":
        # The length is that of the text: with a point, and with a sign.
        precision, scale = field.length - (field.scale > 0) - (not unsigned), field.scale
    if kind == "bit" and field.length == 1:
        kind = "bit(1)"
    if unsigned and kind.endswith("int"):
        kind += " unsigned"
    return CatalogColumn(field.name, kind, kind, precision, scale, not field.flags & FLAG.NOT_NULL)


def type_name(kind: str, declared: str, precision: str | None) -> str:
    if kind in _GEOMETRIES:
        return "geometry"
    if kind == "bit" and precision == "1":
        return "bit(1)"
    # Only numbers: a value of an enum may be called so.
    if kind.endswith("int") and re.search(r"\bunsigned\b", declared):
        return f"{kind} unsigned"
    return kind


def select(found: Sequence[CatalogColumn]) -> tuple[SelectedColumn, ...]:
    """Return how columns are selected, each as its type's rule says."""
    return tuple(map(_selected, found))


def _selected(column: CatalogColumn) -> SelectedColumn:
    rule, name = _RULES.get(column.type, OTHER), quoted(column.name)
    target = rule.target
    if column.type == "decimal":
        digits = column.precision or _MAX_DIGITS + 1
        target = f"decimal({digits},{column.scale})" if digits <= _MAX_DIGITS else "string"
    return SelectedColumn(
        name=column.name,
        expression=rule.expression.format(name),
        type=target,
        carried="TEXT",
        bad=rule.bad.format(name),
        reason=rule.reason,
        shown=name,
    )

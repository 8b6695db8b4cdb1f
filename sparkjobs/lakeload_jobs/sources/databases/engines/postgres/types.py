"""PostgreSQL's types: what becomes of them, and the SQL that makes values exact."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date
from uuid import UUID

from lakeload_jobs.sources.databases.columns import CatalogColumn, Rule, SelectedColumn
from lakeload_jobs.sources.databases.engines.postgres.sql import quoted
from lakeload_jobs.sources.databases.key_ranges import LAST_DAY, MINUTES, Places, integers

_MAX_DIGITS = 38
_FIRST_DAY, _END = "0001-01-01", "10000-01-01"
_NOT_A_DATE = "it is not within the years 1 to 9999"
_NOT_A_NUMBER = "it is no finite number"


_AS_TEXT = "{0}::text"
_AS_JSON = "pg_catalog.to_json({0})::text"
_PLAIN_NUMBER = (
    "CASE WHEN pg_catalog.strpos({0}::text, '.') > 0"
    " THEN pg_catalog.rtrim(pg_catalog.rtrim({0}::text, '0'), '.') ELSE {0}::text END"
)
"""The text of a number without zeros at its end: `trim_scale` is not in PostgreSQL 12."""


def _within(kind: str) -> str:
    first, end = f"'{_FIRST_DAY}'::{kind}", f"'{_END}'::{kind}"
    return f"({{0}} IS NOT NULL AND NOT ({{0}} >= {first} AND {{0}} < {end}))"


RULES: tuple[Rule, ...] = (
    Rule("bool", "boolean"),
    Rule("int2", "smallint"),
    Rule("int4", "int"),
    Rule("int8", "bigint"),
    Rule("oid", "bigint", "{0}::int8"),
    Rule("float4", "float"),
    Rule("float8", "double"),
    Rule(
        "numeric",
        "decimal(p,s)",
        _AS_TEXT,
        text=True,
        bad="({0} IS NOT NULL AND {0}::text IN ('NaN', 'Infinity', '-Infinity'))",
        reason=_NOT_A_NUMBER,
    ),
    Rule(
        "money",
        "decimal(19,2)",
        "{0}::numeric::text",
        text=True,
        bad="({0} IS NOT NULL AND ({0}::numeric <> pg_catalog.round({0}::numeric, 2)"
        " OR pg_catalog.abs({0}::numeric) >= 1e17))",
        reason="it has more digits than decimal(19,2)",
    ),
    Rule("text", "string"),
    Rule("varchar", "string"),
    Rule("bpchar", "string"),
    Rule("bytea", "binary"),
    Rule("date", "date", bad=_within("date"), reason=_NOT_A_DATE),
    Rule("timestamp", "timestamp_ntz", bad=_within("timestamp"), reason=_NOT_A_DATE),
    Rule("timestamptz", "timestamp", bad=_within("timestamptz"), reason=_NOT_A_DATE),
    Rule("time", "string", "pg_catalog.to_char({0}::interval, 'HH24:MI:SS.US')"),
    Rule("json", "string", _AS_TEXT),
    Rule("jsonb", "string", _AS_TEXT),
    Rule("array", "string", _AS_JSON),
    Rule("composite", "string", _AS_JSON),
    Rule("hstore", "string", _AS_JSON),
)
"""The table of types. `array` and `composite` stand for all such types."""
OTHER = Rule("", "string", _AS_TEXT)
"""What every other type follows: its text, as PostgreSQL writes it."""
_RULES = {rule.type: rule for rule in RULES}

_DIGITS = 10**20
PLACES = {
    "int2": integers(16),
    "int4": integers(32),
    "int8": integers(64),
    "numeric": Places(-_DIGITS, _DIGITS, str),
    "date": Places(1, LAST_DAY, lambda number: str(date.fromordinal(number))),
    "timestamp": MINUTES,
    "timestamptz": MINUTES,
    "uuid": Places(0, (1 << 64) - 1, lambda number: str(UUID(int=number << 64))),
}
"""The types of keys that are split. Texts are not: an index of a collation whose rules have changed
does not find all of them."""


def select(found: Sequence[CatalogColumn], key: Collection[str] = ()) -> tuple[SelectedColumn, ...]:
    """Return how columns are selected, each as its type's rule says. Those of the key have one text
    for each value: as numbers 1.0 and 1.00 are the same."""
    return tuple(_selected(column, column.name in key) for column in found)


def _selected(column: CatalogColumn, of_key: bool) -> SelectedColumn:
    rule, name = _RULES.get(column.type, OTHER), quoted(column.name)
    target, bad, reason = rule.target, rule.bad, rule.reason
    expression = rule.expression
    if column.type == "numeric":
        if of_key and column.scale is None:
            expression = _PLAIN_NUMBER
        target = _decimal(column.precision, column.scale)
        if target == "string":
            # As text a value is what it is, NaN too.
            bad = reason = ""
    return SelectedColumn(
        name=column.name,
        expression=expression.format(name),
        type=target,
        carried="TEXT" if rule.text and target != "string" else "VALUE",
        bad=bad.format(name),
        reason=reason,
        shown=_AS_TEXT.format(name),
    )


def _decimal(precision: int | None, scale: int | None) -> str:
    """Return the decimal that holds all numbers of a type exactly, `string` where none does."""
    if precision is None or scale is None:
        return "string"
    # `numeric(5,-2)` has 7 digits before the point, `numeric(3,5)` begins at 0.00001.
    digits, places = (precision - scale, 0) if scale < 0 else (max(precision, scale), scale)
    return f"decimal({digits},{places})" if digits <= _MAX_DIGITS else "string"

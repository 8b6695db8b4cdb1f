"""Conditions that Arrow evaluates are true, false and null for the same rows as in Spark."""

from __future__ import annotations

import pickle
import random
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeload.documents.conditions import condition_problem
from lakeload_jobs.rows.conditions import arrow_condition, evaluated

CONDITIONS = 200
PER_QUERY = 50

TEXTS = ["", "a", "A", "a ", "é", "e\u0301", "\uffff", "\U0001f381", "it''s", "0"]
INTEGERS = {
    "tiny": (pa.int8(), [-(2**7), 2**7 - 1, 0, 1, -1, 5]),
    "small": (pa.int16(), [-(2**15), 2**15 - 1, 0, 1, -1, 5]),
    "int": (pa.int32(), [-(2**31), 2**31 - 1, 0, 1, -1, 5]),
    "a.`b": (pa.int64(), [-(2**63), 2**63 - 1, 0, 1, -1, 5]),
}
WIDE, NARROW = "12345678901234567890123456789.123456789", "1.50"
DECIMALS = {
    "wide": (pa.decimal128(38, 9), [WIDE, f"-{WIDE}", "0", "5", "1.5", "1.500000001"]),
    "narrow": (pa.decimal128(5, 2), ["999.99", "-999.99", "0", "5", NARROW, "1.51"]),
}
DATES = ["0001-01-01", "9999-12-31", "1582-10-04", "1582-10-15", "1970-01-01", "2024-02-29"]
COMPARISONS = ["=", "<>", "!=", "<", "<=", ">", ">=", "<=>"]


def _rows() -> pa.Table:
    """Every value with some of the others, and nulls."""
    drawn = random.Random(1)  # noqa: S311 - the same each time

    def column(kind: Any, values: list[Any]) -> Any:
        return pa.array(drawn.choices([*values, None], k=60), kind)

    columns = {name: column(*given) for name, given in INTEGERS.items()}
    for name, (kind, values) in DECIMALS.items():
        columns[name] = column(kind, [Decimal(value) for value in values])
    columns["text"] = column(pa.string(), [text.replace("''", "'") for text in TEXTS])
    columns["day"] = column(pa.date32(), [date.fromisoformat(day) for day in DATES])
    columns["flag"] = column(pa.bool_(), [True, False])
    columns["double"] = column(pa.float64(), [0.0, float("nan"), 1.5])
    return pa.table(columns)


def _leaf(drawn: random.Random) -> str:
    name, values = drawn.choice(_families(drawn))
    one, other = drawn.choice(values), drawn.choice(values)
    column = f"`{name.replace('`', '``')}`"
    forms = [
        *[f"{column} {sign} {one}" for sign in drawn.choices(COMPARISONS, k=4)],
        f"{one} {drawn.choice(COMPARISONS)} {column}",
        f"{column} between {one} and {other}",
        f"{column} not between {one} and {other}",
        f"{column} in ({one}, {other})",
        f"{column} not in ({one}, {other})",
        f"{column} in ({one}, null)",
        f"{column} = null",
        f"{column} is null",
        f"{column} is not null",
        "double is null",
        drawn.choice(["flag", "not flag", "true", "false", "flag is null"]),
    ]
    return drawn.choice(forms)


def _families(drawn: random.Random) -> list[tuple[str, list[str]]]:
    numbers = [str(value) for _, values in INTEGERS.values() for value in values]
    exact = [value for _, values in DECIMALS.values() for value in values]
    days = [*[f"DATE '{day}'" for day in DATES], *[f"'{day}'" for day in DATES]]
    return [
        *[(name, numbers) for name in INTEGERS],
        *[(name, [*exact, "5", "0", "-7"]) for name in DECIMALS],
        ("int", ["1.5", "-0.5", "5.0", "int", "small"]),
        ("text", [f"'{text}'" for text in TEXTS]),
        ("day", days),
        ("flag", ["true", "false"]),
    ]


def _condition(drawn: random.Random, depth: int) -> str:
    if depth == 0:
        return _leaf(drawn)
    form = drawn.choice(["({0}) and ({1})", "({0}) or ({1})", "not ({0})", "({0}) is null"])
    return form.format(_condition(drawn, depth - 1), _condition(drawn, depth - 1))


def test_random_conditions_have_the_values_that_they_have_in_spark(spark: SparkSession) -> None:
    rows = _rows()
    frame = spark.createDataFrame(rows)
    (batch,) = rows.combine_chunks().to_batches()
    drawn = random.Random(2)  # noqa: S311 - the same each time
    conditions: dict[str, Any] = {}
    refused = 0
    while len(conditions) < CONDITIONS:
        sql = _condition(drawn, drawn.randint(0, 3))
        condition = arrow_condition(frame, sql)
        if condition is None:
            refused += 1
        else:
            conditions[sql] = condition

    different = []
    for first in range(0, CONDITIONS, PER_QUERY):
        some = list(conditions)[first : first + PER_QUERY]
        values = [F.expr(sql).alias(f"c{n}") for n, sql in enumerate(some)]
        expected = frame.select(*values).toArrow()
        for n, sql in enumerate(some):
            condition = pickle.loads(pickle.dumps(conditions[sql]))  # noqa: S301 - our own
            if evaluated(condition, batch).to_pylist() != expected[f"c{n}"].to_pylist():
                different.append(sql)

    assert different == []
    # Decimals that do not fit into 38 digits with the column's.
    assert refused < CONDITIONS / 5


@pytest.fixture(scope="module")
def columns(spark: SparkSession) -> DataFrame:
    """Columns of types that compare alike, and of others."""
    return spark.createDataFrame(
        [], "text string, number int, double double, at timestamp, caseless string collate UNICODE"
    )


ONLY_SPARK = [
    "number % 2 = 0",
    "text like 'a%'",
    "upper(text) = 'A'",
    "number = '1' and text = 1",
    "double > 1",
    "at > '2024-01-01'",
    "caseless = 'a'",
    "number in (1, number)",
    "number = cast('x' as int)",
    "exists (select 1)",
]


@pytest.mark.parametrize("sql", ONLY_SPARK)
def test_other_conditions_are_evaluated_by_spark(columns: DataFrame, sql: str) -> None:
    assert arrow_condition(columns, sql) is None


@pytest.mark.parametrize("rows", [0, 1, 100_000])
def test_a_condition_without_columns_has_a_value_for_each_row(
    columns: DataFrame, rows: int
) -> None:
    batch = pa.record_batch({"number": pa.array(range(rows), pa.int32())})

    always, small = (arrow_condition(columns, sql) for sql in ("true", "number < 7"))
    assert always is not None
    assert small is not None
    assert evaluated(always, batch).to_pylist() == [True] * rows
    assert evaluated(small, batch).to_pylist() == [number < 7 for number in range(rows)]


WORDS = [
    *("a", "b.c", "`x y`", "'it''s'", '"t"', "1", "2.5", "null", "not", "and", "or", "in", "is"),
    *("between", "like", "interval", "day", "date", "case", "when", "then", "end", "cast", "as"),
    *("<=>", "<=", ">=", "<>", "!=", "==", "=", "<", ">", "!", "+", "-", "*", "/", "%", "|", "||"),
    *("&", "^", "~", "=>", "->", "::", "(", ")", "[", "]", ",", "(", ")", "'", "`", "int", "f("),
]


def parses(spark: SparkSession, text: str) -> bool:
    parser: Any = spark._jsparkSession.sessionState().sqlParser()
    try:
        parser.parseExpression(text)
    except ParseException:
        return False
    return True


@pytest.mark.exhaustive
def test_condition_problem_is_only_found_where_the_parser_of_spark_refuses(
    spark: SparkSession,
) -> None:
    drawn = random.Random(38)  # noqa: S311 - the same each time
    texts = [" ".join(drawn.choices(WORDS, k=drawn.randint(1, 7))) for _ in range(10_000)]
    refused = [text for text in texts if condition_problem(text) is not None]
    assert len(refused) > 1_000
    assert [text for text in refused if parses(spark, text)] == []

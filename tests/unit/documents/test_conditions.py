"""Conditions that no Spark would parse are found without Spark, and no others."""

from __future__ import annotations

import pytest

from lakeload.documents.conditions import condition_problem


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("cost >", "there is nothing after `>`"),
        ("> 3", "there is nothing before `>`"),
        ("cost > = 3", "there is nothing before `=`"),
        ("(cost > 3", "`(` is not closed"),
        ("cost > 3)", "`)` has no `(`"),
        ("tags[0)", "`)` has no `(`"),
        ("name = 'it", "the quote ' is not closed"),
        ("name = 'it's'", "the quote ' is not closed"),
        ("`my cost > 3", "the quote ` is not closed"),
        ("a in (1, = 2)", "there is nothing before `=`"),
        ("(a >) and b", "there is nothing after `>`"),
        ("a and !", "there is nothing after `!`"),
    ],
)
def test_condition_problem_names_what_is_missing(sql: str, problem: str) -> None:
    assert condition_problem(sql) == problem


ACCEPTED = [
    "cost > 3",
    "cost > -3 and not deleted",
    "name = 'it''s' or name = \"x\"",
    "`my > cost` <=> null",
    "!active and ~a = 3",
    "a ! in (1, 2)",
    "tags[0] = 'x' and size(tags) >= 1",
    "exists(tags, t -> t > 3)",
    "cast(a as array<int>)[0] > 3",
    "a::map<string,int> is not null",
    "name rlike '\\\\d+('",
    "name = r'\\'",
    "cost > 3 -- not (",
    "cost /* ( */ > 3",
    "f(a => 1) = 2",
    "a.b.c between 1 and 2",
    "d >= date '2024-01-01' - interval 1 day",
    "count(*) > 0",
    "größe != 1.5e-3",
    "a || b == 'ab'",
    "case when a then b else c end",
    "a #",
]


@pytest.mark.parametrize("sql", ACCEPTED)
def test_condition_that_spark_may_accept_has_no_problem(sql: str) -> None:
    assert condition_problem(sql) is None

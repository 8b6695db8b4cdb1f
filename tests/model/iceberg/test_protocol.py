"""The protocol holds in every order of its steps, and none of its rules can be spared."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from tests.model.iceberg.rules import Rules
from tests.model.iceberg.scenarios import OF_SPARK, SCENARIOS, WITHOUT
from tests.model.iceberg.search import search

_STATES = 100_000
"""More than any scenario has: a search that is cut short is no proof."""


WAYS = [
    (name, by_spark)
    for name, scenario in SCENARIOS.items()
    for by_spark in (False, True)
    if by_spark or any(process.kind != "merge" for process in scenario.processes)
]
"""Who commits the rows: the publish, or Spark before."""
RULES = [
    (field.name, by_spark)
    for field in fields(Rules)
    for by_spark in (False, True)
    if by_spark or field.name not in OF_SPARK
]


@pytest.mark.parametrize(("name", "by_spark"), WAYS)
def test_model_in_any_order_of_steps_loses_and_doubles_nothing(
    name: str, *, by_spark: bool
) -> None:
    found = search(replace(SCENARIOS[name], by_spark=by_spark), limit=_STATES)
    assert not found.violations, str(found)
    assert found.complete


@pytest.mark.parametrize(("rule", "by_spark"), RULES)
def test_model_without_one_rule_loses_or_doubles_rows(rule: str, *, by_spark: bool) -> None:
    name, expected = WITHOUT[rule]
    rules = replace(Rules(), **{rule: False})
    scenario = replace(SCENARIOS[name], rules=rules, by_spark=by_spark)
    found = search(scenario, limit=_STATES, until=expected)
    assert any(what.startswith(expected) for what in found.violations), str(found)

"""The protocol holds in every order of its steps, and none of its rules can be spared."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from tests.model.rules import Rules
from tests.model.scenarios import SCENARIOS, WITHOUT
from tests.model.search import search

_STATES = 300_000
"""More than any scenario has: a search that is cut short is no proof."""


@pytest.mark.parametrize("name", SCENARIOS)
def test_model_in_any_order_of_steps_loses_and_doubles_nothing(name: str) -> None:
    found = search(SCENARIOS[name], limit=_STATES)
    assert not found.violations, str(found)
    assert found.complete


@pytest.mark.parametrize("rule", [field.name for field in fields(Rules)])
def test_model_without_one_rule_loses_or_doubles_rows(rule: str) -> None:
    name, expected = WITHOUT[rule]
    scenario = replace(SCENARIOS[name], rules=replace(Rules(), **{rule: False}))
    found = search(scenario, limit=_STATES, until=expected)
    assert any(what.startswith(expected) for what in found.violations), str(found)

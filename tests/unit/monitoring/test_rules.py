"""Alert rules and the dashboard name metrics and labels that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakeload.monitoring.metrics import FAMILIES

DOCS = Path(__file__).parents[3] / "docs"
SAMPLES = {family.sample: family for family in FAMILIES.values()}
BLOCK = re.compile(r"^```yaml\n(groups:\n.*?)^```$", re.MULTILINE | re.DOTALL)


def rules() -> list[dict[str, Any]]:
    [block] = BLOCK.findall((DOCS / "monitoring.md").read_text())
    [group] = yaml.safe_load(block)["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DOCS / "grafana-dashboard.json").read_text())
    return found


def expressions() -> list[tuple[str, str]]:
    """Return each expression with the text that is shown of its result."""
    shown = [(rule["expr"], str(rule["annotations"]["summary"])) for rule in rules()]
    targets = [target for panel in dashboard()["panels"] for target in panel["targets"]]
    return shown + [(target["expr"], target["legendFormat"]) for target in targets]


@pytest.mark.parametrize(("expression", "shown"), expressions())
def test_expression_names_metrics_and_labels_that_exist(expression: str, shown: str) -> None:
    names = re.findall(r"lakeload_\w+", expression)
    grouped = re.findall(r"by \(([^)]*)\)", expression)
    selected = re.findall(r"(\w+)=~?\"", expression)
    labels = {*re.findall(r"{{ ?(?:\$labels\.)?(\w+) ?}}", shown), *selected}
    labels |= {label for group in grouped for label in group.split(", ")}

    assert names
    assert set(names) <= set(SAMPLES)
    assert all(labels <= set(SAMPLES[name].labels) for name in names)
    assert expression.count("(") == expression.count(")")
    # A range is for counters alone, and what is no counter has none.
    ranged = set(re.findall(r"(lakeload_\w+)(?:{[^}]*})?\[", expression))
    assert ranged == {name for name in names if SAMPLES[name].kind == "counter"}


def test_rules_and_panels_have_names_of_their_own() -> None:
    alerts = [rule["alert"] for rule in rules()]
    panels = dashboard()["panels"]

    assert len(set(alerts)) == len(alerts)
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels})
    [variable] = [one for one in dashboard()["templating"]["list"] if one["name"] == "pipeline"]
    assert "lakeload_jobs_total" in variable["query"]

"""Values in lines of YAML that messages give to copy: YAML reads the same values back."""

from __future__ import annotations

import pytest

from lakeload.config.yaml_tree import own_yaml
from lakeload_jobs.core.yaml_lines import yaml_list, yaml_mapping, yaml_text

NAMES = (
    "id", "first name", "a.b", "a: b", "a, b", "[a]", "{a}", "a #b", "'a'", 'say "a"', "-a", "?a",
    "null", "No", "1", "1e3", "2024-01-01", "~", "", " a ", "émail", "a\tb", "a\\b", "%a", "@a",
    "bucket(16, id)", "a:", "&a", "*a", "a\nb", "=",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_yaml_reads_a_value_of_a_line_back(name: str) -> None:
    assert own_yaml(f"cursor: {yaml_text(name)}") == {"cursor": name}
    assert own_yaml(f"keys: {yaml_list([name, 'b'])}") == {"keys": [name, "b"]}
    line = f"columns: {{rename: {yaml_mapping({name: name, 'b': '…'})}}}"
    assert own_yaml(line) == {"columns": {"rename": {name: name, "b": "…"}}}


def test_plain_names_stay_plain() -> None:
    assert yaml_list(["id", "first name", "day(at)"]) == "[id, first name, day(at)]"

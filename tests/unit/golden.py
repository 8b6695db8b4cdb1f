"""Reads the golden tables of tests/cases: tab-separated, each cell but the first is JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CASES = Path(__file__).parents[1] / "cases"


def golden_rows(file_name: str) -> list[tuple[str, Any, Any]]:
    """Return rule, input and output of each row; `repeat` objects become their strings."""
    rows = []
    for line in (CASES / file_name).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            rule, given, expected = line.split("\t")
            rows.append((rule, _value(given), _value(expected)))
    return rows


def _value(text: str) -> Any:
    return json.loads(text, object_hook=_repeated)


def _repeated(data: dict[str, Any]) -> Any:
    if "repeat" not in data:
        return data
    return str(data.get("start", "")) + data["repeat"] * data["times"] + str(data.get("end", ""))

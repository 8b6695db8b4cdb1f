"""Names and keys are what tests/cases/names.tsv says, row by row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from lakeload_jobs.core.file_names import pattern_problems, render_file_name
from lakeload_jobs.core.job_ids import job_id_problem
from lakeload_jobs.core.layout import TableLocation, data_key, partition_path, prefix_problem
from lakeload_jobs.core.names import (
    normalize,
    schema_name,
    target_name_problem,
    unique_names,
    visible_name,
)
from tests.unit.golden import golden_rows

SYNCED = "2024-01-15T10:30:59+00:00"
JOB_ID = "abc123"
UUID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"


def _file_name(given: dict[str, Any]) -> str:
    return render_file_name(
        given.get("pattern", "part-{supa_job_id}-{seq}"),
        seq=given.get("seq", 0),
        uuid=UUID,
        synced=datetime.fromisoformat(given.get("synced", SYNCED)),
        job_id=JOB_ID,
    )


def _data_key(given: dict[str, Any]) -> str:
    synced = datetime.fromisoformat(given.get("synced", SYNCED))
    partition = partition_path(given["strategy"], synced, JOB_ID)
    return data_key(_location(given), partition, _file_name(given))


def _log_key(given: dict[str, Any]) -> str:
    location = _location(given)
    keys = {
        "record": location.record_key,
        "end": location.end_key,
        "clean": location.clean_key,
        "cat": location.cat_key,
    }
    key = keys[given["kind"]](given["number"])
    assert location.parse_log_key(key) == (given["number"], given["kind"])
    return key


def _location(given: dict[str, Any]) -> TableLocation:
    return TableLocation(given["prefix"], given["schema"], given["table"])


def _parsed(key: str) -> list[Any] | None:
    parsed = TableLocation("p", "a", "b").parse_log_key(key)
    return None if parsed is None else list(parsed)


RULES: dict[str, Callable[[Any], Any]] = {
    "normalize": normalize,
    "normalize_lower": lambda name: normalize(name, lower=True),
    "unique": unique_names,
    "unique_lower": lambda names: unique_names(names, lower=True),
    "schema": lambda parts: schema_name(**parts),
    "target": lambda target: target_name_problem(**target),
    "prefix": prefix_problem,
    "job_id": job_id_problem,
    "pattern": pattern_problems,
    "file_name": _file_name,
    "data_key": _data_key,
    "log_key": _log_key,
    "parse_log_key": _parsed,
}


@pytest.mark.parametrize(("rule", "given", "expected"), golden_rows("names.tsv"))
def test_a_row_of_the_golden_table_holds(rule: str, given: Any, expected: Any) -> None:
    assert RULES[rule](given) == expected


def test_the_golden_table_has_rows_for_every_rule() -> None:
    assert {rule for rule, _, _ in golden_rows("names.tsv")} == set(RULES)


@pytest.mark.parametrize(
    ("name", "visible"),
    [
        ("orders", "orders"),
        ("04_sp500", "t_04_sp500"),
        ("_orders", "orders"),
        ("__2024", "t_2024"),
        ("日本", "t"),
    ],
)
def test_visible_name_begins_with_a_letter(name: str, visible: str) -> None:
    assert visible_name(name) == visible
    assert normalize(visible) == visible

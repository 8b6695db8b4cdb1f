"""Parquet tables in folders that readers skip are noted, with the line that renames them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeload.documents.load import inspect_all

DESTINATION = "{version: 1, bucket: acme-data-lake, region: us-east-1}"
ICEBERG = (
    "{version: 1, bucket: acme-data-lake, region: us-east-1, table_format: ICEBERG, "
    "glue_database_prefix: lake}"
)


@pytest.mark.parametrize(
    ("destination", "table", "hint"),
    [
        (DESTINATION, "{table: 04_sp500, path: a.csv}", "t_04_sp500"),
        (DESTINATION, "{table: orders, path: a.csv, name: _orders}", "orders"),
        (DESTINATION, "{table: 04_sp500, path: a.csv, name: t_04_sp500}", None),
        (ICEBERG, "{table: 04_sp500, path: a.csv}", None),
    ],
)
def test_hidden_name_is_noted_with_the_name_to_set(
    tmp_path: Path, destination: str, table: str, hint: str | None
) -> None:
    file = tmp_path / "pipeline.yml"
    file.write_text(
        f"version: 1\nname: shop\ndestination: {destination}\n"
        f"source: {{type: FILES, format: CSV}}\ntables:\n  - {table}\n"
    )
    (inspection,) = inspect_all([file], {})
    found = [problem for problem in inspection.problems if problem.code == "hidden"]
    assert [problem.severity for problem in found] == ["note"] * (hint is not None)
    assert [problem.hint for problem in found] == [
        f"set `name: {hint}` of the table before its first load"
    ] * (hint is not None)
    assert all(problem.line == 6 for problem in found)

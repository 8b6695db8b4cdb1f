"""Which tables append rows that an earlier load has appended, and what loads each row once."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeload.documents.spec import table_specs
from lakeload_jobs.contract.spec import NO_OPTIONS, AppendAgain, RunOptions
from tests.unit.documents.documents import pipeline

FILES = "source: {type: FILES, format: CSV}"
NEW_FILES = "source: {type: FILES, format: CSV, incremental: true}"
POSTGRES = "source: {type: JDBC, url: postgresql://db/shop, user: u}"
MARIA = "source: {type: JDBC, url: mysql://db/shop, user: u}"
SPARK = "source: {type: SPARK, format: xml}"
FILE, TABLE = "table: orders, path: a.csv", "table: shop.orders, primary_key: [id]"


def again(
    folder: Path, source: str, table: str, table_format: str = "PARQUET", more: str = "",
    options: RunOptions = NO_OPTIONS,
) -> AppendAgain | None:  # fmt: skip
    place = f"bucket: my-data-lake, region: us-east-1, table_format: {table_format}"
    head = f"version: 1\nname: shop\ndestination_prefix: lake\n{source}\n{more}"
    text = f"{head}\ndestination: {{version: 1, {place}}}"
    [spec] = table_specs(pipeline(folder, f"{text}\ntables: [{{{table}}}]\n"), options)
    return spec.append_again


@pytest.mark.parametrize(
    ("source", "table", "table_format", "instead"),
    [
        (FILES, FILE, "PARQUET", "set `incremental: true` in `source`"),
        (FILES, FILE, "ICEBERG", "set `incremental: true` in `source`"),
        (POSTGRES, TABLE, "PARQUET", "set `cursor: xmin`"),
        (POSTGRES, f"{TABLE}, query: select 1", "PARQUET", "set `cursor` to a column that grows"),
        (POSTGRES, TABLE, "ICEBERG", "set `mode: OVERWRITE`"),
        (MARIA, TABLE, "PARQUET", "set `cursor` to a column that grows"),
        (MARIA, f"{TABLE}, detect_deletes: true", "ICEBERG", "set `mode: OVERWRITE`"),
        (SPARK, FILE, "PARQUET", "empty the table with `lakeload reset`"),
    ],
)
def test_append_of_all_rows_names_what_loads_them_once(
    tmp_path: Path, source: str, table: str, table_format: str, instead: str
) -> None:
    found = again(tmp_path, source, table, table_format)

    assert found is not None
    assert found.policy == "WARN"
    assert found.instead.startswith(instead)


@pytest.mark.parametrize(
    ("source", "table", "more", "options"),
    [
        (NEW_FILES, FILE, "", NO_OPTIONS),
        (POSTGRES, f"{TABLE}, cursor: xmin", "", NO_OPTIONS),
        (POSTGRES, f"{TABLE}, mode: OVERWRITE", "", NO_OPTIONS),
        (MARIA, f"{TABLE}, mode: UPSERT", "", NO_OPTIONS),
        (FILES, f"{FILE}, on_append_again: ALLOW", "", NO_OPTIONS),
        (FILES, FILE, "on_append_again: ALLOW", NO_OPTIONS),
        (FILES, FILE, "on_append_again: FAIL", RunOptions(reload=True)),
    ],
)
def test_rows_that_are_loaded_once_or_on_purpose_are_not_appended_again(
    tmp_path: Path, source: str, table: str, more: str, options: RunOptions
) -> None:
    assert again(tmp_path, source, table, "ICEBERG", more, options) is None


def test_policy_of_a_table_overrides_that_of_the_pipeline(tmp_path: Path) -> None:
    found = again(tmp_path, FILES, f"{FILE}, on_append_again: FAIL", more="on_append_again: ALLOW")

    assert found is not None
    assert found.policy == "FAIL"

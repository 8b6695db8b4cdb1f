"""The settings that `lakeload init` writes for a table of a database: none loads a row twice."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from lakeload.init.database import SMALL, Database, DatabaseTable
from lakeload.init.interview import interview
from tests.unit.init.choices import REQUIRED

POSTGRES, MARIA = "postgresql://u@h/shop", "mysql://u@h/shop"
KEYED = DatabaseTable("public.orders", "table", ("id",), bytes=SMALL + 1)
SMALL_TABLE = DatabaseTable("public.orders", "table", ("id",), "updated_at", SMALL)
KEYLESS = DatabaseTable("public.orders", "table", bytes=SMALL + 1)
UNKNOWN = DatabaseTable("public.orders", "partitioned table", ("id",))


def written(url: str, table: DatabaseTable, mode: str = "", *, append_only: bool = False) -> Any:
    [lines] = Database(url, password=True, tables=(table,)).table_lines(
        mode, append_only=append_only
    )
    [settings] = yaml.safe_load("\n".join(lines))
    del settings["table"]
    return settings


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("public.Orders", {"name": "orders"}),
        ("Sales.Orders", {"name": "orders", "namespace": "shop_sales"}),
        ("public._Old", {"name": "old"}),
        ("public.orders", {}),
    ],
)
def test_catalog_that_refuses_capitals_gets_names_in_lower_case(
    name: str, settings: dict[str, str]
) -> None:
    table = DatabaseTable(name, "table")
    [lines] = Database(POSTGRES, True, (table,), "shop").table_lines("", append_only=False)
    [written_names] = yaml.safe_load("\n".join(lines))

    assert {key: written_names[key] for key in ("name", "namespace") if key in written_names} == (
        settings
    )


UPSERT = {"mode": "UPSERT", "detect_deletes": True}


@pytest.mark.parametrize(
    ("url", "table", "mode", "settings"),
    [
        (POSTGRES, KEYED, "", {**UPSERT, "cursor": "xmin"}),
        (POSTGRES, UNKNOWN, "", {**UPSERT, "cursor": "xmin"}),
        (POSTGRES, KEYLESS, "", {"mode": "OVERWRITE"}),
        (POSTGRES, SMALL_TABLE, "", {"mode": "OVERWRITE"}),
        (POSTGRES, SMALL_TABLE, "UPSERT", {**UPSERT, "cursor": "xmin"}),
        (POSTGRES, KEYLESS, "UPSERT", {"mode": "OVERWRITE"}),
        (POSTGRES, KEYED, "OVERWRITE", {"mode": "OVERWRITE"}),
        (POSTGRES, KEYED, "APPEND", {"cursor": "xmin"}),
        (MARIA, KEYED, "", UPSERT),
        (MARIA, SMALL_TABLE, "", {"mode": "OVERWRITE"}),
        (MARIA, KEYED, "APPEND", {"on_append_again": "FAIL"}),
    ],
)
def test_table_of_iceberg_gets_what_is_exact_by_itself(
    url: str, table: DatabaseTable, mode: str, settings: Any
) -> None:
    assert written(url, table, mode) == settings


@pytest.mark.parametrize("table", [KEYED, KEYLESS, SMALL_TABLE])
def test_table_of_parquet_files_is_loaded_once(table: DatabaseTable) -> None:
    assert written(POSTGRES, table, append_only=True) == {"cursor": "xmin"}
    assert written(MARIA, table, append_only=True) == {"on_append_again": "FAIL"}


def test_column_that_may_be_a_cursor_is_a_comment_with_its_conditions() -> None:
    def lines(table: DatabaseTable) -> list[str]:
        [found] = Database(MARIA, password=True, tables=(table,)).table_lines("", append_only=True)
        return found

    safe = "only if each change gets a greater value, and commits in that order"
    assert lines(SMALL_TABLE)[-1] == f"    # cursor: updated_at   # {safe}"
    assert lines(KEYED)[-1] == f"    # cursor: id   # {safe}"
    assert "cursor:" not in lines(KEYLESS)[-1]


def test_mode_is_not_asked_for_a_database() -> None:
    asked: list[str] = []

    def ask(question: Any, choices: Any, default: str | None, finding: Any) -> str:
        asked.append(question.name)
        return default or ""

    flags = {"bucket": "b-1", "region": "us-east-1", "table_format": "ICEBERG", "name": "shop"}
    of_database = interview({**flags, "from_url": POSTGRES}, {}, ask)
    assert "mode" not in asked
    assert of_database.mode == ""
    of_files = interview({**flags, "path": REQUIRED["path"]}, {}, ask)
    assert "mode" in asked
    assert of_files.mode == "APPEND"

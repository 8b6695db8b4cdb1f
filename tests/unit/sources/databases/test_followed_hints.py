"""Hints about cursors, followed literally in the pipeline: the same table is then read by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakeload.documents.spec import table_specs
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import NO_OPTIONS, JdbcInput
from lakeload_jobs.sources.databases.columns import CatalogColumn
from lakeload_jobs.sources.databases.cursors import CursorRequest, request_of
from lakeload_jobs.sources.databases.jdbc_driver import Relation
from tests.hints import clauses, follow, follows
from tests.unit.documents.documents import pipeline

COLUMNS = {
    "postgresql://db.example.com/shop": {
        "id": "int8", "at": "timestamp", "word": "text", "data": "jsonb",
    },
    "sqlserver://db.example.com/shop": {"id": "BIGINT", "at": "TIMESTAMP"},
    "oracle://db.example.com/shop": {"id": "NUMERIC", "at": "TIMESTAMP"},
    "jdbc:h2:tcp://db.example.com/shop": {"id": "BIGINT", "word": "VARCHAR"},
}  # fmt: skip
"""The columns of the table `orders` of each database, with their types."""
POSTGRES, SQLSERVER, ORACLE, OTHER = COLUMNS


@dataclass(frozen=True)
class Case:
    """A database, and the settings of its table; `key` is the setting that the hint is about."""

    url: str = POSTGRES
    table: dict[str, Any] = field(default_factory=dict)
    key: str = "cursor"


CASES = {
    "a type without an order": Case(table={"cursor": "data"}),
    "a timestamp of SQL Server": Case(SQLSERVER, {"cursor": "at"}),
    "a timestamp of Oracle": Case(ORACLE, {"cursor": "at"}),
    "text of another database": Case(OTHER, {"cursor": "word"}),
    "a column that is not there": Case(table={"cursor": "modified_on"}),
    "a distance of text": Case(table={"cursor": "word", "lookback": "10"}, key="lookback"),
    "a duration of integers": Case(table={"cursor": "id", "lookback": "PT10M"}, key="lookback"),
    "a number of timestamps": Case(table={"cursor": "at", "lookback": "10"}, key="lookback"),
}


def _request(folder: Path, document: dict[str, Any]) -> CursorRequest:
    """Return what a load of the first table asks of its database."""
    [table] = table_specs(pipeline(folder, yaml.safe_dump(document)))
    assert isinstance(table.input, JdbcInput)
    columns = [
        CatalogColumn(name, type_, type_, scale=0)
        for name, type_ in COLUMNS[document["source"]["url"]].items()
    ]
    relation = Relation("public", "orders", '"')
    return request_of(table.input, table, relation, columns, (), ("id",), NO_OPTIONS)


@pytest.mark.parametrize(("name", "case"), CASES.items(), ids=CASES.keys())
def test_a_hint_about_a_cursor_lets_the_table_be_read(
    tmp_path: Path, name: str, case: Case
) -> None:
    source: dict[str, Any] = {"type": "JDBC", "url": case.url, "user": "sa"}
    if case.url in (ORACLE, OTHER):
        source["jar"] = ["driver.jar"]
    table = {"table": "public.orders", "primary_key": ["id"], **case.table}
    document: dict[str, Any] = {
        "version": 1, "name": "shop", "source": source, "tables": [table],
        "destination": {"version": 1, "bucket": "my-data-lake", "region": "us-east-1"},
    }  # fmt: skip
    with pytest.raises(InvalidInput) as raised:
        _request(tmp_path, document)
    hint = raised.value.hint or ""
    follows(__file__, name, hint)

    [clause] = clauses(hint)
    changed = follow(document, clause, f"tables[0].{case.key}", cursor="id")

    assert _request(tmp_path, changed).cursor.name == changed["tables"][0]["cursor"]

"""Hints about cursors, drivers and readers, followed literally in the pipeline."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakeload.documents.spec import table_specs
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import NO_OPTIONS, JdbcInput, TableSpec
from lakeload_jobs.sources.databases.columns import CatalogColumn, Relation
from lakeload_jobs.sources.databases.cursors import CursorRequest, request_of
from lakeload_jobs.sources.databases.engines.driver.catalog import driver_class
from lakeload_jobs.sources.databases.engines.driver.engine import DRIVER
from lakeload_jobs.sources.databases.engines.registry import ENGINES
from tests.hints import clauses, follow, follows
from tests.unit.documents.documents import pipeline

COLUMNS = {
    "postgresql://db.example.com/shop": {
        "id": "int8", "at": "timestamp", "word": "text", "data": "jsonb",
    },
    "mysql://db.example.com/shop": {"id": "int", "at": "datetime"},
    "sqlserver://db.example.com/shop": {"id": "BIGINT", "at": "TIMESTAMP"},
    "oracle://db.example.com/shop": {"id": "NUMERIC", "at": "TIMESTAMP"},
    "jdbc:h2:tcp://db.example.com/shop": {"id": "BIGINT", "word": "VARCHAR"},
}  # fmt: skip
"""The columns of the table `orders` of each database, with their types."""
POSTGRES, MYSQL, SQLSERVER, ORACLE, OTHER = COLUMNS


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
    "late rows without a key": Case(
        table={"cursor": "id", "lookback": "10", "primary_key": None}, key="lookback"
    ),
}


def _table(folder: Path, document: dict[str, Any]) -> tuple[TableSpec, JdbcInput]:
    """Return the table of a pipeline, and its input."""
    [table] = table_specs(pipeline(folder, yaml.safe_dump(document)))
    assert isinstance(table.input, JdbcInput)
    return table, table.input


def _document(source: dict[str, Any], table: dict[str, Any], **settings: Any) -> dict[str, Any]:
    return {
        "version": 1, "name": "shop", "source": {"type": "JDBC", "user": "sa", **source},
        "tables": [{"table": "public.orders", **table}],
        "destination": {"version": 1, "bucket": "my-data-lake", "region": "us-east-1"},
        **settings,
    }  # fmt: skip


def _request(folder: Path, document: dict[str, Any]) -> CursorRequest:
    """Return what a load of the first table asks of its database."""
    table, given = _table(folder, document)
    columns = [
        CatalogColumn(name, type_, type_, scale=0)
        for name, type_ in COLUMNS[document["source"]["url"]].items()
    ]
    relation = Relation("public.orders", '"public"."orders"')
    return request_of(
        given, ENGINES[given.database].cursors, table, relation, columns, (), ("id",), NO_OPTIONS
    )


@pytest.mark.parametrize(("name", "case"), CASES.items(), ids=CASES.keys())
def test_a_hint_about_a_cursor_lets_the_table_be_read(
    tmp_path: Path, name: str, case: Case
) -> None:
    jar = {"jar": ["driver.jar"]} if case.url in (ORACLE, OTHER) else {}
    table = {"primary_key": ["id"], **case.table}
    kept = {key: value for key, value in table.items() if value is not None}
    document = _document({"url": case.url, **jar}, kept)
    with pytest.raises(InvalidInput) as raised:
        _request(tmp_path, document)
    hint = raised.value.hint or ""
    follows(__file__, name, hint)

    told = clauses(hint)
    assert told, hint
    for clause in told:
        changed = follow(document, clause, f"tables[0].{case.key}", cursor="id", primary_key=["id"])

        assert _request(tmp_path, changed).cursor.name == changed["tables"][0]["cursor"]


@pytest.mark.parametrize("url", COLUMNS)
def test_the_column_that_a_cursor_was_meant_to_be_is_named(tmp_path: Path, url: str) -> None:
    jar = {"jar": "driver.jar"} if url in (ORACLE, OTHER) else {}
    document = _document({"url": url, **jar}, {"primary_key": ["id"], "cursor": "idd"})
    with pytest.raises(InvalidInput, match="there is no column `idd`") as raised:
        _request(tmp_path, document)
    assert raised.value.hint == "did you mean `id`?"

    document["tables"][0]["cursor"] = "id"

    assert _request(tmp_path, document).cursor.name == "id"


SERVICES = "META-INF/services/java.sql.Driver"
DRIVERS: dict[str, tuple[Mapping[str, str] | None, str]] = {
    "a jar with several drivers": ({SERVICES: "com.example.Old\ncom.example.Driver\n"}, "driver"),
    "a jar that names no driver": ({}, "driver"),
    "a file that is no jar": (None, "jar"),
}
"""What `first.jar` has beside the class of the driver, None for no jar, and the setting that the
hint is about."""


def _jar(path: Path, members: Mapping[str, str] | None) -> None:
    if members is None:
        path.write_bytes(b"<html>not found</html>")
        return
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {"com/example/Driver.class": "", **members}.items():
            archive.writestr(name, text)


@pytest.mark.parametrize("name", DRIVERS)
def test_a_hint_about_a_driver_names_the_class_that_connects(tmp_path: Path, name: str) -> None:
    members, setting = DRIVERS[name]
    _jar(tmp_path / "first.jar", members)
    _jar(tmp_path / "driver.jar", {SERVICES: "com.example.Driver"})
    document = _document({"url": OTHER, "jar": "first.jar"}, {})
    with pytest.raises(InvalidInput) as raised:
        driver_class(DRIVER.dialect, _table(tmp_path, document)[1])
    hint = raised.value.hint or ""
    follows(__file__, name, hint)

    [clause] = clauses(hint)
    values = {"driver": "com.example.Driver", "jar": "driver.jar"}
    changed = follow(document, clause, f"source.{setting}", **values)

    assert driver_class(DRIVER.dialect, _table(tmp_path, changed)[1]) == "com.example.Driver"


READERS = {
    "MySQL without Spark's reader": (MYSQL, "JVM"),
    "a driver of Java without Spark": (OTHER, "DIRECT"),
}


@pytest.mark.parametrize("name", READERS)
def test_a_hint_about_a_reader_leaves_the_choice_to_the_database(tmp_path: Path, name: str) -> None:
    url, reader = READERS[name]
    jar = {"jar": "driver.jar"} if url == OTHER else {}
    document = _document({"url": url, **jar}, {}, spark={"reader": reader})

    def check(document: dict[str, Any]) -> None:
        read = pipeline(tmp_path, yaml.safe_dump(document))
        [table] = table_specs(read)
        assert isinstance(table.input, JdbcInput)
        ENGINES[table.input.database].check_reader(read.model.spark.reader)

    with pytest.raises(InvalidInput) as raised:
        check(document)
    hint = raised.value.hint or ""
    follows(__file__, name, hint)

    check(follow(document, hint, "tables[0].table"))

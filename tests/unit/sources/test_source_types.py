"""A second type of source, as one would be added: its package, and a line of the registry."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml
from pydantic import Field

from lakeload.config.model import Finding
from lakeload.config.problems import InvalidDocuments, Problem
from lakeload.config.scalars import Text
from lakeload.config.secret_names import absolute_reference
from lakeload.config.secret_setting import Secret
from lakeload.documents.load import load_pipeline
from lakeload.documents.spec import table_specs
from lakeload.formats.inspection import InspectionRequest, with_input
from lakeload.formats.parquet.inspect import ParquetState
from lakeload.formats.parquet.plan import plan_states
from lakeload.launch.run import refuse_without_any_input
from lakeload.launch.spec import Attempt, check_options
from lakeload.machine.jars.pins import jar_sets_for
from lakeload.policy.iam import source_policy
from lakeload.sources.base import SourceSettings, SourceType, TableSettings
from lakeload.sources.registry import SOURCES
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.codec import CodecError, from_json, to_json
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    NO_OPTIONS,
    DestinationSpec,
    FilesInput,
    RunOptions,
    TableSpec,
)
from lakeload_jobs.formats.parquet.log.table_log import OpenedLog
from lakeload_jobs.sources.readers import SourceReaders
from tests.reference import reference_page
from tests.unit.documents.documents import (
    PIPELINE,
    TABLES,
    messages,
    pipeline,
    problems_of,
    validator,
)
from tests.unit.launch.specs import ATTEMPT, SYNCED


@dataclass(frozen=True)
class JdbcInput:
    """A query of a database."""

    url: str
    query: str
    password: SecretReference | None = None
    incremental: bool = False
    type: Literal["JDBC"] = "JDBC"


class JdbcSource(SourceSettings):
    """A database that answers over JDBC."""

    type: Literal["JDBC"]
    """`JDBC`."""
    url: Text
    """Where the database answers."""
    password: Secret = None
    """Who asks. Secret."""
    fetch_size: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Rows of a round trip."""


class JdbcTable(TableSettings):
    """A table of a database, or a query."""

    query: Text | None = None
    """What to read. Default: the whole table."""


class Jdbc(SourceType[JdbcSource, JdbcTable, JdbcInput]):
    settings = JdbcSource
    table = JdbcTable

    def written(self, source: JdbcSource, table: JdbcTable) -> JdbcInput:
        return JdbcInput(source.url, table.query or f"TABLE {table.table}")

    def resolved(self, written: JdbcInput, source: JdbcSource, folder: Path) -> JdbcInput:
        return replace(written, password=absolute_reference(source.password, folder))

    def identity(self, written: JdbcInput) -> Mapping[str, Any]:
        return {"type": "JDBC", "url": written.url, "query": written.query}

    def findings(self, source: Any, tables: Sequence[tuple[int, JdbcTable]]) -> Iterator[Finding]:
        for i, table in tables:
            if table.query and not table.query.upper().startswith("SELECT "):
                yield Finding("`query` does not read", "begin with SELECT", ("tables", i, "query"))


JDBC = Jdbc()
DATABASE = """\
version: 1
name: shop
destination: {version: 1, bucket: my-data-lake, region: us-east-1}
source:
  type: JDBC
  url: jdbc:postgresql://db/shop
  password: {file: password.txt}
tables:
  - {table: public.orders, query: SELECT 1, where: a > 0}
  - {table: public.items}
"""


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    validator.cache_clear()
    monkeypatch.setitem(SOURCES, JDBC.name, JDBC)
    yield
    validator.cache_clear()


def test_source_settings_become_the_job_spec(tmp_path: Path) -> None:
    orders, items = table_specs(pipeline(tmp_path, DATABASE))

    password = SecretReference("file", f"{tmp_path}/password.txt")
    assert orders.input == JdbcInput("jdbc:postgresql://db/shop", "SELECT 1", password)  # type: ignore[comparison-overlap]
    assert items.input == replace(orders.input, query="TABLE public.items")  # type: ignore[arg-type]
    assert (orders.where, orders.target) == ("a > 0", "public_orders")


@dataclass(frozen=True)
class LaterTableSpec(TableSpec):
    """A table as the contract will have it then."""

    input: FilesInput | JdbcInput  # type: ignore[assignment]


@pytest.mark.parametrize("text", [DATABASE, PIPELINE + TABLES])
def test_source_type_is_part_of_the_spec(text: str, tmp_path: Path) -> None:
    for spec in table_specs(pipeline(tmp_path, text)):
        data = json.loads(json.dumps(to_json(spec)))
        assert to_json(from_json(LaterTableSpec, data)) == data
        with pytest.raises(CodecError, match=r"\$\.input\.type: 'KAFKA' is not one of"):
            from_json(LaterTableSpec, data | {"input": data["input"] | {"type": "KAFKA"}})


def test_a_second_source_changes_no_fingerprint_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mark(text: str, **options: Any) -> str:
        return table_specs(pipeline(tmp_path, text), RunOptions(**options))[0].fingerprint

    with_two = mark(PIPELINE + TABLES)
    monkeypatch.delitem(SOURCES, JDBC.name)
    assert mark(PIPELINE + TABLES) == with_two
    monkeypatch.setitem(SOURCES, JDBC.name, JDBC)

    whole = mark(DATABASE)
    assert mark(DATABASE.replace("password.txt", "p")) == whole
    assert mark(DATABASE.replace("url", "fetch_size: 9\n  url")) == whole
    assert mark(DATABASE.replace("SELECT 1", "SELECT 2")) != whole
    assert mark(DATABASE.replace("db/shop", "db/other")) != whole


def test_source_without_files_passes_the_checks_before_spark(tmp_path: Path) -> None:
    tables = table_specs(pipeline(tmp_path, DATABASE))
    destination = DestinationSpec("lake", "us-east-1")
    request = InspectionRequest(destination, "shop", Attempt("job-1", ATTEMPT, SYNCED), NO_OPTIONS)

    check_options(tables, "PARQUET", RunOptions(limit=1))
    refuse_without_any_input(tables)
    states = [
        with_input(
            ParquetState(table, OpenedLog(1, None, first_run=True, column_map={}, columns=())),
            SourceReaders(destination, AwsSession(destination)),
            RunOptions(),
            known=False,
            bookmark=None,
        )
        for table in tables
    ]
    plan = plan_states(states, request, local=True)[0]

    assert (plan.action, plan.index, plan.numbering) == ("LOAD", "sparse", "not counted")
    assert (plan.reader, plan.missing) == ("jvm", ())
    assert jar_sets_for(table.input for table in tables) == ()
    assert all(JDBC.count_files(table.input).size is None for table in tables)  # type: ignore[arg-type]
    assert source_policy(destination, tables) is None


def places(problems: list[Problem]) -> list[tuple[str, int, int, str]]:
    return [(problem.key, problem.line, problem.column, problem.code) for problem in problems]


@pytest.mark.parametrize(
    ("old", "new", "place", "message", "hint"),
    [
        (
            "type: JDBC",
            "type: JDCB",
            ("source.type", 5, 9, "unknown-value"),
            "`type` cannot be `JDCB`",
            "did you mean `JDBC`?",
        ),
        (
            "type: JDBC",
            "type: jdbc",
            ("source.type", 5, 9, "unknown-value"),
            "`type` cannot be `jdbc`",
            "write `JDBC`",
        ),
        (
            "url: j",
            "urll: j",
            ("source.urll", 6, 3, "unknown-key"),
            "unknown key `urll`",
            "did you mean `url`?",
        ),
        (
            "  password",
            "  format: CSV\n  password",
            ("source.format", 7, 3, "unknown-key"),
            "unknown key `format`",
            "there are",
        ),
        (
            "query: SELECT 1",
            "path: a.csv",
            ("tables[0].path", 9, 28, "unknown-key"),
            "unknown key `path`",
            "there are",
        ),
        (
            "query: SELECT 1",
            "query: DROP 1",
            ("tables[0].query", 9, 28, "invalid"),
            "`query` does not read",
            "begin with SELECT",
        ),
        (
            "  password",
            "  fetch_size: 0\n  password",
            ("source.fetch_size", 7, 15, "out-of-range"),
            "`fetch_size` cannot be `0`",
            "it can be 1 to 100000",
        ),
        (
            "{file: password.txt}",
            "hunter2",
            ("source.password", 7, 13, "secret-literal"),
            "`password`",
            None,
        ),
        (
            "  url: jdbc:postgresql://db/shop\n",
            "",
            ("source.url", 4, 1, "missing-key"),
            "`url` is missing in `source`",
            "add",
        ),
    ],
)
def test_source_mistakes_are_reported_at_their_lines(
    old: str,
    new: str,
    place: tuple[str, int, int, str],
    message: str,
    hint: str | None,
    tmp_path: Path,
) -> None:
    assert old in DATABASE
    (problem,) = problems_of(tmp_path, DATABASE.replace(old, new, 1))

    assert places([problem]) == [place]
    assert message in problem.message
    assert "hunter2" not in str(problem)
    assert hint is None or hint in (problem.hint or "")


def test_file_source_settings_are_unchanged(tmp_path: Path) -> None:
    text = (PIPELINE + TABLES).replace("path: orders.csv", "query: SELECT 1")

    assert messages(problems_of(tmp_path, text)) == [
        "`path` is missing in `tables[0]`",
        "unknown key `query`",
    ]
    nearly = (PIPELINE + TABLES).replace("type: FILES", "type: FILE")
    (problem,) = problems_of(tmp_path, nearly)
    assert (problem.message, problem.hint) == ("`type` cannot be `FILE`", "did you mean `FILES`?")


def test_unavailable_source_type_is_named(tmp_path: Path) -> None:
    text = DATABASE.replace("type: JDBC", "type: KAFKA").replace(", query: SELECT 1", "")
    (problem,) = problems_of(tmp_path, text)

    assert problem.message == "`type: KAFKA` is not supported yet"


def test_an_invalid_document_loads_nothing(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.yml"
    path.write_text(DATABASE.replace("url:", "uri:"))

    with pytest.raises(InvalidDocuments):
        load_pipeline(path, {})


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        (DATABASE, True),
        (PIPELINE + TABLES, True),
        (DATABASE.replace("type: JDBC", "type: FILES"), False),
        ((PIPELINE + TABLES).replace("FILES", "JDBC"), False),
        (DATABASE.replace("query", "path"), False),
        (DATABASE.replace("type: JDBC", "type: KAFKA"), False),
    ],
)
def test_json_schema_has_one_variant_per_source(text: str, valid: bool) -> None:
    schema: Any = validator("pipeline").schema

    assert validator("pipeline").is_valid(yaml.safe_load(text)) == valid
    assert len(schema["oneOf"]) == len(SOURCES)


def test_the_reference_has_the_settings_of_each_type() -> None:
    page = reference_page()

    parts = {part.partition("\n")[0]: part for part in page.split("### ")}
    files, jdbc = (parts[f"pipeline.yml: `source` of type `{name}`"] for name in ("FILES", "JDBC"))
    assert "| `incremental` |" in files
    assert "| `fetch_size` | whole number, 1 to 100000 | `1000` | Rows of a round trip. |" in jdbc
    assert "| `password` | secret reference | – | Who asks. Secret. |" in jdbc
    common = parts["pipeline.yml: `tables[]`"]
    assert "| `where` |" in common
    assert "| `path` |" not in common
    assert "| `path` |" in parts["pipeline.yml: `tables[]` of a source of type `FILES`"]
    assert "| `query` |" in parts["pipeline.yml: `tables[]` of a source of type `JDBC`"]
